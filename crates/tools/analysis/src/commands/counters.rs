//! Counters of TLPs seen, not understood and not kept.

use schemars::JsonSchema;
use serde::Serialize;

/// Counts of the analyser.
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
    /// Reads of host memory by NVMe controllers, without those of length zero.
    pub reads: u64,
    /// TLPs of functions that are no NVMe controllers.
    pub foreign: u64,
    /// Memory requests of or for an NVMe controller that nothing explains.
    pub orphans: u64,
    /// Completions that answer no request.
    pub unexpected_completions: u64,
    /// Completions with status Unsupported Request (UR).
    pub unsupported_requests: u64,
    /// Completions with status Completer Abort (CA).
    pub completer_aborts: u64,
    /// Completions with status Configuration Request Retry (CRS).
    pub config_retries: u64,
    /// Poisoned TLPs; their payload is ignored.
    pub poisoned: u64,
    /// Requests without an answer at the end.
    pub unanswered: u64,
    /// Requests whose tag was used again before an answer came.
    pub reused_tags: u64,
    /// Doorbells without a queue, with a value outside it, or that ring for more entries than it
    /// has.
    pub bad_doorbells: u64,
    /// Submission entries that the drive passed over.
    pub skipped_entries: u64,
    /// Submission entries that the host rang for and the drive had not fetched at a reset or the
    /// end.
    pub unfetched_entries: u64,
    /// Submission entries of nothing but zeroes: they lie beyond what was recorded of their TLP.
    pub blank_entries: u64,
    /// Completion entries of no known command.
    pub unknown_completions: u64,
    /// Completion entries that were acknowledged but never seen.
    pub unseen_completions: u64,
    /// Entries with the identifier of a command that is not done.
    pub reused_ids: u64,
    /// Interrupts after the host had already taken every entry.
    pub idle_interrupts: u64,
    /// Commands with pointers that are not followed (SGL segments).
    pub unfollowed_pointers: u64,
    /// Data transferred once more.
    pub repeated_transfers: u64,
    /// Controllers reset, by CC.EN, function level reset or from above.
    pub resets: u64,
    /// Commands that ended without a completion entry.
    pub lost_commands: u64,
    /// Things forgotten because a limit was reached: commands, steps, events, requests, queues.
    pub dropped: u64,
    /// Commands whose data were not kept because the limit was reached.
    pub dropped_data: u64,
}
