//! Requests of controllers to the media.

use bytes::Bytes;
use wire::trace::{CommandId, MediaOperation};

/// A request for the media; answer with
/// [`Subsystem::complete_block`](crate::Subsystem::complete_block).
///
/// Requests may be executed in any order and concurrently. Flush covers all
/// requests completed before it was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Identifies the request; bits 31:16 are the CNTLID of the controller.
    pub id: u64,
    /// The command of the request, if any; `None` also for the metadata of a command's blocks.
    pub command: Option<CommandId>,
    /// NSID.
    pub nsid: u32,
    /// The operation.
    pub operation: Operation,
}

/// One operation; offsets and lengths in bytes, whole blocks, inside the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read; the completion carries exactly `length` bytes.
    Read {
        /// First byte.
        offset: u64,
        /// Bytes, at most the controller's largest transfer.
        length: usize,
    },
    /// Write; may stay in a volatile cache until a flush.
    Write {
        /// First byte.
        offset: u64,
        /// The bytes.
        data: Bytes,
    },
    /// Make everything completed so far durable.
    Flush,
    /// Make the range read as zeroes; may stay in a volatile cache.
    WriteZeroes {
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// The host no longer needs the range. Freed blocks read as zeroes; media that free nothing
    /// keep the data.
    Discard {
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
}

impl Operation {
    /// Its name in traces.
    pub fn kind(&self) -> MediaOperation {
        match self {
            Self::Read { .. } => MediaOperation::Read,
            Self::Write { .. } => MediaOperation::Write,
            Self::Flush => MediaOperation::Flush,
            Self::WriteZeroes { .. } => MediaOperation::WriteZeroes,
            Self::Discard { .. } => MediaOperation::Discard,
        }
    }

    /// First byte and bytes; zeroes for a flush.
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

/// Frees a range that must read as zeroes, even on media that free nothing.
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
    /// Anything else.
    #[error("the medium failed for another reason")]
    Internal,
}

/// The result of a request: the bytes of a read, empty otherwise.
pub type Completion = Result<Bytes, Error>;
