//! The commands of a host.

use sim::measure::{Breakdown, CommandRecord};
use std::collections::BTreeMap;
use wire::Instant;
use workload::{CommandKey, Observer, Submission};

/// Counts commands, and lists them if requested.
#[derive(Debug, Default)]
pub struct CommandRecorder {
    /// Number of commands that ended.
    pub count: u64,
    /// The commands that ended, if they are listed; without times by stage.
    pub list: Vec<CommandRecord>,
    lists: bool,
    host: u16,
    open: BTreeMap<CommandKey, Submission>,
}

impl CommandRecorder {
    /// Creates a recorder for the host with this number; with `lists` it lists every command.
    pub fn new(host: u16, lists: bool) -> Self {
        Self { host, lists, ..Self::default() }
    }
}

impl Observer for CommandRecorder {
    fn submit(&mut self, _: Instant, submission: Submission) {
        if self.lists {
            self.open.insert(submission.key, submission);
        }
    }

    fn finish(&mut self, until: Instant, key: CommandKey) {
        self.count += 1;
        let Some(Submission { op, offset, length, since, .. }) = self.open.remove(&key) else {
            return;
        };
        let CommandKey { drive, queue, id } = key;
        let (host, breakdown) = (self.host, Breakdown::default());
        let record =
            CommandRecord { host, drive, queue, id, op, offset, length, since, until, breakdown };
        self.list.push(record);
    }

    fn discard(&mut self, key: CommandKey) {
        self.open.remove(&key);
    }
}
