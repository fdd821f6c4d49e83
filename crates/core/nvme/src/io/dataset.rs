//! Dataset Management (NVMe 1.4, section 6.7): deallocate, and hints without effect.

use super::read_write::unmark;
use crate::block::Operation;
use crate::controller::Controller;
use crate::failure::Failure;
use crate::metadata::Metadata;
use crate::plan::{Plan, Step, Steps};
use crate::subsystem::Shared;
use wire::nvme::{Command, DsmRange};

/// AD, deallocate: bit 2 of command dword 11.
const DEALLOCATE: u32 = 1 << 2;

impl Controller {
    pub(super) fn dataset_management(
        &mut self,
        shared: &Shared,
        command: &Command,
    ) -> Result<Plan, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        namespace.formatted()?;
        if command.cdw11 & DEALLOCATE == 0 {
            return Ok(Plan::Done(0));
        }
        shared.writable(namespace)?;
        // NR is 0's based, 8 bits.
        let ranges = (command.cdw10 & 0xff) as usize + 1;
        Ok(Plan::Receive(ranges * DsmRange::LENGTH))
    }

    /// Plans the deallocation of the received ranges. If a range is invalid, nothing is
    /// deallocated.
    pub(super) fn ranges_received(
        &self,
        shared: &Shared,
        command: &Command,
        data: &[u8],
    ) -> Result<Steps, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        namespace.formatted()?;
        let (mut steps, mut changed) = (Steps::default(), Vec::new());
        for range in data.as_chunks::<{ DsmRange::LENGTH }>().0 {
            let range = DsmRange::decode(range);
            let blocks = u64::from(range.blocks);
            namespace.check(range.slba, blocks).map_err(Failure::permanent)?;
            if blocks > 0 {
                let (offset, length) = (namespace.bytes(range.slba), namespace.bytes(blocks));
                let beside = match namespace.record.metadata {
                    0 => None,
                    _ => Some(namespace.metadata_of_range(command.nsid, range.slba, blocks)?),
                };
                let beside = beside.map(Metadata::discard);
                let discard = Operation::Discard { offset, length };
                steps.push_back(Step { beside, ..Step::new(command.nsid, discard) });
                changed.push(range.slba..range.slba + blocks);
            }
        }
        steps.extend(unmark(namespace, command, &changed));
        Ok(steps)
    }
}
