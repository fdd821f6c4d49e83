//! Commands as JSON.
//!
//! Addresses are numbers. Addresses above 2^53, which some JSON readers round, are strings of the
//! form `"0x…"`. Fields that do not apply are `null`.

use super::command::{Command, PushedBytes};
use super::step::{Direction, StepKind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// The largest whole number that every JSON reader keeps exactly.
const EXACT: u64 = 1 << 53;

fn address<S: Serializer>(address: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match *address {
        address @ ..=EXACT => serializer.serialize_u64(address),
        address => serializer.collect_str(&format_args!("{address:#x}")),
    }
}

/// The schema of an address: a number or a text, see [`address`].
fn address_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["integer", "string"], "minimum": 0, "pattern": "^0x[0-9a-f]+$" })
}

/// A TLP of a command. A doorbell, a fetch or an interrupt that serves several commands is in each
/// of them.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Step {
    /// Time since the submission doorbell, or since the first push in front of it. The first step
    /// has 0, and times never decrease.
    pub t_ns: u64,
    /// What the TLP does for the command.
    pub step: StepKind,
    /// Direction of the TLP.
    pub direction: Direction,
    /// Type of the TLP, such as `MRd32`, `MRd64`, `MWr32`, `MWr64`, `CplD` or `Cpl`.
    pub tlp: &'static str,
    /// Bus address of the first byte requested or carried. A completion carries no address: the
    /// value is the address of the request plus the number of bytes returned before.
    #[serde(serialize_with = "address")]
    #[schemars(schema_with = "address_schema")]
    pub address: u64,
    /// Number of bytes requested or carried.
    pub bytes: u32,
    /// Transaction tag; null for posted requests, which have none.
    pub tag: Option<u16>,
    /// Number among all TLPs at the root port, from 0.
    pub packet: u64,
    /// Whether the port in front of the drive answered this read, or sent this completion, from
    /// push; always false at the root port.
    pub from_push: bool,
}

/// An NVMe command with its TLPs.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Transaction {
    /// Name of the NVMe command in lower case.
    pub command: String,
    /// BDF of the drive.
    pub device: String,
    /// Submission queue; 0 is the admin queue.
    pub queue: u16,
    /// Command identifier.
    pub cid: u16,
    /// Namespace identifier.
    pub nsid: u32,
    /// First logical block; null for commands without blocks.
    pub slba: Option<u64>,
    /// Number of logical blocks; null for commands without blocks.
    pub blocks: Option<u32>,
    /// Status code type × 256 + status code of the completion entry; 0 is success; null if there
    /// was no completion entry.
    pub status: Option<u16>,
    /// From the start of the submission doorbell, or of the first push (docs/push.md) in front of
    /// it, to the start of the head doorbell; null if the command did not end.
    pub duration_ns: Option<u64>,
    /// Bytes of data that were transferred and that the recording left out
    /// (docs/trace.md#payloads); 0 without a recording.
    pub data_unrecorded: u64,
    /// Hash of the data that the recording left out, 16 hexadecimal digits. Two commands have the
    /// same hash if their data are equal and are split into TLPs in the same way. Null if no data
    /// were left out, or if a TLP has no hash.
    pub data_hash: Option<String>,
    /// Bytes pushed for the command, as seen at the root port; all 0 in the trace of a device node
    /// alone.
    pub pushed: PushedBytes,
    /// Bytes that the port in front of the drive certainly answered from push: at the root port,
    /// lists and data of successful commands.
    pub answered_from_push: PushedBytes,
    /// Every TLP of the command, in the order in which they passed the root port.
    pub steps: Vec<Step>,
}

impl From<&Command> for Transaction {
    fn from(command: &Command) -> Self {
        let steps = command.steps.iter().map(|step| Step {
            t_ns: step.at.ns_since(command.start),
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
            duration_ns: command.duration_ns(),
            data_unrecorded: command.unrecorded,
            data_hash: command.data_hash().map(|hash| format!("{hash:016x}")),
            pushed: command.push.pushed,
            answered_from_push: command.answered_from_push(),
            steps: steps.collect(),
        }
    }
}
