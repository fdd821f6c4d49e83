//! The results: the document of `--json`, from which text and page are made.

use crate::Tag;
use latency::{Analysis, Band, Counts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Document {
    /// 1.
    pub schema: u64,
    /// `talk` or `listen`.
    pub end: String,
    /// The name of the run.
    pub label: String,
    /// The far side, or where it listened.
    pub address: String,
    /// The run's number in hexadecimal.
    pub run: String,
    /// How it ended: `done`, `interrupted` or `silent`.
    pub ended: String,
    /// From one frame to the next, in ns.
    pub interval_ns: u64,
    /// The cycle of the windows in ns; 0 without.
    pub cycle_ns: u64,
    /// The length of a window in ns.
    pub window_ns: u64,
    /// Bytes of a payload.
    pub size_bytes: u64,
    /// What was asked of the machine, and what it granted.
    pub settings: Vec<Setting>,
    /// What became of the frames: at the listener, or of those that came back to the talker;
    /// null if none were to come back.
    pub counts: Option<Counts>,
    /// What was not as it should be, in counts.
    pub faults: Faults,
    /// VLAN tags that frames had when they came.
    pub tags: Vec<TagCount>,
    /// The band, if one was given.
    pub band: Option<Band>,
    /// What follows from the stamps.
    #[serde(flatten)]
    pub analysis: Analysis,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// What was asked for, or found.
    pub value: String,
    /// Whether it is so.
    pub in_force: bool,
    /// Why not, or what to know of it.
    pub note: String,
}

impl Setting {
    /// One that was asked for, and what became of it.
    pub fn asked(name: &str, value: String, granted: Result<(), String>) -> Self {
        let in_force = granted.is_ok();
        let note = granted.err().unwrap_or_default();
        Self { name: name.to_owned(), value, in_force, note }
    }
}

/// Counted faults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    /// Frames that are none of this run.
    pub strangers: u64,
    /// What the first of them was; empty without.
    pub first_stranger: String,
    /// Frames that the kernel did not take.
    pub refused: u64,
    /// Why it did not take the last of them; empty without.
    pub refusal: String,
    /// Frames to which the network answered that they did not reach a listener.
    #[serde(default)]
    pub unreachable: u64,
    /// Frames that were dropped for their launch time.
    pub launch_dropped: u64,
    /// Frames for which the talker woke after the next one was due.
    pub overslept: u64,
    /// Sent frames without the driver's stamp, or received ones without the kernel's.
    pub without_stamp: u64,
    /// Stamps that came after the row of their frame was written.
    pub late_stamps: u64,
}

impl Faults {
    /// Counts a stranger.
    pub fn stranger(&mut self, describe: impl FnOnce() -> String) {
        if self.strangers == 0 {
            self.first_stranger = describe();
        }
        self.strangers += 1;
    }
}

/// Counts frames by the tags that they came with.
#[derive(Clone, Debug, Default)]
pub struct Tags(BTreeMap<(u8, u16), u64>);

impl Tags {
    /// Counts a frame; one without a tag is in no count.
    pub fn count(&mut self, tag: Option<Tag>) {
        if let Some(Tag { vlan, priority }) = tag {
            *self.0.entry((priority, vlan)).or_default() += 1;
        }
    }

    /// All of them, by priority and VLAN.
    pub fn list(&self) -> Vec<TagCount> {
        let count = |(&(priority, vlan), &n): (&(u8, u16), &u64)| TagCount { priority, vlan, n };
        self.0.iter().map(count).collect()
    }
}

/// Frames with a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagCount {
    /// The priority (PCP).
    pub priority: u8,
    /// The VLAN.
    pub vlan: u16,
    /// Frames.
    pub n: u64,
}
