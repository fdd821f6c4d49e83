//! Entries of the admin submission queue that were not available when host software rang the
//! doorbell. They are learned from the completions of the controller's own reads.

use std::collections::{BTreeMap, BTreeSet};
use wire::Tag;
use wire::nvme::{Command, SUBMISSION_ENTRY};
use wire::tlp::{Completion, MemoryRequest};

#[derive(Debug, Default)]
pub(super) struct Unread {
    slots: BTreeSet<u64>,
    /// Reads of the queue under way: the address of the next byte.
    reads: BTreeMap<Tag, u64>,
}

impl Unread {
    /// Whether every entry is known.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether outstanding completions may contain entries.
    pub(super) fn awaits_completions(&self) -> bool {
        !self.reads.is_empty()
    }

    /// Adds the slots whose entries are not available.
    pub(super) fn add(&mut self, slots: impl Iterator<Item = u16>) {
        self.slots.extend(slots.map(u64::from));
    }

    /// Handles a read of the queue by the controller.
    pub(super) fn read(&mut self, request: MemoryRequest) {
        self.reads.insert(request.tag, request.first_byte());
    }

    /// The entries of a queue at `base` that a completion contains. Completions end at multiples of
    /// 64 bytes, as entries do (PCIe Base 4.0, section 2.3.1.1).
    pub(super) fn take(&mut self, c: &Completion, data: &[u8], base: u64) -> Vec<Command> {
        let Some(address) = self.reads.remove(&c.tag) else { return Vec::new() };
        if usize::from(c.byte_count) > data.len() {
            self.reads.insert(c.tag, address + data.len() as u64);
        }
        let length = SUBMISSION_ENTRY as u64;
        let places = (address - base..).step_by(SUBMISSION_ENTRY);
        let entries = places.zip(data.chunks(SUBMISSION_ENTRY)).filter_map(|(at, entry)| {
            let is_new = at % length == 0 && self.slots.remove(&(at / length));
            Some(Command::decode(entry.try_into().ok().filter(|_| is_new)?))
        });
        entries.collect()
    }
}
