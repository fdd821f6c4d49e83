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
    most: usize,
    host: u16,
    open: BTreeMap<CommandKey, Submission>,
}

impl CommandRecorder {
    /// Creates a recorder for the host with this number, which lists the first `most` commands.
    pub fn new(host: u16, most: usize) -> Self {
        Self { host, most, ..Self::default() }
    }
}

impl Observer for CommandRecorder {
    fn submit(&mut self, _: Instant, submission: Submission) {
        if self.list.len() < self.most {
            self.open.insert(submission.key, submission);
        }
    }

    fn finish(&mut self, until: Instant, key: CommandKey) {
        self.count += 1;
        let Some(Submission { op, offset, length, since, .. }) = self.open.remove(&key) else {
            return;
        };
        if self.list.len() == self.most {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use nvme::initiator::Op;

    #[test]
    fn commands_beyond_the_list_are_counted() {
        let mut recorder = CommandRecorder::new(0, 2);
        let key = |id| CommandKey::new(0, 0, id);
        for id in 0..4 {
            let (since, op) = (Instant::ZERO, Op::Read);
            let submission =
                Submission { key: key(id), since, op, offset: 0, buffer: 0, length: 1 };
            recorder.submit(Instant::ZERO, submission);
        }
        (0..4).for_each(|id| recorder.finish(Instant::ZERO, key(id)));
        assert_eq!((recorder.count, recorder.list.len(), recorder.open.len()), (4, 2, 0));
    }
}
