//! The Error Information log (NVMe 1.4, section 5.14.1.1).

use std::collections::VecDeque;
use wire::nvme::ErrorLogEntry;

/// The newest errors.
#[derive(Debug, Default)]
pub(crate) struct ErrorLog {
    /// Entries, newest first.
    entries: VecDeque<ErrorLogEntry>,
}

impl ErrorLog {
    /// The maximum number of entries of the log.
    pub(crate) const ENTRIES: usize = 64;

    /// Adds an error; `count` is the number of the error in the drive's lifetime.
    pub(crate) fn add(&mut self, count: u64, entry: ErrorLogEntry) {
        self.entries.truncate(Self::ENTRIES - 1);
        self.entries.push_front(ErrorLogEntry { count, ..entry });
    }

    /// Removes all entries; returns them, oldest first.
    pub(crate) fn take(&mut self) -> Vec<ErrorLogEntry> {
        self.entries.drain(..).rev().collect()
    }

    /// The log page: newest entry first.
    pub(crate) fn page(&self) -> Vec<u8> {
        let mut page: Vec<u8> = self.entries.iter().flat_map(|entry| entry.encode()).collect();
        page.resize(Self::ENTRIES * ErrorLogEntry::LENGTH, 0);
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_entry_comes_first_and_old_ones_go() {
        let mut log = ErrorLog::default();
        for cid in 0..100 {
            log.add(u64::from(cid) + 1, ErrorLogEntry { cid, ..ErrorLogEntry::default() });
        }
        let page = log.page();
        assert_eq!(page.len(), 4096);
        let first = ErrorLogEntry::decode(page[..64].try_into().unwrap());
        assert_eq!((first.count, first.cid), (100, 99));
        let last = ErrorLogEntry::decode(page[4032..].try_into().unwrap());
        assert_eq!(last.cid, 36);
    }
}
