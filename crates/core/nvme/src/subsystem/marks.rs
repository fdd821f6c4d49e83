//! Blocks marked by Write Uncorrectable, and changes of their record.

use super::Shared;
use super::store::Change;
use crate::slots::Key;
use crate::state::{Uncorrectable, uncorrectable_record};
use std::ops::Range;

/// A change of uncorrectable marks.
#[derive(Clone, Debug)]
pub(crate) struct MarkChange {
    pub nsid: u32,
    pub ranges: Vec<Range<u64>>,
    /// Whether the blocks are marked; otherwise the marks are removed.
    pub set: bool,
}

impl Shared {
    /// Stores a change of marks for a command of a controller.
    ///
    /// # Panics
    /// If there is no store.
    pub(crate) fn mark(&mut self, by: (u16, Key), nsid: u32, ranges: Vec<Range<u64>>, set: bool) {
        let store = self.store.as_mut().expect("marks need records");
        store.push(Change::Marks { by, change: MarkChange { nsid, ranges, set } });
    }

    /// Number of blocks that are marked, plus the blocks of waiting changes.
    pub(crate) fn marked(&self) -> u64 {
        let stored: u64 = self.namespaces.values().map(|one| one.marks.blocks()).sum();
        let waiting = self.store.iter().flat_map(|store| store.waiting());
        let added = |change: &Change| match change {
            Change::Marks { change, .. } if change.set => {
                change.ranges.iter().map(|range| range.end - range.start).sum()
            }
            _ => 0,
        };
        stored + waiting.map(added).sum::<u64>()
    }

    /// All uncorrectable marks by NSID.
    pub(crate) fn uncorrectable(&self) -> Uncorrectable {
        let marked = self.namespaces.iter().filter(|(_, one)| !one.marks.is_empty());
        marked.map(|(nsid, one)| (*nsid, one.marks.clone())).collect()
    }

    /// The record after a change. Ignores a namespace that was deleted.
    pub(super) fn record_with_marks(&self, change: &MarkChange) -> (String, Option<Vec<u8>>) {
        let mut all = self.uncorrectable();
        if self.namespaces.contains_key(&change.nsid) {
            let marks = all.entry(change.nsid).or_default();
            for range in &change.ranges {
                if change.set { marks.set(range.clone()) } else { marks.clear(range) }
            }
            all.retain(|_, marks| !marks.is_empty());
        }
        uncorrectable_record(&all)
    }

    /// The record without the marks of the namespaces that `goes` accepts; `None` if they have no
    /// marks.
    pub(super) fn record_without_marks(
        &self,
        goes: impl Fn(u32) -> bool,
    ) -> Option<(String, Option<Vec<u8>>)> {
        let mut all = self.uncorrectable();
        let before = all.len();
        all.retain(|nsid, _| !goes(*nsid));
        (all.len() < before).then(|| uncorrectable_record(&all))
    }

    /// Applies a change of marks that was stored.
    pub(super) fn marks_stored(&mut self, change: &MarkChange) {
        let Some(namespace) = self.namespaces.get_mut(&change.nsid) else { return };
        for range in &change.ranges {
            match change.set {
                true => namespace.marks.set(range.clone()),
                false => namespace.marks.clear(range),
            }
        }
    }
}
