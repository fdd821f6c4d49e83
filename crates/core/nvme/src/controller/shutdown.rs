//! Shutdown (NVMe 1.4, section 7.6.2): normal and abrupt are the same here, because both flush the
//! volatile write cache.

use super::Controller;
use crate::block::Operation;
use crate::subsystem::Shared;
use wire::nvme::register::ShutdownStatus;
use wire::trace::ControllerState;

/// The progress of a shutdown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Shutdown {
    #[default]
    Idle,
    /// Commands under way are finished.
    Draining,
    /// The number of namespaces that are still being flushed.
    Flushing(usize),
    /// The record that no controller is in use is being stored.
    Storing,
    Complete,
}

impl Shutdown {
    /// The value of CSTS.SHST.
    pub(super) fn status(&self) -> ShutdownStatus {
        match self {
            Self::Idle => ShutdownStatus::Normal,
            Self::Draining | Self::Flushing(_) | Self::Storing => ShutdownStatus::Occurring,
            Self::Complete => ShutdownStatus::Complete,
        }
    }
}

impl Controller {
    /// Begins a shutdown, because CC.SHN requests one.
    pub(super) fn begin_shutdown(&mut self) {
        if self.shutdown == Shutdown::Idle {
            self.shutdown = Shutdown::Draining;
            self.registers.status.shutdown = self.shutdown.status();
            self.report_state(ControllerState::ShutdownBegun);
            self.parts.drain();
        }
    }

    pub(super) fn advance_shutdown(&mut self, shared: &mut Shared) {
        // The shutdown also waits for block requests from before a reset. It does not wait for
        // commands after a fatal error, because they do not end.
        let ended = self.in_flight == [0; 2] || self.registers.status.fatal;
        let drained = ended && self.blocks.is_empty() && self.parts.is_drained();
        if self.shutdown == Shutdown::Draining && drained && self.part.is_none() {
            self.shutdown = Shutdown::Flushing(shared.namespaces.len());
            for nsid in shared.namespaces.keys().copied() {
                self.request_media(None, false, nsid, Operation::Flush);
            }
            self.flushed_all(shared);
        }
    }

    /// Handles the end of a namespace's flush. A failure only counts as a media error.
    pub(super) fn shutdown_flushed(&mut self, shared: &mut Shared, failed: bool) {
        // A reset has ended the shutdown.
        let Shutdown::Flushing(left) = self.shutdown else { return };
        if failed {
            shared.health.add_media_error(self.now);
        }
        self.shutdown = Shutdown::Flushing(left - 1);
        self.flushed_all(shared);
    }

    /// Continues the shutdown when every namespace is flushed.
    fn flushed_all(&mut self, shared: &mut Shared) {
        if self.shutdown == Shutdown::Flushing(0) {
            self.shutdown = Shutdown::Storing;
            if shared.stops(self.id) {
                self.shutdown_stored();
            }
        }
    }

    /// Completes a shutdown that waits for the record. If the record could not be stored, the next
    /// power-on counts an unsafe shutdown.
    pub(super) fn shutdown_stored(&mut self) {
        if self.shutdown == Shutdown::Storing {
            self.shutdown = Shutdown::Complete;
            self.registers.status.shutdown = self.shutdown.status();
            self.report_state(ControllerState::ShutdownComplete);
        }
    }
}
