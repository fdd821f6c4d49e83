//! The place of a command's data and metadata in host memory: PRPs or an SGL, and the metadata
//! pointer (NVMe 1.4, section 4.2, figure 105).

use crate::failure::Failure;
use crate::prp::{self, MemoryRange, MemoryRanges};
use crate::sgl;
use bytes::Bytes;
use wire::nvme::{Command, SglDescriptor, StatusCode};

/// The ranges of host memory that a command's data pointer describes, for `length` bytes of data to
/// or from the host, and memory pages of `page` bytes. `read` must return the bytes at an address
/// of host memory: a PRP list or SGL descriptors. `None` if the pointers are not valid, or if
/// `read` returns `None`.
pub fn follow(
    command: &Command,
    length: usize,
    page: usize,
    to_host: bool,
    mut read: impl FnMut(u64, usize) -> Option<Bytes>,
) -> Option<MemoryRanges> {
    let alone = command.psdt != SGL && command.psdt != TWO_SGLS;
    if let Some(range) = prp::one_page(command.prp1, length, page).filter(|_| alone) {
        return Some(MemoryRanges::from_iter([range]));
    }
    let mut walk = Walk::new(command, [length, 0], page, to_host).ok()?;
    while let Some((address, length)) = walk.next_list() {
        walk.add_list(&read(address, length)?).ok()?;
    }
    let ranges = walk.ranges().iter().filter(|range| range.address != sgl::NOWHERE);
    Some(ranges.copied().collect())
}

/// PSDT: an SGL for the data, and one range for metadata, if any.
const SGL: u8 = 1;
/// PSDT: an SGL for the data, and one for metadata.
pub(crate) const TWO_SGLS: u8 = 2;

/// The walk from the pointers of a command to all ranges of its buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    data: Data,
    metadata: Metadata,
}

#[derive(Debug, PartialEq, Eq)]
enum Data {
    Prp(prp::Walk),
    Sgl(sgl::Walk),
}

/// The ranges of the metadata, which follow the ranges of the data.
#[derive(Debug, PartialEq, Eq)]
enum Metadata {
    /// No metadata, or metadata whose ranges are already added.
    Done,
    /// One range.
    Range(MemoryRange),
    /// MPTR is the address of an SGL descriptor for `length` bytes.
    Descriptor { address: u64, length: usize, to_host: bool },
    /// The descriptor leads to further segments.
    Sgl(Box<sgl::Walk>),
}

impl Walk {
    /// Starts with the pointers of a command, for `length` bytes of data and `metadata` bytes at
    /// MPTR, to or from the host, and memory pages of `page` bytes.
    pub(crate) fn new(
        command: &Command,
        [length, metadata]: [usize; 2],
        page: usize,
        to_host: bool,
    ) -> Result<Self, Failure> {
        let data = match command.psdt {
            SGL | TWO_SGLS => Data::Sgl(sgl::Walk::new(command.sgl1(), length, to_host)?),
            _ => Data::Prp(prp::Walk::new(command.prp1, command.prp2, length, page)?),
        };
        let mut walk = Self { data, metadata: Metadata::Done };
        if metadata > 0 {
            walk.begin_metadata(command, metadata, to_host)?;
        }
        Ok(walk)
    }

    /// Starts the walk of the metadata. The address in MPTR is a multiple of 4 with PRPs, any
    /// address with an SGL, and a multiple of 8 with two SGLs (figure 105).
    fn begin_metadata(
        &mut self,
        command: &Command,
        length: usize,
        to_host: bool,
    ) -> Result<(), Failure> {
        let address = command.mptr;
        let alignment = match command.psdt {
            SGL => 1,
            TWO_SGLS => 8,
            _ => 4,
        };
        if !address.is_multiple_of(alignment) {
            return Err(Failure::field(StatusCode::INVALID_FIELD, 16, 0));
        }
        self.metadata = match command.psdt {
            TWO_SGLS => Metadata::Descriptor { address, length, to_host },
            _ => Metadata::Range(MemoryRange { address, length }),
        };
        self.add_metadata();
        Ok(())
    }

    /// The next PRP list or SGL segment to read: address and number of bytes; `None` if none is
    /// needed.
    pub(crate) fn next_list(&self) -> Option<(u64, usize)> {
        if !self.data.is_complete() {
            return self.data.next_list();
        }
        match &self.metadata {
            Metadata::Descriptor { address, .. } => Some((*address, SglDescriptor::LENGTH)),
            Metadata::Sgl(walk) => walk.next_list(),
            _ => None,
        }
    }

    /// Adds the bytes of the list that [`next_list`](Self::next_list) has returned.
    pub(crate) fn add_list(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if !self.data.is_complete() {
            self.data.add_list(bytes)?;
        } else if let Metadata::Descriptor { length, to_host, .. } = self.metadata {
            let first = SglDescriptor::decode(bytes.try_into().expect("as many as asked for"));
            let walk = sgl::Walk::new(first, length, to_host).map_err(short)?;
            self.metadata = Metadata::Sgl(Box::new(walk));
        } else if let Metadata::Sgl(walk) = &mut self.metadata {
            walk.add_list(bytes).map_err(short)?;
        }
        self.add_metadata();
        Ok(())
    }

    /// Appends the ranges of the metadata once all ranges are known.
    fn add_metadata(&mut self) {
        if !self.data.is_complete() {
            return;
        }
        match &self.metadata {
            Metadata::Range(range) => self.data.append(*range),
            Metadata::Sgl(walk) if walk.is_complete() => {
                walk.ranges().iter().for_each(|range| self.data.append(*range));
            }
            _ => return,
        }
        self.metadata = Metadata::Done;
    }

    /// Whether all ranges are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.data.is_complete() && self.metadata == Metadata::Done
    }

    /// The ranges known so far; `sgl::NOWHERE` is the address of discarded bytes.
    pub(crate) fn ranges(&self) -> &[MemoryRange] {
        match &self.data {
            Data::Prp(walk) => walk.ranges(),
            Data::Sgl(walk) => walk.ranges(),
        }
    }
}

impl Data {
    fn next_list(&self) -> Option<(u64, usize)> {
        match self {
            Self::Prp(walk) => walk.next_list(),
            Self::Sgl(walk) => walk.next_list(),
        }
    }

    fn add_list(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Prp(walk) => walk.add_list(bytes),
            Self::Sgl(walk) => walk.add_list(bytes),
        }
    }

    fn is_complete(&self) -> bool {
        match self {
            Self::Prp(walk) => walk.is_complete(),
            Self::Sgl(walk) => walk.is_complete(),
        }
    }

    fn append(&mut self, range: MemoryRange) {
        match self {
            Self::Prp(walk) => walk.append(range),
            Self::Sgl(walk) => walk.append(range),
        }
    }
}

/// An SGL that is too short for metadata has its own status (figure 127).
fn short(failure: Failure) -> Failure {
    match failure.status.code {
        StatusCode::DATA_SGL_LENGTH_INVALID => {
            Failure::field(StatusCode::METADATA_SGL_LENGTH_INVALID, 16, 0)
        }
        _ => failure,
    }
}
