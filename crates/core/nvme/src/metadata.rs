//! Metadata of blocks (NVMe 1.4, section 8.2): where they lie on the media, how they travel, and
//! what a command does to them and to the protection information that they may be.
//!
//! Metadata are behind all data in the contents of a namespace. Protection information is stored
//! inverted, so that deallocated blocks, which the media return as zeroes, have FFh in every byte of
//! it (section 6.7.1.1); other metadata read as zeroes there, as DLFEAT says.

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

/// Bytes of metadata a block, where there are any: those of protection information.
pub(crate) const METADATA: usize = ProtectionInformation::LENGTH;

/// How metadata come from the host or go to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Travel {
    /// Not at all: the controller inserts or strips them, or keeps them to itself.
    Never,
    /// In a buffer of their own, at MPTR. Here behind the data.
    Separate,
    /// At the end of each block's data.
    Extended,
}

/// The blocks of a command on a namespace with metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    nsid: u32,
    slba: u64,
    blocks: u64,
    /// Bytes of a block's data.
    block: usize,
    /// First byte of the metadata on the media.
    offset: u64,
    /// What the command says of the protection information that they are, if they are.
    protection: Option<Protection>,
    pub travel: Travel,
}

impl Namespace {
    /// What a command that names blocks says of their metadata; `None` if they have none.
    pub fn metadata(&self, command: &Command) -> Result<Option<Metadata>, Failure> {
        if self.record.metadata == 0 {
            return Ok(None);
        }
        let (slba, blocks) = (command.slba(), u64::from(command.blocks()));
        let (control, tags) = (command.protection(), command.tags());
        self.metadata_of(command.nsid, slba, blocks, control, tags).map(Some)
    }

    /// The same of any blocks of a namespace with metadata.
    pub fn metadata_of(
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
        // PRACT with metadata that are protection information alone (section 8.3.1).
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

    /// The metadata of blocks of which a command says nothing more, in a namespace with metadata.
    pub fn metadata_of_range(
        &self,
        nsid: u32,
        slba: u64,
        blocks: u64,
    ) -> Result<Metadata, Failure> {
        self.metadata_of(nsid, slba, blocks, Default::default(), Default::default())
    }
}

impl Metadata {
    /// Bytes of them.
    pub fn length(&self) -> usize {
        self.blocks as usize * METADATA
    }

    /// Where they are on the media.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.length() as u64
    }

    /// Bytes of the blocks' data.
    pub fn data(&self) -> u64 {
        self.blocks * self.block as u64
    }

    /// The blocks in pieces of up to `most`, each with the byte of the data at which it begins.
    pub fn pieces(self, most: u64) -> impl Iterator<Item = (u64, Self)> {
        let piece = move |first: u64| {
            let piece = self.part(first, most.min(self.blocks - first));
            (first * self.block as u64, piece)
        };
        (0..self.blocks).step_by(most as usize).map(piece)
    }

    /// Bytes of them between the data, which count for MDTS (figure 247).
    pub fn extends(&self) -> u64 {
        if self.travel == Travel::Extended { self.length() as u64 } else { 0 }
    }

    /// Bytes of them at MPTR.
    pub fn separate(&self) -> usize {
        if self.travel == Travel::Separate { self.length() } else { 0 }
    }

    /// Refuses PRACT in Compare and Verify, which move no protection information for the controller
    /// to insert or strip.
    pub fn passive(self) -> Result<Self, Failure> {
        match self.protection {
            Some(protection) if protection.acts() => {
                Err(Failure::at_cdw(StatusCode::INVALID_PROTECTION_INFORMATION, 12, 29))
            }
            _ => Ok(self),
        }
    }

    /// Refuses PRCHK in Write Zeroes, which brings nothing to check.
    pub fn unchecked(self) -> Result<Self, Failure> {
        match self.protection {
            Some(protection) if protection.checks() => {
                Err(Failure::at_cdw(StatusCode::INVALID_PROTECTION_INFORMATION, 12, 26))
            }
            _ => Ok(self),
        }
    }

    /// Some of the blocks, from the `first` on.
    pub fn part(self, first: u64, blocks: u64) -> Self {
        Self {
            slba: self.slba + first,
            blocks,
            offset: self.offset + first * METADATA as u64,
            protection: self.protection.map(|protection| protection.after(first)),
            ..self
        }
    }

    /// The blocks are read, and the protection information checked; [`Beside::found`] returns both
    /// as they travel.
    pub fn read(self) -> Box<Beside> {
        self.beside(Action::Read)
    }

    /// The same, and the data are returned alone.
    pub fn verify(self) -> Box<Beside> {
        Self { travel: Travel::Never, ..self }.read()
    }

    /// The same, and data and metadata are returned one behind the other.
    pub fn read_apart(self) -> Box<Beside> {
        Self { travel: Travel::Separate, ..self }.read()
    }

    /// The same, and what is compared is returned: protection information is not, it is only checked
    /// (section 6.6).
    pub fn read_to_compare(self) -> Box<Beside> {
        if self.protection.is_some() { self.verify() } else { self.read_apart() }
    }

    /// What that shall be, of what came from the host.
    pub fn expected(&self, bytes: Bytes) -> Result<Bytes, Failure> {
        let (data, metadata) = self.received(bytes)?;
        Ok(if self.protection.is_some() { data } else { [data, metadata].concat().into() })
    }

    /// Takes what came from the host apart into data and metadata, and checks or inserts the
    /// protection information.
    pub fn received(&self, bytes: Bytes) -> Result<(Bytes, Bytes), Failure> {
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

    /// Protection information that is inserted, or was checked; other metadata as they are.
    fn protected(&self, data: &[u8], metadata: Bytes) -> Result<Bytes, Failure> {
        match self.protection {
            Some(protection) if protection.acts() => Ok(protection.insert(self.block, data).into()),
            Some(protection) => protection.check(self.block, data, &metadata).map(|()| metadata),
            None => Ok(metadata),
        }
    }

    /// The same for blocks that [`read_apart`](Self::read_apart) brought from elsewhere.
    pub fn copied(&self, bytes: Bytes) -> Result<(Bytes, Bytes), Failure> {
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

    /// These metadata are written.
    pub fn write(self, metadata: Bytes) -> Box<Beside> {
        self.beside(Action::Write(metadata))
    }

    /// The metadata of blocks of zeroes: zeroes, or what PRACT inserts (section 6.17).
    pub fn zero(self) -> Box<Beside> {
        self.beside(Action::Zero)
    }

    /// The blocks are deallocated.
    pub fn discard(self) -> Box<Beside> {
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

/// What a step does to the metadata of its blocks, beside what it does to the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beside {
    metadata: Metadata,
    action: Action,
}

impl Beside {
    /// The blocks of the step.
    pub fn blocks(&self) -> Blocks {
        let Metadata { nsid, slba, blocks, .. } = self.metadata;
        Blocks { nsid, range: slba..slba + blocks, shared: self.action == Action::Read }
    }

    /// The request for the media.
    pub fn operation(&self) -> Operation {
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

    /// Metadata as they are on the media, or the other way round.
    fn stored(&self, metadata: &Bytes) -> Bytes {
        match self.metadata.protection.is_some() {
            true => metadata.iter().map(|byte| !byte).collect(),
            false => metadata.clone(),
        }
    }

    /// The step has brought these data and metadata: checks them, and returns them as they travel.
    pub fn found(&self, data: Bytes, metadata: &Bytes) -> Result<Bytes, Failure> {
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
