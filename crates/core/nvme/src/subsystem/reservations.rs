//! Reservations: the hosts of the controllers, and the order of changes.
//!
//! Changes take effect one after the other, each when its record is stored. So each change sees the
//! effects of earlier changes, and a failed store undoes only its own change.

use super::store::Change;
use super::{Shared, Subsystem};
use crate::failure::Failure;
use crate::plan::Plan;
use crate::reservation::{Access, Outcome, Request, admin_access, io_access};
use crate::slots::Key;
use crate::state::{HostId, MAX_REGISTRANTS, Reservation, Reservations, reservations_record};
use std::collections::{BTreeMap, VecDeque};
use wire::Instant;
use wire::nvme::opcode::admin;
use wire::nvme::{BROADCAST_NSID, Command, StatusCode};

/// The maximum number of commands that wait for earlier changes. With the commands that change
/// other records, the record `done` has room for all of them.
const MOST_WAITING: usize = 15;

/// A request of a command for one or several namespaces.
#[derive(Clone, Debug)]
pub(crate) struct ReservationRequest {
    /// The controller and the command.
    pub by: (u16, Key),
    pub nsids: Vec<u32>,
    pub request: Request,
    /// Whether commands of preempted hosts are aborted.
    pub aborts: bool,
}

/// A change of reservations to store.
#[derive(Clone, Debug)]
pub(crate) struct ReservationChange {
    outcomes: BTreeMap<u32, Outcome>,
    aborts: bool,
}

/// A command that completes when these commands have ended.
#[derive(Debug)]
struct Abort {
    by: (u16, Key),
    left: Vec<(u16, Key)>,
}

/// Hosts, and commands that wait.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// Host Identifiers that the owner of the subsystem has bound, by CNTLID.
    bound: BTreeMap<u16, HostId>,
    /// Host Identifiers that hosts have set, by CNTLID.
    set: BTreeMap<u16, HostId>,
    waiting: VecDeque<ReservationRequest>,
    aborts: Vec<Abort>,
}

impl Hosts {
    /// The host of a controller; `None` without a Host Identifier.
    pub(crate) fn of(&self, controller: u16) -> Option<&HostId> {
        self.bound(controller).or(self.set.get(&controller))
    }

    /// The Host Identifier that the owner of the subsystem has bound.
    pub(crate) fn bound(&self, controller: u16) -> Option<&HostId> {
        self.bound.get(&controller)
    }

    /// The Host Identifier that the host has set.
    pub(crate) fn set_by_host(&self, controller: u16) -> Option<&HostId> {
        self.set.get(&controller)
    }

    /// Binds a Host Identifier, or ends the binding.
    pub(super) fn bind(&mut self, controller: u16, host: Option<HostId>) {
        replace(&mut self.bound, controller, host);
    }

    /// Sets the Host Identifier for the host.
    pub(crate) fn set(&mut self, controller: u16, host: Option<HostId>) {
        replace(&mut self.set, controller, host);
    }

    /// Handles the reset of a controller, which drops its commands and its Host Identifier.
    pub(crate) fn reset(&mut self, controller: u16) {
        self.set.remove(&controller);
        self.waiting.retain(|request| request.by.0 != controller);
        self.aborts.retain(|abort| abort.by.0 != controller);
        for abort in &mut self.aborts {
            abort.left.retain(|(id, _)| *id != controller);
        }
    }

    /// Handles the end of a command.
    pub(crate) fn ended(&mut self, command: (u16, Key)) {
        self.aborts.retain(|abort| abort.by != command);
        for abort in &mut self.aborts {
            abort.left.retain(|left| *left != command);
        }
    }

    /// A command of this controller whose aborted commands have all ended.
    pub(crate) fn next_aborted(&mut self, controller: u16) -> Option<Key> {
        let done = |abort: &Abort| abort.by.0 == controller && abort.left.is_empty();
        let at = self.aborts.iter().position(done)?;
        Some(self.aborts.remove(at).by.1)
    }
}

fn replace(hosts: &mut BTreeMap<u16, HostId>, controller: u16, host: Option<HostId>) {
    match host {
        Some(host) => hosts.insert(controller, host),
        None => hosts.remove(&controller),
    };
}

/// The failure of a request or access. A conflict has no DNR, because reservations change. Linux
/// compares the whole status with Reservation Conflict (`nvme_sc_to_pr_err`).
fn failure(code: StatusCode) -> Failure {
    match code {
        StatusCode::RESERVATION_CONFLICT => Failure::transient(code),
        code => Failure::permanent(code),
    }
}

impl Shared {
    /// Whether another controller, or a registrant, has a Host Identifier of the other length than
    /// `host`.
    pub(crate) fn is_inconsistent(&self, controller: u16, host: &HostId) -> bool {
        let hosts = self.hosts.bound.iter().chain(&self.hosts.set);
        let others = hosts.filter(|(id, _)| **id != controller).map(|(_, other)| other);
        let registrants = self.namespaces.values().flat_map(|one| &one.reservation.registrants);
        let mut all = others.chain(registrants.map(|one| &one.host));
        all.any(|other| other.is_extended() != host.is_extended())
    }

    /// Fails if a reservation forbids an I/O command.
    pub(crate) fn check_io(&self, controller: u16, command: &Command) -> Result<(), Failure> {
        let Some(access) = io_access(command.opcode) else { return Ok(()) };
        if command.nsid != BROADCAST_NSID {
            // Other checks find a namespace that does not exist.
            let namespace = self.namespace(controller, command.nsid).ok();
            return namespace.map_or(Ok(()), |one| self.permit(controller, access, one));
        }
        self.attached(controller).try_for_each(|(_, one)| self.permit(controller, access, one))
    }

    /// Fails if a reservation forbids an admin command. Sanitize affects every namespace.
    pub(crate) fn check_admin(&self, controller: u16, command: &Command) -> Result<(), Failure> {
        let Some(access) = admin_access(command.opcode) else { return Ok(()) };
        let all = command.opcode == admin::SANITIZE || command.nsid == BROADCAST_NSID;
        let only_attached = command.opcode == admin::FORMAT;
        let affected = self.namespaces.iter().filter(|(nsid, one)| {
            (all || **nsid == command.nsid)
                && (!only_attached || one.attached.contains(&controller))
        });
        affected.map(|(_, one)| one).try_for_each(|one| self.permit(controller, access, one))
    }

    fn permit(
        &self,
        controller: u16,
        access: Access,
        namespace: &crate::namespace::Namespace,
    ) -> Result<(), Failure> {
        match namespace.reservation.permits(self.hosts.of(controller), access) {
            true => Ok(()),
            false => Err(failure(StatusCode::RESERVATION_CONFLICT)),
        }
    }

    /// Executes a request, or queues it behind earlier ones.
    pub(crate) fn request_reservation(
        &mut self,
        request: ReservationRequest,
    ) -> Result<Plan, Failure> {
        if self.changes_reservations() || !self.hosts.waiting.is_empty() {
            if self.hosts.waiting.len() >= MOST_WAITING {
                return Err(Failure::transient(StatusCode::COMMAND_INTERRUPTED));
            }
            self.hosts.waiting.push_back(request);
            return Ok(Plan::Wait);
        }
        Ok(if self.begin_reservation(request)? { Plan::Wait } else { Plan::Done(0) })
    }

    /// Whether a change of reservations is not stored yet.
    fn changes_reservations(&self) -> bool {
        let mut waiting = self.store.iter().flat_map(|store| store.waiting());
        waiting.any(|change| matches!(change, Change::Reservations { .. }))
    }

    /// Begins to store the result of a request. Returns `false` if nothing changes.
    fn begin_reservation(&mut self, request: ReservationRequest) -> Result<bool, Failure> {
        let ReservationRequest { by, nsids, request, aborts } = request;
        let mut outcomes = BTreeMap::new();
        for nsid in nsids {
            let before = &self.namespace(by.0, nsid)?.reservation;
            let outcome = before.apply(&request).map_err(failure)?;
            if outcome.after != *before {
                outcomes.insert(nsid, outcome);
            }
        }
        let changes = !outcomes.is_empty();
        if changes {
            let change = ReservationChange { outcomes, aborts };
            let [before, after] = [self.reservations(), self.reservations_with(&change)];
            if after.registrants() > before.registrants().max(MAX_REGISTRANTS) {
                return Err(Failure::permanent(StatusCode::OPERATION_DENIED));
            }
            let store = self.store.as_mut().expect("reservations need records");
            store.push(Change::Reservations { by, change });
        }
        Ok(changes)
    }

    /// The reservations of all namespaces, for the record.
    pub(crate) fn reservations(&self) -> Reservations {
        let used = |one: &&Reservation| **one != Reservation::default();
        let all = self.namespaces.iter().map(|(nsid, one)| (*nsid, &one.reservation));
        let namespaces = all.filter(|(_, one)| used(one)).map(|(nsid, one)| (nsid, one.clone()));
        let power_cycle = self.health.history().power_cycles;
        Reservations { power_cycle, namespaces: namespaces.collect() }
    }

    /// The reservations after a change. Ignores namespaces that were deleted.
    pub(super) fn reservations_with(&self, change: &ReservationChange) -> Reservations {
        let mut all = self.reservations();
        let exists = |nsid: &u32| self.namespaces.contains_key(nsid);
        for (nsid, outcome) in change.outcomes.iter().filter(|(nsid, _)| exists(nsid)) {
            all.namespaces.insert(*nsid, outcome.after.clone());
        }
        all
    }

    /// The record without the reservations of these namespaces; `None` if they have none.
    pub(super) fn record_without_reservations(
        &self,
        nsids: &[u32],
    ) -> Option<(String, Option<Vec<u8>>)> {
        let mut all = self.reservations();
        let before = all.namespaces.len();
        all.namespaces.retain(|nsid, _| !nsids.contains(nsid));
        (all.namespaces.len() < before).then(|| reservations_record(&all))
    }

    /// Applies a change that was stored.
    pub(super) fn apply_reservations(&mut self, change: &ReservationChange) {
        for (nsid, outcome) in &change.outcomes {
            if let Some(namespace) = self.namespaces.get_mut(nsid) {
                namespace.reservation = outcome.after.clone();
            }
        }
    }
}

impl Subsystem {
    /// Handles the result of storing a change by a command: notifies hosts, aborts the commands of
    /// preempted hosts, completes the command, and begins the next request.
    pub(super) fn reservations_stored(
        &mut self,
        now: Instant,
        by: (u16, Key),
        change: &ReservationChange,
        stored: bool,
    ) {
        self.controllers.iter_mut().for_each(|controller| controller.now = now);
        let result = match stored {
            true => Ok(self.take_effect(by, change)),
            false => Err(Failure::transient(StatusCode::INTERNAL_ERROR)),
        };
        match result {
            Ok(left) if left.is_empty() => self.end_reservation(by, Ok(())),
            Ok(left) => self.shared.hosts.aborts.push(Abort { by, left }),
            Err(failure) => self.end_reservation(by, Err(failure)),
        }
        while let Some(request) = self.shared.hosts.waiting.pop_front() {
            let by = request.by;
            // The command may have been aborted.
            if !self.controllers[usize::from(by.0) - 1].is_under_way(by.1) {
                continue;
            }
            match self.shared.begin_reservation(request) {
                Ok(true) => return,
                Ok(false) => self.end_reservation(by, Ok(())),
                Err(failure) => self.end_reservation(by, Err(failure)),
            }
        }
    }

    fn end_reservation(&mut self, (id, key): (u16, Key), result: Result<(), Failure>) {
        let controller = &mut self.controllers[usize::from(id) - 1];
        match result {
            Ok(()) => controller.resume(&mut self.shared, key),
            Err(failure) => controller.fail(&mut self.shared, key, failure),
        }
    }

    /// Notifies hosts of a stored change, and aborts commands. Returns the commands that have not
    /// ended yet.
    fn take_effect(&mut self, by: (u16, Key), change: &ReservationChange) -> Vec<(u16, Key)> {
        let mut left = Vec::new();
        for controller in &mut self.controllers {
            let id = controller.id;
            let Some(host) = self.shared.hosts.of(id).cloned() else { continue };
            for (nsid, outcome) in &change.outcomes {
                let own = outcome.notices.iter().filter(|(other, _)| *other == host);
                if self.shared.namespace(id, *nsid).is_ok() {
                    own.for_each(|(_, notice)| controller.notify_reservation(*nsid, *notice));
                }
                if change.aborts && outcome.preempted.contains(&host) {
                    let keys = controller.abort_preempted(&mut self.shared, *nsid);
                    left.extend(keys.into_iter().map(|key| (id, key)));
                }
            }
        }
        left.retain(|command| *command != by);
        left
    }
}
