//! A namespace: a range of blocks with a name (NVMe 1.4, section 6.1).

use crate::config::Settings;
use crate::controller::ACCESS_GROUP;
use crate::failure::Failure;
use crate::io::CopyLimits;
use crate::metadata::METADATA;
use crate::slots::Key;
use crate::state::{self, Format, Marks, Reservation};
use crate::subsystem::Shared;
use std::collections::BTreeSet;
use wire::nvme::{
    Command, IDENTIFY, IdentifyNamespace, IndependentNamespace, LbaFormat, NamespaceDescriptor,
    ProtectionType, StatusCode,
};

/// CSI of the NVM command set (NVM Express 2.0, figure 278), the only supported command set.
pub(crate) const NVM_COMMAND_SET: u8 = 0;

/// A namespace of a running drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Namespace {
    /// The record of the namespace.
    pub record: state::Namespace,
    /// Blocks that Write Uncorrectable has marked.
    pub marks: Marks,
    /// Registrations and reservation of hosts.
    pub reservation: Reservation,
    /// Whether the media are read-only.
    pub read_only: bool,
    /// The controller and the command that format the namespace, if any.
    pub formatting: Option<(u16, Key)>,
    /// The controllers that the namespace is attached to.
    pub attached: BTreeSet<u16>,
}

/// The LBA formats with which namespaces can be created. FLBAS has the index.
pub(crate) const FORMATS: [LbaFormat; 4] = [
    lba_format(9, 0),
    lba_format(12, 0),
    lba_format(9, METADATA as u8),
    lba_format(12, METADATA as u8),
];
/// MC: metadata at the end of each block's data, or in a separate buffer.
const METADATA_CAPABILITIES: u8 = 1 | 1 << 1;
/// DPC: types 1 to 3, in the first or the last eight bytes of the metadata, which has only eight
/// bytes.
const PROTECTION_CAPABILITIES: u8 = 0b111 | 1 << 3 | 1 << 4;
/// RESCAP: all types of reservations, persistence, and Ignore Existing Key as of NVMe 1.3.
const RESERVATIONS: u8 = 0xff;
/// DPS bit 3: the protection information is the first eight bytes of the metadata.
pub(crate) const FIRST: u8 = 1 << 3;

const fn lba_format(data_shift: u8, metadata: u8) -> LbaFormat {
    LbaFormat { metadata: metadata as u16, data_shift, performance: 0 }
}

/// The block format for an LBA format, the place of the metadata (`extended`), and the type of
/// protection (`kind`, 0 for none). `None` for an invalid combination (figure 245, FLBAS and DPS;
/// section 5.23, MSET, PI and PIL).
pub(crate) fn block_format(
    format: LbaFormat,
    extended: bool,
    kind: u8,
    first: bool,
) -> Option<Format> {
    let metadata = format.metadata as u8;
    let extended = extended && metadata > 0;
    let protection = match kind {
        0 => 0,
        _ if metadata == 0 => return None,
        _ => ProtectionType::from_number(kind)? as u8 | if first { FIRST } else { 0 },
    };
    Some(Format { block_shift: format.data_shift, metadata, extended, protection })
}

/// FLBAS for this format; `None` if namespaces cannot be created with this format.
pub(crate) fn flbas(format: Format) -> Option<u8> {
    let Format { block_shift, metadata, extended, .. } = format;
    let number = FORMATS.iter().position(|one| *one == lba_format(block_shift, metadata))?;
    Some(number as u8 | if extended { IdentifyNamespace::EXTENDED } else { 0 })
}

impl Namespace {
    /// A namespace attached to no controller.
    pub(crate) fn new(record: state::Namespace, read_only: bool) -> Self {
        Self {
            record,
            marks: Marks::default(),
            reservation: Reservation::default(),
            read_only,
            formatting: None,
            attached: BTreeSet::new(),
        }
    }

    pub(crate) fn bytes(&self, blocks: u64) -> u64 {
        blocks << self.record.block_shift
    }

    /// The range of a Read, Write or Write Zeroes: first byte and length in bytes.
    pub(crate) fn range(&self, command: &Command) -> Result<(u64, u64), Failure> {
        self.formatted()?;
        let (slba, blocks) = (command.slba(), u64::from(command.blocks()));
        self.check(slba, blocks).map_err(|code| Failure::at_cdw(code, 10, 0))?;
        Ok((self.bytes(slba), self.bytes(blocks)))
    }

    /// Fails unless the namespace has these blocks.
    pub(crate) fn check(&self, slba: u64, blocks: u64) -> Result<(), StatusCode> {
        match slba.checked_add(blocks) {
            Some(end) if end <= self.record.blocks => Ok(()),
            _ => Err(StatusCode::LBA_OUT_OF_RANGE),
        }
    }

    /// Fails if one of these existing blocks is marked uncorrectable (section 6.16).
    pub(crate) fn readable(&self, slba: u64, blocks: u64) -> Result<(), Failure> {
        match self.marks.first_in(&(slba..slba + blocks)) {
            None => Ok(()),
            Some(lba) => Err(Failure::permanent(StatusCode::UNRECOVERED_READ_ERROR).at_lba(lba)),
        }
    }

    /// Fails while the namespace is being formatted.
    pub(crate) fn formatted(&self) -> Result<(), Failure> {
        match self.formatting {
            None => Ok(()),
            Some(_) => Err(Failure::transient(StatusCode::FORMAT_IN_PROGRESS)),
        }
    }

    /// Whether the media are read-only, or a host has write protected the namespace.
    fn is_read_only(&self) -> bool {
        self.read_only || self.record.write_protected
    }

    /// Fails if writes are not allowed. Read-only media and write protection have different
    /// statuses (NVMe 1.4, figures 128 and 129).
    pub(crate) fn writable(&self) -> Result<(), Failure> {
        if self.record.write_protected {
            return Err(Failure::permanent(StatusCode::NAMESPACE_WRITE_PROTECTED));
        }
        if self.read_only {
            return Err(Failure::permanent(StatusCode::WRITE_TO_READ_ONLY_RANGE));
        }
        Ok(())
    }

    /// The Identify Namespace data structure (figure 245). The structure of a controller through
    /// which the namespace is not `accessible` has no NUSE and NVMCAP (section 8.20.3.3).
    pub(crate) fn identify(
        &self,
        settings: &Settings,
        shared: &Shared,
        accessible: bool,
    ) -> [u8; IDENTIFY] {
        let state::Namespace { blocks, nguid, eui64, private, protection, .. } = self.record;
        let Format { block_shift, metadata, .. } = self.record.format();
        let copy = CopyLimits::new(settings, self);
        // A drive that cannot create namespaces has only this format.
        let format = lba_format(block_shift, metadata);
        let formatted = flbas(self.record.format()).filter(|_| shared.saves());
        let formats = if formatted.is_some() { &FORMATS[..] } else { &[format] };
        let several = shared.controllers > 1 || shared.saves();
        let identify = IdentifyNamespace {
            size: blocks,
            capacity: blocks,
            utilization: if accessible { blocks } else { 0 },
            // Identifiers of drives with records are random; others are derived from the serial
            // number.
            features: if shared.saves() { IdentifyNamespace::IDENTIFIERS_NOT_REUSED } else { 0 },
            deallocate_features: IdentifyNamespace::DEALLOCATES_TO_ZEROES
                | if metadata == 0 { IdentifyNamespace::ZEROES_DEALLOCATE } else { 0 },
            copy_range: copy.range,
            copy_length: copy.length,
            copy_ranges: copy.ranges,
            media_capacity: if accessible { self.record.bytes().into() } else { 0 },
            access_group: if shared.reports_access() { ACCESS_GROUP } else { 0 },
            lba_formats: formats.len() as u8 - 1,
            formatted: formatted.unwrap_or(0),
            metadata_capabilities: if shared.saves() { METADATA_CAPABILITIES } else { 0 },
            protection_capabilities: if shared.saves() { PROTECTION_CAPABILITIES } else { 0 },
            protection,
            sharing: if several && !private { IdentifyNamespace::SHARED } else { 0 },
            reservations: if shared.saves() { RESERVATIONS } else { 0 },
            attributes: match self.is_read_only() || shared.is_unrecorded() {
                true => IdentifyNamespace::WRITE_PROTECTED,
                false => 0,
            },
            nguid,
            eui64,
            lba_format: format,
            ..IdentifyNamespace::default()
        };
        identify.encode_with(formats)
    }

    /// Identify Namespace data for the broadcast NSID: the common properties of all namespaces.
    pub(crate) fn common() -> [u8; IDENTIFY] {
        let lba_formats = FORMATS.len() as u8 - 1;
        let lba_format = FORMATS[0];
        let common = IdentifyNamespace {
            lba_formats,
            lba_format,
            metadata_capabilities: METADATA_CAPABILITIES,
            protection_capabilities: PROTECTION_CAPABILITIES,
            reservations: RESERVATIONS,
            ..IdentifyNamespace::default()
        };
        common.encode_with(&FORMATS)
    }

    /// The data structure that is independent of the I/O command set (NVM Express 2.0, figure 280).
    pub(crate) fn identify_independent(
        &self,
        settings: &Settings,
        shared: &Shared,
    ) -> IndependentNamespace {
        let identify = IdentifyNamespace::decode(&self.identify(settings, shared, true));
        let IdentifyNamespace { sharing, reservations, access_group, attributes, .. } = identify;
        let status = IndependentNamespace::READY;
        IndependentNamespace { sharing, reservations, access_group, attributes, status }
    }

    /// The identification descriptors of the namespace (section 5.15.2.3), without identifiers that
    /// are zero.
    pub(crate) fn descriptors(&self) -> Vec<NamespaceDescriptor> {
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
        let namespace = Namespace::new(record, false);
        let command = Command { cdw10: 92, cdw12: 7, ..Command::default() };
        assert_eq!(namespace.range(&command), Ok((92 * 512, 8 * 512)));
        let beyond = Command { cdw10: 93, ..command };
        assert!(namespace.range(&beyond).is_err());
        assert!(namespace.check(u64::MAX, 2).is_err());
    }
}
