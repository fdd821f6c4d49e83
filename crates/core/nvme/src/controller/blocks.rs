//! Completed block requests.

use super::{BlockRequest, Controller};
use crate::block::{Completion, Error};
use crate::failure::Failure;
use crate::slots::Key;
use crate::subsystem::Shared;
use bytes::Bytes;
use wire::nvme::StatusCode;

impl Controller {
    pub(super) fn block_done(&mut self, shared: &mut Shared, id: Key, result: Completion) {
        let Some(request) = self.blocks.remove(id) else { return };
        let BlockRequest { command, metadata, nsid, .. } = request;
        match command {
            None => {
                self.report_media_ended(None, nsid, result.is_ok());
                self.shutdown_flushed(shared, result.is_err());
            }
            Some(key) => {
                let id = if metadata { None } else { self.command_id(key) };
                self.report_media_ended(id, nsid, result.is_ok());
                let reads = self.commands.get(key).is_some_and(|execution| execution.reads_media());
                let result = match result {
                    Err(_) if self.is_moot(shared, key, nsid) => Ok(Bytes::new()),
                    result => result,
                };
                let result = result.map_err(|error| {
                    if error == Error::Media {
                        shared.health.add_media_error(self.now);
                    }
                    failure(error, reads)
                });
                self.step_done(shared, key, metadata, result);
            }
        }
    }

    /// Whether a request is the flush of a deleted namespace within a flush of all namespaces.
    fn is_moot(&self, shared: &Shared, key: Key, nsid: u32) -> bool {
        self.flushes_all(key) && shared.namespace(self.id, nsid).is_err()
    }
}

/// The status of a failed block request (NVMe 1.4, figures 126 to 130).
fn failure(error: Error, read: bool) -> Failure {
    match error {
        Error::Media if read => Failure::transient(StatusCode::UNRECOVERED_READ_ERROR),
        Error::Media => Failure::transient(StatusCode::WRITE_FAULT),
        Error::ReadOnly => Failure::permanent(StatusCode::WRITE_TO_READ_ONLY_RANGE),
        Error::NoSpace => Failure::permanent(StatusCode::CAPACITY_EXCEEDED),
        Error::NotReady => Failure::transient(StatusCode::NAMESPACE_NOT_READY),
        Error::Internal => Failure::transient(StatusCode::INTERNAL_ERROR),
    }
}
