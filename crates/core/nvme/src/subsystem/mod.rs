//! The NVM subsystem: namespaces, shared state, and the controllers (NVMe 1.4, section 1.6.29).

mod claims;
mod events;
mod firmware;
mod holds;
mod marks;
mod namespaces;
mod parts;
mod port;
mod reservations;
mod sanitize;
mod saved;
mod self_test;
mod shared;
mod store;

pub(crate) use claims::Blocks;
pub(crate) use firmware::{Activation, FirmwareChange};
pub(crate) use holds::Hold;
pub use namespaces::NamespaceError;
pub use port::Port;
pub(crate) use reservations::ReservationRequest;
pub(crate) use self_test::EXTENDED_MINUTES;
pub(crate) use shared::Shared;
pub(crate) use store::{Change, NamespaceChange};
pub use store::{Commit, Contents};

use crate::block;
use crate::config::{Config, Settings};
use crate::controller::{ADMIN_COMMANDS, Controller, NamespaceAccess, controller_of};
use crate::state::{self, Attachments, Done, RecordError, Records, State};
use std::collections::{BTreeMap, BTreeSet};
use store::Store;
use wire::Instant;
use wire::nvme::critical_warning;
use wire::trace::NvmeEvent;

/// A drive: an NVM subsystem with its controllers.
///
/// Each controller has a [`Port`], which is a PCIe function. The owner of the subsystem passes
/// inputs to the ports. After every call, the owner polls every port and then
/// [`poll_block`](Self::poll_block) until `None`, and passes results to
/// [`complete_block`](Self::complete_block). If the drive has records, the owner also calls
/// [`poll_store`](Self::poll_store) and [`complete_store`](Self::complete_store). After
/// [`set_events`](Self::set_events), [`poll_event`](Self::poll_event) reports events of the
/// controllers.
#[derive(Debug)]
pub struct Subsystem {
    shared: Shared,
    settings: Settings,
    /// Controllers in the order of CNTLID. The first has CNTLID 1.
    controllers: Vec<Controller>,
    /// Whether the node shuts down.
    stopping: bool,
    /// Room that the last saved state needed.
    saved_bytes: usize,
}

impl Subsystem {
    /// A drive without records that is powered on at `now`, with one controller: CNTLID 1.
    ///
    /// # Panics
    /// If a field of the configuration is outside its documented range.
    pub fn new(now: Instant, config: &Config) -> Self {
        Self::start(now, config.state(), config.settings.clone(), None)
    }

    /// A drive with records that is powered on at `now`, with one controller: CNTLID 1. The owner
    /// must store the commits that [`poll_store`](Self::poll_store) returns.
    ///
    /// # Errors
    /// If the records are invalid.
    ///
    /// # Panics
    /// If a setting is outside its documented range.
    pub fn open(now: Instant, settings: Settings, records: &Records) -> Result<Self, RecordError> {
        let state = State::decode(records)?;
        let store = Store::new(now, state.done.clone());
        Ok(Self::start(now, state, settings, Some(store)))
    }

    /// As [`open`](Self::open), for a drive that had power all the time, while no process ran.
    ///
    /// # Errors
    /// If the records are invalid.
    pub fn reopen(
        now: Instant,
        settings: Settings,
        records: &Records,
    ) -> Result<Self, RecordError> {
        let state = State::decode(records)?;
        let store = Store::resumed(now, state.done.clone(), state.health.running);
        Ok(Self::start(now, state, settings, Some(store)))
    }

    fn start(now: Instant, state: State, settings: Settings, store: Option<Store>) -> Self {
        settings.check();
        let shared = Shared::new(now, state, &settings, store);
        let mut subsystem =
            Self { shared, settings, controllers: Vec::new(), stopping: false, saved_bytes: 0 };
        subsystem.add_controller(now);
        subsystem
    }

    /// Adds a controller, which has power from `now` on; returns the CNTLID. On a drive without
    /// records, every namespace is attached to the new controller.
    ///
    /// # Panics
    /// If there are 65519 controllers (FFF0h and above are reserved, NVMe 2.0, section 4.6.1).
    pub fn add_controller(&mut self, now: Instant) -> u16 {
        let id = self.controllers.len() + 1;
        assert!(id < 0xfff0, "a subsystem has 65519 controllers at most");
        let id = id as u16;
        self.shared.add_controller(now, id);
        self.controllers.push(Controller::new(now, id, &self.shared, self.settings.clone()));
        id
    }

    /// Adds controllers until there are `count`, as [`add_controller`](Self::add_controller).
    ///
    /// # Panics
    /// As [`add_controller`](Self::add_controller).
    #[must_use]
    pub fn with_controllers(mut self, now: Instant, count: u16) -> Self {
        while self.controllers() < count {
            self.add_controller(now);
        }
        self
    }

    /// Adds a label capability with serial number and capacity to the function of every controller.
    /// Call this after the last [`add_controller`](Self::add_controller) and before any other method.
    #[must_use]
    pub fn with_label(mut self) -> Self {
        let label = self.shared.label();
        self.controllers =
            self.controllers.into_iter().map(|one| one.with_label(label.clone())).collect();
        self
    }

    /// Number of controllers. CNTLIDs count from 1.
    pub fn controllers(&self) -> u16 {
        self.shared.controllers
    }

    /// The port of the controller with this CNTLID.
    ///
    /// # Panics
    /// If there is no such controller.
    pub fn port(&mut self, controller: u16) -> Port<'_> {
        let controller = &mut self.controllers[usize::from(controller) - 1];
        Port { shared: &mut self.shared, controller }
    }

    /// The controller with this CNTLID.
    ///
    /// # Panics
    /// If there is no such controller.
    pub fn controller(&self, controller: u16) -> &Controller {
        &self.controllers[usize::from(controller) - 1]
    }

    /// The next media request of a controller that `may` begin one. A controller has at most twice
    /// [`Settings::commands`] requests outstanding.
    pub fn poll_block_of(&mut self, may: &dyn Fn(u16) -> bool) -> Option<block::Request> {
        while let Some((id, key)) = self.shared.claims.next_granted() {
            self.controllers[usize::from(id) - 1].proceed(&mut self.shared, key);
        }
        let request = match self.shared.holds.is_empty() {
            true => {
                let mut willing = self.controllers.iter_mut().filter(|one| may(one.id));
                willing.find_map(Controller::poll_block)
            }
            false => self.poll_free_block(may),
        };
        if request.is_some() || self.shared.erase.is_none() || self.stopping {
            return request;
        }
        // The requests of a sanitize operation must not overtake older requests.
        let idle = self.controllers.iter().all(Controller::is_media_idle);
        if idle { self.shared.next_erase() } else { None }
    }

    /// As [`poll_block_of`](Self::poll_block_of), of any controller.
    pub fn poll_block(&mut self) -> Option<block::Request> {
        self.poll_block_of(&|_| true)
    }

    /// Completes a media request. Drops the data of a request from before a reset.
    ///
    /// # Panics
    /// If a read returns another number of bytes than requested.
    pub fn complete_block(&mut self, now: Instant, id: u64, result: block::Completion) {
        if controller_of(id) == 0 {
            return self.shared.erased(id, &result);
        }
        let index = usize::from(controller_of(id)).wrapping_sub(1);
        if let Some(controller) = self.controllers.get_mut(index) {
            let degraded = self.shared.health.is_degraded();
            controller.complete_block(&mut self.shared, now, id, result);
            if self.shared.health.is_degraded() != degraded {
                self.report_media_error(now);
            }
        }
    }

    /// The next change of records to store, at most one at a time; `None` for a drive without
    /// records.
    pub fn poll_store(&mut self) -> Option<Commit> {
        let once = self.next_once();
        if once.is_some_and(|(controller, number)| !controller.is_saved(number)) {
            return None;
        }
        let command = once.map(|(controller, number)| Done::command(controller.id, number));
        self.shared.next_commit(command)
    }

    /// The command whose change is stored next and must not be repeated: its controller and number;
    /// `None` too if the controller is never saved.
    fn next_once(&self) -> Option<(&Controller, u64)> {
        let (id, key) = self.shared.store.as_ref()?.next()?.once()?;
        let controller = self.controllers.get(usize::from(id).checked_sub(1)?)?;
        let number = controller.number_of(key)?;
        controller.is_kept().then_some((controller, number))
    }

    /// Takes the result of storing the change `id`. Waiting commands continue.
    pub fn complete_store(&mut self, now: Instant, id: u64, result: Result<(), block::Error>) {
        let before = self.shared.attachments();
        let mut change = None;
        self.change(now, |shared| change = shared.stored(id, result.is_ok()));
        let Some(change) = change else { return };
        if let Change::Reservations { by, change } = &change {
            self.reservations_stored(now, *by, change, result.is_ok());
        }
        let after = self.shared.attachments();
        let mut changed = changed_namespaces(&before, &after);
        // Namespaces may be attached to controllers that the subsystem does not have now.
        for controller in &mut self.controllers {
            if changed.contains_key(&controller.id) {
                controller.access.changed();
            }
        }
        if let Change::Namespaces { command: Some((own, _)), change } = &change
            && let NamespaceChange::Format { nsids, .. } = change
            && result.is_ok()
        {
            // The host of the controller that executed Format NVM is not notified.
            for nsid in nsids {
                for id in after.get(nsid).into_iter().flatten().filter(|id| *id != own) {
                    changed.entry(*id).or_default().insert(*nsid);
                }
            }
        }
        for controller in &mut self.controllers {
            if let Some(nsids) = changed.get(&controller.id) {
                controller.namespaces_changed(&mut self.shared, now, nsids);
            }
            controller.stored(&mut self.shared, now, &change, result);
        }
    }

    /// Whether no change waits to be stored.
    pub fn is_stored(&self) -> bool {
        self.shared.is_stored()
    }

    /// The persistent state: the stored records, with the present counters.
    pub fn state(&self) -> State {
        self.shared.state()
    }

    /// The properties of the drive.
    pub fn drive(&self) -> &state::Drive {
        &self.shared.drive
    }

    /// The namespaces by NSID.
    pub fn namespaces(&self) -> impl Iterator<Item = (u32, &state::Namespace)> {
        self.shared.namespaces.iter().map(|(nsid, namespace)| (*nsid, &namespace.record))
    }

    /// The lifetime counters as of the last command.
    pub fn history(&self) -> &state::History {
        self.shared.health.history()
    }

    /// The critical warning byte of the SMART log, as the first controller reports it.
    pub fn critical_warning(&self) -> u8 {
        self.controllers[0].warning(&self.shared)
    }

    /// Logarithm to base 2 of the block size of a namespace in bytes; `None` if there is no such
    /// namespace.
    pub fn block_shift(&self, nsid: u32) -> Option<u8> {
        self.shared.namespaces.get(&nsid).map(|namespace| namespace.record.block_shift)
    }

    /// Stops fetching commands, for an orderly shutdown of the node. Commands under way continue,
    /// and the counters are stored.
    pub fn stop_fetching(&mut self) {
        if !self.stopping {
            self.stopping = true;
            self.shared.store_counters();
        }
        self.controllers.iter_mut().for_each(Controller::stop_fetching);
    }

    /// Whether every fetched command is completed, the links have accepted all writes, no change
    /// waits to be stored, and no media request of a sanitize operation is in flight.
    pub fn is_drained(&self) -> bool {
        let drained = self.controllers.iter().all(Controller::is_drained);
        drained && self.shared.is_stored() && !self.shared.is_erasing()
    }

    /// Sets the composite temperature in kelvin from `now` on.
    pub fn set_temperature(&mut self, now: Instant, kelvin: u16) {
        self.change(now, |shared| {
            let before = shared.health.set_temperature(now, kelvin);
            shared.log_temperature(now, before, kelvin);
        });
    }

    /// Sets how the host of the controller with this CNTLID can access the namespaces: initially
    /// [`NamespaceAccess::Optimized`]. Resets and saved states keep the value, a power cycle does
    /// not. Commands under way continue. While the subsystem has one controller, the value has no
    /// effect.
    ///
    /// # Panics
    /// If there is no such controller.
    pub fn set_access(&mut self, now: Instant, controller: u16, access: NamespaceAccess) {
        let controller = &mut self.controllers[usize::from(controller) - 1];
        controller.set_access(&mut self.shared, now, access);
    }

    /// Sets whether the media of a namespace are read-only. Ignores a namespace that was deleted.
    pub fn set_read_only(&mut self, now: Instant, nsid: u32, read_only: bool) {
        self.change(now, |shared| {
            if let Some(namespace) = shared.namespaces.get_mut(&nsid) {
                namespace.read_only = read_only;
            }
        });
    }

    /// Reports the first media error since the power-on, as each controller's critical warning.
    fn report_media_error(&mut self, now: Instant) {
        for controller in &mut self.controllers {
            let before = controller.warning(&self.shared) & !critical_warning::RELIABILITY;
            controller.shared_changed(&mut self.shared, now, before);
        }
    }

    /// Changes the shared state. Each controller then reports new critical warnings.
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

    /// The next event of a controller, oldest first. Poll after each call that may cause events:
    /// events have no timestamp, and a controller with 4096 queued events drops further events.
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
        let each = ADMIN_COMMANDS + self.settings.commands;
        let most = self.controllers.len() * each + 5;
        assert!(self.shared.unstored() <= most, "too much to store");
    }
}

/// The NSIDs of attached or detached namespaces, by CNTLID.
fn changed_namespaces(before: &Attachments, after: &Attachments) -> BTreeMap<u16, BTreeSet<u32>> {
    let pairs = |attachments: &Attachments| -> BTreeSet<(u16, u32)> {
        let pairs_of = |(nsid, ids): (&u32, &BTreeSet<u16>)| -> Vec<(u16, u32)> {
            ids.iter().map(|id| (*id, *nsid)).collect()
        };
        attachments.iter().flat_map(pairs_of).collect()
    };
    let mut changed = BTreeMap::<u16, BTreeSet<u32>>::new();
    for (controller, nsid) in &pairs(before) ^ &pairs(after) {
        changed.entry(controller).or_default().insert(nsid);
    }
    changed
}
