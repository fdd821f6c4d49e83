//! The data pointer of a command: PRPs or an SGL (NVMe 1.4, section 4.2, figure 105).

use crate::failure::Failure;
use crate::prp::{self, MemoryRange};
use crate::sgl;
use wire::nvme::Command;

/// PSDT: an SGL, and metadata, if any, in one range.
pub(crate) const SGL: u8 = 1;

/// The walk from the data pointer to all ranges of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    Prp(prp::Walk),
    Sgl(sgl::Walk),
}

impl Walk {
    /// Begins with the data pointer of a command, for `length` bytes to the host or from it, and
    /// memory pages of `page` bytes.
    pub fn new(
        command: &Command,
        length: usize,
        page: usize,
        to_host: bool,
    ) -> Result<Self, Failure> {
        Ok(match command.psdt {
            SGL => Self::Sgl(sgl::Walk::new(command.sgl1(), length, to_host)?),
            _ => Self::Prp(prp::Walk::new(command.prp1, command.prp2, length, page)?),
        })
    }

    /// The list to read next: address and bytes.
    pub fn next_list(&self) -> Option<(u64, usize)> {
        match self {
            Self::Prp(walk) => walk.next_list(),
            Self::Sgl(walk) => walk.next_list(),
        }
    }

    /// Adds the list that was read.
    pub fn add_list(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Prp(walk) => walk.add_list(bytes),
            Self::Sgl(walk) => walk.add_list(bytes),
        }
    }

    /// Whether every range is known.
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Prp(walk) => walk.is_complete(),
            Self::Sgl(walk) => walk.is_complete(),
        }
    }

    /// The ranges known so far; [`sgl::NOWHERE`] is the address of those that are dropped.
    pub fn ranges(&self) -> &[MemoryRange] {
        match self {
            Self::Prp(walk) => walk.ranges(),
            Self::Sgl(walk) => walk.ranges(),
        }
    }
}
