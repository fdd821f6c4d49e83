//! Compare and Verify (NVMe 1.4, sections 6.6 and 6.14).

use crate::block::Operation;
use crate::controller::Controller;
use crate::failure::Failure;
use crate::plan::{Plan, Step, Then};
use crate::subsystem::Shared;
use bytes::Bytes;
use std::collections::VecDeque;
use wire::nvme::Command;

impl Controller {
    /// The data come first, so that the media are not asked for a command that cannot be carried
    /// out.
    pub(super) fn compare(&self, shared: &Shared, command: &Command) -> Result<Plan, Failure> {
        let (_, length) = shared.namespace(self.id, command.nsid)?.range(command)?;
        let length = self.within_limit(length)?;
        Ok(Plan::ReceiveAndRead(length, length))
    }

    pub(super) fn compare_received(
        &self,
        shared: &Shared,
        command: &Command,
        data: Bytes,
    ) -> Result<VecDeque<Step>, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        let (offset, length) = namespace.range(command)?;
        namespace.readable(command.slba(), command.blocks().into())?;
        let read = Operation::Read { offset, length: length as usize };
        let compare = Step { then: Then::Compare(data), ..Step::new(command.nsid, read) };
        Ok(self.flush_before(command).into_iter().chain([compare]).collect())
    }

    /// Reads without a transfer, so MDTS does not bind it: the media are read in pieces of MDTS.
    pub(super) fn verify(&self, shared: &Shared, command: &Command) -> Result<Plan, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        let (offset, length) = namespace.range(command)?;
        namespace.readable(command.slba(), command.blocks().into())?;
        let most = self.settings.max_transfer();
        let piece = |at: u64| {
            let length = most.min((length - at) as usize);
            Step::new(command.nsid, Operation::Read { offset: offset + at, length })
        };
        let pieces = (0..length).step_by(most).map(piece);
        let steps = self.flush_before(command).into_iter().chain(pieces).collect();
        Ok(Plan::Inside(most.min(length as usize), steps))
    }
}
