//! The result of a command's handler: the remaining work of the controller.

use crate::block::Operation;
use crate::metadata::{Beside, Metadata};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;

/// One media request of a command, and the action after its success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub nsid: u32,
    pub operation: Operation,
    pub then: Then,
    /// The simultaneous action on the metadata of the same blocks, if any. Such a step claims its
    /// blocks.
    pub beside: Option<Box<Beside>>,
}

/// The action after a successful media request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Then {
    /// Continues with the next step. Data of a read go to the host if the command is
    /// `Plan::Read`.
    #[default]
    Proceed,
    /// Compares the read data with these bytes.
    Compare(Bytes),
    /// Writes the read data from byte `to` on, and their metadata to `metadata`. Then dword 0 of
    /// the completion is `next`.
    Copy { to: u64, next: u32, metadata: Option<Box<Metadata>> },
    /// Removes the uncorrectable marks of these blocks, because the data are durable.
    Unmark(Vec<Range<u64>>),
    /// Sets dword 0 of the completion, unless a later step changes it.
    Result(u32),
}

impl Step {
    pub(crate) fn new(nsid: u32, operation: Operation) -> Self {
        Self { nsid, operation, then: Then::Proceed, beside: None }
    }
}

/// A queue of steps. A single step, the usual case, needs no allocation.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    first: Option<Step>,
    rest: VecDeque<Step>,
}

impl Steps {
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn pop_front(&mut self) -> Option<Step> {
        let next = self.rest.pop_front();
        std::mem::replace(&mut self.first, next)
    }

    pub(crate) fn push_front(&mut self, step: Step) {
        let second = self.first.replace(step);
        second.into_iter().for_each(|second| self.rest.push_front(second));
    }

    pub(crate) fn push_back(&mut self, step: Step) {
        match self.first {
            None => self.first = Some(step),
            Some(_) => self.rest.push_back(step),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Step> {
        self.first.iter().chain(&self.rest)
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&Step) -> bool) {
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

/// The remaining work of a command, which the handler of the command returns.
#[derive(Debug)]
pub(crate) enum Plan {
    /// The command is done, with dword 0 of the completion.
    Done(u32),
    /// The command waits for other commands.
    Wait,
    /// Sends these bytes to the host, then the command is done.
    Send(Bytes),
    /// Executes these steps one after another.
    Steps(Steps),
    /// As `Steps`; a step reads up to this many bytes, which are not sent to the host.
    Inside(usize, Steps),
    /// As `Steps`; the last step reads this many bytes, which are sent to the host.
    Read(usize, Steps),
    /// Receives this many bytes from the host; then the handler is called again.
    Receive(usize),
    /// As `Receive`; the steps then read up to this many bytes, which are not sent to the host.
    ReceiveAndRead(usize, usize),
    /// As the inner plan, with additional bytes of metadata at MPTR, after the data.
    WithMetadata(usize, Box<Plan>),
}

impl Plan {
    /// This plan with `bytes` bytes of metadata at MPTR; unchanged for 0.
    pub(crate) fn with_metadata(self, bytes: usize) -> Self {
        if bytes == 0 { self } else { Self::WithMetadata(bytes, Box::new(self)) }
    }
}
