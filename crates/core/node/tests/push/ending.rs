//! The causes that invalidate pushed bytes, and a world without one of them, to show that each is
//! needed.

use node::push::Completions;
use std::ops::Range;
use switch::push_store::{Invalid, Rule};
use wire::push::{Push, Queue, Record, message};
use wire::tlp::{MemoryRequest, Tlp};

wire::named! {
    /// The causes of an invalidation of pushed bytes.
    pub enum Ending {
        /// A later doorbell over the same slot of a submission queue.
        Doorbell "doorbell",
        /// The completion entry of the command.
        Completion "completion entry",
        /// The SQ head pointer of a completion entry.
        Head "head pointer",
        /// A completion entry that is written in pieces.
        PartialEntry "entry in pieces",
        /// A posted write of the function to the bytes.
        Write "write",
        /// An Abort command for the command.
        Abort "abort",
        /// The deletion of the command's queue.
        QueueDeleted "queue deleted",
        /// A controller reset, or a shutdown.
        ControllerReset "controller reset",
        /// A configuration write: function level reset, D3, bus mastering, the bridges above.
        Configuration "configuration write",
        /// Bus mastering of the root port, for which no configuration request crosses the link.
        RootPort "root port",
        /// A hot reset, or a lost link.
        HotReset "hot reset",
        /// Host memory that is mapped or unmapped.
        Mapping "mapping",
        /// A successful Doorbell Buffer Config, after which nothing is pushed.
        DoorbellBuffer "doorbell buffers",
    }
}

/// The far side's rule without one cause of invalidation: stale bytes remain then.
#[derive(Clone, Debug)]
pub struct Leaving {
    rule: Completions,
    without: Option<Ending>,
}

impl Leaving {
    pub fn new(without: Option<Ending>) -> Self {
        Self { rule: Completions::default(), without }
    }
}

impl Rule for Leaving {
    fn queues(&self) -> usize {
        self.rule.queues()
    }

    fn follows(&self, queue: u16) -> bool {
        self.rule.follows(queue)
    }

    fn followed(&self) -> Vec<Queue> {
        self.rule.followed()
    }

    fn set_queue(&mut self, id: u16, queue: Option<Queue>) {
        self.rule.set_queue(id, queue);
    }

    fn write(&mut self, tlp: &Tlp, request: MemoryRequest, invalid: &mut dyn FnMut(Invalid)) {
        let written = request.address..request.address + tlp.payload() as u64;
        self.rule.write(tlp, request, &mut |invalidated| {
            let ending = match &invalidated {
                Invalid::Command(_) => Ending::Completion,
                Invalid::Range(range) if *range == (0..u64::MAX) => Ending::PartialEntry,
                Invalid::Range(range) if *range == written => Ending::Write,
                Invalid::Range(_) => Ending::Head,
            };
            if self.without != Some(ending) {
                invalid(invalidated);
            }
        });
    }
}

/// The message in `tlp` without the records that `ending` caused; `None` if no record is left.
/// `cause` is the reason if the host node invalidates everything.
pub fn leave_out(tlp: Tlp, ending: Ending, cause: Ending, queues: Range<u64>) -> Option<Tlp> {
    let Some(push) = Push::decode(&tlp) else { return Some(tlp) };
    let push = push.expect("a valid message");
    let mut payload = Vec::new();
    for record in push.records {
        let caused_by = match &record {
            Record::Queue(_) | Record::Bytes { .. } => None,
            Record::EndRange { address, .. } if queues.contains(address) => Some(Ending::Doorbell),
            Record::EndRange { .. } => Some(Ending::Mapping),
            Record::EndCommand { .. } => Some(Ending::Abort),
            Record::EndQueue(_) => Some(Ending::QueueDeleted),
            Record::EndAll => Some(cause),
        };
        if caused_by != Some(ending) {
            record.encode(&mut payload);
        }
    }
    let size = push.completion_size;
    let left = !payload.is_empty();
    left.then(|| message(push.completer, push.target, size, push.digest, payload.into()))
}
