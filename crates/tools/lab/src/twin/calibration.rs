//! The delays of software, which no simulation knows: medians of the idle run.

use super::{LISTENER, NETWORK, TALKER, plan_text};
use crate::experiment::Experiment;
use crate::results::RunResult;
use crate::view;
use latency::Figures;
use latency_linux::Document;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Delays of software that the simulations of a bridge take from its idle run. All other simulated
/// figures, also of the idle run, are predictions.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "TwinCalibration")]
pub struct Calibration {
    /// Why nothing is calibrated; empty otherwise. Then all delays are 0.
    pub why: String,
    /// Delay of the talker (`tx_delay`): median of *schedule to wire*.
    pub talker_ns: u64,
    /// Delay of bridge and kernels (`delay`): median of *wire to kernel*, less two frames on the
    /// simulated lines.
    pub bridge_ns: u64,
    /// Standard deviation of this delay (`jitter`): from median and 90th percentile of *wire to
    /// kernel*.
    pub jitter_ns: u64,
    /// Delay of the listener (`rx_delay`): median of *kernel to application*.
    pub listener_ns: u64,
}

impl Calibration {
    /// Calibrates by the idle run, if there is one.
    pub fn from_runs(experiment: &Experiment, runs: &[RunResult]) -> Self {
        let idle = runs.iter().find(|run| run.name == "idle");
        let found = idle.ok_or_else(|| "there is no idle run without reads of a drive".to_owned());
        let found = found.and_then(|run| Self::from_idle(experiment, run));
        found.unwrap_or_else(|why| Self { why, ..Self::default() })
    }

    fn from_idle(experiment: &Experiment, run: &RunResult) -> Result<Self, String> {
        let slots = arrivals(run).filter(|_| experiment.gates.is_some());
        // Then the 90th percentile contains no wait for a gate.
        if let Some(slots) = slots.filter(|slots| slots.in_slot * 10 < slots.n * 9) {
            let (n, all) = (slots.in_slot, slots.n);
            return Err(format!("only {n} of {all} idle frames were in their slot"));
        }
        let [talker, network, listener] =
            [TALKER, NETWORK, LISTENER].map(|segment| figures(&run.talk, segment));
        let (talker, network, listener) = (talker?, network?, listener?);
        let median = |figures: Figures| u64::try_from(figures.p50_ns).unwrap_or(0);
        // The 90th percentile of a normal distribution is 1.2816 standard deviations above its
        // median.
        let spread = u64::try_from(network.p90_ns - network.p50_ns).unwrap_or(0);
        Ok(Self {
            why: String::new(),
            talker_ns: median(talker),
            bridge_ns: median(network).saturating_sub(plan_text::lines_ns(run.talk.size_bytes)),
            jitter_ns: spread * 10_000 / 12_816,
            listener_ns: median(listener),
        })
    }

    /// Describes the calibration in one sentence.
    pub fn sentence(&self) -> String {
        let Self { why, talker_ns, bridge_ns, jitter_ns, listener_ns } = self;
        if !why.is_empty() {
            return format!("not calibrated, {why}: without delays of software");
        }
        let [talker, bridge, jitter, listener] =
            [talker_ns, bridge_ns, jitter_ns, listener_ns].map(|ns| view::plain(*ns as i64));
        format!(
            "calibrated by the idle run: talker {talker} us (median of {TALKER}), bridge {bridge} \
             us with a deviation of {jitter} us (median and p90 of {NETWORK}), listener {listener} \
             us (median of {LISTENER}); everything else is predicted"
        )
    }
}

/// Returns a segment's figures that the clocks do not make useless.
fn figures(document: &Document, segment: &str) -> Result<Figures, String> {
    match document.analysis.segments.iter().find(|part| part.segment == segment) {
        Some(part) if part.caution.is_empty() => Ok(part.whole),
        Some(part) => Err(format!("{segment} of the idle run: {}", part.caution)),
        None => Err(format!("the idle run has no {segment}")),
    }
}

/// Returns how frames met their windows behind the gate: at the listener, or with a guest at the
/// talker. `None` without windows.
pub fn arrivals(run: &RunResult) -> Option<&latency::Slots> {
    match &run.listen {
        Some(listen) => slots(listen, "arrival"),
        None => slots(&run.talk, "departure"),
    }
}

/// Returns how frames with this stamp met their windows.
pub fn slots<'a>(document: &'a Document, stamp: &str) -> Option<&'a latency::Slots> {
    document.analysis.slots.iter().find(|slots| slots.stamp == stamp)
}
