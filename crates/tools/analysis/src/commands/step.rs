//! What one TLP means for a command.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use wire::tlp::Status;
use wire::{Instant, Tag};

/// The direction of a TLP.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the host to the device.
    #[default]
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

wire::named! {
    /// The part a TLP plays in a command, in the logical order of a command.
    #[derive(JsonSchema)]
    pub enum StepKind {
        /// The host sends entries, lists or data in front of the doorbell (`docs/push.md`). One
        /// message may serve several commands.
        #[schemars(rename = "push")]
        Push "push",
        /// The host writes the submission queue's tail.
        #[schemars(rename = "SQ doorbell")]
        SqDoorbell "SQ doorbell",
        /// The drive asks for submission queue entries.
        #[schemars(rename = "SQE fetch")]
        SqeFetch "SQE fetch",
        /// Entries come.
        #[schemars(rename = "SQE data")]
        SqeData "SQE data",
        /// The drive asks for a part of a PRP list, or for an SGL segment.
        #[schemars(rename = "PRP list fetch")]
        ListFetch "PRP list fetch",
        /// PRP entries or SGL descriptors come.
        #[schemars(rename = "PRP list data")]
        ListData "PRP list data",
        /// The drive asks for data of a command that carries data to it.
        #[schemars(rename = "data read")]
        DataRead "data read",
        /// That data comes.
        #[schemars(rename = "data completion")]
        DataCompletion "data completion",
        /// The drive writes data of a command that carries data to the host.
        #[schemars(rename = "data write")]
        DataWrite "data write",
        /// The drive writes a completion queue entry.
        #[schemars(rename = "CQE write")]
        CqeWrite "CQE write",
        /// The drive signals the vector of the completion queue.
        #[schemars(rename = "MSI-X")]
        MsiX "MSI-X",
        /// The host writes the completion queue's head.
        #[schemars(rename = "CQ doorbell")]
        CqDoorbell "CQ doorbell",
    }
}

impl StepKind {
    /// Whether the TLP answers an earlier step.
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::SqeData | Self::ListData | Self::DataCompletion)
    }
}

/// Its name.
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
    /// Its direction.
    pub direction: Direction,
    /// Its type as analysers print it, see [`wire::tlp::Tlp::mnemonic`].
    pub tlp: &'static str,
    /// Bus address of the first byte asked for or carried. Completions carry
    /// no address: theirs is that of the request plus what came before.
    pub address: u64,
    /// Bytes asked for or carried.
    pub bytes: u32,
    /// Bytes of the TLP: header and payload, without digest, LCRC and framing.
    pub length: u32,
    /// Transaction tag; `None` for posted requests, which need none.
    pub tag: Option<Tag>,
    /// Completion status; success for requests.
    pub status: Status,
    /// A read of the drive, or its completion, that the port in front of it answered from pushed
    /// bytes.
    pub from_push: bool,
}
