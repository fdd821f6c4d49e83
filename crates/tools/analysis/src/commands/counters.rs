//! Counters of TLPs and of what the analyser could not explain or store.

use schemars::JsonSchema;
use serde::Serialize;

/// Counters of the analyser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct AnalyserCounters {
    /// TLPs from the host.
    pub down: u64,
    /// TLPs from devices.
    pub up: u64,
    /// Configuration requests.
    pub config: u64,
    /// Host requests for registers of NVMe controllers, MSI-X tables included.
    pub registers: u64,
    /// Messages.
    pub messages: u64,
    /// Messages that push bytes of host memory, or invalidate pushed bytes (docs/push.md).
    pub pushes: u64,
    /// Bytes of entries, lists and data in the pushes.
    pub pushed_bytes: u64,
    /// Pushes that are not valid.
    pub malformed_pushes: u64,
    /// Reads of host memory by NVMe controllers, except reads of length zero.
    pub reads: u64,
    /// TLPs of functions that are not NVMe controllers.
    pub foreign: u64,
    /// Requests from or to an NVMe controller that belong to no known queue, command or interrupt,
    /// and configuration requests that travel upwards.
    pub orphans: u64,
    /// Completions without a matching request.
    pub unexpected_completions: u64,
    /// Completions with status Unsupported Request (UR).
    pub unsupported_requests: u64,
    /// Completions with status Completer Abort (CA).
    pub completer_aborts: u64,
    /// Completions with status Configuration Request Retry (CRS).
    pub config_retries: u64,
    /// Poisoned TLPs; their payload is ignored.
    pub poisoned: u64,
    /// Requests without a completion at the end.
    pub unanswered: u64,
    /// Requests whose tag was used again before the completion.
    pub reused_tags: u64,
    /// Doorbells for a queue that does not exist, with a value outside the queue, or for more
    /// entries than the queue has.
    pub bad_doorbells: u64,
    /// Submission entries that the drive skipped.
    pub skipped_entries: u64,
    /// Submission entries with a doorbell that the drive had not fetched at a reset or at the end.
    pub unfetched_entries: u64,
    /// Submission entries of zeroes only: the recording does not contain this part of the TLP.
    pub blank_entries: u64,
    /// Completion entries that belong to no known command.
    pub unknown_completions: u64,
    /// Completion entries that the host acknowledged but that were not seen.
    pub unseen_completions: u64,
    /// Submission entries whose command identifier belongs to an open command.
    pub reused_ids: u64,
    /// Interrupts after the host had taken all completion entries.
    pub idle_interrupts: u64,
    /// Commands with pointers that are not followed (SGL segments).
    pub unfollowed_pointers: u64,
    /// Transfers of data that had been transferred before.
    pub repeated_transfers: u64,
    /// Resets of controllers by CC.EN, function level reset, hot reset or a new connection.
    pub resets: u64,
    /// Commands that ended without a completion entry.
    pub lost_commands: u64,
    /// Commands, steps, events, requests and queues that were dropped because a limit was reached.
    pub dropped: u64,
    /// Commands whose data were not kept because the limit was reached.
    pub dropped_data: u64,
}
