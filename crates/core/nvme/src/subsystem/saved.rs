//! What a subsystem remembers over the end of its process, beside its records.

use super::Subsystem;
use crate::controller::{Controller, SavedController};
use bytes::Bytes;
use pcie::endpoint::{ForeignState, Unsent};
use wire::Instant;

impl Subsystem {
    /// Begins to keep what [`save`](Self::save) needs. Call this before any other method.
    pub fn keep(&mut self) {
        self.controllers.iter_mut().for_each(|controller| controller.keep());
    }

    /// The state of the first controller now. `unsent` is behind its function. Store the state before
    /// any other call.
    pub fn save(&mut self, unsent: &Unsent) -> Bytes {
        let saved = self.controllers[0].save(&self.shared, unsent);
        self.controllers[0].stored_state();
        let bytes = Vec::with_capacity(self.saved_bytes);
        let bytes = postcard::to_extend(&saved, bytes).expect("memory is all it needs");
        self.saved_bytes = bytes.capacity();
        bytes.into()
    }

    /// Whether a command has its effect only after the next [`save`](Self::save), because it must not
    /// be repeated.
    pub fn waits_for_save(&self) -> bool {
        let waits =
            self.next_once().is_some_and(|(controller, number)| !controller.is_saved(number));
        waits || self.controllers.iter().any(Controller::waits_for_save)
    }

    /// Goes on from a saved state after [`reopen`](Self::reopen): commands under way are carried out
    /// again.
    ///
    /// # Errors
    /// If a controller with other settings saved the state, or the state is damaged.
    pub fn restore(&mut self, now: Instant, saved: &[u8]) -> Result<(), ForeignState> {
        let saved: SavedController = postcard::from_bytes(saved).map_err(|_| ForeignState)?;
        self.controllers[0].restore(&mut self.shared, now, saved)
    }
}
