//! Normal refusals: at its start, every host requests features that a drive need not have.
//!
//! A normal refusal means that an optional command, feature, data structure or log page is not
//! supported. It precedes the first I/O command, and the host continues without the feature and
//! does not repeat the command. Every other failure is an anomaly.

use crate::commands::Command;
use std::collections::BTreeMap;
use wire::Bdf;
use wire::nvme::{StatusCode, cns, opcode};

/// Maximum number of stored refusals of one start.
const MOST: usize = 64;

/// Features that every controller must support (NVM Express 1.4, figure 274).
const MANDATORY_FEATURES: [u8; 9] = [0x01, 0x02, 0x04, 0x05, 0x07, 0x08, 0x09, 0x0a, 0x0b];
/// Log pages that every controller must support (figure 191): errors, health, firmware slots.
const MANDATORY_LOGS: [u8; 3] = [0x01, 0x02, 0x03];

/// A refused command: its place and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Number of the command's doorbell.
    pub begun: u64,
    /// Command identifier.
    pub cid: u16,
    /// Opcode, namespace, dwords 10 and 11. They are equal for repetitions of a command.
    asks: (u8, u32, u32, u32),
    pub last: (u64, u64),
    pub description: String,
}

/// Refusals whose kind is decided.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub normal: Vec<Refusal>,
    pub trouble: Vec<Refusal>,
}

/// The undecided refusals since the last reset of each controller without I/O commands.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals {
    by_device: BTreeMap<Bdf, Start>,
}

#[derive(Clone, Debug, Default)]
struct Start {
    /// Whether the controller has received an I/O command.
    over: bool,
    waiting: Vec<Refusal>,
}

/// Returns whether the controller refused a command that it may refuse.
fn is_optional(command: &Command) -> bool {
    let refused =
        [StatusCode::INVALID_OPCODE, StatusCode::INVALID_FIELD, StatusCode::INVALID_LOG_PAGE];
    let cdw10 = command.entry.cdw10 as u8;
    command.is_admin()
        && command.status.is_some_and(|status| refused.contains(&status.code))
        && match command.entry.opcode {
            opcode::admin::DELETE_SQ | opcode::admin::CREATE_SQ => false,
            opcode::admin::DELETE_CQ | opcode::admin::CREATE_CQ => false,
            opcode::admin::ABORT | opcode::admin::ASYNC_EVENT_REQUEST => false,
            opcode::admin::IDENTIFY => {
                ![cns::NAMESPACE, cns::CONTROLLER, cns::ACTIVE_NAMESPACES].contains(&cdw10)
            }
            opcode::admin::GET_LOG_PAGE => !MANDATORY_LOGS.contains(&cdw10),
            opcode::admin::SET_FEATURES | opcode::admin::GET_FEATURES => {
                !MANDATORY_FEATURES.contains(&cdw10)
            }
            _ => true,
        }
}

impl Refusals {
    /// Processes a command that ended; `failed` describes its failure. Returns the refusals that
    /// this command decides, and the command's own failure if the failure is decided at once.
    pub fn observe(
        &mut self,
        command: &Command,
        last: (u64, u64),
        failed: Option<String>,
    ) -> Settled {
        let start = self.by_device.entry(command.device).or_default();
        let begun = command.steps.first().map_or(0, |step| step.number);
        let mut settled = Settled::default();
        let entry = &command.entry;
        let asks = (entry.opcode, entry.nsid, entry.cdw10, entry.cdw11);
        let waiting = std::mem::take(&mut start.waiting);
        for refusal in waiting {
            let again = command.is_admin() && refusal.asks == asks;
            let later = !command.is_admin() && refusal.begun > begun;
            if again || later {
                settled.trouble.push(refusal);
            } else if !command.is_admin() {
                settled.normal.push(refusal);
            } else {
                start.waiting.push(refusal);
            }
        }
        start.over |= !command.is_admin();
        let Some(description) = failed else { return settled };
        let refusal = Refusal { begun, cid: entry.cid, asks, last, description };
        let waits = is_optional(command) && !start.over && settled.trouble.is_empty();
        if waits && start.waiting.len() < MOST {
            start.waiting.push(refusal);
        } else {
            settled.trouble.push(refusal);
        }
        settled
    }

    /// Begins another start after a reset of the controller. Returns its undecided refusals.
    pub fn reset(&mut self, device: Bdf) -> Vec<Refusal> {
        self.by_device.remove(&device).map_or_else(Vec::new, |start| start.waiting)
    }

    /// Ends the recording. Returns all undecided refusals.
    pub fn finish(&mut self) -> Vec<Refusal> {
        let starts = std::mem::take(&mut self.by_device);
        starts.into_values().flat_map(|start| start.waiting).collect()
    }
}
