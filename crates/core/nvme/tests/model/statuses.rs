//! The statuses with which commands may end, for a state of the namespaces.

use super::case::{Admin, Io, IoOp};
use nvme::state::{SanitizePhase, State};
use std::collections::{BTreeMap, BTreeSet};
use wire::nvme::StatusCode;

/// NN of the drives.
pub const NAMESPACES: u32 = 4;

pub type Statuses = BTreeSet<StatusCode>;

#[derive(Clone, Copy, Debug)]
pub struct Namespace {
    pub blocks: u64,
    pub shift: u8,
    pub attached: bool,
    pub protected: bool,
}

impl Namespace {
    pub fn bytes(&self) -> u64 {
        self.blocks << self.shift
    }
}

/// The state of a drive that determines the statuses.
#[derive(Clone, Debug)]
pub struct Drive {
    pub namespaces: BTreeMap<u32, Namespace>,
    pub capacity: u64,
    pub sanitize: Option<SanitizePhase>,
}

impl Drive {
    pub fn from_state(state: &State) -> Self {
        let namespace = |(nsid, one): (&u32, &nvme::state::Namespace)| {
            let attached = state.attachments.contains_key(nsid);
            let (blocks, shift, protected) = (one.blocks, one.block_shift, one.write_protected);
            (*nsid, Namespace { blocks, shift, attached, protected })
        };
        Self {
            namespaces: state.namespaces.iter().map(namespace).collect(),
            capacity: state.drive.capacity,
            sanitize: state.sanitize.map(|sanitize| sanitize.phase),
        }
    }

    pub fn active(&self, nsid: u32) -> Option<&Namespace> {
        self.namespaces.get(&nsid).filter(|one| one.attached)
    }

    fn sanitize_error(&self) -> Option<StatusCode> {
        match self.sanitize? {
            SanitizePhase::Running => Some(StatusCode::SANITIZE_IN_PROGRESS),
            SanitizePhase::Failed => Some(StatusCode::SANITIZE_FAILED),
            SanitizePhase::Completed | SanitizePhase::Left => None,
        }
    }

    /// The statuses of an I/O command, regardless of the contents of the blocks.
    pub fn io(&self, io: &Io) -> Statuses {
        let mut errors: Statuses = self.sanitize_error().into_iter().collect();
        let changes =
            !matches!(io.op, IoOp::Read | IoOp::Flush | IoOp::Verify | IoOp::Compare { .. });
        match self.active(io.nsid) {
            _ if io.op == IoOp::FlushAll => {}
            None if (1..=NAMESPACES).contains(&io.nsid) => {
                errors.insert(StatusCode::INVALID_FIELD);
            }
            None => {
                errors.insert(StatusCode::INVALID_NAMESPACE);
            }
            Some(one) => {
                let to = if let IoOp::Copy(to) = io.op { to } else { io.slba };
                let last = to.max(io.slba) + u64::from(io.blocks);
                if last > one.blocks && io.op != IoOp::Flush {
                    errors.insert(StatusCode::LBA_OUT_OF_RANGE);
                }
                if one.protected && changes {
                    errors.insert(StatusCode::NAMESPACE_WRITE_PROTECTED);
                }
            }
        }
        or_success(errors)
    }

    /// The statuses of an admin command. `busy` states whether I/O commands were outstanding at the
    /// same time.
    pub fn admin(&self, admin: Admin, busy: bool) -> Statuses {
        let mut errors = Statuses::new();
        let find = |nsid: u32| self.namespaces.get(&nsid);
        let mut refuse = |code, when: bool| {
            if when {
                errors.insert(code);
            }
        };
        use StatusCode as Code;
        match admin {
            Admin::Create { kib, .. } => {
                let used: u64 = self.namespaces.values().map(Namespace::bytes).sum();
                refuse(Code::INSUFFICIENT_CAPACITY, used + (kib << 10) > self.capacity);
                refuse(Code::NAMESPACE_ID_UNAVAILABLE, self.free_nsid().is_none());
            }
            Admin::Delete(nsid) => refuse(Code::INVALID_FIELD, find(nsid).is_none()),
            Admin::Attach(nsid) | Admin::Detach(nsid) => {
                let attached = find(nsid).map(|one| one.attached);
                let attach = admin == Admin::Attach(nsid);
                refuse(Code::INVALID_FIELD, attached.is_none());
                refuse(Code::NAMESPACE_ALREADY_ATTACHED, attach && attached == Some(true));
                refuse(Code::NAMESPACE_NOT_ATTACHED, !attach && attached == Some(false));
            }
            Admin::Format(nsid, _) => {
                let one = self.active(nsid);
                refuse(Code::INVALID_FIELD, one.is_none());
                refuse(Code::NAMESPACE_WRITE_PROTECTED, one.is_some_and(|one| one.protected));
            }
            Admin::Protect(nsid, _) => refuse(Code::INVALID_FIELD, self.active(nsid).is_none()),
            Admin::Sanitize => {
                let protected = self.namespaces.values().any(|one| one.protected);
                refuse(Code::NAMESPACE_WRITE_PROTECTED, protected);
            }
            Admin::LeaveFailure => {}
        }
        let running = self.sanitize == Some(SanitizePhase::Running);
        let restarts = matches!(admin, Admin::Sanitize | Admin::LeaveFailure);
        if let Some(error) = self.sanitize_error().filter(|_| running || !restarts) {
            // During a sanitize operation Set Features is allowed, but the change of the namespace
            // is not. After a failed operation both are allowed.
            if !matches!(admin, Admin::Protect(..)) {
                errors.insert(error);
            } else if running {
                errors.insert(Code::COMMAND_INTERRUPTED);
            }
        }
        let mut statuses = or_success(errors);
        if busy && matches!(admin, Admin::Format(..)) {
            statuses.insert(Code::COMMAND_SEQUENCE_ERROR);
        }
        statuses
    }

    pub fn free_nsid(&self) -> Option<u32> {
        (1..=NAMESPACES).find(|nsid| !self.namespaces.contains_key(nsid))
    }

    /// The drive after a successful admin command.
    pub fn after(&self, admin: Admin) -> Self {
        let mut drive = self.clone();
        let namespaces = &mut drive.namespaces;
        match admin {
            Admin::Create { kib, shift } => {
                let blocks = (kib << 10) >> shift;
                let one = Namespace { blocks, shift, attached: false, protected: false };
                namespaces.extend(self.free_nsid().map(|nsid| (nsid, one)));
            }
            Admin::Delete(nsid) => {
                namespaces.remove(&nsid);
            }
            Admin::Attach(nsid) | Admin::Detach(nsid) => {
                let one = namespaces.get_mut(&nsid);
                one.into_iter().for_each(|one| one.attached = admin == Admin::Attach(nsid));
            }
            Admin::Format(nsid, shift) => {
                if let Some(one) = namespaces.get_mut(&nsid) {
                    (one.blocks, one.shift) = (one.bytes() >> shift, shift);
                }
            }
            Admin::Protect(nsid, protect) => {
                namespaces.get_mut(&nsid).into_iter().for_each(|one| one.protected = protect);
            }
            Admin::Sanitize => drive.sanitize = Some(SanitizePhase::Running),
            Admin::LeaveFailure => {
                let failed = drive.sanitize == Some(SanitizePhase::Failed);
                drive.sanitize = if failed { Some(SanitizePhase::Left) } else { drive.sanitize };
            }
        }
        drive
    }
}

fn or_success(errors: Statuses) -> Statuses {
    if errors.is_empty() { Statuses::from([StatusCode::SUCCESS]) } else { errors }
}

/// The statuses of a command whose media fail with `error`.
pub fn of_fault(error: nvme::block::Error) -> Statuses {
    use nvme::block::Error;
    match error {
        Error::Media => {
            Statuses::from([StatusCode::UNRECOVERED_READ_ERROR, StatusCode::WRITE_FAULT])
        }
        Error::ReadOnly => Statuses::from([StatusCode::WRITE_TO_READ_ONLY_RANGE]),
        Error::NoSpace => Statuses::from([StatusCode::CAPACITY_EXCEEDED]),
        Error::NotReady => Statuses::from([StatusCode::NAMESPACE_NOT_READY]),
        Error::Internal => Statuses::from([StatusCode::INTERNAL_ERROR]),
    }
}
