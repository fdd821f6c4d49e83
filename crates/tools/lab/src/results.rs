//! The JSON document of the lab.

use super::bridge::Bridge;
use super::experiment::PROBES;
use super::twin::{Calibration, Twin};
use latency::Slots;
use latency_linux::{Document, Setting};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Experiments with talker, bridge and listener on one machine (docs/latency.md).
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct LabDocument {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    pub schema: u64,
    /// The name of the lab.
    pub name: String,
    /// `done`, or `interrupted` (by a signal). Then the last bridge may have fewer runs, and later
    /// bridges none.
    pub ended: String,
    /// The gate control list as it was read; empty if there was none.
    pub gates: String,
    /// Properties of the machine.
    pub machine: Vec<Setting>,
    /// One element per bridge, in the order of the command line.
    pub bridges: Vec<BridgeReport>,
}

impl LabDocument {
    /// Returns the bridge that makes the lab fail, and the reason: a bridge of `requested` was
    /// refused, or any bridge failed. `None` if the lab was interrupted.
    pub fn failure(&self, requested: &[Bridge]) -> Option<String> {
        let counts = |report: &&BridgeReport| match report.outcome {
            Outcome::Refused => requested.contains(&report.bridge),
            outcome => outcome == Outcome::Failed,
        };
        let is_whole = self.ended == "done";
        let report = self.bridges.iter().find(counts).filter(|_| is_whole)?;
        Some(format!("{}: {}: {}", report.bridge.name(), report.outcome.text(), report.why))
    }
}

/// Results of a bridge.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct BridgeReport {
    /// The kind of bridge.
    pub bridge: Bridge,
    /// Outcome of the bridge.
    pub outcome: Outcome,
    /// Why the bridge was refused or failed; empty otherwise.
    pub why: String,
    /// Whether the gates are in force; null without gates, or if nothing passes.
    pub gate: Option<GateCheck>,
    /// Requested settings, and whether the kernel reports them.
    pub settings: Vec<Setting>,
    /// The measured delays that the simulations use; null if there is no run.
    #[serde(default)]
    pub calibration: Option<Calibration>,
    /// The runs, in their order.
    pub runs: Vec<RunResult>,
}

/// The outcome of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "BridgeOutcome")]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The bridge forwards frames.
    Passes,
    /// The bridge was built but forwards no frames.
    LosesEverything,
    /// The bridge cannot be built here.
    Refused,
    /// A program ended during the measurement, or the bridge could not be removed.
    Failed,
    /// Ctrl-C interrupted the measurement.
    Interrupted,
}

impl Outcome {
    /// Returns the outcome in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::LosesEverything => "loses everything",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Whether gates are in force, judged by the arrivals of frames that were due outside all windows.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct GateCheck {
    /// The verdict from the arrivals.
    pub verdict: GateVerdict,
    /// Frames that arrived with the time stamp after the gate.
    pub n: u64,
    /// Frames of `n` that arrived within a window.
    pub in_window: u64,
    /// Frames of `n` that arrived before the next window opened: no gate held them back.
    pub early: u64,
}

/// Whether gates are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateVerdict {
    /// Frames were held back, and 98 of 100 arrived within a window.
    Gated,
    /// Frames were held back, but fewer arrived within a window.
    Late,
    /// More than 2 of 100 frames arrived early: no gate held them back.
    NotGated,
    /// Fewer than one of four frames arrived within a window, whether the frames were due outside
    /// or within a window: the gate of another priority passed the frames.
    OtherGate,
}

impl GateVerdict {
    /// Returns the verdict in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Gated => "gated",
            Self::Late => "gated, late",
            Self::NotGated => "not gated",
            Self::OtherGate => "gated by another priority",
        }
    }
}

/// Percentage of frames that may arrive early or after their window if gates are in force, because
/// timers of the kernel are sometimes late. A slow machine makes frames late, never early.
const EXCEPTIONS: u64 = 2;

impl GateCheck {
    /// Judges frames that were due outside all windows, by the time stamp after the gate. `None` if
    /// fewer than half of [`PROBES`] have the stamp.
    pub fn from_document(document: &Document, stamp: &str) -> Option<Self> {
        slots(document, stamp).filter(|slots| slots.n * 2 >= PROBES).map(Self::by)
    }

    fn by(&Slots { n, in_window, early, .. }: &Slots) -> Self {
        let verdict = match () {
            () if early * 100 > n * EXCEPTIONS => GateVerdict::NotGated,
            () if (n - in_window) * 100 > n * EXCEPTIONS => GateVerdict::Late,
            () => GateVerdict::Gated,
        };
        Self { verdict, n, in_window, early }
    }

    /// Adds the result of frames that were due within their window.
    pub fn and(&mut self, document: &Document, stamp: &str) {
        if let Some(slots) = slots(document, stamp) {
            self.and_by(slots);
        }
    }

    fn and_by(&mut self, slots: &Slots) {
        let few = |in_window: u64, n: u64| in_window * 4 < n;
        if few(slots.in_window, slots.n) && few(self.in_window, self.n) {
            self.verdict = GateVerdict::OtherGate;
        }
    }
}

/// Returns how frames with this stamp met their windows; `None` without frames.
fn slots<'a>(document: &'a Document, stamp: &str) -> Option<&'a Slots> {
    document.analysis.slots.iter().find(|slots| slots.stamp == stamp && slots.n > 0)
}

/// A run over a bridge.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "LabRun")]
pub struct RunResult {
    /// `gates`, `idle`, or `loaded` (with the reads of a drive).
    pub name: String,
    /// The talker's document.
    pub talk: Document,
    /// The listener's document; null if the listener is a guest's.
    pub listen: Option<Document>,
    /// Bits per second that arrived at the listener's interface, load included; null if the
    /// listener is a guest's.
    pub received_bits_per_second: Option<u64>,
    /// 4 KiB reads of a drive during the frames; null if there were none.
    pub reads: Option<ReadsResult>,
    /// The run in the simulator; null for a run with reads of a drive, which is not simulated.
    #[serde(default)]
    pub twin: Option<Twin>,
}

/// Reads of a drive during the frames.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "LabReads")]
pub struct ReadsResult {
    /// Priority of both nodes; null if there is none.
    pub priority: Option<u8>,
    /// Whether the nodes have a gate of their own.
    pub gated: bool,
    /// Number of reads.
    pub n: u64,
    /// Median of the latencies.
    pub p50_ns: u64,
    /// 99th percentile of the latencies.
    pub p99_ns: u64,
    /// The longest latency.
    pub max_ns: u64,
    /// Why there are no reads; empty otherwise.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use GateVerdict::{Gated, Late, NotGated, OtherGate};

    fn slots(in_window: u64, early: u64) -> Slots {
        Slots {
            stamp: "arrival".to_owned(),
            n: 200,
            in_slot: in_window,
            in_window,
            late: Vec::new(),
            early,
            outside_due: 200,
            outside_arrived: 200 - in_window,
        }
    }

    #[test]
    fn two_of_a_hundred_may_be_late_or_early() {
        let verdict = |in_window, early| GateCheck::by(&slots(in_window, early)).verdict;
        assert_eq!([verdict(200, 0), verdict(196, 0), verdict(196, 4)], [Gated; 3]);
        assert_eq!([verdict(195, 0), verdict(195, 4), verdict(0, 0)], [Late; 3]);
        assert_eq!([verdict(195, 5), verdict(0, 200)], [NotGated; 2]);
    }

    #[test]
    fn the_gate_of_another_priority_keeps_frames_out_of_the_window_of_theirs() {
        let verdict = |due_outside: Slots, due_inside: Slots| {
            let mut gate = GateCheck::by(&due_outside);
            gate.and_by(&due_inside);
            gate.verdict
        };
        assert_eq!(verdict(slots(49, 151), slots(49, 0)), OtherGate);
        // Without a gate, frames that were due within a window arrive within the window.
        assert_eq!(verdict(slots(49, 151), slots(50, 0)), NotGated);
        assert_eq!(verdict(slots(200, 0), slots(0, 0)), Gated, "a slow machine");
    }
}
