//! Sanitize operations under way (NVMe 1.4, section 8.15): all namespaces, one request for the
//! media after the other.

use super::Shared;
use super::store::Change;
use crate::admin::SanitizePlan as Plan;
use crate::block::{self, Operation};
use crate::slots::Key;
use crate::state::{Sanitize, SanitizePhase};
use bytes::Bytes;
use std::collections::VecDeque;
use wire::nvme::{NO_ESTIMATE, SanitizeStatus, sanitize_status};

/// Bytes that one request zeroes or deallocates.
const RANGE: u64 = 16 << 20;
/// Bytes that one request overwrites: whole blocks of any size.
const WRITE: u64 = 128 << 10;

/// What is done to a whole namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Work {
    Zero,
    /// With a pattern, in a pass from 0.
    Overwrite {
        pattern: u32,
        pass: u8,
    },
    Discard,
    Flush,
}

/// A sanitize operation under way.
#[derive(Debug)]
pub(crate) struct Erase {
    /// What is left to do, with NSID and bytes of the namespace; the first is under way.
    work: VecDeque<(u32, u64, Work)>,
    /// Bytes of the first that are done.
    at: u64,
    /// Bytes that the request under way covers, and its number.
    request: Option<(u64, u64)>,
    requests: u64,
    /// Bytes done and bytes in all, each pass counted.
    done: u128,
    total: u128,
}

impl Erase {
    /// Begins an operation, also one that a loss of power has interrupted.
    fn new(sanitize: &Sanitize, namespaces: &[(u32, u64)]) -> Self {
        let plan = Plan::from_command(sanitize.command);
        let mut all: Vec<Work> = match plan.overwrites {
            0 => vec![Work::Zero],
            count => (0..count).map(|pass| overwrite(sanitize, plan, pass)).collect(),
        };
        if plan.deallocates {
            all.push(Work::Discard);
        }
        all.push(Work::Flush);
        let of_all =
            |work: Work| namespaces.iter().map(move |(nsid, bytes)| (*nsid, *bytes, work.clone()));
        let work: VecDeque<_> = all.into_iter().flat_map(of_all).collect();
        let total = work.iter().map(|(_, bytes, work)| size(*bytes, work)).sum();
        Self { work, at: 0, request: None, requests: 0, done: 0, total }
    }

    /// SPROG.
    fn progress(&self) -> u16 {
        let fraction = (self.done << 16) / self.total.max(1);
        fraction.min(u128::from(u16::MAX - 1)) as u16
    }

    /// The next request, if none is under way and something is left.
    fn next(&mut self) -> Option<block::Request> {
        if self.request.is_some() {
            return None;
        }
        let (nsid, bytes, work) = self.work.front()?;
        let (nsid, offset, left) = (*nsid, self.at, bytes - self.at);
        let (operation, length) = match work {
            Work::Zero => {
                let length = left.min(RANGE);
                (Operation::WriteZeroes { offset, length }, length)
            }
            Work::Discard => {
                let length = left.min(RANGE);
                (Operation::Discard { offset, length }, length)
            }
            Work::Overwrite { pattern, .. } => {
                let length = left.min(WRITE);
                let data = Bytes::from(pattern.to_le_bytes().repeat(length as usize / 4));
                (Operation::Write { offset, data }, length)
            }
            Work::Flush => (Operation::Flush, left),
        };
        self.requests += 1;
        let id = self.requests << 32;
        self.request = Some((length, id));
        Some(block::Request { id, command: None, nsid, operation })
    }

    /// The request under way is done.
    fn advance(&mut self) {
        let Some((length, _)) = self.request.take() else { return };
        let Some((_, bytes, work)) = self.work.front() else { return };
        self.done += size(length, work);
        self.at += length;
        if self.at == *bytes {
            self.work.pop_front();
            self.at = 0;
        }
    }

    /// Passes of an overwrite that are complete.
    fn passes(&self, plan: Plan) -> u8 {
        match self.work.front() {
            Some((_, _, Work::Overwrite { pass, .. })) => *pass,
            _ => plan.overwrites,
        }
    }
}

/// Bytes that count for the progress: a flush covers a namespace at once.
fn size(bytes: u64, work: &Work) -> u128 {
    if *work == Work::Flush { 0 } else { bytes.into() }
}

/// A pass: OIPBP inverts the pattern from one to the next (figure 329).
fn overwrite(sanitize: &Sanitize, plan: Plan, pass: u8) -> Work {
    let inverts = plan.inverts && pass % 2 == 1;
    Work::Overwrite { pattern: if inverts { !sanitize.pattern } else { sanitize.pattern }, pass }
}

impl Shared {
    /// Goes on with an operation that a loss of power has interrupted.
    pub fn resume_sanitize(&mut self) {
        if let Some(sanitize) = self.sanitize.filter(|one| one.phase == SanitizePhase::Running) {
            let sizes: Vec<_> =
                self.namespaces.iter().map(|(nsid, one)| (*nsid, one.record.bytes())).collect();
            self.erase = Some(Erase::new(&sanitize, &sizes));
        }
    }

    /// Stores that an operation begins, for a command of a controller, that the failure mode is
    /// left, or how an operation has ended.
    ///
    /// # Panics
    /// If there is no store.
    pub fn store_sanitize(&mut self, command: Option<(u16, Key)>, sanitize: Sanitize) {
        let store = self.store.as_mut().expect("sanitize needs records");
        store.push(Change::Sanitize { command, sanitize });
    }

    /// Whether a change of it is being stored.
    pub fn stores_sanitize(&self) -> bool {
        let mut waiting = self.store.iter().flat_map(|store| store.waiting());
        waiting.any(|change| matches!(change, Change::Sanitize { .. }))
    }

    /// The next request for the media of an operation under way.
    pub fn next_erase(&mut self) -> Option<block::Request> {
        if let Some(request) = self.erase.as_mut()?.next() {
            return Some(request);
        }
        if self.erase.as_ref()?.work.is_empty() {
            self.end_sanitize(SanitizePhase::Completed);
        }
        None
    }

    /// Such a request is done.
    pub fn erased(&mut self, id: u64, result: &block::Completion) {
        let Some(erase) = self.erase.as_mut() else { return };
        if erase.request.is_none_or(|(_, request)| request != id) {
            return;
        }
        erase.advance();
        if result.is_err() {
            self.end_sanitize(SanitizePhase::Failed);
        }
    }

    /// Whether the media work on an operation.
    pub fn is_erasing(&self) -> bool {
        self.erase.as_ref().is_some_and(|erase| erase.request.is_some())
    }

    fn end_sanitize(&mut self, phase: SanitizePhase) {
        if let Some(sanitize) = self.sanitize {
            self.erase = None;
            self.store_sanitize(None, Sanitize { phase, ..sanitize });
        }
    }

    /// The Sanitize Status log.
    pub fn sanitize_log(&self) -> SanitizeStatus {
        self.sanitize_log_of(self.sanitize)
    }

    /// The same with another most recent operation.
    pub(super) fn sanitize_log_of(&self, sanitize: Option<Sanitize>) -> SanitizeStatus {
        use SanitizePhase::{Completed, Failed, Left, Running};
        let log = SanitizeStatus {
            progress: u16::MAX,
            estimates: [NO_ESTIMATE.to_le_bytes(); 6],
            ..SanitizeStatus::default()
        };
        let Some(sanitize) = sanitize else { return log };
        let plan = Plan::from_command(sanitize.command);
        let (progress, passes) = match (&self.erase, sanitize.phase) {
            (Some(erase), _) => (erase.progress(), erase.passes(plan)),
            // How it ended is being stored.
            (None, Running) => (u16::MAX - 1, plan.overwrites),
            (None, Completed) => (u16::MAX, plan.overwrites),
            (None, Failed | Left) => (u16::MAX, 0),
        };
        let status = match sanitize.phase {
            Running => sanitize_status::IN_PROGRESS,
            Completed => sanitize_status::COMPLETED,
            Failed | Left => sanitize_status::FAILED,
        };
        SanitizeStatus { progress, status, passes, command: sanitize.command, ..log }
    }
}
