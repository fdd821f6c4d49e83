//! The NVM subsystem: namespaces, what controllers share, and the controllers (NVMe 1.4,
//! section 1.6.29).

mod firmware;
mod namespaces;
mod port;
mod self_test;
mod shared;
mod store;

pub(crate) use firmware::{Activation, FirmwareChange};
pub use namespaces::NamespaceError;
pub use port::Port;
pub(crate) use self_test::EXTENDED_MINUTES;
pub(crate) use shared::Shared;
pub(crate) use store::Change;
pub use store::Commit;

use crate::block;
use crate::config::{Config, Settings};
use crate::controller::{ADMIN_COMMANDS, Controller, controller_of};
use crate::state::{RecordError, Records, State};
use store::Store;
use wire::Instant;
use wire::trace::NvmeEvent;

/// A drive: an NVM subsystem with its controllers.
///
/// Each controller is reached through a [`Port`], a PCIe function. Whoever owns the subsystem
/// gives the ports what arrives, and after every call polls every port, then
/// [`poll_block`](Self::poll_block) until it returns `None`, and passes results to
/// [`complete_block`](Self::complete_block), and the same for [`poll_store`](Self::poll_store) and
/// [`complete_store`](Self::complete_store) if the drive keeps records. With [`set_events`](Self::set_events),
/// [`poll_event`](Self::poll_event) reports what the controllers do.
#[derive(Debug)]
pub struct Subsystem {
    shared: Shared,
    settings: Settings,
    /// In the order of their CNTLID, which counts from 1.
    controllers: Vec<Controller>,
    /// The node is ending.
    stopping: bool,
}

impl Subsystem {
    /// A drive without records that is powered on at `now`, with one controller: CNTLID 1.
    ///
    /// # Panics
    /// If the configuration is out of the ranges its fields name.
    pub fn new(now: Instant, config: &Config) -> Self {
        Self::start(now, config.state(), config.settings.clone(), None)
    }

    /// A drive that keeps records is powered on at `now`, with one controller: CNTLID 1. Its owner
    /// stores what [`poll_store`](Self::poll_store) returns.
    ///
    /// # Errors
    /// If the records say what cannot be.
    ///
    /// # Panics
    /// If the settings are out of the ranges their fields name.
    pub fn open(now: Instant, settings: Settings, records: &Records) -> Result<Self, RecordError> {
        let state = State::decode(records)?;
        Ok(Self::start(now, state, settings, Some(Store::new(now))))
    }

    fn start(now: Instant, state: State, settings: Settings, store: Option<Store>) -> Self {
        settings.check();
        let shared = Shared::new(now, state, &settings, store);
        let mut subsystem = Self { shared, settings, controllers: Vec::new(), stopping: false };
        subsystem.add_controller(now);
        subsystem
    }

    /// Adds a controller, which has power from `now` on; returns its CNTLID. Without records every
    /// namespace is attached to it.
    ///
    /// # Panics
    /// If there are 65519 controllers (FFF0h and above are reserved, NVMe 2.0, section 4.6.1).
    pub fn add_controller(&mut self, now: Instant) -> u16 {
        let id = self.controllers.len() + 1;
        assert!(id < 0xfff0, "a subsystem has 65519 controllers at most");
        let id = id as u16;
        self.shared.add_controller(id);
        self.controllers.push(Controller::new(now, id, &self.shared, self.settings.clone()));
        id
    }

    /// Adds a label capability with serial number and capacity to every controller's function;
    /// call it before use.
    #[must_use]
    pub fn with_label(mut self) -> Self {
        let label = self.shared.label();
        self.controllers =
            self.controllers.into_iter().map(|one| one.with_label(label.clone())).collect();
        self
    }

    /// The port of a controller.
    ///
    /// # Panics
    /// If there is no such controller.
    pub fn port(&mut self, controller: u16) -> Port<'_> {
        let controller = &mut self.controllers[usize::from(controller) - 1];
        Port { shared: &mut self.shared, controller }
    }

    /// A controller.
    ///
    /// # Panics
    /// If there is no such controller.
    pub fn controller(&self, controller: u16) -> &Controller {
        &self.controllers[usize::from(controller) - 1]
    }

    /// The next request for the media; those of a controller are bounded by
    /// [`Settings::commands`].
    pub fn poll_block(&mut self) -> Option<block::Request> {
        self.controllers.iter_mut().find_map(Controller::poll_block)
    }

    /// Completes a block request. The data of one from before a reset are dropped.
    ///
    /// # Panics
    /// If a read returns another number of bytes than requested.
    pub fn complete_block(&mut self, now: Instant, id: u64, result: block::Completion) {
        let index = usize::from(controller_of(id)).wrapping_sub(1);
        if let Some(controller) = self.controllers.get_mut(index) {
            controller.complete_block(&mut self.shared, now, id, result);
        }
    }

    /// The next change of records to store; there is at most one at a time. Without records there
    /// is none.
    pub fn poll_store(&mut self) -> Option<Commit> {
        self.shared.next_commit()
    }

    /// A change of records is stored, or could not be. What waits for it goes on.
    pub fn complete_store(&mut self, now: Instant, id: u64, result: Result<(), block::Error>) {
        let stored = result.is_ok();
        let Some(change) = self.shared.stored(id, stored) else { return };
        for controller in &mut self.controllers {
            controller.stored(&mut self.shared, now, &change, stored);
        }
    }

    /// What the drive keeps: as it is stored, and the counters so far.
    pub fn state(&self) -> State {
        self.shared.state()
    }

    /// Stops fetching commands, for an orderly end of the node. Commands under way are finished,
    /// and counters stored.
    pub fn stop_fetching(&mut self) {
        if !self.stopping {
            self.stopping = true;
            self.shared.store_counters();
        }
        self.controllers.iter_mut().for_each(Controller::stop_fetching);
    }

    /// Whether every command that was fetched has been completed, the links have taken what that
    /// wrote, and nothing is left to store.
    pub fn is_drained(&self) -> bool {
        self.controllers.iter().all(Controller::is_drained) && self.shared.is_stored()
    }

    /// Sets the composite temperature in kelvin from `now` on.
    pub fn set_temperature(&mut self, now: Instant, kelvin: u16) {
        self.change(now, |shared| shared.health.set_temperature(now, kelvin));
    }

    /// Sets a namespace read-only or writable.
    ///
    /// # Panics
    /// If there is no such namespace.
    pub fn set_read_only(&mut self, now: Instant, nsid: u32, read_only: bool) {
        self.change(now, |shared| {
            let namespace = shared.namespaces.get_mut(&nsid);
            namespace.expect("the namespace exists").read_only = read_only;
        });
    }

    /// Changes what controllers share; each then reports its new critical warnings.
    fn change(&mut self, now: Instant, change: impl FnOnce(&mut Shared)) {
        let shared = &mut self.shared;
        let warning = |one: &Controller| one.warning(shared);
        let before: Vec<u8> = self.controllers.iter().map(warning).collect();
        change(shared);
        for (controller, before) in self.controllers.iter_mut().zip(before) {
            controller.shared_changed(shared, now, before);
        }
    }

    /// Enables or disables [`poll_event`](Self::poll_event), which is initially
    /// disabled. Drops queued events.
    pub fn set_events(&mut self, enabled: bool) {
        self.controllers.iter_mut().for_each(|controller| controller.set_events(enabled));
    }

    /// The next event of a controller, the oldest first. Poll after each call that may cause
    /// events: they carry no time, and beyond 4096 queued events a controller loses further ones.
    ///
    /// A media request begins when [`poll_block`](Self::poll_block) returns it.
    pub fn poll_event(&mut self) -> Option<NvmeEvent> {
        self.controllers.iter_mut().find_map(Controller::poll_event)
    }

    /// # Panics
    /// If a bound is exceeded or the counters contradict each other.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.controllers.iter().for_each(|controller| controller.check_invariants(&self.shared));
        let most = self.controllers.len() * ADMIN_COMMANDS + 3;
        assert!(self.shared.unstored() <= most, "too much to store");
    }
}
