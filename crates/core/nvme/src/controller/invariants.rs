//! Invariants between calls, for tests.

use super::{ADMIN_COMMANDS, Controller};
use crate::events::EVENT_REQUESTS;
use crate::subsystem::Shared;

impl Controller {
    /// # Panics
    /// If a bound is exceeded or the counters contradict each other.
    pub(crate) fn check_invariants(&self, shared: &Shared) {
        assert!(self.buffered <= self.settings.buffer, "more buffered than there is room");
        assert!(self.in_flight[0] <= ADMIN_COMMANDS);
        assert!(self.in_flight[1] <= self.settings.commands);
        assert!(self.commands.len() <= self.in_flight[0] + self.in_flight[1]);
        assert!(self.events.requests() <= EVENT_REQUESTS);
        // A command has a request for data and a request for metadata. Commands after a reset wait
        // for the requests from before the reset.
        let max = 2 * self.settings.commands + shared.namespaces.len();
        assert!(self.blocks.len() <= max, "too many block requests");
        assert!(self.block_requests.len() <= self.blocks.len());
        assert!(self.waiting_to_send.len() + self.waiting.len() <= self.commands.len());
        if self.commands.is_empty() {
            assert_eq!(self.buffered, 0, "a command kept its share of the buffer");
            assert!(!shared.claims.has(self.id), "a command kept its blocks");
        }
    }
}
