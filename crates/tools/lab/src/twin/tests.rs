//! Plans of experiments, their simulation, and the page.

use super::*;
use crate::cables::Far;
use crate::results::{GateCheck, GateVerdict, LabDocument, Outcome};
use crate::{Bridge, Gates, Place, Stress};
use latency::{Analysis, Slots};
use plan_text::Frames;
use sim::network::CableEnd;
use std::path::Path;
use tsn::taprio;
use wire::Duration;

const LIST: &str = "base-time 0 sched-entry S b7 10ms sched-entry S 88 10ms cycle-time 20ms";

fn experiment(gated: bool) -> Experiment {
    let list = taprio::parse(LIST).unwrap();
    Experiment {
        place: Place("test".to_owned()),
        far: Far::Namespace,
        gates: gated.then(|| Gates::new(Path::new("/gates"), list, 3).unwrap()),
        gates_first: false,
        vlan: 5,
        priority: 3,
        interval: None,
        offset: None,
        count: 40,
        isolated: None,
        kernel_fifo: None,
        drop: 0,
        options: [String::new(), String::new()],
        stress: Some(Stress { streams: 2, rate: 10_000_000 }),
        drive: false,
        gate_margin: None,
        patience: Duration::ZERO,
        keep: None,
    }
}

fn delays() -> Calibration {
    Calibration {
        why: String::new(),
        talker_ns: 45_000,
        bridge_ns: 30_000,
        jitter_ns: 4_000,
        listener_ns: 12_000,
    }
}

/// Simulates the run `name` with these delays.
fn simulated(experiment: &Experiment, delays: &Calibration, name: &str) -> (Analysis, u64) {
    let runs = experiment.runs();
    let run = runs.iter().find(|run| run.name == name).unwrap();
    let frames = Frames { payload: 104, count: experiment.timing(run).count };
    let plan = plan_text::text(experiment, delays, run, frames);
    let (analysis, counts) = simulate::simulate(experiment, run, frames.count, &plan).unwrap();
    assert_eq!(counts.sent, frames.count);
    (analysis, counts.received)
}

/// Returns a run whose measurement is a simulation with these delays.
fn measured(experiment: &Experiment, delays: &Calibration, name: &str) -> RunResult {
    let (analysis, _) = simulated(experiment, delays, name);
    let document = Document {
        schema: 1,
        end: "talk".to_owned(),
        label: format!("linux, {name}"),
        address: String::new(),
        run: String::new(),
        ended: "done".to_owned(),
        interval_ns: 20_000_000,
        cycle_ns: 20_000_000,
        window_ns: 10_000_000,
        size_bytes: 104,
        settings: Vec::new(),
        counts: None,
        faults: latency_linux::Faults::default(),
        tags: Vec::new(),
        band: None,
        analysis,
    };
    RunResult {
        name: name.to_owned(),
        talk: document.clone(),
        listen: Some(document),
        received_bits_per_second: None,
        reads: None,
        twin: None,
    }
}

fn report(runs: Vec<RunResult>) -> BridgeReport {
    BridgeReport {
        bridge: Bridge::Linux,
        outcome: Outcome::Passes,
        why: String::new(),
        gate: None,
        settings: Vec::new(),
        calibration: None,
        runs,
    }
}

#[test]
fn plan_of_a_loaded_run_is_golden() {
    let experiment = Experiment { drop: 1000, ..experiment(true) };
    let run = experiment.runs().pop().unwrap();
    let text = plan_text::text(&experiment, &delays(), &run, Frames { payload: 104, count: 40 });
    assert_eq!(text, include_str!("golden/loaded.toml"), "{text}");
    let plan = plan::Plan::parse("loaded.toml", &text).unwrap().build().unwrap();
    assert_eq!((plan.streams.len(), plan.overloads.len()), (3, 0));
}

#[test]
fn port_with_gates_is_the_labs_and_has_the_labs_list() {
    let guest = Far::Guest { interface: "tap".to_owned(), mac: "02:00:5e:10:00:02".to_owned() };
    for (far, port) in
        [(Far::Namespace, "bridge port 1 to listener"), (guest, "talker to bridge port 0")]
    {
        let experiment = Experiment { far, ..experiment(true) };
        let frames = Frames { payload: 1452, count: 40 };
        for run in experiment.runs() {
            let text = plan_text::text(&experiment, &Calibration::default(), &run, frames);
            let plan = plan::Plan::parse("plan", &text).unwrap().build().unwrap();
            let network = &plan.config.network;
            let ends: Vec<CableEnd> =
                network.cables.iter().flat_map(|cable| [cable.a, cable.b]).collect();
            let gated = ends.into_iter().filter_map(|end| {
                let gates = network.port(end).gates.as_ref()?;
                Some((plan.port_name(end), taprio::words(gates.list())))
            });
            let list = &experiment.gates.as_ref().unwrap().list;
            assert_eq!(gated.collect::<Vec<_>>(), [(port.to_owned(), taprio::words(list))]);
        }
    }
}

#[test]
fn gates_bring_frames_due_outside_into_their_window() {
    let all = |analysis: &Analysis| {
        let slots = analysis.slots.iter().find(|slots| slots.stamp == "arrival").unwrap();
        let Slots { n, in_slot, in_window, outside_due, .. } = *slots;
        [n, in_slot, in_window, outside_due]
    };
    let (analysis, received) = simulated(&experiment(true), &delays(), "gates");
    assert_eq!((all(&analysis), received), ([100; 4], 100));
    let (analysis, _) = simulated(&experiment(true), &delays(), "idle");
    assert_eq!(all(&analysis), [40, 40, 40, 0]);
    // A frame that leaves 9 ms late misses its window, whose rest is 8 ms.
    let late = Calibration { talker_ns: 9_000_000, ..delays() };
    let (analysis, _) = simulated(&experiment(true), &late, "idle");
    assert_eq!(all(&analysis), [40, 0, 40, 0]);
}

#[test]
fn calibration_finds_the_delays_of_a_simulated_idle_run() {
    let experiment = experiment(true);
    let exact = Calibration { jitter_ns: 0, ..delays() };
    let run = measured(&experiment, &exact, "idle");
    let mut found = Calibration::from_runs(&experiment, &[run]);
    assert!(found.bridge_ns.abs_diff(exact.bridge_ns) <= 2, "rounded lines: {found:?}");
    found.bridge_ns = exact.bridge_ns;
    assert_eq!(found, exact);
    let run = measured(&experiment, &delays(), "idle");
    let found = Calibration::from_runs(&experiment, &[run]).jitter_ns;
    assert!((2_000..8_000).contains(&found), "{found} of 40 frames with 4000");
}

#[test]
fn idle_run_without_use_does_not_calibrate() {
    let experiment = experiment(true);
    let why = |runs: &[RunResult]| Calibration::from_runs(&experiment, runs).why;
    let loaded = measured(&experiment, &delays(), "loaded");
    assert_eq!(why(&[loaded]), "there is no idle run without reads of a drive");
    let late = Calibration { talker_ns: 9_000_000, ..delays() };
    let late = measured(&experiment, &late, "idle");
    assert_eq!(why(&[late]), "only 0 of 40 idle frames were in their slot");
    let mut idle = measured(&experiment, &delays(), "idle");
    idle.talk.analysis.segments[1].caution = "the clocks differ".to_owned();
    assert_eq!(why(&[idle]), "wire to kernel of the idle run: the clocks differ");
}

#[test]
fn long_runs_are_simulated_in_part() {
    let mut experiment = experiment(false);
    // Two streams have three frames each 2 ms: one per 1.12 ms.
    let counts = |experiment: &Experiment| {
        let runs = experiment.runs();
        let counts = runs.iter().map(|run| Frames::new(experiment, run, 104, 900_000).count);
        counts.collect::<Vec<_>>()
    };
    assert_eq!(counts(&experiment), [200_000, 50_000]);
    experiment.stress = Some(Stress { streams: 64, rate: 1_000_000_000_000 });
    assert_eq!(counts(&experiment), [200_000, 1]);
}

#[test]
fn page_and_text_have_both_worlds() {
    let experiment = experiment(true);
    let runs = ["gates", "idle", "loaded"].map(|name| measured(&experiment, &delays(), name));
    let mut report = report(runs.to_vec());
    add(&experiment, &mut report).unwrap();
    let gate = GateCheck { verdict: GateVerdict::NotGated, n: 100, in_window: 40, early: 60 };
    report.gate = Some(gate);
    let results = LabDocument {
        schema: 1,
        name: "test".to_owned(),
        ended: "done".to_owned(),
        gates: LIST.to_owned(),
        machine: Vec::new(),
        bridges: vec![report],
    };
    let page = crate::show::page(&results);
    for run in ["gates", "idle", "loaded"] {
        let name = format!("linux, {run}");
        let series = [name.clone(), format!("{name}, simulated")];
        for series in series {
            // Segments that both worlds have, in one picture each.
            let found = page.matches(&format!("<title>{series}</title>")).count();
            assert!(found >= SEGMENTS.len(), "{series}: {found}");
        }
        assert!(page.contains(&format!("The plan of {name}, for farlane sim")));
    }
    let gates =
        "Frames in a window: measured 100, simulated 100. Outside: measured 0, simulated 0.";
    assert!(page.contains(gates));
    let text = crate::show::text(&results);
    let idle = text.lines().filter(|line| line.contains(" idle ") && line.contains('%'));
    let simulated = idle.filter(|line| line.contains("p50 calibrated"));
    assert_eq!(simulated.count(), 1, "{text}");
    assert_eq!(text.matches(" predicted ").count(), 2, "{text}");
    for says in ["linux: calibrated by the idle run: talker 45.000 us", "frames go round the gate"]
    {
        assert!(text.contains(says) && page.contains(says), "{says}: {text}");
    }
}
