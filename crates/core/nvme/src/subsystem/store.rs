//! The changes of a drive with records. They are stored one after the other, each atomically.

use super::marks::MarkChange;
use super::reservations::ReservationChange;
use super::{FirmwareChange, Shared};
use crate::namespace::Namespace;
use crate::slots::Key;
use crate::state::{
    self, Attachments, Done, Format, History, Marks, Sanitize, SanitizePhase, SavedFeature, State,
    attachments_record, created_record, done_record, events_record, features_record,
    firmware_record, health_record, namespace_key, namespace_record, reservations_record,
    sanitize_record, self_tests_record,
};
use std::collections::{BTreeSet, VecDeque};
use wire::{Duration, Instant};

/// How long changed counters may stay unstored. This limits the number of stores of a busy drive.
const COUNTERS: Duration = Duration::from_ms(10_000);
/// How long power-on time may stay unstored: one hour, because SMART counts hours. No timer starts
/// this store, so an idle drive stays idle.
const POWER_ON: Duration = Duration::from_ms(3_600_000);

/// A change of records and contents, which the owner of the subsystem stores atomically. Answer it
/// with [`Subsystem::complete_store`](crate::Subsystem::complete_store).
///
/// The owner creates contents, stores the records, and then removes contents. After the answer,
/// media requests for created namespaces may follow, but none for deleted namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Identifies the change.
    pub id: u64,
    /// Contents to create, initially zeroes.
    pub create: Option<Contents>,
    /// Keys of records with their bytes; `None` removes the record.
    pub changes: Vec<(String, Option<Vec<u8>>)>,
    /// Contents to remove.
    pub remove: Vec<Contents>,
}

/// The contents of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// NSID of the namespace.
    pub nsid: u32,
    /// Name of the contents: [`Namespace::contents`](crate::state::Namespace::contents).
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
}

impl Contents {
    fn from_namespace(nsid: u32, namespace: &state::Namespace) -> Self {
        Self { nsid, name: namespace.contents.clone(), bytes: namespace.bytes() }
    }
}

/// A change to store.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// The counters change; with `Some`, also whether controllers are in use.
    Health(Option<bool>),
    /// A command of a controller saves values of features.
    Features { controller: u16, command: Key, values: Vec<SavedFeature> },
    /// A controller's command changes the firmware slots.
    Firmware { by: (u16, Key), change: FirmwareChange },
    /// Events without another change.
    Events,
    /// A device self-test begins or ends.
    SelfTests,
    /// A controller's command marks blocks uncorrectable, or removes marks.
    Marks { by: (u16, Key), change: MarkChange },
    /// Namespaces change, by a controller's command or by the owner of the subsystem.
    Namespaces { command: Option<(u16, Key)>, change: NamespaceChange },
    /// A controller's command changes reservations.
    Reservations { by: (u16, Key), change: ReservationChange },
    /// A sanitize operation starts by a command, ends, or a command leaves the failure mode.
    Sanitize { command: Option<(u16, Key)>, sanitize: Sanitize },
}

/// A change of namespaces.
#[derive(Clone, Debug)]
pub(crate) enum NamespaceChange {
    /// Creates a namespace.
    Create(u32, state::Namespace),
    /// Deletes namespaces.
    Delete(Vec<u32>),
    /// Attaches a namespace to controllers, or detaches it.
    Attach { nsid: u32, controllers: Vec<u16>, attach: bool },
    /// Sets or clears write protection.
    Protect { nsid: u32, protect: bool },
    /// Formats namespaces, by a command with this NSID and command dword 10.
    Format { nsids: Vec<u32>, format: Format, nsid: u32, command: u32 },
}

impl Change {
    /// The command whose change must not be repeated.
    pub(super) fn once(&self) -> Option<(u16, Key)> {
        match self {
            Self::Firmware { by, .. } | Self::Reservations { by, .. } => Some(*by),
            Self::Sanitize { command, .. } => *command,
            Self::Namespaces { command, change } => match change {
                NamespaceChange::Create(..)
                | NamespaceChange::Delete(_)
                | NamespaceChange::Attach { .. } => *command,
                NamespaceChange::Protect { .. } | NamespaceChange::Format { .. } => None,
            },
            _ => None,
        }
    }

    /// Dword 0 of the command's completion.
    fn result(&self) -> u32 {
        match self {
            Self::Namespaces { change: NamespaceChange::Create(nsid, _), .. } => *nsid,
            _ => 0,
        }
    }

    /// CNTLID of the controller whose reset drops the change, because its command waits for the
    /// change.
    fn controller(&self) -> Option<u16> {
        match self {
            // Later requests for reservations wait for this one, so a reset does not drop it.
            Self::Health(_) | Self::Events | Self::SelfTests | Self::Reservations { .. } => None,
            Self::Features { controller, .. } => Some(*controller),
            Self::Firmware { by: (controller, _), .. }
            | Self::Marks { by: (controller, _), .. } => Some(*controller),
            Self::Namespaces { command, .. } | Self::Sanitize { command, .. } => {
                command.map(|(controller, _)| controller)
            }
        }
    }
}

/// The changes to store, in order.
#[derive(Debug)]
pub(crate) struct Store {
    queue: VecDeque<Change>,
    in_flight: Option<Change>,
    /// Commands that are not carried out again, and the same with the change in flight.
    done: Done,
    done_next: Done,
    /// Number of commits so far, which is the ID of the last commit.
    commits: u64,
    /// Whether the stored record states that controllers are in use.
    running: bool,
    /// Whether the record that controllers are in use could not be stored. Writes are rejected
    /// until it is stored, so that every loss of power with controllers in use is counted.
    unrecorded: bool,
    /// Controllers that a host has enabled and not shut down.
    in_use: BTreeSet<u16>,
    now: Instant,
    counters_stored: Instant,
    /// Whether the drive had power before this process.
    powered: bool,
}

impl Store {
    /// The state after power-on. The first change stores the number of power cycles.
    pub(crate) fn new(now: Instant, done: Done) -> Self {
        Self {
            queue: VecDeque::from([Change::Health(Some(false))]),
            in_flight: None,
            done_next: done.clone(),
            done,
            commits: 0,
            running: false,
            unrecorded: false,
            in_use: BTreeSet::new(),
            now,
            counters_stored: now,
            powered: false,
        }
    }

    /// The state of a drive whose power-on is stored.
    pub(crate) fn resumed(now: Instant, done: Done, running: bool) -> Self {
        Self { queue: VecDeque::new(), running, powered: true, ..Self::new(now, done) }
    }

    /// Whether the drive had power before.
    pub(super) fn had_power(&self) -> bool {
        self.powered
    }

    /// All changes that are not stored yet, in order.
    pub(super) fn waiting(&self) -> impl DoubleEndedIterator<Item = &Change> {
        self.in_flight.iter().chain(&self.queue)
    }

    /// The change that is stored next.
    pub(super) fn next(&self) -> Option<&Change> {
        self.queue.front().filter(|_| self.in_flight.is_none())
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting().next().is_none()
    }

    pub(super) fn push(&mut self, change: Change) {
        self.queue.push_back(change);
    }

    /// Queues the events for the next commit.
    pub(super) fn push_events(&mut self) {
        if self.queue.is_empty() {
            self.push(Change::Events);
        }
    }

    /// Queues the counters; merges them with a queued change of counters.
    pub(super) fn push_health(&mut self, running: Option<bool>) {
        let queued = self.queue.iter_mut().find_map(|change| match change {
            Change::Health(running) => Some(running),
            _ => None,
        });
        match queued {
            Some(queued) => *queued = running.or(*queued),
            None => self.push(Change::Health(running)),
        }
    }

    /// Whether the record will state that controllers are in use after all changes are stored, and
    /// whether it states so now.
    fn will_run(&self) -> (bool, bool) {
        let last = self.waiting().rev().find_map(|change| match change {
            Change::Health(running) => *running,
            _ => None,
        });
        (last.unwrap_or(self.running), last.is_none())
    }
}

impl Shared {
    /// Whether the drive has records.
    pub(crate) fn saves(&self) -> bool {
        self.store.is_some()
    }

    /// Queues values of features to store, for a command of a controller.
    ///
    /// # Panics
    /// If there is no store.
    pub(crate) fn save_features(
        &mut self,
        controller: u16,
        command: Key,
        values: Vec<SavedFeature>,
    ) {
        let store = self.store.as_mut().expect("there is a store");
        store.push(Change::Features { controller, command, values });
    }

    /// Drops the queued changes of a controller's commands; a change in flight stays.
    pub(crate) fn forget_commands(&mut self, id: u16) {
        let Some(store) = &mut self.store else { return };
        store.queue.retain(|change| change.controller() != Some(id));
        if self.events.unstored {
            store.push_events();
        }
    }

    /// Whether writes are rejected because the record of controllers in use could not be stored.
    pub(crate) fn is_unrecorded(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.unrecorded)
    }

    /// Handles the enabling of a controller. Returns true if the record already states that
    /// controllers are in use, or could not be stored. Otherwise queues the record and returns
    /// false.
    pub(crate) fn starts(&mut self, controller: u16) -> bool {
        let Some(store) = &mut self.store else { return true };
        store.in_use.insert(controller);
        if store.unrecorded {
            return true;
        }
        if !store.will_run().0 {
            store.push_health(Some(true));
        }
        store.will_run() == (true, true)
    }

    /// Notes that a controller was in use before this process and still is.
    pub(crate) fn goes_on(&mut self, controller: u16) {
        self.store.iter_mut().for_each(|store| {
            store.in_use.insert(controller);
        });
    }

    /// Handles the shutdown of a controller. Returns true if no record must be stored: another
    /// controller is in use, or the record already states that none is. Otherwise queues the record
    /// and returns false.
    pub(crate) fn stops(&mut self, controller: u16) -> bool {
        let Some(store) = &mut self.store else { return true };
        store.in_use.remove(&controller);
        if !store.in_use.is_empty() {
            return true;
        }
        store.unrecorded = false;
        if store.will_run().0 {
            store.push_health(Some(false));
        }
        store.will_run() == (false, true)
    }

    /// Stores the counters if they are due at `now`.
    pub(crate) fn tick(&mut self, now: Instant) {
        let Some(store) = &mut self.store else { return };
        store.now = now;
        let changed = self.health.changed().is_some_and(|since| since + COUNTERS <= now);
        if changed || store.counters_stored + POWER_ON <= now {
            store.push_health(store.unrecorded.then_some(true));
        }
    }

    /// Time at which changed counters must be stored; `None` if no counters changed or their store
    /// is queued.
    pub(crate) fn counters_due(&self) -> Option<Instant> {
        let store = self.store.as_ref()?;
        let queued = store.queue.iter().any(|change| matches!(change, Change::Health(_)));
        self.health.changed().filter(|_| !queued).map(|since| since + COUNTERS)
    }

    /// Dword 0 of the completion of a command that is not carried out again.
    pub(crate) fn done(&self, controller: u16, number: u64) -> Option<u32> {
        let power_cycle = self.health.history().power_cycles;
        self.store.as_ref()?.done.result(power_cycle, Done::command(controller, number))
    }

    /// The number of the first command of a controller that is not restored.
    pub(crate) fn first_number(&self, controller: u16) -> u64 {
        let power_cycle = self.health.history().power_cycles;
        self.store.as_ref().map_or(0, |store| store.done.next_number(power_cycle, controller))
    }

    /// The next change to store. `command` is its command as in [`Done::commands`], which is
    /// recorded with the change if the command must not be carried out again.
    pub(crate) fn next_commit(&mut self, command: Option<u64>) -> Option<Commit> {
        let power_cycle = self.health.history().power_cycles;
        let store = self.store.as_mut().filter(|store| store.in_flight.is_none())?;
        let change = store.queue.pop_front()?;
        store.commits += 1;
        let (id, now) = (store.commits, store.now);
        let mut changes = self.records_of(&change);
        if let Some(log) = self.events_with(now, &change) {
            let (key, bytes) = events_record(&log);
            changes.push((key, Some(bytes)));
        }
        let (create, remove) = self.contents_of(&change);
        let store = self.store.as_mut()?;
        if let Some(command) = command {
            store.done_next = store.done.with(power_cycle, (command, change.result()));
            let (key, bytes) = done_record(&store.done_next);
            changes.push((key, Some(bytes)));
        }
        store.in_flight = Some(change);
        Some(Commit { id, create, changes, remove })
    }

    /// The contents that a change creates, and the contents that it removes.
    fn contents_of(&self, change: &Change) -> (Option<Contents>, Vec<Contents>) {
        use NamespaceChange::{Create, Delete};
        match change {
            Change::Namespaces { change: Create(nsid, namespace), .. } => {
                (Some(Contents::from_namespace(*nsid, namespace)), Vec::new())
            }
            Change::Namespaces { change: Delete(nsids), .. } => {
                let removed = self.namespaces.iter().filter(|(nsid, _)| nsids.contains(nsid));
                (
                    None,
                    removed
                        .map(|(nsid, one)| Contents::from_namespace(*nsid, &one.record))
                        .collect(),
                )
            }
            _ => (None, Vec::new()),
        }
    }

    /// The records that a change writes.
    fn records_of(&mut self, change: &Change) -> Vec<(String, Option<Vec<u8>>)> {
        let set = |(key, bytes)| (key, Some(bytes));
        match change {
            Change::Health(running) => {
                let store = self.store.as_mut().expect("it has a change");
                store.counters_stored = store.now;
                let running = running.unwrap_or(store.running);
                let history = self.health.record(store.now);
                vec![set(health_record(&History { running, ..history }))]
            }
            Change::Features { values, .. } => vec![set(features_record(&self.saved_with(values)))],
            Change::Firmware { change, .. } => {
                vec![set(firmware_record(&self.firmware_with(change)))]
            }
            Change::Events => Vec::new(),
            Change::SelfTests => vec![set(self_tests_record(&self.tests.state()))],
            Change::Marks { change, .. } => vec![self.record_with_marks(change)],
            Change::Reservations { change, .. } => {
                vec![reservations_record(&self.reservations_with(change))]
            }
            Change::Namespaces { change, .. } => self.records_of_namespaces(change),
            Change::Sanitize { sanitize, .. } => {
                let erased = sanitize.phase == SanitizePhase::Completed;
                let marks = self.record_without_marks(|_| erased);
                marks.into_iter().chain([set(sanitize_record(sanitize))]).collect()
            }
        }
    }

    fn records_of_namespaces(&self, change: &NamespaceChange) -> Vec<(String, Option<Vec<u8>>)> {
        let set = |(key, bytes)| (key, Some(bytes));
        let mut attachments = self.attachments();
        match change {
            NamespaceChange::Create(nsid, namespace) => vec![
                (namespace_key(*nsid), Some(namespace_record(namespace))),
                set(created_record(self.created + 1)),
            ],
            NamespaceChange::Delete(nsids) => {
                attachments.retain(|nsid, _| !nsids.contains(nsid));
                let deleted = nsids.iter().map(|nsid| (namespace_key(*nsid), None));
                let features = features_record(&self.saved_without(nsids));
                let marks = self.record_without_marks(|nsid| nsids.contains(&nsid));
                let others = [attachments_record(&attachments), features].map(set);
                let reservations = self.record_without_reservations(nsids);
                deleted.chain(others).chain(marks).chain(reservations).collect()
            }
            NamespaceChange::Attach { nsid, controllers, attach } => {
                set_attached(attachments.entry(*nsid).or_default(), controllers, *attach);
                attachments.retain(|_, controllers| !controllers.is_empty());
                vec![set(attachments_record(&attachments))]
            }
            NamespaceChange::Protect { nsid, protect } => {
                let record = self.namespaces.get(nsid).map(|one| state::Namespace {
                    write_protected: *protect,
                    ..one.record.clone()
                });
                let bytes = record.as_ref().map(namespace_record);
                vec![(namespace_key(*nsid), bytes)]
            }
            NamespaceChange::Format { nsids, format, .. } => {
                let formatted = self.namespaces.iter().filter(|(nsid, _)| nsids.contains(nsid));
                let record = |one: &Namespace| namespace_record(&one.record.with_format(*format));
                let marks = self.record_without_marks(|nsid| nsids.contains(&nsid));
                let key = |nsid: &u32| namespace_key(*nsid);
                formatted.map(|(nsid, one)| (key(nsid), Some(record(one)))).chain(marks).collect()
            }
        }
    }

    /// Takes the result of commit `id`: stored, or failed without effect. Returns the change;
    /// `None` for another ID.
    pub(super) fn stored(&mut self, id: u64, stored: bool) -> Option<Change> {
        let store = self.store.as_mut().filter(|store| store.commits == id)?;
        let change = store.in_flight.take()?;
        match stored {
            true => store.done = store.done_next.clone(),
            false => store.done_next = store.done.clone(),
        }
        let now = store.now;
        match &change {
            Change::Health(running) if stored => {
                store.running = running.unwrap_or(store.running);
                store.unrecorded &= !store.running;
            }
            // The counters are stored again later.
            Change::Health(running) => {
                store.unrecorded |= *running == Some(true);
                self.health.count(store.now);
            }
            // Without a stored result the operation counts as failed, and starts again after a loss
            // of power.
            Change::Sanitize { command: None, sanitize } if !stored => {
                self.sanitize = Some(Sanitize { phase: SanitizePhase::Failed, ..*sanitize });
            }
            _ if !stored => {}
            Change::Features { values, .. } => self.saved = self.saved_with(values),
            Change::Firmware { change, .. } => self.apply_firmware(change),
            // Events and self-tests stay valid even if they could not be stored.
            Change::Events | Change::SelfTests => {}
            Change::Marks { change, .. } => self.marks_stored(change),
            Change::Reservations { change, .. } => self.apply_reservations(change),
            Change::Namespaces { change, .. } => self.namespaces_stored(change),
            Change::Sanitize { sanitize, .. } => {
                if sanitize.phase == SanitizePhase::Completed {
                    self.namespaces.values_mut().for_each(|one| one.marks = Marks::default());
                }
                self.sanitize = Some(*sanitize);
                self.resume_sanitize();
            }
        }
        self.events_stored(stored);
        if stored {
            self.end_test_by(now, &change);
        }
        Some(change)
    }

    fn namespaces_stored(&mut self, change: &NamespaceChange) {
        match change {
            NamespaceChange::Create(nsid, namespace) => {
                self.created += 1;
                self.insert(*nsid, namespace.clone());
            }
            NamespaceChange::Delete(nsids) => {
                self.namespaces.retain(|nsid, _| !nsids.contains(nsid));
                self.saved = self.saved_without(nsids);
            }
            NamespaceChange::Attach { nsid, controllers, attach } => {
                if let Some(namespace) = self.namespaces.get_mut(nsid) {
                    set_attached(&mut namespace.attached, controllers, *attach);
                }
            }
            NamespaceChange::Protect { nsid, protect } => {
                if let Some(namespace) = self.namespaces.get_mut(nsid) {
                    namespace.record.write_protected = *protect;
                }
            }
            NamespaceChange::Format { nsids, format, .. } => {
                for (_, one) in self.namespaces.iter_mut().filter(|(nsid, _)| nsids.contains(nsid))
                {
                    one.record = one.record.with_format(*format);
                    one.marks = Marks::default();
                }
            }
        }
    }

    /// Queues the counters to be stored now.
    pub(crate) fn store_counters(&mut self) {
        if let Some(store) = &mut self.store {
            store.push_health(None);
        }
    }

    /// The number of changes that are not stored: at most one in flight, one of counters, one of
    /// events, one of namespaces, one of reservations, and one per command.
    pub(crate) fn unstored(&self) -> usize {
        self.store.as_ref().map_or(0, |store| store.waiting().count())
    }

    /// Whether no change waits to be stored.
    pub(crate) fn is_stored(&self) -> bool {
        self.store.as_ref().is_none_or(Store::is_idle)
    }

    /// The state to keep: stored values, and current counters.
    pub(crate) fn state(&self) -> State {
        let records = self.namespaces.iter().map(|(nsid, one)| (*nsid, one.record.clone()));
        let running = self.store.as_ref().is_some_and(|store| store.running);
        State {
            drive: self.drive.clone(),
            namespaces: records.collect(),
            attachments: self.attachments(),
            features: self.saved.clone(),
            created: self.created,
            done: self.store.as_ref().map(|store| store.done.clone()).unwrap_or_default(),
            events: self.events.log.clone(),
            reservations: self.reservations(),
            sanitize: self.sanitize,
            self_tests: self.tests.state(),
            firmware: self.firmware.clone(),
            health: History { running, ..self.health.history().clone() },
            uncorrectable: self.uncorrectable(),
        }
    }

    /// The controllers that each namespace is attached to.
    pub(crate) fn attachments(&self) -> Attachments {
        let attached = self.namespaces.iter().filter(|(_, one)| !one.attached.is_empty());
        attached.map(|(nsid, one)| (*nsid, one.attached.clone())).collect()
    }

    /// The saved features with `values` added, except values of namespaces that were deleted.
    fn saved_with(&self, values: &[SavedFeature]) -> Vec<SavedFeature> {
        let replaced = |old: &&SavedFeature| values.iter().any(|new| new.same(old));
        let exists = |one: &&SavedFeature| one.nsid == 0 || self.namespaces.contains_key(&one.nsid);
        let new = values.iter().filter(exists);
        self.saved.iter().filter(|old| !replaced(old)).chain(new).copied().collect()
    }

    /// The saved features, except the features of the namespaces `nsids`.
    fn saved_without(&self, nsids: &[u32]) -> Vec<SavedFeature> {
        self.saved.iter().filter(|saved| !nsids.contains(&saved.nsid)).copied().collect()
    }
}

fn set_attached(attached: &mut BTreeSet<u16>, controllers: &[u16], attach: bool) {
    match attach {
        true => attached.extend(controllers),
        false => attached.retain(|controller| !controllers.contains(controller)),
    }
}
