//! The rules of reservations (NVMe 1.4, section 8.8; details: NVM Express 2.2, section 8.1.22).

use crate::state::{HostId, Registrant, Reservation};
use wire::nvme::opcode::{admin, nvm};
use wire::nvme::{ReservationNotice, ReservationType, StatusCode};

/// A change of registrations or of the reservation of a namespace. A key `None` disables the check
/// of the host's present key (IEKEY).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Register { key: u64 },
    Unregister { current: Option<u64> },
    Replace { current: Option<u64>, key: u64 },
    Acquire { current: u64, kind: ReservationType },
    Preempt { current: u64, key: u64, kind: ReservationType },
    Release { current: u64, kind: u8 },
    Clear { current: u64 },
}

/// A change by a host, with the parts that are independent of registrations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The host and its change; `None` for Set Features.
    pub change: Option<(HostId, Change)>,
    /// The new Persist Through Power Loss state (CPTPL, or the feature), if it changes.
    pub persists: Option<bool>,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub after: Reservation,
    /// Hosts to notify.
    pub notices: Vec<(HostId, ReservationNotice)>,
    /// Hosts that another host has preempted.
    pub preempted: Vec<HostId>,
}

/// The kind of access of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// The access of an I/O command; `None` if reservations do not affect the command (NVM Express 2.2,
/// figure 647; NVM Command Set 1.0, section 5.6).
pub(crate) fn io_access(opcode: u8) -> Option<Access> {
    match opcode {
        nvm::READ | nvm::COMPARE | nvm::VERIFY => Some(Access::Read),
        nvm::FLUSH
        | nvm::WRITE
        | nvm::WRITE_UNCORRECTABLE
        | nvm::WRITE_ZEROES
        | nvm::DATASET_MANAGEMENT
        | nvm::COPY => Some(Access::Write),
        _ => None,
    }
}

/// Whether the I/O command is a reservation command.
pub(crate) fn is_reservation(opcode: u8) -> bool {
    matches!(
        opcode,
        nvm::RESERVATION_REGISTER
            | nvm::RESERVATION_REPORT
            | nvm::RESERVATION_ACQUIRE
            | nvm::RESERVATION_RELEASE
    )
}

/// As [`io_access`], for an admin command.
pub(crate) fn admin_access(opcode: u8) -> Option<Access> {
    match opcode {
        admin::SECURITY_RECEIVE => Some(Access::Read),
        admin::FORMAT
        | admin::NAMESPACE_ATTACHMENT
        | admin::NAMESPACE_MANAGEMENT
        | admin::SANITIZE
        | admin::SECURITY_SEND => Some(Access::Write),
        _ => None,
    }
}

/// Whether all registrants are holders of a reservation of this type.
pub(crate) fn is_of_all(kind: ReservationType) -> bool {
    use ReservationType::{ExclusiveAccessAllRegistrants, WriteExclusiveAllRegistrants};
    matches!(kind, WriteExclusiveAllRegistrants | ExclusiveAccessAllRegistrants)
}

/// Whether only the holder has access, not all registrants.
fn is_of_holder(kind: ReservationType) -> bool {
    matches!(kind, ReservationType::WriteExclusive | ReservationType::ExclusiveAccess)
}

/// Whether a reservation of this type also excludes reads.
fn excludes_reads(kind: ReservationType) -> bool {
    use ReservationType::{
        ExclusiveAccess, ExclusiveAccessAllRegistrants, ExclusiveAccessRegistrantsOnly,
    };
    matches!(kind, ExclusiveAccess | ExclusiveAccessRegistrantsOnly | ExclusiveAccessAllRegistrants)
}

impl Reservation {
    /// Whether the reservation permits an access by a host (figure 646); `None` for a host without
    /// identifier.
    pub(crate) fn permits(&self, host: Option<&HostId>, access: Access) -> bool {
        let Some(kind) = self.kind() else { return true };
        let registered = host.is_some_and(|host| self.key_of(host).is_some());
        let holds = host.is_some_and(|host| self.is_held_by(host));
        let excluded = access == Access::Write || excludes_reads(kind);
        !excluded || holds || registered && !is_of_holder(kind)
    }

    /// Whether the host holds the reservation.
    pub(crate) fn is_held_by(&self, host: &HostId) -> bool {
        match self.kind() {
            Some(kind) if is_of_all(kind) => self.key_of(host).is_some(),
            _ => self.holder.as_ref() == Some(host),
        }
    }

    /// The result of a request.
    pub(crate) fn apply(&self, request: &Request) -> Result<Outcome, StatusCode> {
        let (notices, preempted) = (Vec::new(), Vec::new());
        let mut outcome = Outcome { after: self.clone(), notices, preempted };
        if let Some((host, change)) = &request.change {
            outcome.change(self, host, *change)?;
        }
        outcome.after.persists = request.persists.unwrap_or(self.persists);
        Ok(outcome)
    }

    /// Fails unless the host is a registrant with this key.
    fn check_key(&self, host: &HostId, key: u64) -> Result<(), StatusCode> {
        match self.key_of(host) {
            Some(current) if current == key => Ok(()),
            _ => Err(StatusCode::RESERVATION_CONFLICT),
        }
    }

    fn set_key(&mut self, host: &HostId, key: u64) {
        let registrant = Registrant { host: host.clone(), key };
        match self.registrants.binary_search_by(|one| one.host.cmp(host)) {
            Ok(at) => self.registrants[at] = registrant,
            Err(at) => self.registrants.insert(at, registrant),
        }
    }

    fn hold(&mut self, host: &HostId, kind: ReservationType) {
        self.kind = kind as u8;
        self.holder = (!is_of_all(kind)).then(|| host.clone());
    }

    fn release(&mut self) {
        (self.kind, self.holder) = (0, None);
    }

    /// Removes registrants. Releases the reservation if no holder is left.
    fn remove(&mut self, goes: impl Fn(&Registrant) -> bool) -> Vec<HostId> {
        let gone = self.registrants.extract_if(.., |one| goes(one)).map(|one| one.host).collect();
        let lost = |holder: &HostId| self.key_of(holder).is_none();
        if self.registrants.is_empty() || self.holder.as_ref().is_some_and(lost) {
            self.release();
        }
        gone
    }
}

impl Outcome {
    /// Applies a change by `host` to the state `before`, which `after` equals.
    fn change(
        &mut self,
        before: &Reservation,
        host: &HostId,
        change: Change,
    ) -> Result<(), StatusCode> {
        let after = &mut self.after;
        let conflict = StatusCode::RESERVATION_CONFLICT;
        match change {
            Change::Register { key } => {
                if before.key_of(host).is_some_and(|current| current != key) {
                    return Err(conflict);
                }
                after.set_key(host, key);
            }
            Change::Replace { current, key } => {
                current.map_or(Ok(()), |current| before.check_key(host, current))?;
                after.set_key(host, key);
            }
            Change::Unregister { current } => {
                current.map_or(Ok(()), |current| before.check_key(host, current))?;
                after.remove(|one| one.host == *host);
                // Registrants of other types notice no difference (NVM Express 2.2).
                if before.kind().is_some_and(|kind| !is_of_holder(kind) && !is_of_all(kind)) {
                    self.notify_release(before, host);
                }
            }
            Change::Acquire { current, kind } => {
                before.check_key(host, current)?;
                match before.kind() {
                    None => after.hold(host, kind),
                    Some(held) if held == kind && before.is_held_by(host) => {}
                    Some(_) => return Err(conflict),
                }
            }
            Change::Preempt { current, key, kind } => {
                before.check_key(host, current)?;
                self.preempt(before, host, key, kind)?;
            }
            Change::Release { current, kind } => {
                before.check_key(host, current)?;
                if !before.is_held_by(host) {
                    return Ok(());
                }
                if before.kind != kind {
                    return Err(StatusCode::INVALID_FIELD);
                }
                after.release();
                if before.kind().is_some_and(|kind| !is_of_holder(kind)) {
                    self.notify_release(before, host);
                }
            }
            Change::Clear { current } => {
                before.check_key(host, current)?;
                let others = after.remove(|_| true).into_iter().filter(|other| other != host);
                let notice = ReservationNotice::ReservationPreempted;
                self.notices.extend(others.map(|other| (other, notice)));
            }
        }
        if !matches!(change, Change::Acquire { .. } | Change::Release { .. }) {
            self.after.generation = before.generation.wrapping_add(1);
        }
        Ok(())
    }

    /// Preempts the reservation, or the registrants with this key (NVM Express 2.2, "Preempting a
    /// Reservation or Registration").
    fn preempt(
        &mut self,
        before: &Reservation,
        host: &HostId,
        key: u64,
        kind: ReservationType,
    ) -> Result<(), StatusCode> {
        let after = &mut self.after;
        let all = before.kind().is_some_and(is_of_all);
        let holder_key = before.holder.as_ref().and_then(|holder| before.key_of(holder));
        let takes = if all { key == 0 } else { holder_key == Some(key) };
        let goes = |one: &Registrant| match (takes, all) {
            (true, true) => one.host != *host,
            (true, false) => one.host != *host && one.key == key,
            (false, _) => one.key == key,
        };
        if !takes && before.kind != 0 {
            if key == 0 {
                return Err(StatusCode::INVALID_FIELD);
            }
            if all && !before.registrants.iter().any(goes) {
                return Err(StatusCode::RESERVATION_CONFLICT);
            }
        }
        self.preempted = after.remove(goes);
        self.preempted.retain(|other| other != host);
        if takes {
            after.hold(host, kind);
        }
        let notice = ReservationNotice::RegistrationPreempted;
        self.notices.extend(self.preempted.iter().map(|other| (other.clone(), notice)));
        self.notify_release(before, host);
        Ok(())
    }

    /// Notifies the remaining registrants other than `host` if the type of the reservation has
    /// changed.
    fn notify_release(&mut self, before: &Reservation, host: &HostId) {
        if before.kind != 0 && self.after.kind != before.kind {
            let others = self.after.registrants.iter().filter(|one| one.host != *host);
            let notice = ReservationNotice::ReservationReleased;
            self.notices.extend(others.map(|one| (one.host.clone(), notice)));
        }
    }
}
