//! A store of records in memory.

use ::nvme::Commit;
use ::nvme::block::Error;
use ::nvme::state::Records;
use std::collections::VecDeque;

/// Stored records of a drive, and changes that are not stored yet.
#[derive(Debug, Default)]
pub struct RecordStore {
    /// Stored records.
    pub records: Records,
    /// Changes to store, oldest first.
    pub commits: VecDeque<Commit>,
    /// Error of every change; `None` if changes succeed.
    pub failure: Option<Error>,
    /// Keys of each change so far, oldest first.
    pub log: Vec<Vec<String>>,
}

impl RecordStore {
    /// Stores a change, or returns `failure`.
    pub(super) fn store(&mut self, commit: Commit) -> Result<(), Error> {
        self.log.push(commit.changes.iter().map(|(key, _)| key.clone()).collect());
        if let Some(error) = self.failure {
            return Err(error);
        }
        for (key, bytes) in commit.changes {
            match bytes {
                Some(bytes) => self.records.insert(key, bytes),
                None => self.records.remove(&key),
            };
        }
        Ok(())
    }
}
