//! The persistent state of a drive: records, each one JSON value.
//!
//! A store keeps [`Records`] and changes several records atomically. [`State`] is the decoded form
//! of all records. `docs/drive.md` specifies the records; a deviation is a [`RecordError`].

mod check;
mod done;
mod drive;
mod events;
mod features;
mod firmware;
mod health;
mod hex;
mod namespace;
mod reservation;
mod sanitize;
mod self_test;
#[cfg(test)]
mod tests;
mod uncorrectable;

pub use check::RecordError;
pub use done::Done;
pub use drive::Drive;
pub use events::{EventLog, LoggedEvent};
pub(crate) use events::{MAX_LOG, NO_CONTROLLER};
pub use features::SavedFeature;
pub use firmware::{FIRMWARE_SLOTS, Firmware, Image, MAX_IMAGE};
pub use health::History;
pub use namespace::{Format, Namespace};
pub use reservation::{HostId, MAX_REGISTRANTS, Registrant, Reservation, Reservations};
pub use sanitize::{Sanitize, SanitizePhase};
pub(crate) use self_test::MAX_RESULTS;
pub use self_test::{ExtendedTest, SelfTests, TestResult};
pub use uncorrectable::{MAX_UNCORRECTABLE, Marks, Uncorrectable};

use check::{Check, Problem, decode, encode};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of namespaces of a drive, and the largest NSID.
pub const MAX_NAMESPACES: u32 = 1024;
/// The largest CNTLID; higher CNTLIDs are reserved (NVMe 2.0, section 4.6.1).
pub const MAX_CONTROLLER: u16 = 0xffef;

/// The records of a drive: their bytes by key.
pub type Records = BTreeMap<String, Vec<u8>>;

/// The controllers that each namespace is attached to, by NSID. Namespaces that do not exist have
/// no entry.
pub type Attachments = BTreeMap<u32, BTreeSet<u16>>;

/// Prefix of the keys of the store's own records, about files of contents. This module ignores
/// them.
const CONTENTS: &str = "contents/";
const DRIVE: &str = "drive";
const NAMESPACE: &str = "namespace/";
const ATTACHMENTS: &str = "attachments";
const FEATURES: &str = "features";
const CREATED: &str = "created";
const DONE: &str = "done";
const EVENTS: &str = "events";
const HEALTH: &str = "health";
const RESERVATIONS: &str = "reservations";
const SANITIZE: &str = "sanitize";
const FIRMWARE: &str = "firmware";
const SELF_TEST: &str = "self-test";
const UNCORRECTABLE: &str = "uncorrectable";

/// The decoded records of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The properties of the drive.
    pub drive: Drive,
    /// Namespaces by NSID.
    pub namespaces: BTreeMap<u32, Namespace>,
    /// Attachments of namespaces to controllers.
    pub attachments: Attachments,
    /// Saved values of features.
    pub features: Vec<SavedFeature>,
    /// Commands that are not carried out again.
    pub done: Done,
    /// Number of namespaces ever created. Names of new namespaces derive from this number, so no
    /// name is reused.
    pub created: u64,
    /// The persistent event log.
    pub events: EventLog,
    /// The lifetime counters.
    pub health: History,
    /// Registrations and reservations of hosts.
    pub reservations: Reservations,
    /// The most recent sanitize operation.
    pub sanitize: Option<Sanitize>,
    /// Firmware slots.
    pub firmware: Firmware,
    /// Device self-tests.
    pub self_tests: SelfTests,
    /// Blocks that Write Uncorrectable has marked.
    pub uncorrectable: Uncorrectable,
}

impl State {
    /// A drive without namespaces that has never been used.
    pub fn new(drive: Drive) -> Self {
        Self {
            drive,
            namespaces: BTreeMap::new(),
            attachments: BTreeMap::new(),
            features: Vec::new(),
            created: 0,
            done: Done::default(),
            events: EventLog::default(),
            health: History::default(),
            reservations: Reservations::default(),
            sanitize: None,
            firmware: Firmware::default(),
            self_tests: SelfTests::default(),
            uncorrectable: Uncorrectable::new(),
        }
    }

    /// Number of bytes of all namespaces together.
    pub fn allocated(&self) -> u64 {
        self.namespaces.values().map(Namespace::bytes).fold(0, u64::saturating_add)
    }

    /// Decodes records. Only `drive` is required.
    ///
    /// # Errors
    /// If `drive` is missing, or if a record is unknown or invalid.
    pub fn decode(records: &Records) -> Result<Self, RecordError> {
        let missing = || RecordError::new(DRIVE, "missing");
        let mut state = Self::new(decode(DRIVE, records.get(DRIVE).ok_or_else(missing)?)?);
        for (key, bytes) in records {
            match key.as_str() {
                DRIVE => {}
                ATTACHMENTS => state.attachments = decode(key, bytes)?,
                FEATURES => state.features = decode(key, bytes)?,
                CREATED => state.created = decode(key, bytes)?,
                DONE => state.done = decode(key, bytes)?,
                EVENTS => state.events = decode(key, bytes)?,
                HEALTH => state.health = decode(key, bytes)?,
                RESERVATIONS => state.reservations = decode(key, bytes)?,
                SANITIZE => state.sanitize = Some(decode(key, bytes)?),
                FIRMWARE => state.firmware = decode(key, bytes)?,
                SELF_TEST => state.self_tests = decode(key, bytes)?,
                UNCORRECTABLE => state.uncorrectable = decode(key, bytes)?,
                // These are the store's own records.
                _ if key.starts_with(CONTENTS) => {}
                _ => {
                    let nsid = nsid_of(key).ok_or_else(|| unknown(key))?;
                    state.namespaces.insert(nsid, decode(key, bytes)?);
                }
            }
        }
        state.check()?;
        Ok(state)
    }

    /// Encodes the state as records.
    pub fn encode(&self) -> Records {
        let mut records = Records::from([
            (DRIVE.to_owned(), encode(&self.drive)),
            attachments_record(&self.attachments),
            features_record(&self.features),
            health_record(&self.health),
        ]);
        if self.created > 0 {
            records.extend([created_record(self.created)]);
        }
        if self.done != Done::default() {
            records.extend([done_record(&self.done)]);
        }
        if self.events != EventLog::default() {
            records.extend([events_record(&self.events)]);
        }
        records.extend(self.sanitize.iter().map(sanitize_record));
        let namespace = |(nsid, one): (&u32, &Namespace)| (namespace_key(*nsid), encode(one));
        if self.firmware != Firmware::default() {
            records.extend([firmware_record(&self.firmware)]);
        }
        if self.self_tests != SelfTests::default() {
            records.extend([self_tests_record(&self.self_tests)]);
        }
        records.extend(self.namespaces.iter().map(namespace));
        let optional =
            [uncorrectable_record(&self.uncorrectable), reservations_record(&self.reservations)];
        records.extend(optional.into_iter().filter_map(|(key, bytes)| Some((key, bytes?))));
        records
    }

    /// Checks conditions that involve several records.
    pub(crate) fn check(&self) -> Result<(), RecordError> {
        let capacity = self.drive.capacity;
        if self.allocated() > capacity {
            let allocated = self.allocated();
            let problem = format!("capacity: '{capacity}' is below the namespaces' {allocated}");
            return Err(RecordError::new(DRIVE, problem));
        }
        let max = self.drive.max_namespaces;
        if let Some((nsid, _)) = self.namespaces.range(max + 1..).next() {
            let problem = format!("NSID: '{nsid}' is outside 1 to {max} (max_namespaces)");
            return Err(RecordError::new(&namespace_key(*nsid), problem));
        }
        let mut seen = BTreeSet::new();
        for (nsid, namespace) in &self.namespaces {
            for (field, name) in namespace.names() {
                if !seen.insert((field, name)) {
                    let problem = format!("{field}: another namespace has the same value");
                    return Err(RecordError::new(&namespace_key(*nsid), problem));
                }
            }
        }
        let attached = self.attachments.keys().map(|nsid| (ATTACHMENTS, *nsid));
        let saved = self.features.iter().filter(|saved| saved.nsid != 0);
        let saved = saved.map(|saved| (FEATURES, saved.nsid));
        let marked = self.uncorrectable.keys().map(|nsid| (UNCORRECTABLE, *nsid));
        let reserved = self.reservations.namespaces.keys().map(|nsid| (RESERVATIONS, *nsid));
        for (record, nsid) in attached.chain(saved).chain(marked).chain(reserved) {
            if !self.namespaces.contains_key(&nsid) {
                return Err(RecordError::new(
                    record,
                    format!("NSID: the drive has no namespace {nsid}"),
                ));
            }
        }
        for (nsid, marks) in &self.uncorrectable {
            let blocks = self.namespaces[nsid].blocks;
            if marks.end() > blocks {
                let end = marks.end();
                let problem =
                    format!("ranges end at {end}, but namespace {nsid} has {blocks} blocks");
                return Err(RecordError::new(UNCORRECTABLE, problem));
            }
        }
        Ok(())
    }
}

impl Check for Attachments {
    fn check(&self) -> Result<(), Problem> {
        for controller in self.values().flatten() {
            check::range("CNTLID", *controller, 1, MAX_CONTROLLER)?;
        }
        Ok(())
    }
}

/// The record `created`.
impl Check for u64 {
    fn check(&self) -> Result<(), Problem> {
        check::range("count", *self, 0, u64::MAX >> 1)
    }
}

/// A key and the bytes of its record.
pub(crate) type Record = (String, Vec<u8>);

pub(crate) fn attachments_record(attachments: &Attachments) -> Record {
    (ATTACHMENTS.to_owned(), encode(attachments))
}

pub(crate) fn created_record(created: u64) -> Record {
    (CREATED.to_owned(), encode(&created))
}

pub(crate) fn features_record(features: &[SavedFeature]) -> Record {
    (FEATURES.to_owned(), encode(features))
}

pub(crate) fn events_record(log: &EventLog) -> Record {
    (EVENTS.to_owned(), encode(log))
}

pub(crate) fn health_record(health: &History) -> Record {
    (HEALTH.to_owned(), encode(health))
}

pub(crate) fn sanitize_record(sanitize: &Sanitize) -> Record {
    (SANITIZE.to_owned(), encode(sanitize))
}

pub(crate) fn done_record(done: &Done) -> Record {
    (DONE.to_owned(), encode(done))
}

pub(crate) fn firmware_record(firmware: &Firmware) -> Record {
    (FIRMWARE.to_owned(), encode(firmware))
}

pub(crate) fn self_tests_record(tests: &SelfTests) -> Record {
    (SELF_TEST.to_owned(), encode(tests))
}

/// The record of uncorrectable marks: key and bytes. `None` if no block is marked; then the record
/// does not exist.
pub(crate) fn uncorrectable_record(all: &Uncorrectable) -> (String, Option<Vec<u8>>) {
    (UNCORRECTABLE.to_owned(), (!all.is_empty()).then(|| encode(all)))
}

/// The record of reservations: key and bytes. `None` if no namespace has an entry; then the record
/// does not exist.
pub(crate) fn reservations_record(all: &Reservations) -> (String, Option<Vec<u8>>) {
    (RESERVATIONS.to_owned(), (!all.namespaces.is_empty()).then(|| encode(all)))
}

pub(crate) fn namespace_record(namespace: &Namespace) -> Vec<u8> {
    encode(namespace)
}

/// The key of a namespace's record.
pub(crate) fn namespace_key(nsid: u32) -> String {
    format!("{NAMESPACE}{nsid}")
}

/// The NSID in a key `namespace/NSID`; `None` unless the number has the canonical form.
fn nsid_of(key: &str) -> Option<u32> {
    let nsid = key.strip_prefix(NAMESPACE)?.parse().ok().filter(|nsid| *nsid != 0)?;
    (namespace_key(nsid) == key).then_some(nsid)
}

fn unknown(key: &str) -> RecordError {
    let known = format!(
        "unknown: the records are {DRIVE}, {NAMESPACE}NSID, {ATTACHMENTS}, {FEATURES}, {CREATED}, {DONE}, \
         {EVENTS}, {HEALTH}, {RESERVATIONS}, {SANITIZE}, {FIRMWARE}, {SELF_TEST} and \
         {UNCORRECTABLE}"
    );
    RecordError::new(key, known)
}
