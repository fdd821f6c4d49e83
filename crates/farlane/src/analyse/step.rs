//! What one TLP means for a command.

use serde::{Serialize, Serializer};
use std::fmt;
use wire::tlp::{Status, Tlp};
use wire::{Instant, Tag};

/// Which way a TLP goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the host to the device.
    Down,
    /// From the device to the host.
    Up,
}

impl Direction {
    /// The other one.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }
}

/// The part a TLP plays in a command, in the logical order of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepKind {
    /// The host writes the submission queue's tail.
    SqDoorbell,
    /// The drive asks for submission queue entries.
    SqeFetch,
    /// Entries come.
    SqeData,
    /// The drive asks for a part of a PRP list.
    ListFetch,
    /// PRP entries come.
    ListData,
    /// The drive asks for data of a command that carries data to it.
    DataRead,
    /// That data comes.
    DataCompletion,
    /// The drive writes data of a command that carries data to the host.
    DataWrite,
    /// The drive writes a completion queue entry.
    CqeWrite,
    /// The drive signals the vector of the completion queue.
    MsiX,
    /// The host writes the completion queue's head.
    CqDoorbell,
}

impl StepKind {
    /// The name in texts and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SqDoorbell => "SQ doorbell",
            Self::SqeFetch => "SQE fetch",
            Self::SqeData => "SQE data",
            Self::ListFetch => "PRP list fetch",
            Self::ListData => "PRP list data",
            Self::DataRead => "data read",
            Self::DataCompletion => "data completion",
            Self::DataWrite => "data write",
            Self::CqeWrite => "CQE write",
            Self::MsiX => "MSI-X",
            Self::CqDoorbell => "CQ doorbell",
        }
    }

    /// Whether the TLP answers an earlier step.
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::SqeData | Self::ListData | Self::DataCompletion)
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for StepKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One TLP of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When the TLP began.
    pub at: Instant,
    /// Its number among all TLPs that were seen, from 0: the order of the link.
    pub number: u64,
    /// Its part in the command.
    pub kind: StepKind,
    /// Which way it went.
    pub direction: Direction,
    /// Its type as analysers print it, see [`Tlp::mnemonic`].
    pub tlp: &'static str,
    /// Bus address of the first byte asked for or carried. Completions carry
    /// no address: theirs is that of the request plus what came before.
    pub address: u64,
    /// Bytes asked for or carried.
    pub bytes: u32,
    /// Transaction tag; `None` for posted requests, which need none.
    pub tag: Option<Tag>,
    /// Completion status; success for requests.
    pub status: Status,
}

/// A TLP on its way through the analyser.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub at: Instant,
    pub number: u64,
    pub direction: Direction,
    pub tlp: &'a Tlp,
}

impl Seen<'_> {
    pub fn step(&self, kind: StepKind, address: u64, bytes: usize, tag: Option<Tag>) -> Step {
        Step {
            at: self.at,
            number: self.number,
            kind,
            direction: self.direction,
            tlp: self.tlp.mnemonic(),
            address,
            bytes: bytes as u32,
            tag,
            status: Status::Success,
        }
    }
}
