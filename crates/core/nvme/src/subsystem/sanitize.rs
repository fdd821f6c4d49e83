//! Sanitize operations under way (NVMe 1.4, section 8.15): they process all namespaces with one
//! media request at a time.

use super::Shared;
use super::store::Change;
use crate::admin::SanitizePlan as Plan;
use crate::block::{self, Operation};
use crate::slots::Key;
use crate::state::{Sanitize, SanitizePhase};
use bytes::Bytes;
use std::collections::VecDeque;
use wire::nvme::{NO_ESTIMATE, SanitizeStatus, sanitize_status};

/// The maximum number of bytes that one request zeroes or deallocates.
const RANGE: u64 = 16 << 20;
/// The maximum number of bytes that one request overwrites: a multiple of every block size.
const WRITE: u64 = 128 << 10;

/// The work on a whole namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Work {
    Zero,
    /// Overwrite with a pattern; passes count from 0.
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
    /// The remaining work, with NSID and bytes of the namespace; the first item is under way.
    work: VecDeque<(u32, u64, Work)>,
    /// Completed bytes of the first item.
    at: u64,
    /// Bytes and number of the request under way.
    request: Option<(u64, u64)>,
    requests: u64,
    /// Completed bytes and total bytes of all passes.
    done: u128,
    total: u128,
}

impl Erase {
    /// Starts an operation, or restarts it after a loss of power.
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

    /// The value of SPROG.
    fn progress(&self) -> u16 {
        let fraction = (self.done << 16) / self.total.max(1);
        fraction.min(u128::from(u16::MAX - 1)) as u16
    }

    /// The next request, if none is under way and work is left.
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

    /// Handles the end of the request under way.
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

    /// Number of completed passes of an overwrite.
    fn passes(&self, plan: Plan) -> u8 {
        match self.work.front() {
            Some((_, _, Work::Overwrite { pass, .. })) => *pass,
            _ => plan.overwrites,
        }
    }
}

/// Bytes that count for the progress; a flush counts as 0 bytes.
fn size(bytes: u64, work: &Work) -> u128 {
    if *work == Work::Flush { 0 } else { bytes.into() }
}

/// The work of an overwrite pass. OIPBP inverts the pattern in every second pass (figure 329).
fn overwrite(sanitize: &Sanitize, plan: Plan, pass: u8) -> Work {
    let inverts = plan.inverts && pass % 2 == 1;
    Work::Overwrite { pattern: if inverts { !sanitize.pattern } else { sanitize.pattern }, pass }
}

impl Shared {
    /// Restarts an operation that a loss of power has interrupted.
    pub(crate) fn resume_sanitize(&mut self) {
        if let Some(sanitize) = self.sanitize.filter(|one| one.phase == SanitizePhase::Running) {
            let sizes: Vec<_> =
                self.namespaces.iter().map(|(nsid, one)| (*nsid, one.record.bytes())).collect();
            self.erase = Some(Erase::new(&sanitize, &sizes));
        }
    }

    /// Stores the start of an operation, the exit from the failure mode, or the result of an
    /// operation. The first two are for a command of a controller.
    ///
    /// # Panics
    /// If there is no store.
    pub(crate) fn store_sanitize(&mut self, command: Option<(u16, Key)>, sanitize: Sanitize) {
        let store = self.store.as_mut().expect("sanitize needs records");
        store.push(Change::Sanitize { command, sanitize });
    }

    /// Whether a change of the operation is being stored.
    pub(crate) fn stores_sanitize(&self) -> bool {
        let mut waiting = self.store.iter().flat_map(|store| store.waiting());
        waiting.any(|change| matches!(change, Change::Sanitize { .. }))
    }

    /// The next media request of an operation under way.
    pub(crate) fn next_erase(&mut self) -> Option<block::Request> {
        if let Some(request) = self.erase.as_mut()?.next() {
            return Some(request);
        }
        if self.erase.as_ref()?.work.is_empty() {
            self.end_sanitize(SanitizePhase::Completed);
        }
        None
    }

    /// Handles the end of a media request of an operation.
    pub(crate) fn erased(&mut self, id: u64, result: &block::Completion) {
        let Some(erase) = self.erase.as_mut() else { return };
        if erase.request.is_none_or(|(_, request)| request != id) {
            return;
        }
        erase.advance();
        if result.is_err() {
            self.end_sanitize(SanitizePhase::Failed);
        }
    }

    /// Whether a media request of an operation is outstanding.
    pub(crate) fn is_erasing(&self) -> bool {
        self.erase.as_ref().is_some_and(|erase| erase.request.is_some())
    }

    fn end_sanitize(&mut self, phase: SanitizePhase) {
        if let Some(sanitize) = self.sanitize {
            self.erase = None;
            self.store_sanitize(None, Sanitize { phase, ..sanitize });
        }
    }

    /// The Sanitize Status log page.
    pub(crate) fn sanitize_log(&self) -> SanitizeStatus {
        self.sanitize_log_of(self.sanitize)
    }

    /// The Sanitize Status log page with another most recent operation.
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
            // The result is being stored.
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
