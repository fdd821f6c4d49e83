//! An experiment as the text of a plan without hosts (docs/plan.md).

use super::Calibration;
use crate::cables::Far;
use crate::experiment::{Experiment, Run, Timing};
use crate::stress::Stress;
use crate::window::Gates;
use std::fmt::Write;
use wire::Duration;

/// The most simulated frames of a run, load included.
const MOST: u64 = 200_000;
/// The longest simulated time of frames, in ns: below the default of `limits.time`.
const LONGEST: u64 = 3_000_000_000_000;
/// Bytes of header and FCS of a frame without a tag.
const HEADER: u64 = 18;

/// Frames of a simulated run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames {
    /// Bytes of a payload.
    pub payload: u64,
    /// Number of frames.
    pub count: u64,
}

impl Frames {
    /// Returns the frames of a run that sent `sent` frames, as far as [`MOST`] and [`LONGEST`] allow.
    pub fn new(experiment: &Experiment, run: &Run, payload: u64, sent: u64) -> Self {
        let interval = experiment.timing(run).interval;
        let streams = experiment.stress.filter(|_| run.is_loaded);
        let load = streams.map_or(0, |stress| {
            u64::from(stress.streams).saturating_mul(interval) / stress.interval()
        });
        let most = (MOST / (1 + load).min(MOST)).min(LONGEST / interval);
        Self { payload, count: sent.clamp(1, most) }
    }
}

/// Returns the time that a frame with this payload spends on both lines, preambles and tags
/// included, in ns at 10 Gb/s.
pub fn lines_ns(payload: u64) -> u64 {
    2 * (8 + 4 + HEADER + payload) * 8 / 10
}

/// Returns the plan of a run.
pub fn text(experiment: &Experiment, delays: &Calibration, run: &Run, frames: Frames) -> String {
    let mut text = String::new();
    write(&mut text, experiment, delays, run, frames).expect("a String takes all");
    text
}

fn write(
    text: &mut String,
    experiment: &Experiment,
    delays: &Calibration,
    run: &Run,
    Frames { payload, count }: Frames,
) -> std::fmt::Result {
    let Experiment { vlan, priority, gates, .. } = experiment;
    let Calibration { talker_ns, bridge_ns, jitter_ns, listener_ns, .. } = delays;
    let Timing { interval, offset, .. } = experiment.timing(run);
    let time = |ns: u64| Duration::from_ns(ns).exact();
    let stop = offset + interval * (count - 1) + 1;
    let cycle = gates.as_ref().map_or(0, |gates| gates.list.cycle_time().as_ns());
    let rest = 2 * (cycle + talker_ns + bridge_ns + listener_ns) + 10_000_000;
    let basis = match delays.why.is_empty() {
        true => "calibrated: medians of the idle run",
        false => "not calibrated: without delays of software",
    };
    let (at_talker, at_bridge) = match (gates, &experiment.far) {
        (None, _) => ("", ""),
        (Some(_), Far::Guest { .. }) => ("schedule = \"gates\"\n", ""),
        (Some(_), Far::Namespace) => {
            ("", "\n[bridges.bridge.ports.listener]\nschedule = \"gates\"\n")
        }
    };
    writeln!(
        text,
        "# Run '{}' of farlane latency lab.\n# tx_delay, rx_delay, delay and jitter are {basis}.",
        run.name
    )?;
    writeln!(text, "runtime = \"{}\"\n", time(stop + rest))?;
    writeln!(text, "[link]\nrate = \"10G\"\npropagation = \"0ns\"\nvlan = {vlan}\n")?;
    writeln!(text, "[nodes.talker]\ntx_delay = \"{}\"\n{at_talker}", time(*talker_ns))?;
    writeln!(text, "[nodes.listener]\nrx_delay = \"{}\"\n", time(*listener_ns))?;
    let [delay, jitter] = [bridge_ns, jitter_ns].map(|ns| time(*ns));
    writeln!(text, "[bridges.bridge]\ndelay = \"{delay}\"\njitter = \"{jitter}\"\n{at_bridge}")?;
    // Without losses, `drop` is 0.
    if let Some(share) = 1_000_000_000_u32.checked_div(experiment.drop) {
        writeln!(text, "[cables.near]\na = \"talker\"\nb = \"bridge\"\nloss = \"{share}ppb\"\n")?;
        writeln!(text, "[cables.far]\na = \"bridge\"\nb = \"listener\"\n")?;
    }
    if let Some(Gates { list, .. }) = gates {
        let entry = |entry: &tsn::Entry| {
            let letter = entry.operation.letter();
            format!("\"{letter} {:02x} {}\"", entry.states.0, entry.interval.exact())
        };
        let entries: Vec<String> = list.entries().iter().map(entry).collect();
        // Frames are due relative to the base, which is time 0 here.
        writeln!(text, "[schedules.gates]\nentries = [{}]", entries.join(", "))?;
        writeln!(text, "cycle = \"{}\"\n", list.cycle_time().exact())?;
    }
    let ends = "from = \"talker\"\nto = \"listener\"";
    writeln!(text, "[traffic.frames]\n{ends}\nlength = \"{}B\"", HEADER + payload)?;
    writeln!(text, "interval = \"{}\"\nstart = \"{}\"", time(interval), time(offset))?;
    writeln!(text, "stop = \"{}\"\npriority = {priority}", time(stop))?;
    let Some(stress) = experiment.stress.filter(|_| run.is_loaded) else { return Ok(()) };
    // The lab's load has no tag. Without the bytes of a tag, the simulated frames are as long.
    let (length, interval) = (Stress::LENGTH - 4, time(stress.interval()));
    for stream in 1..=stress.streams {
        writeln!(text, "\n[traffic.load-{stream}]\n{ends}\nlength = \"{length}B\"")?;
        writeln!(text, "interval = \"{interval}\"")?;
    }
    Ok(())
}
