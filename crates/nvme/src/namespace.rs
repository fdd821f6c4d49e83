//! A namespace: a range of blocks with a name (NVMe 1.4, section 6.1).

use crate::failure::Failure;
use crate::state;
use std::collections::BTreeSet;
use wire::nvme::{
    Command, IdentifyNamespace, IndependentNamespace, LbaFormat, NamespaceDescriptor, StatusCode,
};

/// CSI of the NVM command set (NVM Express 2.0, figure 278), the only one here.
pub(crate) const NVM_COMMAND_SET: u8 = 0;

/// A namespace of a drive that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Namespace {
    /// What the drive keeps of it.
    pub record: state::Namespace,
    /// Refuses writes: its media do.
    pub read_only: bool,
    /// The controllers that it is attached to.
    pub attached: BTreeSet<u16>,
}

impl Namespace {
    pub fn bytes(&self, blocks: u64) -> u64 {
        blocks << self.record.block_shift
    }

    /// The range of Read, Write and Write Zeroes as first byte and length.
    pub fn range(&self, command: &Command) -> Result<(u64, u64), Failure> {
        let (slba, blocks) = (command.slba(), u64::from(command.blocks()));
        self.check(slba, blocks).map_err(|code| Failure::at_cdw(code, 10, 0))?;
        Ok((self.bytes(slba), self.bytes(blocks)))
    }

    /// Whether the namespace has these blocks.
    pub fn check(&self, slba: u64, blocks: u64) -> Result<(), StatusCode> {
        match slba.checked_add(blocks) {
            Some(end) if end <= self.record.blocks => Ok(()),
            _ => Err(StatusCode::LBA_OUT_OF_RANGE),
        }
    }

    /// Whether it may be written.
    pub fn writable(&self) -> Result<(), Failure> {
        if self.read_only {
            return Err(Failure::permanent(StatusCode::NAMESPACE_WRITE_PROTECTED));
        }
        Ok(())
    }

    /// The Identify Namespace data structure (figure 245); `shared` if the subsystem has several
    /// controllers.
    pub fn identify(&self, shared: bool) -> IdentifyNamespace {
        let state::Namespace { blocks, block_shift, nguid, eui64, .. } = self.record;
        IdentifyNamespace {
            size: blocks,
            capacity: blocks,
            utilization: blocks,
            media_capacity: u128::from(self.record.bytes()),
            sharing: u8::from(shared),
            attributes: if self.read_only { IdentifyNamespace::WRITE_PROTECTED } else { 0 },
            nguid,
            eui64,
            lba_format: LbaFormat { metadata: 0, data_shift: block_shift, performance: 0 },
            ..IdentifyNamespace::default()
        }
    }

    /// What of that is independent of the I/O command set (NVM Express 2.0, figure 280).
    pub fn identify_independent(&self, shared: bool) -> IndependentNamespace {
        let IdentifyNamespace { sharing, attributes, .. } = self.identify(shared);
        IndependentNamespace { sharing, attributes, status: IndependentNamespace::READY }
    }

    /// Its identification descriptors (section 5.15.2.3): what is zero is absent.
    pub fn descriptors(&self) -> Vec<NamespaceDescriptor> {
        let state::Namespace { nguid, eui64, uuid, .. } = self.record;
        let eui64 = (eui64 != [0; 8]).then_some(NamespaceDescriptor::Eui64(eui64));
        let others = [
            NamespaceDescriptor::Nguid(nguid),
            NamespaceDescriptor::Uuid(uuid),
            NamespaceDescriptor::CommandSet(NVM_COMMAND_SET),
        ];
        eui64.into_iter().chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_at_the_last_block() {
        let record = state::Namespace { blocks: 100, block_shift: 9, ..Default::default() };
        let namespace = Namespace { record, read_only: false, attached: BTreeSet::new() };
        let command = Command { cdw10: 92, cdw12: 7, ..Command::default() };
        assert_eq!(namespace.range(&command), Ok((92 * 512, 8 * 512)));
        let beyond = Command { cdw10: 93, ..command };
        assert!(namespace.range(&beyond).is_err());
        assert!(namespace.check(u64::MAX, 2).is_err());
    }
}
