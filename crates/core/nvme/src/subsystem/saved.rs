//! What a subsystem remembers over the end of its process, beside its records.

use super::Subsystem;
use crate::controller::SavedController;
use bytes::Bytes;
use pcie::endpoint::{ForeignState, Unsent};
use wire::Instant;

impl Subsystem {
    /// Begins to keep what [`save`](Self::save) needs. Call this after the last
    /// [`add_controller`](Self::add_controller) and before any other method.
    pub fn keep(&mut self) {
        self.controllers.iter_mut().for_each(|controller| controller.keep());
    }

    /// The state of the controller with this CNTLID. `unsent` is behind its function. Store the
    /// state before any other call.
    ///
    /// # Panics
    /// If there is no such controller.
    pub fn save(&mut self, controller: u16, unsent: &Unsent) -> Bytes {
        let controller = &mut self.controllers[usize::from(controller) - 1];
        let saved = controller.save(&self.shared, unsent);
        controller.stored_state();
        let bytes = Vec::with_capacity(self.saved_bytes);
        let bytes = postcard::to_extend(&saved, bytes).expect("memory is all it needs");
        self.saved_bytes = bytes.capacity();
        bytes.into()
    }

    /// Whether a command of the controller with this CNTLID has its effect only after the next
    /// [`save`](Self::save) of this controller, because the command must not be repeated.
    ///
    /// # Panics
    /// If there is no such controller.
    pub fn waits_for_save(&self, controller: u16) -> bool {
        let next = self.next_once().filter(|(one, _)| one.id == controller);
        next.is_some_and(|(one, number)| !one.is_saved(number))
            || self.controller(controller).waits_for_save()
    }

    /// Restores the controller with this CNTLID after [`reopen`](Self::reopen) and
    /// [`keep`](Self::keep): commands under way are carried out again. Restore every saved
    /// controller, in any order, before any other call. A controller without saved state starts as
    /// after power-on. A repeated Reservation Report lists the controllers that are restored so far.
    ///
    /// # Errors
    /// If another controller or one with other settings saved the state, or the state is damaged.
    ///
    /// # Panics
    /// If there is no such controller.
    pub fn restore(
        &mut self,
        now: Instant,
        controller: u16,
        saved: &[u8],
    ) -> Result<(), ForeignState> {
        let saved = SavedController::decode(saved)?;
        let controller = &mut self.controllers[usize::from(controller) - 1];
        controller.restore(&mut self.shared, now, saved)
    }
}
