//! Namespaces that a controller gets or loses while it runs.

use super::{Controller, block_key};
use crate::block::Error;
use crate::subsystem::Shared;
use std::collections::BTreeSet;
use wire::Instant;
use wire::nvme::AsyncEvent;

impl Controller {
    /// These namespaces were attached to the controller, or are no longer: commands for those
    /// fail, and the host is told (NVMe 1.4, section 5.2, figure 149).
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
                self.fail_commands_of(shared, *nsid);
            }
        }
        self.changed_namespaces.extend(nsids);
        if self.features.async_events & wire::nvme::feature::NAMESPACE_NOTICES != 0 {
            self.events.raise(AsyncEvent::NAMESPACE_ATTRIBUTE_CHANGED);
        }
    }

    /// Fails the I/O commands for a namespace. Media may have requests of them: those end first.
    fn fail_commands_of(&mut self, shared: &mut Shared, nsid: u32) {
        let of_it = |request: &&crate::block::Request| request.nsid == nsid;
        let unsent: Vec<u64> = self.block_requests.iter().filter(of_it).map(|one| one.id).collect();
        self.block_requests.retain(|request| request.nsid != nsid);
        for key in self.io_commands_of(nsid) {
            self.fail(shared, key, shared.absent(nsid));
        }
        for id in unsent {
            self.block_done(shared, block_key(id), Err(Error::Internal));
        }
    }
}
