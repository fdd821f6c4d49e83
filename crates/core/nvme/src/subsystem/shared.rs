//! The shared state of a subsystem's controllers.

use super::claims::Claims;
use super::events::Events;
use super::holds::Hold;
use super::reservations::Hosts;
use super::sanitize::Erase;
use super::self_test::Tests;
use super::store::Store;
use crate::config::Settings;
use crate::failure::Failure;
use crate::log::Health;
use crate::namespace::Namespace;
use crate::state::{self, Firmware, Sanitize, SavedFeature, State};
use pcie::config::label::Label;
use std::collections::BTreeMap;
use wire::Instant;
use wire::nvme::StatusCode;

/// The shared state of a subsystem's controllers.
#[derive(Debug)]
pub(crate) struct Shared {
    pub drive: state::Drive,
    /// Namespaces by NSID.
    pub namespaces: BTreeMap<u32, Namespace>,
    pub health: Health,
    /// Values of features that hosts have saved.
    pub saved: Vec<SavedFeature>,
    /// Number of namespaces ever created. The names of the next namespace derive from this number.
    pub created: u64,
    pub tests: Tests,
    /// The persistent event log.
    pub events: Events,
    /// The contents of the firmware slots.
    pub firmware: Firmware,
    /// The firmware revision of the program.
    pub program: String,
    /// The reported firmware revision.
    pub revision: [u8; 8],
    /// Whether the power-on made another firmware active.
    activated: bool,
    /// Number of controllers; CNTLIDs count from 1.
    pub controllers: u16,
    /// The most recent sanitize operation, as stored.
    pub sanitize: Option<Sanitize>,
    /// The sanitize operation that is under way.
    pub erase: Option<Erase>,
    /// Claimed blocks of namespaces with metadata.
    pub claims: Claims,
    /// Blocks that fused operations hold.
    pub holds: Vec<Hold>,
    /// The hosts of the controllers, and their requests for reservations.
    pub hosts: Hosts,
    /// The changes to store, if the drive has records.
    pub store: Option<Store>,
}

impl Shared {
    /// The shared state of a drive at power-on.
    pub(crate) fn new(
        now: Instant,
        state: State,
        settings: &Settings,
        store: Option<Store>,
    ) -> Self {
        let powered = store.as_ref().is_some_and(Store::had_power);
        let health = match powered {
            true => Health::new(now, state.health, settings.temperature),
            false => Health::power_on(now, state.health, settings.temperature),
        };
        let mut shared = Self {
            drive: state.drive,
            namespaces: BTreeMap::new(),
            health,
            saved: state.features,
            created: state.created,
            firmware: state.firmware,
            program: settings.firmware.clone(),
            revision: [0; 8],
            activated: false,
            tests: Tests::new(now, state.self_tests),
            events: Events::new(now, state.events),
            controllers: 0,
            sanitize: state.sanitize,
            erase: None,
            claims: Claims::default(),
            holds: Vec::new(),
            hosts: Hosts::default(),
            store,
        };
        if powered {
            shared.run_firmware();
        } else {
            // A power-on counts as a reset.
            shared.activated = shared.reset_firmware();
            shared.start_firmware();
        }
        for (nsid, record) in state.namespaces {
            shared.insert(nsid, record);
        }
        for (nsid, attached) in state.attachments {
            let namespace = shared.namespaces.get_mut(&nsid);
            namespace.expect("a state knows what is attached").attached = attached;
        }
        for (nsid, marks) in state.uncorrectable {
            let namespace = shared.namespaces.get_mut(&nsid);
            namespace.expect("a state knows what is marked").marks = marks;
        }
        let kept = state.reservations.power_cycle == shared.health.history().power_cycles;
        for (nsid, reservation) in state.reservations.namespaces {
            let namespace = shared.namespaces.get_mut(&nsid);
            namespace.expect("a state knows what is reserved").reservation =
                if kept { reservation } else { reservation.after_power_loss() };
        }
        shared.resume_sanitize();
        shared
    }

    /// Adds a namespace that is attached to no controller.
    pub(crate) fn insert(&mut self, nsid: u32, record: state::Namespace) {
        // On a drive without records hosts cannot protect namespaces, so `write_protected` means
        // read-only media.
        let read_only = record.write_protected && self.store.is_none();
        self.namespaces.insert(nsid, Namespace::new(record, read_only));
    }

    /// Adds a controller. On a drive without records, every namespace is attached to the new
    /// controller.
    pub(crate) fn add_controller(&mut self, now: Instant, id: u16) {
        self.controllers = id;
        if !self.store.as_ref().is_some_and(Store::had_power) {
            self.log_reset(now, id, self.activated);
            if id == 1 {
                self.log_smart(now, id);
            }
        }
        if self.store.is_none() {
            for namespace in self.namespaces.values_mut() {
                namespace.attached.insert(id);
            }
        }
    }

    /// Whether controllers report asymmetric namespace access.
    pub(crate) fn reports_access(&self) -> bool {
        self.controllers > 1
    }

    /// The label of the drive.
    pub(crate) fn label(&self) -> Label {
        Label { serial: self.drive.serial.clone(), capacity: self.allocated() }
    }

    /// Number of bytes of all namespaces.
    pub(crate) fn allocated(&self) -> u64 {
        self.namespaces.values().map(|one| one.record.bytes()).fold(0, u64::saturating_add)
    }

    /// The namespace `nsid` if it is attached to this controller. An inactive NSID is an invalid
    /// field, and an NSID above NN an invalid namespace (NVMe 1.4, sections 6.1.4 and 6.1.5).
    pub(crate) fn namespace(&self, controller: u16, nsid: u32) -> Result<&Namespace, Failure> {
        match self.namespaces.get(&nsid) {
            Some(namespace) if namespace.attached.contains(&controller) => Ok(namespace),
            _ => Err(self.absent(nsid)),
        }
    }

    /// The failure of a command with an inactive or invalid NSID.
    pub(crate) fn absent(&self, nsid: u32) -> Failure {
        match nsid {
            nsid if (1..=self.drive.max_namespaces).contains(&nsid) => {
                Failure::field(StatusCode::INVALID_FIELD, 4, 0)
            }
            _ => Failure::namespace(),
        }
    }

    /// The namespaces attached to a controller, by NSID.
    pub(crate) fn attached(&self, controller: u16) -> impl Iterator<Item = (u32, &Namespace)> {
        let attached = move |(_, one): &(&u32, &Namespace)| one.attached.contains(&controller);
        self.namespaces.iter().filter(attached).map(|(nsid, namespace)| (*nsid, namespace))
    }

    /// Whether all media are read-only, or the drive rejects writes because records cannot be
    /// stored.
    pub(crate) fn is_read_only(&self) -> bool {
        let all = || self.namespaces.values().all(|one| one.read_only);
        self.is_unrecorded() || !self.namespaces.is_empty() && all()
    }

    /// Fails if a namespace cannot be written: it is read-only, or the drive's records cannot be
    /// stored.
    pub(crate) fn writable(&self, namespace: &Namespace) -> Result<(), Failure> {
        namespace.writable()?;
        match self.is_unrecorded() {
            true => Err(Failure::permanent(StatusCode::WRITE_TO_READ_ONLY_RANGE)),
            false => Ok(()),
        }
    }
}
