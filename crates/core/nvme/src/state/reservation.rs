//! The record `reservations`: registrations and reservations of namespaces.

use super::check::{self, Check, Problem};
use super::hex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wire::nvme::{ReservationType, feature::HOST_IDENTIFIER_LENGTH};

/// The maximum number of registrants of all namespaces of a drive together, which limits the size
/// of the record.
pub const MAX_REGISTRANTS: usize = 4096;

/// The registrations of all namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservations {
    /// The number of power cycles when the record was stored. Later power cycles have lost the
    /// registrations that do not persist.
    pub power_cycle: u128,
    /// By NSID. Namespaces that no host has used with reservations have no entry.
    pub namespaces: BTreeMap<u32, Reservation>,
}

/// The registrations of a namespace, and the reservation (NVMe 1.4, section 8.8).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    /// PTPL: registrations and reservation persist through a loss of power.
    pub persists: bool,
    /// The number of changes of registrations, modulo 2^32.
    pub generation: u32,
    /// Type of the reservation, a [`ReservationType`]; 0 without a reservation.
    pub kind: u8,
    /// The holder of the reservation; `None` if there is no reservation, or if all registrants are
    /// holders.
    pub holder: Option<HostId>,
    /// The registrants, one entry per host, in ascending order.
    pub registrants: Vec<Registrant>,
}

/// A host that has registered a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registrant {
    /// The Host Identifier.
    pub host: HostId,
    /// The key.
    #[serde(with = "hex::number")]
    pub key: u64,
}

/// A Host Identifier of 8 or 16 bytes other than 0, as in the data of the feature.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostId(#[serde(with = "hex::bytes")] Vec<u8>);

impl HostId {
    /// The identifier with these 8 or 16 bytes; `None` for zeroes or another number of bytes.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let valid = HOST_IDENTIFIER_LENGTH.contains(&bytes.len());
        (valid && bytes.iter().any(|byte| *byte != 0)).then(|| Self(bytes.to_vec()))
    }

    /// Whether the identifier has 128 bits (EXHID).
    pub(crate) fn is_extended(&self) -> bool {
        self.0.len() == HOST_IDENTIFIER_LENGTH[1]
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Reservation {
    /// The type of the reservation, if there is one.
    pub fn kind(&self) -> Option<ReservationType> {
        ReservationType::from_number(self.kind)
    }

    /// The key of a host; `None` if the host is not a registrant.
    pub fn key_of(&self, host: &HostId) -> Option<u64> {
        let at = self.registrants.binary_search_by(|one| one.host.cmp(host)).ok()?;
        Some(self.registrants[at].key)
    }

    /// What a loss of power leaves.
    pub(crate) fn after_power_loss(self) -> Self {
        if self.persists { self } else { Self::default() }
    }
}

impl Reservations {
    /// Number of registrants of all namespaces.
    pub(crate) fn registrants(&self) -> usize {
        self.namespaces.values().map(|one| one.registrants.len()).sum()
    }
}

impl Check for Reservations {
    fn check(&self) -> Result<(), Problem> {
        check::range("number of registrants", self.registrants(), 0, MAX_REGISTRANTS)?;
        self.namespaces.iter().try_for_each(|(nsid, one)| {
            one.check().map_err(|problem| format!("NSID {nsid}: {problem}"))
        })
    }
}

impl Check for Reservation {
    fn check(&self) -> Result<(), Problem> {
        check::range("kind", self.kind, 0, ReservationType::ALL.len() as u8)?;
        if !self.registrants.is_sorted_by(|one, next| one.host < next.host) {
            return Err("registrants: expected ascending hosts".to_owned());
        }
        let hosts = self.registrants.iter().map(|one| &one.host);
        if let Some(host) = hosts.chain(&self.holder).find(|host| HostId::new(&host.0).is_none()) {
            let found = host.bytes().len();
            return Err(format!(
                "host: invalid value of {found} bytes: expected 8 or 16 bytes, not all 0"
            ));
        }
        let all = self.kind().is_none_or(crate::reservation::is_of_all);
        if all != self.holder.is_none() {
            return Err(format!("holder: does not match kind {}", self.kind));
        }
        match &self.holder {
            Some(holder) if self.key_of(holder).is_none() => {
                Err("holder: expected a registrant".to_owned())
            }
            None if self.kind != 0 && self.registrants.is_empty() => {
                Err(format!("kind: '{}' needs a registrant", self.kind))
            }
            _ => Ok(()),
        }
    }
}
