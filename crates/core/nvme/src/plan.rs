//! What the handler of a command decides: the work that remains for the controller.

use crate::block::Operation;
use crate::metadata::{Beside, Metadata};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;

/// One media request of a command, and what happens once it has succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub nsid: u32,
    pub operation: Operation,
    pub then: Then,
    /// What is done at the same time to the metadata of the same blocks, if they have any. The
    /// step has its blocks for itself meanwhile.
    pub beside: Option<Box<Beside>>,
}

/// What happens once a media request has succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Then {
    /// The next step. What a read brought goes to the host if the command is [`Plan::Read`].
    #[default]
    Proceed,
    /// What was read shall be these bytes.
    Compare(Bytes),
    /// What was read is written from byte `to` on, to blocks of which `metadata` says the rest. Then
    /// dword 0 of the completion is `next`.
    Copy { to: u64, next: u32, metadata: Option<Box<Metadata>> },
    /// What was written is safe: these blocks are marked uncorrectable no longer.
    Unmark(Vec<Range<u64>>),
    /// Dword 0 of the completion, unless a later step changes it.
    Result(u32),
}

impl Step {
    pub fn new(nsid: u32, operation: Operation) -> Self {
        Self { nsid, operation, then: Then::Proceed, beside: None }
    }
}

/// Steps in order. A single one, as most commands have, needs no memory of its own.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    first: Option<Step>,
    rest: VecDeque<Step>,
}

impl Steps {
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub fn pop_front(&mut self) -> Option<Step> {
        let next = self.rest.pop_front();
        std::mem::replace(&mut self.first, next)
    }

    pub fn push_front(&mut self, step: Step) {
        let second = self.first.replace(step);
        second.into_iter().for_each(|second| self.rest.push_front(second));
    }

    pub fn push_back(&mut self, step: Step) {
        match self.first {
            None => self.first = Some(step),
            Some(_) => self.rest.push_back(step),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Step> {
        self.first.iter().chain(&self.rest)
    }

    pub fn retain(&mut self, keep: impl Fn(&Step) -> bool) {
        self.rest.retain(&keep);
        if self.first.as_ref().is_some_and(|first| !keep(first)) {
            self.pop_front();
        }
    }
}

impl Extend<Step> for Steps {
    fn extend<I: IntoIterator<Item = Step>>(&mut self, steps: I) {
        steps.into_iter().for_each(|step| self.push_back(step));
    }
}

impl FromIterator<Step> for Steps {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        let mut all = Self::default();
        all.extend(steps);
        all
    }
}

/// The steps of a command on one namespace.
pub(crate) fn steps(nsid: u32, operations: impl IntoIterator<Item = Operation>) -> Steps {
    operations.into_iter().map(|operation| Step::new(nsid, operation)).collect()
}

/// What remains to be done for a command, as decided by its handler.
#[derive(Debug)]
pub(crate) enum Plan {
    /// The command is done; dword 0 of the completion.
    Done(u32),
    /// The command waits for other commands.
    Wait,
    /// These bytes go to the host, then the command is done.
    Send(Bytes),
    /// The media do these steps one after another.
    Steps(Steps),
    /// As `Steps`; a step reads up to this many bytes, which stay inside.
    Inside(usize, Steps),
    /// As `Steps`; the last step reads this many bytes, which go to the host.
    Read(usize, Steps),
    /// This many bytes come from the host; then the handler is called again.
    Receive(usize),
    /// As `Receive`; the steps then read up to this many bytes, which stay inside.
    ReceiveAndRead(usize, usize),
    /// The same, and this many bytes of metadata more come from MPTR or go there, behind the data.
    WithMetadata(usize, Box<Plan>),
}

impl Plan {
    /// The same with metadata at MPTR, if there are any.
    pub fn with_metadata(self, bytes: usize) -> Self {
        if bytes == 0 { self } else { Self::WithMetadata(bytes, Box::new(self)) }
    }
}
