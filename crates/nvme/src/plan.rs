//! What the handler of a command decides: the work that remains for the controller.

use crate::block::Operation;
use bytes::Bytes;
use std::collections::VecDeque;

/// One media request of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub nsid: u32,
    pub operation: Operation,
}

/// The steps of a command on one namespace.
pub(crate) fn steps(nsid: u32, operations: impl IntoIterator<Item = Operation>) -> VecDeque<Step> {
    operations.into_iter().map(|operation| Step { nsid, operation }).collect()
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
    Steps(VecDeque<Step>),
    /// As `Steps`; the last step reads this many bytes, which go to the host.
    Read(usize, VecDeque<Step>),
    /// This many bytes come from the host; then the handler is called again.
    Receive(usize),
}
