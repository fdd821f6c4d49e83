//! The results of a run: the document of `--json`, which is also the source of text and HTML page.

use crate::Tag;
use latency::{Analysis, Band, Counts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one end of `farlane latency` measured; both ends print the same keys. docs/latency.md
/// explains each figure. `farlane latency compare` reads these documents. Times of stamps are in ns
/// of TAI.
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
    /// Of the talker: the far end. Of the listener: the address at which it listened.
    pub address: String,
    /// The run's number, 16 hexadecimal digits.
    pub run: String,
    /// `done`, `interrupted` (by a signal) or `silent` (nothing came from the talker for `--idle`).
    pub ended: String,
    /// From one frame to the next; 0 if no frame came.
    pub interval_ns: u64,
    /// From the opening of one window to the next; 0 without windows.
    pub cycle_ns: u64,
    /// How long a window is open; 0 without windows.
    pub window_ns: u64,
    /// Size of a payload.
    pub size_bytes: u64,
    /// Settings that were asked of the machine.
    pub settings: Vec<Setting>,
    /// What became of the frames that came to the listener, or came back to the talker; null for a
    /// talker without `--reflect`.
    pub counts: Option<Counts>,
    /// Counts of what went wrong.
    pub faults: Faults,
    /// VLAN tags of the frames that came to the listener, or came back to the talker, by priority
    /// and VLAN.
    pub tags: Vec<TagCount>,
    /// The band of `--band`; null without.
    pub band: Option<Band>,
    /// What follows from the stamps.
    #[serde(flatten)]
    pub analysis: Analysis,
}

/// A setting of the machine.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Setting {
    /// Name of the setting.
    pub name: String,
    /// What was asked for, or found.
    pub value: String,
    /// Whether the setting is in force.
    pub in_force: bool,
    /// Why the setting is not in force, or a remark; may be empty.
    pub note: String,
}

impl Setting {
    /// A requested setting, with the result.
    pub fn asked(name: &str, value: String, granted: Result<(), String>) -> Self {
        let in_force = granted.is_ok();
        let note = granted.err().unwrap_or_default();
        Self { name: name.to_owned(), value, in_force, note }
    }
}

/// Counts of what went wrong at one end.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Faults {
    /// Frames that do not belong to this run.
    pub strangers: u64,
    /// What the first such frame was; empty if there was none.
    pub first_stranger: String,
    /// Frames that the kernel did not take.
    pub refused: u64,
    /// Why the kernel did not take the last refused frame; empty if it refused none.
    pub refusal: String,
    /// Frames of UDP to which ICMP answered that nobody listens at their port; ICMP answers only
    /// some.
    #[serde(default)]
    pub unreachable: u64,
    /// Frames that a queueing discipline dropped for their launch time.
    pub launch_dropped: u64,
    /// Frames for which the talker woke after the next one was due.
    pub overslept: u64,
    /// Sent frames without the driver's stamp, or received ones without the kernel's.
    pub without_stamp: u64,
    /// Stamps that are in no row of `--csv` and `--parquet`, because the row was written before
    /// they came; figures have them.
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

/// Counts frames by the tags that they came with.
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
