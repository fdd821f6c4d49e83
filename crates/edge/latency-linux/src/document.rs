//! The results of a run: the document of `--json`. Text output and HTML page use it, too.

use crate::Tag;
use latency::{Analysis, Band, Counts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The results that one end of `farlane latency` measured. Both ends print the same keys.
/// docs/latency.md explains each figure. `farlane latency compare` reads these documents. Times of
/// stamps are in ns of TAI.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "LatencyDocument")]
pub struct Document {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    pub schema: u64,
    /// `talk` or `listen`.
    pub end: String,
    /// The text of `--label`.
    pub label: String,
    /// At the talker, the address of the listener. At the listener, the address at which it
    /// listened.
    pub address: String,
    /// The run's number, 16 hexadecimal digits.
    pub run: String,
    /// `done`, `interrupted` (by a signal) or `silent` (no frame of the talker for `--idle`).
    pub ended: String,
    /// Time from one frame to the next; 0 if no frame arrived.
    pub interval_ns: u64,
    /// Time from the opening of one window to the next; 0 without windows.
    pub cycle_ns: u64,
    /// Length of a window; 0 without windows.
    pub window_ns: u64,
    /// Size of a payload.
    pub size_bytes: u64,
    /// Requested settings of the machine, and properties found.
    pub settings: Vec<Setting>,
    /// Counts of the frames that reached the listener, or that returned to the talker; null for a
    /// talker without `--reflect`.
    pub counts: Option<Counts>,
    /// Counts of faults.
    pub faults: Faults,
    /// VLAN tags of the frames that reached the listener, or that returned to the talker, by
    /// priority and VLAN.
    pub tags: Vec<TagCount>,
    /// The band of `--band`; null without this option.
    pub band: Option<Band>,
    /// The results of the stamps.
    #[serde(flatten)]
    pub analysis: Analysis,
}

/// A setting of the machine.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Setting {
    /// Name of the setting.
    pub name: String,
    /// The requested value, or the value found.
    pub value: String,
    /// Whether the setting is in force.
    pub in_force: bool,
    /// Why the setting is not in force, or a remark; may be empty.
    pub note: String,
}

impl Setting {
    /// A requested setting. `granted` is the result of the request.
    pub fn asked(name: &str, value: String, granted: Result<(), String>) -> Self {
        let in_force = granted.is_ok();
        let note = granted.err().unwrap_or_default();
        Self { name: name.to_owned(), value, in_force, note }
    }
}

/// Counts of faults at one end.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Faults {
    /// Frames that do not belong to this run.
    pub strangers: u64,
    /// A description of the first frame in `strangers`; empty if there was none.
    pub first_stranger: String,
    /// Frames that the kernel did not accept for sending.
    pub refused: u64,
    /// Why the kernel did not accept the last frame in `refused`; empty if there was none.
    pub refusal: String,
    /// ICMP answers that no program listens at the UDP port. Not every such frame gets an answer.
    #[serde(default)]
    pub unreachable: u64,
    /// Frames that a queueing discipline dropped because of their launch time.
    pub launch_dropped: u64,
    /// Frames for which the talker woke only when the next frame was due, or later.
    pub overslept: u64,
    /// At the talker, sent frames without a stamp of driver or hardware. At the listener, received
    /// frames without a stamp of the kernel.
    pub without_stamp: u64,
    /// Stamps that arrived after the row of their frame in `--csv` and `--parquet` was written. The
    /// figures include them.
    pub late_stamps: u64,
}

impl Faults {
    /// Counts a frame that does not belong to the run.
    pub fn stranger(&mut self, describe: impl FnOnce() -> String) {
        if self.strangers == 0 {
            self.first_stranger = describe();
        }
        self.strangers += 1;
    }
}

/// Counts frames by their VLAN tags.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tags(BTreeMap<(u8, u16), u64>);

impl Tags {
    /// Counts a frame; ignores frames without a tag.
    pub(crate) fn count(&mut self, tag: Option<Tag>) {
        if let Some(Tag { vlan, priority }) = tag {
            *self.0.entry((priority, vlan)).or_default() += 1;
        }
    }

    /// All counts, by priority and VLAN.
    pub(crate) fn list(&self) -> Vec<TagCount> {
        let count = |(&(priority, vlan), &n): (&(u8, u16), &u64)| TagCount { priority, vlan, n };
        self.0.iter().map(count).collect()
    }
}

/// Frames with one VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct TagCount {
    /// Priority of the tag (PCP), 0 to 7.
    pub priority: u8,
    /// VLAN of the tag.
    pub vlan: u16,
    /// Frames with this tag.
    pub n: u64,
}
