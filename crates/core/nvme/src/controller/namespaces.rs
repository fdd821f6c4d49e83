//! Changes of the namespaces of a running controller.

use super::{Controller, block_key};
use crate::admin::check_sanitize;
use crate::block::Error;
use crate::failure::Failure;
use crate::slots::Key;
use crate::state::{Sanitize, SanitizePhase};
use crate::subsystem::Shared;
use std::collections::BTreeSet;
use wire::Instant;
use wire::nvme::{AsyncEvent, StatusCode};

impl Controller {
    /// Handles the attachment or detachment of these namespaces: commands for detached namespaces
    /// fail, and an event notifies the host (NVMe 1.4, section 5.2, figure 149).
    pub(crate) fn namespaces_changed(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        nsids: &BTreeSet<u32>,
    ) {
        self.now = now;
        for nsid in nsids {
            if shared.namespace(self.id, *nsid).is_err() {
                self.features.error_recovery.remove(nsid);
                self.features.reservation_masks.remove(nsid);
                self.fail_commands_of(shared, *nsid, shared.absent(*nsid));
            }
        }
        self.changed_namespaces.extend(nsids);
        if self.features.async_events & wire::nvme::feature::NAMESPACE_NOTICES != 0 {
            self.events.raise(AsyncEvent::NAMESPACE_ATTRIBUTE_CHANGED);
        }
    }

    /// Handles the result of storing a change of the sanitize operation.
    pub(super) fn sanitize_stored(
        &mut self,
        shared: &mut Shared,
        command: Option<(u16, Key)>,
        sanitize: Sanitize,
        stored: bool,
    ) {
        if let Err(failure) = check_sanitize(shared) {
            let nsids: Vec<u32> = shared.namespaces.keys().copied().collect();
            for nsid in nsids {
                self.fail_commands_of(shared, nsid, failure);
            }
        }
        match command {
            Some((id, key)) if id == self.id && self.is_under_way(key) => match stored {
                true => self.resume(shared, key),
                false => self.fail(shared, key, Failure::transient(StatusCode::INTERNAL_ERROR)),
            },
            Some(_) => {}
            // The operation has ended, successfully or not (section 5.24).
            None => {
                debug_assert_ne!(sanitize.phase, SanitizePhase::Running);
                self.events.raise(AsyncEvent::SANITIZE_COMPLETED);
            }
        }
    }

    /// Fails the I/O commands for a namespace, after their outstanding media requests have ended.
    fn fail_commands_of(&mut self, shared: &mut Shared, nsid: u32, failure: Failure) {
        let of_it = |request: &&crate::block::Request| request.nsid == nsid;
        let unsent: Vec<u64> = self.block_requests.iter().filter(of_it).map(|one| one.id).collect();
        self.block_requests.retain(|request| request.nsid != nsid);
        let gone = shared.namespace(self.id, nsid).is_err();
        for key in self.io_commands_of(nsid) {
            if gone && self.flushes_all(key) {
                self.skip_namespace(key, nsid);
            } else if !self.fail_waiting(shared, key, failure) {
                self.fail(shared, key, failure);
            }
        }
        for id in unsent {
            self.block_done(shared, block_key(id), Err(Error::Internal));
        }
    }
}
