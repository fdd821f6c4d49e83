//! What the controllers of a subsystem share.

use crate::config::Config;
use crate::failure::Failure;
use crate::identity::derived_uuid;
use crate::log::Health;
use crate::namespace::Namespace;
use crate::slots::Key;
use crate::state::{self, History, SavedFeature};
use pcie::config::label::Label;
use std::collections::{BTreeMap, BTreeSet};
use wire::Instant;
use wire::nvme::StatusCode;

/// What the controllers of a subsystem share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub drive: state::Drive,
    /// By NSID.
    pub namespaces: BTreeMap<u32, Namespace>,
    pub health: Health,
    /// Values of features that hosts have saved.
    pub saved: Vec<SavedFeature>,
    /// Controllers so far: their CNTLIDs count from 1.
    pub controllers: u16,
}

impl Shared {
    /// Those of a drive without records.
    pub fn of(now: Instant, config: &Config) -> Self {
        let name = format!("{}\0{}", config.model, config.serial);
        let namespace = |(nsid, namespace): (u32, &crate::NamespaceConfig)| {
            let uuid = derived_uuid(&format!("{name}\0{nsid}"));
            let record = state::Namespace {
                blocks: namespace.blocks,
                block_shift: namespace.block_shift,
                nguid: uuid,
                eui64: [0; 8],
                uuid,
                contents: String::new(),
                write_protected: namespace.read_only,
            };
            (nsid, Namespace { record, read_only: namespace.read_only, attached: BTreeSet::new() })
        };
        let namespaces: BTreeMap<_, _> = (1..).zip(&config.namespaces).map(namespace).collect();
        let drive = state::Drive {
            serial: config.serial.clone(),
            model: config.model.clone(),
            uuid: derived_uuid(&name),
            incarnation: config.incarnation,
            capacity: namespaces
                .values()
                .map(|one| one.record.bytes())
                .fold(0, u64::saturating_add),
            max_namespaces: namespaces.len() as u32,
        };
        let health = Health::new(now, History::default(), config.settings.temperature);
        Self { drive, namespaces, health, saved: Vec::new(), controllers: 0 }
    }

    /// There is another controller.
    pub fn add_controller(&mut self, id: u16) {
        self.controllers = id;
        for namespace in self.namespaces.values_mut() {
            namespace.attached.insert(id);
        }
    }

    /// The label of the drive.
    pub fn label(&self) -> Label {
        Label { serial: self.drive.serial.clone(), capacity: self.allocated() }
    }

    /// Bytes of all namespaces.
    pub fn allocated(&self) -> u64 {
        self.namespaces.values().map(|one| one.record.bytes()).fold(0, u64::saturating_add)
    }

    /// The namespace `nsid` if it is attached to this controller (NVMe 1.4, section 6.1.4 and
    /// 6.1.5: an inactive NSID is an invalid field, one above NN an invalid namespace).
    pub fn namespace(&self, controller: u16, nsid: u32) -> Result<&Namespace, Failure> {
        match self.namespaces.get(&nsid) {
            Some(namespace) if namespace.attached.contains(&controller) => Ok(namespace),
            _ => Err(self.absent(nsid)),
        }
    }

    /// How a command fails whose NSID is inactive or invalid.
    pub fn absent(&self, nsid: u32) -> Failure {
        match nsid {
            nsid if (1..=self.drive.max_namespaces).contains(&nsid) => {
                Failure::field(StatusCode::INVALID_FIELD, 4, 0)
            }
            _ => Failure::namespace(),
        }
    }

    /// The namespaces attached to a controller, by NSID.
    pub fn attached(&self, controller: u16) -> impl Iterator<Item = (u32, &Namespace)> {
        let attached = move |(_, one): &(&u32, &Namespace)| one.attached.contains(&controller);
        self.namespaces.iter().filter(attached).map(|(nsid, namespace)| (*nsid, namespace))
    }

    /// Whether all media are read-only.
    pub fn is_read_only(&self) -> bool {
        !self.namespaces.is_empty() && self.namespaces.values().all(|one| one.read_only)
    }
}

/// What of it persists.
impl Shared {
    /// Whether hosts may save features.
    pub fn saves(&self) -> bool {
        false
    }

    /// Stores values of features for a command of a controller.
    pub fn save_features(&mut self, _controller: u16, _key: Key, _values: Vec<SavedFeature>) {}
}
