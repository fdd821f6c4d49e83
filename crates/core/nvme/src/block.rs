//! Requests of controllers to the media.

use crate::controller::controller_of;
use bytes::Bytes;
use wire::trace::{CommandId, MediaOperation};

/// A request for the media. Answer it with
/// [`Subsystem::complete_block`](crate::Subsystem::complete_block).
///
/// Requests may be executed in any order and concurrently. A flush covers all requests that were
/// completed before the flush was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Identifies the request; bits 31:16 are the CNTLID of the controller, or 0 for a sanitize
    /// operation.
    pub id: u64,
    /// The command that the request belongs to. `None` for requests without a command, and for the
    /// metadata of a command's blocks.
    pub command: Option<CommandId>,
    /// NSID.
    pub nsid: u32,
    /// The operation.
    pub operation: Operation,
}

impl Request {
    /// CNTLID of the controller; 0 for a sanitize operation.
    pub fn controller(&self) -> u16 {
        controller_of(self.id)
    }
}

/// An operation of the media. Offsets and lengths are in bytes, inside the contents of the
/// namespace: whole blocks, or the metadata of whole blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read bytes. The completion has exactly `length` bytes.
    Read {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes, at most the largest transfer of the controller.
        length: usize,
    },
    /// Write bytes. The data may stay in a volatile cache until a flush.
    Write {
        /// Offset of the first byte.
        offset: u64,
        /// The bytes.
        data: Bytes,
    },
    /// Make all completed writes durable.
    Flush,
    /// Make the range read as zeroes. The zeroes may stay in a volatile cache until a flush.
    WriteZeroes {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// The host no longer needs the range. Freed blocks read as zeroes; media that free nothing
    /// keep the data.
    Discard {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
}

impl Operation {
    /// The kind of the operation in traces.
    pub fn kind(&self) -> MediaOperation {
        match self {
            Self::Read { .. } => MediaOperation::Read,
            Self::Write { .. } => MediaOperation::Write,
            Self::Flush => MediaOperation::Flush,
            Self::WriteZeroes { .. } => MediaOperation::WriteZeroes,
            Self::Discard { .. } => MediaOperation::Discard,
        }
    }

    /// First byte and number of bytes; zeroes for a flush.
    pub fn range(&self) -> (u64, u64) {
        match self {
            Self::Read { offset, length } => (*offset, *length as u64),
            Self::Write { offset, data } => (*offset, data.len() as u64),
            Self::Flush => (0, 0),
            Self::WriteZeroes { offset, length } | Self::Discard { offset, length } => {
                (*offset, *length)
            }
        }
    }
}

/// The operations that free a range which must then read as zeroes, even on media that free
/// nothing.
pub(crate) fn deallocated(offset: u64, length: u64) -> [Operation; 2] {
    [Operation::WriteZeroes { offset, length }, Operation::Discard { offset, length }]
}

/// How an operation can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The media cannot read or write the range.
    #[error("the medium cannot read or write the range")]
    Media,
    /// The media cannot be written.
    #[error("the medium is read-only")]
    ReadOnly,
    /// No space is left on the medium.
    #[error("no space is left on the medium")]
    NoSpace,
    /// Temporarily unavailable; the host may try again.
    #[error("the namespace is not ready; try again later")]
    NotReady,
    /// Another failure of the media.
    #[error("the medium failed for another reason")]
    Internal,
}

/// The result of a request: the bytes of a read, empty otherwise.
pub type Completion = Result<Bytes, Error>;
