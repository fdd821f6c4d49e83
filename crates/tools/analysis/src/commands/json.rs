//! Commands as JSON.
//!
//! Addresses are numbers; those above 2^53, which not every reader of JSON holds exactly, are
//! strings of the form `"0x…"`. What does not apply is `null`.

use super::command::{Command, Parts};
use super::step::{Direction, StepKind};
use serde::{Serialize, Serializer};

/// The largest whole number up to which every reader is exact.
const EXACT: u64 = 1 << 53;

fn address<S: Serializer>(address: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match *address {
        address @ ..=EXACT => serializer.serialize_u64(address),
        address => serializer.collect_str(&format_args!("{address:#x}")),
    }
}

/// One TLP of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Nanoseconds since the start of the command.
    pub t_ns: u64,
    /// Its part in the command, see [`StepKind::name`].
    pub step: StepKind,
    /// `"down"` from the host, `"up"` from the drive.
    pub direction: Direction,
    /// Its type as analysers print it: `"MWr32"`, `"CplD"`, ….
    pub tlp: &'static str,
    /// Bus address of the first byte asked for or carried.
    #[serde(serialize_with = "address")]
    pub address: u64,
    /// Bytes asked for or carried.
    pub bytes: u32,
    /// Transaction tag; `null` for posted requests.
    pub tag: Option<u16>,
    /// Its number on the link, from 0.
    pub packet: u64,
    /// The port in front of the drive answered this read, or sent this completion, from push.
    pub from_push: bool,
}

/// A command with its TLPs in the order of the link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Transaction {
    /// The command's name in lower case: `"read"`, `"write"`, ….
    pub command: String,
    /// The drive, `"bb:dd.f"`.
    pub device: String,
    /// Submission queue; 0 is the admin queue.
    pub queue: u16,
    /// Command identifier.
    pub cid: u16,
    /// Namespace identifier.
    pub nsid: u32,
    /// First logical block.
    pub slba: Option<u64>,
    /// Logical blocks.
    pub blocks: Option<u32>,
    /// Status code type and status code, 0 for success; `null` if none came.
    pub status: Option<u16>,
    /// From the submission doorbell to the completion head doorbell.
    pub duration_ns: Option<u64>,
    /// Bytes of data that moved and that the recording left out.
    pub data_unrecorded: u64,
    /// Their hash, 16 hexadecimal digits; `null` if the recording has none of all of them.
    pub data_hash: Option<String>,
    /// Bytes pushed for it.
    pub pushed: Parts,
    /// Bytes that the drive read and the port in front of it answered from push.
    pub answered_from_push: Parts,
    /// The TLPs.
    pub steps: Vec<Step>,
}

impl From<&Command> for Transaction {
    fn from(command: &Command) -> Self {
        let steps = command.steps.iter().map(|step| Step {
            t_ns: step.at.since(command.start).as_ns(),
            step: step.kind,
            direction: step.direction,
            tlp: step.tlp,
            address: step.address,
            bytes: step.bytes,
            tag: step.tag.map(|tag| tag.get()),
            packet: step.number,
            from_push: step.from_push,
        });
        Self {
            command: command.name().to_lowercase(),
            device: command.device.to_string(),
            queue: command.queue,
            cid: command.entry.cid,
            nsid: command.entry.nsid,
            slba: command.slba(),
            blocks: command.blocks(),
            status: command.status_number(),
            duration_ns: command.duration().map(|duration| duration.as_ns()),
            data_unrecorded: command.unrecorded,
            data_hash: command.data_hash().map(|hash| format!("{hash:016x}")),
            pushed: command.push.pushed,
            answered_from_push: command.answered_from_push(),
            steps: steps.collect(),
        }
    }
}
