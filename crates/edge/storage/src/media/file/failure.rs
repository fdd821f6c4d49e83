//! Failures of the file behind a namespace.

use super::{Shared, Turn, status_of};
use crate::media::done;
use nvme::block::{Completion, Error, Operation};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// The failures since the file was opened.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// The first failure of a flush.
    flush: Mutex<Option<Error>>,
    /// Whether the file has become read-only since it was opened.
    read_only: AtomicBool,
    /// The kinds of errors reported to the user, one bit each.
    reported: AtomicU8,
}

impl Failures {
    /// Whether the file has become read-only.
    pub(super) fn read_only(&self) -> bool {
        self.read_only.load(Ordering::Acquire)
    }

    /// Whether a flush has failed, so that earlier written data may be lost.
    pub(super) fn lost_data(&self) -> bool {
        self.flush.lock().expect("no worker panics with the lock").is_some()
    }
}

impl Shared {
    /// Makes all written data durable. After a failure every later flush fails too. Linux drops
    /// pages that it could not write, and reports the error to only one call (fsync(2), "Errors").
    /// So a later success would hide the loss. For the same reason flushes run one at a time.
    pub(super) fn flush(&self, turn: Turn) -> Completion {
        let mut failed = self.failures.flush.lock().expect("no worker panics with the lock");
        if let Some(error) = *failed {
            return Err(error);
        }
        let Err(error) = self.file.sync_data() else {
            if let (Turn::Alone, Some(checksums)) = (turn, &self.checksums) {
                // Marks that stay in the file do no harm.
                let _ = checksums.clear_marks(&*self.file);
            }
            return done();
        };
        let error = self.failed(&Operation::Flush, &error);
        *failed = Some(error);
        // After the loss, the record must mark the contents as new.
        let forgotten = self.with_record(|keeper| keeper.discard().map(|()| None));
        self.marked.fetch_and(forgotten.is_ok(), Ordering::AcqRel);
        Err(error)
    }

    /// The status of a failed operation. Reports the first failure of each kind to the user. SMART
    /// counts all failures for the host.
    pub(super) fn failed(&self, operation: &Operation, error: &io::Error) -> Error {
        let status = match operation {
            // For any reason, the bytes are not available.
            Operation::Read { .. } => Error::Media,
            _ => status_of(error),
        };
        if status == Error::ReadOnly {
            self.failures.read_only.store(true, Ordering::Release);
        }
        let kind = 1 << status as u8;
        if self.failures.reported.fetch_or(kind, Ordering::AcqRel) & kind == 0 {
            self.notify(format!(
                "{}: {error}; {}",
                describe(operation),
                consequence(operation, status)
            ));
        }
        status
    }
}

/// A text about an operation, for messages.
fn describe(operation: &Operation) -> String {
    let (offset, bytes) = operation.range();
    let verb = match operation {
        Operation::Read { .. } => "read",
        Operation::Write { .. } => "write",
        Operation::WriteZeroes { .. } => "zero",
        Operation::Discard { .. } => "discard",
        Operation::Flush => return "cannot make its data durable".into(),
    };
    format!("cannot {verb} {bytes} bytes at byte {offset}")
}

fn consequence(operation: &Operation, status: Error) -> &'static str {
    match (operation, status) {
        (Operation::Flush, _) => "every flush fails until the node is restarted",
        (_, Error::ReadOnly) => "read-only until the node is restarted",
        _ => "further errors like this are reported to the host only",
    }
}
