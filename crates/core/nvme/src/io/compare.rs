//! Compare and Verify (NVMe 1.4, sections 6.6 and 6.14).

use crate::block::Operation;
use crate::controller::Controller;
use crate::failure::Failure;
use crate::metadata::Metadata;
use crate::plan::{Plan, Step, Steps, Then};
use crate::subsystem::Shared;
use bytes::Bytes;
use wire::nvme::Command;

impl Controller {
    /// Compare receives the data before it reads the media, so that a command with an invalid data
    /// pointer causes no media requests.
    pub(super) fn compare(&self, shared: &Shared, command: &Command) -> Result<Plan, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        let (_, data) = namespace.range(command)?;
        let metadata = namespace.metadata(command)?.map(Metadata::passive).transpose()?;
        let (length, separate) = self.transferred(data, metadata)?;
        Ok(Plan::ReceiveAndRead(length, length).with_metadata(separate))
    }

    pub(super) fn compare_received(
        &self,
        shared: &Shared,
        command: &Command,
        data: Bytes,
    ) -> Result<Steps, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        let (offset, length) = namespace.range(command)?;
        namespace.readable(command.slba(), command.blocks().into())?;
        let (data, beside) = match namespace.metadata(command)? {
            None => (data, None),
            Some(metadata) => (metadata.expected(data)?, Some(metadata.read_to_compare())),
        };
        let read = Operation::Read { offset, length: length as usize };
        let compare = Step { then: Then::Compare(data), beside, ..Step::new(command.nsid, read) };
        Ok(self.flush_before(command).into_iter().chain([compare]).collect())
    }

    /// Verify reads without a transfer, so MDTS does not limit the command. The media are read in
    /// pieces of up to MDTS.
    pub(super) fn verify(&self, shared: &Shared, command: &Command) -> Result<Plan, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        let (offset, length) = namespace.range(command)?;
        namespace.readable(command.slba(), command.blocks().into())?;
        let most = self.settings.max_transfer();
        let read = |at: u64, length: u64| {
            let length = length as usize;
            Step::new(command.nsid, Operation::Read { offset: offset + at, length })
        };
        let flush = self.flush_before(command).into_iter();
        let steps = if let Some(metadata) = namespace.metadata(command)? {
            let pieces = metadata.passive()?.pieces(most as u64 >> namespace.record.block_shift);
            let read = |(at, piece): (u64, Metadata)| Step {
                beside: Some(piece.verify()),
                ..read(at, piece.data())
            };
            flush.chain(pieces.map(read)).collect()
        } else {
            let pieces = (0..length).step_by(most);
            flush.chain(pieces.map(|at| read(at, (length - at).min(most as u64)))).collect()
        };
        Ok(Plan::Inside(most.min(length as usize), steps))
    }
}
