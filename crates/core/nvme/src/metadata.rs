//! Metadata of blocks (NVMe 1.4, section 8.2): place on the media, transfer, and protection
//! information.
//!
//! In the contents of a namespace, all metadata follow all data. Protection information is stored
//! inverted: the media return zeroes for deallocated blocks, so their protection information reads
//! as FFh in every byte (section 6.7.1.1). Other metadata of deallocated blocks read as zeroes, as
//! DLFEAT states.

use crate::block::Operation;
use crate::failure::Failure;
use crate::namespace::Namespace;
use crate::protection::Protection;
use crate::subsystem::Blocks;
use bytes::{Bytes, BytesMut};
use std::ops::Range;
use wire::nvme::{
    Command, ProtectionControl, ProtectionInformation, ProtectionTags, ProtectionType, StatusCode,
};

/// Size of metadata per block in bytes, in formats with metadata: the length of protection
/// information.
pub(crate) const METADATA: usize = ProtectionInformation::LENGTH;

/// How metadata are transferred from or to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Travel {
    /// Not transferred: the controller inserts or strips the metadata, or only uses them
    /// internally.
    Never,
    /// In a separate host buffer at MPTR. In the buffer of the controller, the metadata follow the
    /// data.
    Separate,
    /// At the end of each block's data.
    Extended,
}

/// The metadata of consecutive blocks, and the settings of the command that uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    nsid: u32,
    slba: u64,
    blocks: u64,
    /// Size of data per block in bytes.
    block: usize,
    /// Byte offset of the first metadata on the media.
    offset: u64,
    /// The settings of the command for protection information; `None` if the metadata are not
    /// protection information.
    protection: Option<Protection>,
    pub travel: Travel,
}

impl Namespace {
    /// The metadata of a command's blocks; `None` for a namespace without metadata.
    pub(crate) fn metadata(&self, command: &Command) -> Result<Option<Metadata>, Failure> {
        if self.record.metadata == 0 {
            return Ok(None);
        }
        let (slba, blocks) = (command.slba(), u64::from(command.blocks()));
        let (control, tags) = (command.protection(), command.tags());
        self.metadata_of(command.nsid, slba, blocks, control, tags).map(Some)
    }

    /// The metadata of any blocks, in a namespace with metadata.
    pub(crate) fn metadata_of(
        &self,
        nsid: u32,
        slba: u64,
        blocks: u64,
        control: ProtectionControl,
        tags: ProtectionTags,
    ) -> Result<Metadata, Failure> {
        let kind = ProtectionType::from_number(self.record.protection & 7);
        let protection = kind.map(|kind| Protection::new(kind, control, tags, slba));
        let protection = protection.transpose().map_err(|code| Failure::at_cdw(code, 14, 0))?;
        // PRACT with metadata that consist only of protection information (section 8.3.1).
        let travel = match (protection, self.record.extended) {
            (Some(protection), _) if protection.acts() => Travel::Never,
            (_, true) => Travel::Extended,
            (_, false) => Travel::Separate,
        };
        Ok(Metadata {
            nsid,
            slba,
            blocks,
            block: 1 << self.record.block_shift,
            offset: self.record.metadata_offset(slba),
            protection,
            travel,
        })
    }

    /// The metadata of blocks without checks of protection information, in a namespace with
    /// metadata.
    pub(crate) fn metadata_of_range(
        &self,
        nsid: u32,
        slba: u64,
        blocks: u64,
    ) -> Result<Metadata, Failure> {
        self.metadata_of(nsid, slba, blocks, Default::default(), Default::default())
    }
}

impl Metadata {
    /// Number of bytes of metadata.
    pub(crate) fn length(&self) -> usize {
        self.blocks as usize * METADATA
    }

    /// The byte range of the metadata on the media.
    pub(crate) fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.length() as u64
    }

    /// Number of bytes of the blocks' data.
    pub(crate) fn data(&self) -> u64 {
        self.blocks * self.block as u64
    }

    /// Splits the blocks into pieces of up to `most` blocks, each with the byte offset of its data.
    pub(crate) fn pieces(self, most: u64) -> impl Iterator<Item = (u64, Self)> {
        let piece = move |first: u64| {
            let piece = self.part(first, most.min(self.blocks - first));
            (first * self.block as u64, piece)
        };
        (0..self.blocks).step_by(most as usize).map(piece)
    }

    /// Number of bytes of metadata between the data. They count for MDTS (figure 247).
    pub(crate) fn extends(&self) -> u64 {
        if self.travel == Travel::Extended { self.length() as u64 } else { 0 }
    }

    /// Number of bytes of metadata at MPTR.
    pub(crate) fn separate(&self) -> usize {
        if self.travel == Travel::Separate { self.length() } else { 0 }
    }

    /// Rejects PRACT, for Compare and Verify.
    pub(crate) fn passive(self) -> Result<Self, Failure> {
        match self.protection {
            Some(protection) if protection.acts() => {
                Err(Failure::at_cdw(StatusCode::INVALID_PROTECTION_INFORMATION, 12, 29))
            }
            _ => Ok(self),
        }
    }

    /// Rejects PRCHK, for Write Zeroes, which has no protection information to check.
    pub(crate) fn unchecked(self) -> Result<Self, Failure> {
        match self.protection {
            Some(protection) if protection.checks() => {
                Err(Failure::at_cdw(StatusCode::INVALID_PROTECTION_INFORMATION, 12, 26))
            }
            _ => Ok(self),
        }
    }

    /// A part of the blocks: `blocks` blocks from index `first` on.
    pub(crate) fn part(self, first: u64, blocks: u64) -> Self {
        Self {
            slba: self.slba + first,
            blocks,
            offset: self.offset + first * METADATA as u64,
            protection: self.protection.map(|protection| protection.after(first)),
            ..self
        }
    }

    /// A step that reads the blocks and checks the protection information. `Beside::found` returns
    /// data and metadata in the format of the transfer.
    pub(crate) fn read(self) -> Box<Beside> {
        self.beside(Action::Read)
    }

    /// As [`read`](Self::read), but `Beside::found` returns only the data.
    pub(crate) fn verify(self) -> Box<Beside> {
        Self { travel: Travel::Never, ..self }.read()
    }

    /// As [`read`](Self::read), but `Beside::found` returns the data followed by the metadata.
    pub(crate) fn read_apart(self) -> Box<Beside> {
        Self { travel: Travel::Separate, ..self }.read()
    }

    /// As [`read`](Self::read), but `Beside::found` returns only the bytes to compare. Protection
    /// information is checked, not compared (section 6.6).
    pub(crate) fn read_to_compare(self) -> Box<Beside> {
        if self.protection.is_some() { self.verify() } else { self.read_apart() }
    }

    /// The expected bytes of a comparison, from the bytes that the host sent.
    pub(crate) fn expected(&self, bytes: Bytes) -> Result<Bytes, Failure> {
        let (data, metadata) = self.received(bytes)?;
        Ok(if self.protection.is_some() { data } else { [data, metadata].concat().into() })
    }

    /// Splits the bytes that the host sent into data and metadata, and checks or inserts the
    /// protection information.
    pub(crate) fn received(&self, bytes: Bytes) -> Result<(Bytes, Bytes), Failure> {
        let (data, metadata) = match self.travel {
            Travel::Never => (bytes, Bytes::new()),
            Travel::Separate => {
                let data = bytes.len() - self.length();
                (bytes.slice(..data), bytes.slice(data..))
            }
            Travel::Extended => self.split(&bytes),
        };
        self.protected(&data, metadata).map(|metadata| (data, metadata))
    }

    /// The metadata to write: inserted protection information, or the metadata from the host after
    /// a check.
    fn protected(&self, data: &[u8], metadata: Bytes) -> Result<Bytes, Failure> {
        match self.protection {
            Some(protection) if protection.acts() => Ok(protection.insert(self.block, data).into()),
            Some(protection) => protection.check(self.block, data, &metadata).map(|()| metadata),
            None => Ok(metadata),
        }
    }

    /// As [`received`](Self::received), for blocks that [`read_apart`](Self::read_apart) has read.
    pub(crate) fn copied(&self, bytes: Bytes) -> Result<(Bytes, Bytes), Failure> {
        Self { travel: Travel::Separate, ..*self }.received(bytes)
    }

    fn split(&self, bytes: &[u8]) -> (Bytes, Bytes) {
        let mut data = BytesMut::with_capacity(self.blocks as usize * self.block);
        let mut metadata = BytesMut::with_capacity(self.length());
        for block in bytes.chunks_exact(self.block + METADATA) {
            let (head, tail) = block.split_at(self.block);
            data.extend_from_slice(head);
            metadata.extend_from_slice(tail);
        }
        (data.freeze(), metadata.freeze())
    }

    /// A step that writes these metadata.
    pub(crate) fn write(self, metadata: Bytes) -> Box<Beside> {
        self.beside(Action::Write(metadata))
    }

    /// A step that writes the metadata of zeroed blocks: zeroes, or with PRACT the inserted
    /// protection information (section 6.17).
    pub(crate) fn zero(self) -> Box<Beside> {
        self.beside(Action::Zero)
    }

    /// A step that deallocates the blocks.
    pub(crate) fn discard(self) -> Box<Beside> {
        self.beside(Action::Discard)
    }

    fn beside(self, action: Action) -> Box<Beside> {
        Box::new(Beside { metadata: self, action })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Read,
    Write(Bytes),
    Zero,
    Discard,
}

/// The action of a step on the metadata of its blocks, in addition to the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beside {
    metadata: Metadata,
    action: Action,
}

impl Beside {
    /// The blocks of the step.
    pub(crate) fn blocks(&self) -> Blocks {
        let Metadata { nsid, slba, blocks, .. } = self.metadata;
        Blocks { nsid, range: slba..slba + blocks, shared: self.action == Action::Read }
    }

    /// The media request for the metadata.
    pub(crate) fn operation(&self) -> Operation {
        let Metadata { offset, blocks, protection, .. } = self.metadata;
        let length = self.metadata.length();
        match &self.action {
            Action::Read => Operation::Read { offset, length },
            Action::Write(data) => Operation::Write { offset, data: self.stored(data) },
            Action::Discard => Operation::Discard { offset, length: length as u64 },
            Action::Zero => match protection {
                None => Operation::WriteZeroes { offset, length: length as u64 },
                Some(protection) => {
                    let inserted = match protection.acts() {
                        true => protection.insert_zeroes(blocks),
                        false => vec![0; length],
                    };
                    Operation::Write { offset, data: self.stored(&Bytes::from(inserted)) }
                }
            },
        }
    }

    /// Converts metadata to or from the stored format.
    fn stored(&self, metadata: &Bytes) -> Bytes {
        match self.metadata.protection.is_some() {
            true => metadata.iter().map(|byte| !byte).collect(),
            false => metadata.clone(),
        }
    }

    /// Checks the data and metadata that the step has read, and returns them in the format of the
    /// transfer. Other steps than reads return `data` unchanged.
    pub(crate) fn found(&self, data: Bytes, metadata: &Bytes) -> Result<Bytes, Failure> {
        if self.action != Action::Read {
            return Ok(data);
        }
        let Metadata { block, protection, travel, .. } = self.metadata;
        let metadata = self.stored(metadata);
        if let Some(protection) = protection {
            protection.check(block, &data, &metadata)?;
        }
        Ok(match travel {
            Travel::Never => data,
            Travel::Separate => [data, metadata].concat().into(),
            Travel::Extended => {
                let metadata = metadata.as_chunks::<METADATA>().0;
                let blocks = data.chunks_exact(block).zip(metadata);
                let mut bytes = BytesMut::with_capacity(data.len() + self.metadata.length());
                for (data, metadata) in blocks {
                    bytes.extend_from_slice(data);
                    bytes.extend_from_slice(metadata);
                }
                bytes.freeze()
            }
        })
    }
}
