//! Fused operations: Compare and Write (NVMe 1.4, sections 4.12 and 6.2).
//!
//! The first command waits for the next entry of its queue. Both commands read their data from host
//! memory into the buffer. Then they hold their blocks (`Hold`): no other command reads or changes
//! these blocks between the comparison and the end of the write.

use super::Controller;
use crate::block;
use crate::failure::Failure;
use crate::namespace::Namespace;
use crate::pointer::TWO_SGLS;
use crate::slots::Key;
use crate::subsystem::{Hold, Shared};
use std::ops::Range;
use wire::nvme::opcode::nvm;
use wire::nvme::{Command, StatusCode};

/// FUSE: the first command of a fused operation (figure 104).
const FIRST: u8 = 1;
/// FUSE: the second command of a fused operation (figure 104).
pub(super) const SECOND: u8 = 2;

impl Controller {
    /// Whether the controller supports fused operations, which need two commands under way. They hold
    /// blocks, which no part can see.
    pub(crate) fn fuses(&self) -> bool {
        self.settings.commands >= 2 && !self.parts.any() && self.part.is_none()
    }

    /// Handles the next fetched entry of a queue, in queue order.
    pub(super) fn take_entry(&mut self, shared: &mut Shared, sq: u16, command: Command) {
        let queue = self.queues.sq_mut(sq).expect("it was just fetched from");
        if command.fuse == 0 && queue.first.is_none() {
            return self.begin(shared, sq, command);
        }
        match queue.first.take() {
            Some(first) if command.fuse == SECOND => {
                return self.begin_pair(shared, sq, [first, command]);
            }
            // The first command has no second command.
            Some(first) => self.begin(shared, sq, first),
            None => {}
        }
        if is_half(&command, FIRST) && self.takes_pairs(sq) {
            self.queues.sq_mut(sq).expect("commands are left").first = Some(command);
        } else {
            self.begin(shared, sq, command);
        }
    }

    /// Whether a queue supports fused operations. The completion queue must have room for two
    /// completions.
    fn takes_pairs(&self, sq: u16) -> bool {
        let queue = self.queues.sq(sq).filter(|queue| sq != 0 && queue.deleting.is_none());
        let cq = queue.and_then(|queue| self.queues.cq(queue.cq));
        self.fuses() && cq.is_some_and(|cq| cq.capacity() >= 2)
    }

    /// Frees the reservation of a first command while no second command is being fetched, so that
    /// the first command does not block others.
    pub(super) fn park(&mut self, shared: &mut Shared, sq: u16) {
        let Some(queue) = self.queues.sq_mut(sq).filter(|queue| queue.first.is_some()) else {
            return;
        };
        if queue.park() {
            let cq = queue.cq;
            self.queues.cq_mut(cq).expect("outlives its submission queues").release();
            self.count_in_flight(shared, sq, |in_flight| in_flight - 1);
        }
    }

    /// Aborts a first command whose second command has not arrived.
    pub(crate) fn abort_first(&mut self, shared: &mut Shared, sq: u16, cid: u16) -> bool {
        let Some(queue) = self.queues.sq_mut(sq) else { return false };
        let Some(first) = queue.first.filter(|first| first.cid == cid) else { return false };
        if queue.is_parked() {
            let cq = queue.cq;
            let Some(cq) = self.queues.cq_mut(cq).filter(|cq| cq.room() > 0) else { return false };
            cq.reserve(1);
            self.queues.sq_mut(sq).expect("looked at above").unpark();
            self.count_in_flight(shared, sq, |in_flight| in_flight + 1);
        }
        self.queues.sq_mut(sq).expect("looked at above").first = None;
        let (key, _) = self.accept(sq, first);
        self.fail(shared, key, Failure::transient(StatusCode::ABORT_REQUESTED));
        true
    }

    /// The failure of a command with FUSE that is not part of a pair.
    pub(super) fn lone(&self, sq: u16, command: &Command) -> Failure {
        let half = is_half(command, FIRST) || is_half(command, SECOND);
        let known = half && sq != 0 && self.fuses();
        let missing = StatusCode::ABORTED_MISSING_FUSED;
        Failure::field(if known { missing } else { StatusCode::INVALID_FIELD }, 1, 0)
    }

    fn begin_pair(&mut self, shared: &mut Shared, sq: u16, pair: [Command; 2]) {
        let accepted = pair.map(|command| self.accept(sq, command));
        let keys = accepted.map(|(key, _)| key);
        let mut plan = |at: usize| -> Result<(), Failure> {
            accepted[at].1?;
            check_half(&pair, at)?;
            let plan = self.plan_io(shared, keys[at], &pair[at])?;
            self.apply_plan(keys[at], &pair[at], plan)
        };
        match [plan(0), plan(1)] {
            [Ok(()), Ok(())] => self.admit_pair(shared, keys),
            failures => {
                let [first, second] = failures.map(Result::err);
                // Neither command was admitted, so neither occupies the buffer.
                for key in keys {
                    self.commands.get_mut(key).expect("it was just accepted").buffer = 0;
                }
                self.fail(shared, keys[0], first.or(second.map(of_other)).expect("one failed"));
                self.fail(shared, keys[1], second.or(first.map(of_other)).expect("one failed"));
            }
        }
    }

    /// Admits a fused pair. The first command reserves the buffer for both.
    fn admit_pair(&mut self, shared: &mut Shared, [first, second]: [Key; 2]) {
        let execution = self.commands.get_mut(second).expect("it was just accepted");
        execution.partner = Some(first);
        let buffer = std::mem::take(&mut execution.buffer);
        let execution = self.commands.get_mut(first).expect("it was just accepted");
        execution.partner = Some(second);
        // A single command may use the whole buffer, otherwise it would wait for ever.
        execution.buffer = (execution.buffer + buffer).min(self.settings.buffer);
        self.admit(shared, first);
    }

    /// Handles the data of one command of a fused pair. The pair starts when the data of both
    /// commands have arrived.
    pub(super) fn half_received(&mut self, shared: &mut Shared, key: Key, partner: Key) {
        let Some(execution) = self.commands.get_mut(key) else { return };
        execution.waiting = true;
        let Some(other) = self.commands.get(partner).filter(|other| other.waiting) else { return };
        let (compare, write) = match other.command.fuse {
            FIRST => (partner, key),
            _ => (key, partner),
        };
        let command = self.commands.get(write).expect("looked at above").command;
        let namespace = shared.namespace(self.id, command.nsid);
        match namespace.and_then(|namespace| ranges(namespace, &command)) {
            Ok(ranges) => {
                let (controller, nsid) = (self.id, command.nsid);
                shared.holds.push(Hold { controller, pair: [compare, write], nsid, ranges });
                self.resume(shared, compare);
            }
            Err(failure) => self.fail(shared, compare, failure),
        }
    }

    /// Holds the blocks of a write whose comparison was successful in an earlier process, before any
    /// command can change the blocks. `number` is the number of the write.
    pub(super) fn hold_again(&mut self, shared: &mut Shared, number: u64) {
        let write = self.commands.iter().find(|(_, one)| one.order == number);
        // The write may have failed at once.
        let Some((key, command)) = write.map(|(key, one)| (key, one.command)) else { return };
        let namespace = shared.namespace(self.id, command.nsid);
        if let Ok(ranges) = namespace.and_then(|namespace| ranges(namespace, &command)) {
            let (controller, nsid) = (self.id, command.nsid);
            shared.holds.push(Hold { controller, pair: [key, key], nsid, ranges });
            self.commands.get_mut(key).expect("looked at above").compared = true;
        }
    }

    /// Handles the end of one command of a pair: the other command fails too, or the write begins.
    pub(super) fn other_half(
        &mut self,
        shared: &mut Shared,
        other: Key,
        failure: Option<Failure>,
        buffer: usize,
    ) {
        match failure.map(of_other) {
            Some(failure) => {
                if !self.fail_waiting(shared, other, failure) {
                    self.fail(shared, other, failure);
                }
            }
            None => {
                let write = self.commands.get_mut(other).expect("checked by the caller");
                write.buffer = buffer;
                match self.posted {
                    // A repeated comparison would find the new data.
                    Some(_) => self.unsaved.push(other),
                    None => self.resume(shared, other),
                }
            }
        }
    }

    /// Whether a command is under way or has media requests.
    pub(crate) fn works_on(&self, command: Key) -> bool {
        let of_it = |request: &super::BlockRequest| request.command == Some(command);
        self.commands.contains_key(command) || self.blocks.values().any(of_it)
    }

    /// Whether media requests, except requests of the command `except`, use a range.
    pub(crate) fn uses(&self, nsid: u32, range: &Range<u64>, except: Option<Key>) -> bool {
        let waits = |key| self.block_requests.iter().any(|one| super::block_key(one.id) == key);
        let others = |one: &super::BlockRequest| except.is_none() || one.command != except;
        self.blocks.iter().any(|(key, one)| {
            one.nsid == nsid && overlap(&one.range, range) && others(one) && !waits(key)
        })
    }

    /// The index of the first queued media request for which `may_begin` returns true. `may_begin`
    /// receives the command, if any, and the request.
    pub(crate) fn find_block(
        &self,
        may_begin: impl Fn(Option<Key>, &block::Request) -> bool,
    ) -> Option<usize> {
        self.block_requests.iter().position(|request| {
            let owner = self.blocks.get(super::block_key(request.id));
            may_begin(owner.and_then(|owner| owner.command), request)
        })
    }
}

/// The byte ranges of a command's blocks on the media: data and metadata.
fn ranges(namespace: &Namespace, command: &Command) -> Result<[Range<u64>; 2], Failure> {
    let (offset, length) = namespace.range(command)?;
    let metadata = namespace.metadata(command)?.map_or(0..0, |metadata| metadata.range());
    Ok([offset..offset + length, metadata])
}

/// Whether two ranges have bytes in common.
pub(crate) fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start.max(other.start) < one.end.min(other.end)
}

/// Whether a command is the given half of Compare and Write, the only fused operation (section
/// 6.2).
fn is_half(command: &Command, fuse: u8) -> bool {
    let opcode = if fuse == FIRST { nvm::COMPARE } else { nvm::WRITE };
    (command.fuse, command.opcode) == (fuse, opcode)
}

/// Checks the command at index `at` of a pair: Compare and Write of the same blocks (section 4.12).
fn check_half(pair: &[Command; 2], at: usize) -> Result<(), Failure> {
    let command = &pair[at];
    if !is_half(command, [FIRST, SECOND][at]) {
        return Err(Failure::field(StatusCode::INVALID_FIELD, 1, 0));
    }
    if command.psdt > TWO_SGLS {
        return Err(Failure::field(StatusCode::INVALID_FIELD, 1, 6));
    }
    let [first, second] = pair;
    if first.nsid != second.nsid {
        return Err(Failure::field(StatusCode::INVALID_FIELD, 4, 0));
    }
    if first.slba() != second.slba() {
        return Err(Failure::cdw(10, 0));
    }
    if first.blocks() != second.blocks() {
        return Err(Failure::cdw(12, 0));
    }
    Ok(())
}

/// The failure of a command whose partner failed. DNR is the same as for the partner.
fn of_other(other: Failure) -> Failure {
    let failed = StatusCode::ABORTED_FAILED_FUSED;
    match other.status.do_not_retry {
        true => Failure::permanent(failed),
        false => Failure::transient(failed),
    }
}
