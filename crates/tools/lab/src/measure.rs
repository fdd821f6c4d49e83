//! Builds a bridge, runs all measurements over the bridge, and removes the bridge.

use super::bridge::Bridge;
use super::cables::{Far, ports};
use super::child::Child;
use super::experiment::{Experiment, Run, file_name};
use super::place::Place;
use super::results::{BridgeReport, GateCheck, Outcome, ReadsResult, RunResult};
use super::site::{Site, output};
use super::stress::Stress;
use super::{check, reads::Reads, twin};
use latency_linux::Document;
use report::Failure;
use report::document::json;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// Maximum time for a program to start listening, and to end.
const READY: Duration = Duration::from_secs(60);
/// Maximum time for a listener to end after the talker.
const LISTENER: Duration = Duration::from_secs(5);
/// Seconds for which load and reads continue after the frames.
pub const BEYOND: u64 = 3;

/// Measures a bridge.
pub fn measure(
    experiment: &Experiment,
    bridge: Bridge,
    site: &mut Site<'_>,
    progress: &mut dyn FnMut(&str),
) -> BridgeReport {
    let mut report = BridgeReport {
        bridge,
        outcome: Outcome::Passes,
        why: String::new(),
        gate: None,
        settings: Vec::new(),
        calibration: None,
        runs: Vec::new(),
    };
    progress(&format!("{}: building", bridge.name()));
    let built =
        check::possible(experiment, bridge).and_then(|()| site.build(&experiment.steps(bridge)));
    let measured = match built {
        Ok(()) => {
            runs(experiment, site, progress, &mut report).map_err(|why| (Outcome::Failed, why))
        }
        Err(why) => Err((Outcome::Refused, why)),
    };
    let measured = match measured {
        Err(_) if site.operator().has_stopped() => {
            Err((Outcome::Interrupted, Failure(String::new())))
        }
        other => other,
    };
    if let Some(gate) = &report.gate {
        check::measured(gate, &mut report.settings);
    }
    if let Err((outcome, Failure(why))) = measured {
        (report.outcome, report.why) = (outcome, why);
    }
    if let Err(Failure(why)) = site.take_down() {
        let both = [std::mem::take(&mut report.why), why];
        report.why = both.into_iter().filter(|why| !why.is_empty()).collect::<Vec<_>>().join("; ");
        report.outcome = Outcome::Failed;
    }
    progress(&format!("{}: simulating", bridge.name()));
    if let Err(Failure(why)) = twin::add(experiment, &mut report) {
        (report.outcome, report.why) = (Outcome::Failed, why);
    }
    report
}

fn runs(
    experiment: &Experiment,
    site: &mut Site<'_>,
    progress: &mut dyn FnMut(&str),
    report: &mut BridgeReport,
) -> report::Outcome {
    await_guest(experiment, site, report.bridge)?;
    site.build(&experiment.late_steps())?;
    report.settings = check::settings(experiment, report.bridge);
    for run in experiment.runs() {
        progress(&format!("{}: {}", report.bridge.name(), run.name));
        let done = one(experiment, report.bridge, &run, site)
            .map_err(|why| Failure(format!("{}: {}", run.name, why.0)))?;
        let counts = done.listen.as_ref().unwrap_or(&done.talk).counts;
        let passes = counts.is_none_or(|counts| counts.received > 0);
        // Use the time stamp after the gate, by the gate's clock.
        let (document, stamp) = match &done.listen {
            Some(listen) => (listen, "arrival"),
            None => (&done.talk, "departure"),
        };
        // Arrivals by another clock do not show windows.
        let is_one_clock = done.listen.is_none() || done.talk.analysis.clock.proven_ns == 0;
        match &mut report.gate {
            gate if !is_one_clock => *gate = None,
            gate if run.looks_for_gates => *gate = GateCheck::from_document(document, stamp),
            Some(gate) => gate.and(document, stamp),
            None => {}
        }
        report.settings.extend(
            check::tags(experiment, &done)
                .filter(|_| run.looks_for_gates || report.runs.is_empty()),
        );
        report.runs.push(done);
        site.go_on()?;
        if !passes {
            report.outcome = Outcome::LosesEverything;
            return Ok(());
        }
    }
    Ok(())
}

/// Prints how to start a guest, and waits until the guest answers.
fn await_guest(experiment: &Experiment, site: &mut Site<'_>, bridge: Bridge) -> report::Outcome {
    let Far::Guest { interface, mac } = &experiment.far else { return Ok(()) };
    if interface == "tap" {
        site.operator().inform(&ports(&experiment.place).guest(bridge, mac));
    }
    let line = experiment.in_guest();
    site.operator().inform(&format!("waiting for the guest, in which runs: {line}"));
    let deadline = Instant::now() + std::time::Duration::from_nanos(experiment.patience.as_ns());
    loop {
        let mut talker = site.start(&experiment.call(), "call.log")?;
        talker.finish(READY, site.operator())?;
        site.go_on()?;
        let answered = document(&talker)?.counts.is_some_and(|counts| counts.received > 0);
        match answered {
            true => return Ok(()),
            false if Instant::now() > deadline => {
                return Err(Failure("no guest answered".into()));
            }
            false => {}
        }
    }
}

fn one(
    experiment: &Experiment,
    bridge: Bridge,
    run: &Run,
    site: &mut Site<'_>,
) -> Result<RunResult, Failure> {
    let (operator, seconds) = (site.operator(), experiment.seconds(run));
    let mut listener = listener(experiment, bridge, run, site)?;
    let mut load = load(experiment, run, site, seconds)?;
    let mut reads =
        run.reads.as_ref().map(|reads| Reading::start(experiment, reads, site, seconds));
    let (bytes, since) = (received(experiment)?, Instant::now());
    let mut talker = site.start(&experiment.talk(bridge, run), "talk.log")?;
    let limit = READY + Duration::from_secs(2 * seconds);
    talker.finish(limit, operator).map_err(|why| about("the talker", &why))?;
    let elapsed = since.elapsed().as_nanos().max(1);
    let bits = u128::from(received(experiment)?.saturating_sub(bytes)) * 8 * 1_000_000_000;
    let reads = reads.as_mut().map(|reads| match reads {
        Ok(reading) => reading.finish(READY + Duration::from_secs(2 * seconds), site),
        Err(why) => Reading::refused(run.reads.as_ref(), why),
    });
    for program in &mut load {
        if let Some(why) = program.failed()? {
            return Err(about("the load", &Failure(why)));
        }
    }
    drop(load);
    if let Some(listener) = &mut listener {
        // A listener without frames would wait longer.
        let ended = listener.finish_or(Signal::INT, LISTENER, operator);
        ended.map_err(|why| about("the listener", &why))?;
    }
    let done = RunResult {
        name: run.name.clone(),
        talk: document(&talker)?,
        listen: listener.as_ref().map(document).transpose()?,
        received_bits_per_second: u64::try_from(bits / elapsed).ok().filter(|_| listener.is_some()),
        reads,
        twin: None,
    };
    keep(experiment, bridge, run, &done)?;
    Ok(done)
}

/// Starts the listener, unless the guest runs it.
fn listener(
    experiment: &Experiment,
    bridge: Bridge,
    run: &Run,
    site: &mut Site<'_>,
) -> Result<Option<Child>, Failure> {
    match experiment.far {
        Far::Guest { .. } => Ok(None),
        Far::Namespace => {
            let listener = site.start(&experiment.listen(bridge, run), "listen.log")?;
            let ready = listener.wait_for("listening on", READY, site.operator());
            ready.map_err(|why| about("the listener", &why))?;
            Ok(Some(listener))
        }
    }
}

fn load(
    experiment: &Experiment,
    run: &Run,
    site: &mut Site<'_>,
    seconds: u64,
) -> Result<Vec<Child>, Failure> {
    let Some(stress) = experiment.stress.filter(|_| run.is_loaded) else { return Ok(Vec::new()) };
    let mut load = Vec::new();
    if experiment.far == Far::Namespace {
        let (server, ready) = Stress::server(&experiment.place);
        let server = site.start(&server, "stress-server.log")?;
        server.wait_for(ready, READY, site.operator())?;
        load.push(server);
    }
    let client = stress.client(&enter(&experiment.place), seconds + BEYOND);
    load.push(site.start(&client, "stress.log")?);
    Ok(load)
}

/// Returns the prefix that runs a program in the talker's namespace.
pub fn enter(place: &Place) -> String {
    format!("ip netns exec {} ", place.talker())
}

/// Returns the number of bytes that arrived at the listener's interface; 0 if the listener is a
/// guest.
fn received(experiment: &Experiment) -> Result<u64, Failure> {
    if experiment.far != Far::Namespace {
        return Ok(0);
    }
    let listener = experiment.place.listener();
    let line = format!("ip netns exec {listener} cat /sys/class/net/far/statistics/rx_bytes");
    let text = output(&line)?;
    text.trim().parse().map_err(|_| Failure(format!("`{line}` printed '{}'", text.trim())))
}

fn about(program: &str, Failure(why): &Failure) -> Failure {
    Failure(format!("{program}: {why}"))
}

fn document(child: &Child) -> Result<Document, Failure> {
    let text = child.output()?;
    serde_json::from_str(&text).map_err(|error| Failure(format!("no JSON document: {error}")))
}

fn keep(experiment: &Experiment, bridge: Bridge, run: &Run, done: &RunResult) -> report::Outcome {
    let Some(folder) = &experiment.keep else { return Ok(()) };
    let documents = [("talk", Some(&done.talk)), ("listen", done.listen.as_ref())];
    for (end, document) in documents {
        let Some(document) = document else { continue };
        let path = format!("{folder}/{}.json", file_name(bridge, run, end));
        std::fs::write(&path, json(document))
            .map_err(|error| Failure(format!("{path}: {error}")))?;
    }
    Ok(())
}

struct Reading {
    reads: Reads,
    initiator: Child,
    /// The device node, which ends after the initiator.
    _device: Child,
}

impl Reading {
    fn start(
        experiment: &Experiment,
        reads: &Reads,
        site: &mut Site<'_>,
        seconds: u64,
    ) -> Result<Self, Failure> {
        let address = experiment.far(reads.is_tagged());
        let (device, ready) = reads.device(&experiment.place, address);
        let device = site.start(&device, "device.log")?;
        device.wait_for(ready, READY, site.operator())?;
        let initiator = reads.io(&experiment.place, address, seconds + BEYOND);
        let initiator = site.start(&initiator, "io.log")?;
        Ok(Self { reads: reads.clone(), initiator, _device: device })
    }

    fn finish(&mut self, limit: Duration, site: &Site<'_>) -> ReadsResult {
        let mut result = Self::refused(Some(&self.reads), &Failure(String::new()));
        // The initiator prints its document also after an error.
        if let Err(Failure(why)) = self.initiator.finish(limit, site.operator()) {
            result.why = why;
        }
        let text = self.initiator.output().unwrap_or_default();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let all = &document["sections"][0]["all"];
        if !all.is_object() && result.why.is_empty() {
            result.why = "no document came".to_owned();
        }
        let figure = |name: &str| all[name].as_u64().unwrap_or(0);
        let [n, p50_ns, p99_ns, max_ns] = ["n", "p50_ns", "p99_ns", "max_ns"].map(figure);
        ReadsResult { n, p50_ns, p99_ns, max_ns, ..result }
    }

    fn refused(reads: Option<&Reads>, why: &Failure) -> ReadsResult {
        ReadsResult {
            priority: reads.and_then(|reads| reads.priority),
            gated: reads.is_some_and(|reads| !reads.gate.is_empty()),
            n: 0,
            p50_ns: 0,
            p99_ns: 0,
            max_ns: 0,
            why: why.0.clone(),
        }
    }
}
