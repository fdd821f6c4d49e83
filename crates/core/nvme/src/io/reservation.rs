//! Reservation Register, Report, Acquire and Release (NVMe 1.4, sections 6.10 to 6.13), for drives
//! with records, because reservations must be able to persist through a loss of power.

use crate::controller::Controller;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::reservation::{Change, Request};
use crate::slots::Key;
use crate::state::{HostId, Registrant};
use crate::subsystem::{ReservationRequest, Shared};
use bytes::Bytes;
use wire::nvme::opcode::nvm;
use wire::nvme::{
    AcquireAction, Command, EXTENDED_STATUS, NO_REGISTERED_CONTROLLER, RELEASE_LENGTH,
    RegisterAction, RegisteredController, RegisteredControllerExtended, ReleaseAction,
    ReservationKeys, ReservationStatus, ReservationType, StatusCode,
};

/// IEKEY, ignore existing key: bit 3 of command dword 10.
const IGNORE_KEY: u32 = 1 << 3;
/// EDS, extended data structure: bit 0 of command dword 11 of Reservation Report.
const EXTENDED: u32 = 1;

/// The action: bits 2:0 of command dword 10.
fn action(command: &Command) -> u32 {
    command.cdw10 & 7
}

/// RTYPE: bits 15:8 of command dword 10.
fn kind(command: &Command) -> u8 {
    (command.cdw10 >> 8) as u8
}

/// CPTPL: bits 31:30 of command dword 10 of Reservation Register.
fn persists(command: &Command) -> Result<Option<bool>, Failure> {
    match command.cdw10 >> 30 {
        0 => Ok(None),
        2 => Ok(Some(false)),
        3 => Ok(Some(true)),
        _ => Err(Failure::cdw(10, 30)),
    }
}

/// The change of a command with these data.
fn change(command: &Command, data: &[u8]) -> Result<Change, Failure> {
    let invalid_action = Failure::cdw(10, 0);
    let ignores = command.cdw10 & IGNORE_KEY != 0;
    let keys = data.try_into().map(ReservationKeys::decode).unwrap_or_default();
    let ReservationKeys { current, other: key } = keys;
    let expected = (!ignores).then_some(current);
    if command.opcode == nvm::RESERVATION_REGISTER {
        return match RegisterAction::from_number(action(command)).ok_or(invalid_action)? {
            RegisterAction::Register => Ok(Change::Register { key }),
            RegisterAction::Unregister => Ok(Change::Unregister { current: expected }),
            RegisterAction::Replace => Ok(Change::Replace { current: expected, key }),
        };
    }
    if ignores {
        return Err(Failure::cdw(10, 3));
    }
    if command.opcode == nvm::RESERVATION_ACQUIRE {
        let action = AcquireAction::from_number(action(command)).ok_or(invalid_action)?;
        let kind = ReservationType::from_number(kind(command)).ok_or(Failure::cdw(10, 8))?;
        return Ok(match action {
            AcquireAction::Acquire => Change::Acquire { current, kind },
            _ => Change::Preempt { current, key, kind },
        });
    }
    let current = data.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    match ReleaseAction::from_number(action(command)).ok_or(invalid_action)? {
        ReleaseAction::Release => Ok(Change::Release { current, kind: kind(command) }),
        ReleaseAction::Clear => Ok(Change::Clear { current }),
    }
}

impl Controller {
    /// The Host Identifier, which reservations need.
    fn host(&self, shared: &Shared) -> Result<HostId, Failure> {
        let host = shared.hosts.of(self.id).cloned();
        host.ok_or(Failure::permanent(StatusCode::HOST_IDENTIFIER_NOT_INITIALIZED))
    }

    pub(super) fn change_reservation(
        &self,
        shared: &Shared,
        command: &Command,
    ) -> Result<Plan, Failure> {
        shared.namespace(self.id, command.nsid)?;
        self.host(shared)?;
        change(command, &[])?;
        if command.opcode == nvm::RESERVATION_RELEASE {
            return Ok(Plan::Receive(RELEASE_LENGTH));
        }
        if command.opcode == nvm::RESERVATION_REGISTER {
            persists(command)?;
        }
        Ok(Plan::Receive(ReservationKeys::LENGTH))
    }

    pub(super) fn keys_received(
        &self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
        data: &[u8],
    ) -> Result<Plan, Failure> {
        let change = change(command, data)?;
        let persists = match command.opcode {
            nvm::RESERVATION_REGISTER => persists(command)?,
            _ => None,
        };
        let aborts = command.opcode == nvm::RESERVATION_ACQUIRE
            && action(command) == AcquireAction::PreemptAndAbort as u32;
        let request = Request { change: Some((self.host(shared)?, change)), persists };
        let (by, nsids) = ((self.id, key), vec![command.nsid]);
        shared.request_reservation(ReservationRequest { by, nsids, request, aborts })
    }

    /// Reservation Report: one structure for each controller of a registrant.
    pub(super) fn report_reservations(
        &self,
        shared: &Shared,
        command: &Command,
    ) -> Result<Plan, Failure> {
        let reservation = &shared.namespace(self.id, command.nsid)?.reservation;
        let extended = command.cdw11 & EXTENDED != 0;
        if self.host(shared)?.is_extended() != extended {
            // Linux tries both, and compares the whole status (`nvme_pr_resv_report`).
            let inconsistent = StatusCode::HOST_IDENTIFIER_INCONSISTENT;
            return Err(Failure::transient(inconsistent).of_probe());
        }
        let length = (u64::from(command.cdw10) + 1) * 4;
        let length = self.within_limit(length).map_err(|_| Failure::cdw(10, 0))?;
        let mut list = Vec::new();
        let mut count = 0;
        for registrant in &reservation.registrants {
            for controller in controllers(shared, &registrant.host) {
                let holds = reservation.is_held_by(&registrant.host);
                list.extend(structure(registrant, controller, holds, extended));
                count += 1;
            }
        }
        let status = ReservationStatus {
            generation: reservation.generation,
            kind: reservation.kind,
            controllers: count,
            persists: reservation.persists,
        };
        let mut page = status.encode().to_vec();
        page.resize(if extended { EXTENDED_STATUS } else { page.len() }, 0);
        page.extend(list);
        // Zeroes follow the structures.
        page.resize(length, 0);
        Ok(Plan::Send(Bytes::from(page)))
    }
}

/// The CNTLIDs of a host's controllers; FFFFh without any.
fn controllers(shared: &Shared, host: &HostId) -> Vec<u16> {
    let ids = (1..=shared.controllers).filter(|id| shared.hosts.of(*id) == Some(host));
    let ids: Vec<u16> = ids.collect();
    if ids.is_empty() { vec![NO_REGISTERED_CONTROLLER] } else { ids }
}

fn structure(registrant: &Registrant, controller: u16, holds: bool, extended: bool) -> Vec<u8> {
    let key = registrant.key;
    let host = registrant.host.bytes();
    if extended {
        let mut one = RegisteredControllerExtended { controller, holds, key, host: [0; 16] };
        one.host[..host.len()].copy_from_slice(host);
        return one.encode().to_vec();
    }
    let host = *host.first_chunk().expect("an identifier has 8 bytes at least");
    RegisteredController { controller, holds, host, key }.encode().to_vec()
}
