//! The role of one TLP in a command.

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
    /// Returns the opposite direction.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }
}

wire::named! {
    /// The role of a TLP in a command, in the logical order of a command.
    #[derive(JsonSchema)]
    pub enum StepKind {
        /// The host sends entries, lists or data in front of the doorbell (`docs/push.md`). One
        /// message may serve several commands.
        #[schemars(rename = "push")]
        Push "push",
        /// The host writes the submission queue's tail.
        #[schemars(rename = "SQ doorbell")]
        SqDoorbell "SQ doorbell",
        /// The drive requests submission queue entries.
        #[schemars(rename = "SQE fetch")]
        SqeFetch "SQE fetch",
        /// Submission queue entries arrive.
        #[schemars(rename = "SQE data")]
        SqeData "SQE data",
        /// The drive requests a part of a PRP list, or an SGL segment.
        #[schemars(rename = "PRP list fetch")]
        ListFetch "PRP list fetch",
        /// PRP entries or SGL descriptors arrive.
        #[schemars(rename = "PRP list data")]
        ListData "PRP list data",
        /// The drive requests data of a command that transfers data to the drive.
        #[schemars(rename = "data read")]
        DataRead "data read",
        /// Data arrive for a command that transfers data to the drive.
        #[schemars(rename = "data completion")]
        DataCompletion "data completion",
        /// The drive writes data of a command that transfers data to the host.
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
    /// Returns whether the TLP answers an earlier step.
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::SqeData | Self::ListData | Self::DataCompletion)
    }
}

/// The name of the kind.
impl Serialize for StepKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One TLP of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Time at which the TLP began.
    pub at: Instant,
    /// Number of the TLP among all TLPs that were seen, from 0, in link order.
    pub number: u64,
    /// Role of the TLP in the command.
    pub kind: StepKind,
    /// Direction of the TLP.
    pub direction: Direction,
    /// Type of the TLP as protocol analysers print it, see [`wire::tlp::Tlp::mnemonic`].
    pub tlp: &'static str,
    /// Bus address of the first byte requested or carried. For a completion: the address of the
    /// request plus the number of bytes returned before.
    pub address: u64,
    /// Number of bytes requested or carried.
    pub bytes: u32,
    /// Bytes of the TLP: header and payload, without digest, LCRC and framing.
    pub length: u32,
    /// Transaction tag; `None` for posted requests.
    pub tag: Option<Tag>,
    /// Completion status; success for requests.
    pub status: Status,
    /// Whether the port in front of the drive answered this read, or sent this completion, from
    /// pushed bytes.
    pub from_push: bool,
}
