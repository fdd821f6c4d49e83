//! What a drive with records has to store: one change after the other, each at once or not at all.

use super::{FirmwareChange, Shared};
use crate::slots::Key;
use crate::state::{
    self, Attachments, History, SavedFeature, State, attachments_record, features_record,
    firmware_record, health_record, namespace_key, namespace_record, self_tests_record,
};
use std::collections::{BTreeSet, VecDeque};
use wire::{Duration, Instant};

/// How long counters may change before they are stored, so that a busy drive stores them seldom.
const COUNTERS: Duration = Duration::from_ms(10_000);
/// How long power may have been on before that is stored: SMART tells hours. Nobody is woken for
/// it, so that an idle drive stays idle.
const POWER_ON: Duration = Duration::from_ms(3_600_000);

/// A change of records, which the owner of the subsystem stores as a whole or not at all; answer
/// with [`Subsystem::complete_store`](crate::Subsystem::complete_store).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Identifies the change.
    pub id: u64,
    /// Keys of records with their bytes, `None` where the record goes.
    pub changes: Vec<(String, Option<Vec<u8>>)>,
}

/// What is to be stored.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// The counters; and whether controllers are in use, if that changes.
    Health(Option<bool>),
    /// Values of features, saved by a command of a controller.
    Features { controller: u16, command: Key, values: Vec<SavedFeature> },
    /// A command of a controller changes the firmware slots.
    Firmware { by: (u16, Key), change: FirmwareChange },
    /// A device self-test begins or ends.
    SelfTests,
    /// A namespace is created.
    Create(u32, state::Namespace),
    /// A namespace is deleted.
    Delete(u32),
    /// A namespace is attached to a controller, or detached.
    Attach { nsid: u32, controller: u16, attach: bool },
}

impl Change {
    pub fn is_of_namespaces(&self) -> bool {
        matches!(self, Self::Create(..) | Self::Delete(_) | Self::Attach { .. })
    }
}

/// The changes that are to be stored, in order.
#[derive(Debug)]
pub(crate) struct Store {
    queue: VecDeque<Change>,
    in_flight: Option<Change>,
    /// Commits so far: the number of the last one is its ID.
    commits: u64,
    /// The record says that controllers are in use.
    running: bool,
    /// Controllers that a host has enabled and not shut down.
    in_use: BTreeSet<u16>,
    now: Instant,
    counters_stored: Instant,
}

impl Store {
    /// Power comes on: that is the first thing to store.
    pub fn new(now: Instant) -> Self {
        Self {
            queue: VecDeque::from([Change::Health(Some(false))]),
            in_flight: None,
            commits: 0,
            running: false,
            in_use: BTreeSet::new(),
            now,
            counters_stored: now,
        }
    }

    /// All changes that are not stored, in order.
    pub(super) fn waiting(&self) -> impl DoubleEndedIterator<Item = &Change> {
        self.in_flight.iter().chain(&self.queue)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting().next().is_none()
    }

    pub(super) fn push(&mut self, change: Change) {
        self.queue.push_back(change);
    }

    /// Stores the counters, together with what is to be stored of them anyway.
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

    /// What the record will say of controllers in use when everything is stored, and whether it
    /// says so now.
    fn will_run(&self) -> (bool, bool) {
        let last = self.waiting().rev().find_map(|change| match change {
            Change::Health(running) => *running,
            _ => None,
        });
        (last.unwrap_or(self.running), last.is_none())
    }
}

impl Shared {
    /// Whether hosts may save features.
    pub fn saves(&self) -> bool {
        self.store.is_some()
    }

    /// Stores values of features for a command of a controller.
    ///
    /// # Panics
    /// If there is no store.
    pub fn save_features(&mut self, controller: u16, command: Key, values: Vec<SavedFeature>) {
        let store = self.store.as_mut().expect("there is a store");
        store.push(Change::Features { controller, command, values });
    }

    /// The commands of a controller are dropped: what they have to store is not begun.
    pub fn forget_commands(&mut self, id: u16) {
        let Some(store) = &mut self.store else { return };
        let of_it = |change: &Change| matches!(change, Change::Features { controller, .. } if *controller == id);
        store.queue.retain(|change| !of_it(change));
    }

    /// A controller is being enabled; whether the record says that controllers are in use. If not,
    /// it is stored.
    pub fn starts(&mut self, controller: u16) -> bool {
        let Some(store) = &mut self.store else { return true };
        store.in_use.insert(controller);
        if !store.will_run().0 {
            store.push_health(Some(true));
        }
        store.will_run() == (true, true)
    }

    /// A controller has shut down; whether nothing is to be stored for that: another one is in
    /// use, or the record says already that none is.
    pub fn stops(&mut self, controller: u16) -> bool {
        let Some(store) = &mut self.store else { return true };
        store.in_use.remove(&controller);
        if !store.in_use.is_empty() {
            return true;
        }
        if store.will_run().0 {
            store.push_health(Some(false));
        }
        store.will_run() == (false, true)
    }

    /// It is `now`: counters may be due to be stored.
    pub fn tick(&mut self, now: Instant) {
        let Some(store) = &mut self.store else { return };
        store.now = now;
        let changed = self.health.changed().is_some_and(|since| since + COUNTERS <= now);
        if changed || store.counters_stored + POWER_ON <= now {
            store.push_health(None);
        }
    }

    /// When changed counters are due to be stored.
    pub fn counters_due(&self) -> Option<Instant> {
        let store = self.store.as_ref()?;
        let queued = store.queue.iter().any(|change| matches!(change, Change::Health(_)));
        self.health.changed().filter(|_| !queued).map(|since| since + COUNTERS)
    }

    /// The next change to store.
    pub fn next_commit(&mut self) -> Option<Commit> {
        let store = self.store.as_mut().filter(|store| store.in_flight.is_none())?;
        let change = store.queue.pop_front()?;
        store.commits += 1;
        let id = store.commits;
        let changes = self.records_of(&change);
        self.store.as_mut()?.in_flight = Some(change);
        Some(Commit { id, changes })
    }

    /// The records with a change.
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
            Change::SelfTests => vec![set(self_tests_record(&self.tests.state()))],
            Change::Create(nsid, namespace) => {
                vec![(namespace_key(*nsid), Some(namespace_record(namespace)))]
            }
            Change::Delete(nsid) => {
                let mut attachments = self.attachments();
                attachments.remove(nsid);
                let features = self.saved_without(*nsid);
                vec![
                    (namespace_key(*nsid), None),
                    set(attachments_record(&attachments)),
                    set(features_record(&features)),
                ]
            }
            Change::Attach { nsid, controller, attach } => {
                let mut attachments = self.attachments();
                let attached = attachments.entry(*nsid).or_default();
                match attach {
                    true => attached.insert(*controller),
                    false => attached.remove(controller),
                };
                attachments.retain(|_, controllers| !controllers.is_empty());
                vec![set(attachments_record(&attachments))]
            }
        }
    }

    /// A change is stored, or could not be: then nothing changes. Returns the change.
    pub(super) fn stored(&mut self, id: u64, stored: bool) -> Option<Change> {
        let store = self.store.as_mut().filter(|store| store.commits == id)?;
        let change = store.in_flight.take()?;
        match &change {
            Change::Health(running) if stored => store.running = running.unwrap_or(store.running),
            // Once more, later.
            Change::Health(_) => {
                self.health.count(store.now);
            }
            _ if !stored => {}
            Change::Features { values, .. } => self.saved = self.saved_with(values),
            Change::Firmware { change, .. } => self.apply_firmware(change),
            // They are what they are, stored or not.
            Change::SelfTests => {}
            Change::Create(nsid, namespace) => self.insert(*nsid, namespace.clone()),
            Change::Delete(nsid) => {
                self.namespaces.remove(nsid);
                self.saved = self.saved_without(*nsid);
            }
            Change::Attach { nsid, controller, attach } => {
                if let Some(namespace) = self.namespaces.get_mut(nsid) {
                    match attach {
                        true => namespace.attached.insert(*controller),
                        false => namespace.attached.remove(controller),
                    };
                }
            }
        }
        Some(change)
    }

    /// The counters are to be stored now.
    pub fn store_counters(&mut self) {
        if let Some(store) = &mut self.store {
            store.push_health(None);
        }
    }

    /// Changes that wait: one in flight, counters, one of namespaces, and one of each command.
    pub fn unstored(&self) -> usize {
        self.store.as_ref().map_or(0, |store| store.waiting().count())
    }

    /// Whether nothing is left to store.
    pub fn is_stored(&self) -> bool {
        self.store.as_ref().is_none_or(Store::is_idle)
    }

    /// What is kept, as stored; the counters as they are.
    pub fn state(&self) -> State {
        let records = self.namespaces.iter().map(|(nsid, one)| (*nsid, one.record.clone()));
        let running = self.store.as_ref().is_some_and(|store| store.running);
        State {
            drive: self.drive.clone(),
            namespaces: records.collect(),
            attachments: self.attachments(),
            features: self.saved.clone(),
            self_tests: self.tests.state(),
            firmware: self.firmware.clone(),
            health: History { running, ..self.health.history().clone() },
        }
    }

    /// What is attached to what.
    pub fn attachments(&self) -> Attachments {
        let attached = self.namespaces.iter().filter(|(_, one)| !one.attached.is_empty());
        attached.map(|(nsid, one)| (*nsid, one.attached.clone())).collect()
    }

    /// The saved features with further values.
    fn saved_with(&self, values: &[SavedFeature]) -> Vec<SavedFeature> {
        let replaced = |old: &&SavedFeature| values.iter().any(|new| new.same(old));
        self.saved.iter().filter(|old| !replaced(old)).chain(values).copied().collect()
    }

    /// The saved features without those of a namespace.
    fn saved_without(&self, nsid: u32) -> Vec<SavedFeature> {
        self.saved.iter().filter(|saved| saved.nsid != nsid).copied().collect()
    }
}
