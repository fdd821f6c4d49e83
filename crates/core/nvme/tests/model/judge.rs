//! Compares the results of the drive with the model.

use super::case::{Admin, IoOp};
use super::contents::{UNIT, UNREADABLE};
use super::driver::{Driver, Half, Key, SUCCESS, Sent};
use super::statuses::{Statuses, of_fault};
use nvme::state::SanitizePhase;
use wire::nvme::{Completion, StatusCode};
use wire::trace::CommandId;

impl Driver {
    /// Takes new completions and events.
    pub(super) fn observe(&mut self) {
        let phase = self.world.testbed().subsystem.state().sanitize.map(|one| one.phase);
        if phase != self.drive.sanitize {
            self.drive.sanitize = phase;
            self.changed = self.tick();
            if let Some(next) = &mut self.next {
                next.sanitize = phase;
            }
            self.widen();
            self.sanitize_changed(phase);
        }
        if !std::mem::take(&mut self.world.unstored).is_empty() {
            for sent in self.outstanding.values_mut() {
                sent.allowed.insert(StatusCode::INTERNAL_ERROR);
            }
            if let Some((_, admin, allowed, _)) = &mut self.admin {
                allowed.insert(StatusCode::INTERNAL_ERROR);
                if matches!(admin, Admin::Create { .. }) {
                    allowed.insert(StatusCode::INSUFFICIENT_CAPACITY);
                }
            }
        }
        for queue in [1, 2] {
            for done in self.world.host.reap(queue) {
                self.ended(&done);
            }
        }
        for done in self.world.host.reap(0) {
            self.admin_ended(&done);
        }
    }

    /// Handles the begin or end of a sanitize operation. For the outstanding admin command, either
    /// state may apply.
    fn sanitize_changed(&mut self, phase: Option<SanitizePhase>) {
        let own = matches!(self.admin, Some((_, Admin::Sanitize, ..))) && self.next.is_some();
        if phase != Some(SanitizePhase::Running) && !own {
            self.end_erasure(phase == Some(SanitizePhase::Completed), true);
        }
        let Some((_, admin, allowed, _)) = &mut self.admin else { return };
        allowed.extend(self.drive.admin(*admin, true));
        if allowed.contains(&SUCCESS) && self.next.is_none() {
            self.next = Some(self.drive.after(*admin));
            let (admin, now) = (*admin, self.tick());
            self.begin_erasure(now, admin);
        }
    }

    fn end_erasure(&mut self, done: bool, durable: bool) {
        let now = self.tick();
        self.replaced.clear();
        self.repeated = self.drive.namespaces.keys().map(|nsid| (*nsid, now)).collect();
        for id in std::mem::take(&mut self.erased) {
            self.contents.end(now, id, done, durable);
        }
    }

    fn admin_ended(&mut self, done: &Completion) {
        let code = done.status.code;
        if let Some(target) = self.aborts.remove(&done.cid) {
            assert_eq!(code, SUCCESS);
            let aborted = self.ended.get(&target) == Some(&StatusCode::ABORT_REQUESTED);
            // The command may be aborted later, when a part of it is done.
            assert!(done.result == 1 || aborted, "Abort of {target:?}");
            return;
        }
        let Some((cid, admin, mut allowed, _)) = self.admin.take() else { return };
        assert_eq!(done.cid, cid);
        let faults = self.faults(0, cid);
        if !faults.is_empty() {
            allowed.remove(&SUCCESS);
            allowed.extend(faults.iter().flatten());
        }
        assert!(allowed.contains(&code), "{admin:?} ended with {code}, not {allowed:?}");
        let Some(next) = self.next.take() else { return };
        // A media failure happens after the record was stored.
        let changed = code == SUCCESS || !faults.is_empty();
        if !changed {
            self.erased.drain(..).for_each(|id| self.contents.withdraw(id));
            return;
        }
        self.changed = self.tick();
        let before = std::mem::replace(&mut self.drive, next);
        self.drive.sanitize = self.world.testbed().subsystem.state().sanitize.map(|one| one.phase);
        match admin {
            Admin::Create { .. } => {
                assert_eq!(Some(done.result), before.free_nsid(), "the lowest free NSID");
                self.contents
                    .create(done.result, self.drive.namespaces[&done.result].bytes() / UNIT);
            }
            Admin::Delete(nsid) => {
                self.contents.remove(nsid);
                self.replaced.retain(|((id, _), _)| *id != nsid);
            }
            Admin::Format(..) => self.end_erasure(code == SUCCESS, true),
            Admin::Sanitize if self.drive.sanitize != Some(SanitizePhase::Running) => {
                self.end_erasure(self.drive.sanitize == Some(SanitizePhase::Completed), true);
            }
            _ => {}
        }
        self.widen();
    }

    /// The statuses that the media faults of a command may cause.
    fn faults(&mut self, queue: u16, cid: u16) -> Vec<Statuses> {
        let id = Some(CommandId { queue, cid });
        let of_it = self.world.faulted.iter().filter(|fault| fault.command == id);
        of_it.map(|fault| of_fault(fault.error)).collect()
    }

    fn ended(&mut self, done: &Completion) {
        let key = (done.sq_id, done.cid);
        let code = done.status.code;
        let sent = self.outstanding.remove(&key);
        let sent = sent.unwrap_or_else(|| panic!("a completion of nothing: {done:?}"));
        let now = self.tick();
        let faults = self.faults(key.0, key.1);
        let mut allowed = sent.allowed.clone();
        if !faults.is_empty() {
            // A flush of all namespaces ignores a namespace that is being deleted.
            let moot = self.next.is_some() || self.changed > sent.submitted;
            if sent.io.op != IoOp::FlushAll || !moot {
                allowed.remove(&SUCCESS);
            }
            allowed.extend(faults.iter().flatten());
        } else if allowed.contains(&SUCCESS) {
            self.allow_for_contents(&sent, now, &mut allowed);
        }
        let failure = || format!("{sent:?} ended with {code}");
        let of_pair = sent.half != Half::Whole && code == StatusCode::ABORTED_FAILED_FUSED;
        assert!(of_pair || allowed.contains(&code), "{}, not {allowed:?}", failure());
        if code == SUCCESS {
            self.check_success(&sent, now);
        }
        if let Some(write) = sent.write {
            let never = code != SUCCESS
                && faults.is_empty()
                && sent.refused.contains(&code)
                && self.changed < sent.submitted
                || matches!(
                    code,
                    StatusCode::ABORTED_MISSING_FUSED | StatusCode::ABORTED_FAILED_FUSED
                );
            if never {
                self.contents.withdraw(write);
            } else {
                let through = sent.io.fua && sent.io.op != IoOp::Deallocate;
                let durable = through || sent.io.op == IoOp::WriteUncorrectable;
                self.contents.end(now, write, code == SUCCESS, durable);
            }
        }
        match sent.io.op {
            IoOp::Flush if code == SUCCESS => self.contents.flushed(sent.io.nsid, sent.submitted),
            IoOp::FlushAll if code == SUCCESS && faults.is_empty() => {
                for nsid in self.drive.namespaces.keys() {
                    if self.drive.active(*nsid).is_some() && self.next.is_none() {
                        self.contents.flushed(*nsid, sent.submitted);
                    }
                }
            }
            _ => {}
        }
        if sent.io.op.repeats() {
            self.repeated.insert(sent.io.nsid, now);
        }
        self.slots.push(sent.buffer.slot);
        self.ended.insert(key, code);
        self.check_pair(key, &sent);
    }

    /// Adds the statuses that a command may end with because of the contents of its blocks.
    fn allow_for_contents(&self, sent: &Sent, now: u64, allowed: &mut Statuses) {
        let nsid = sent.io.nsid;
        let reads = match sent.io.op {
            IoOp::Read | IoOp::Verify | IoOp::Copy(_) => true,
            IoOp::Compare { .. } => true,
            IoOp::CompareAndWrite { .. } => matches!(sent.half, Half::First(_)),
            _ => false,
        };
        if !reads {
            return;
        }
        for (at, unit) in sent.units.clone().enumerate() {
            let possible = self.contents.possible((nsid, unit), sent.submitted, now);
            if possible.contains(&UNREADABLE) {
                allowed.insert(StatusCode::UNRECOVERED_READ_ERROR);
            }
            if possible.iter().all(|token| *token == UNREADABLE) {
                allowed.remove(&SUCCESS);
            }
            if let Some(expected) = sent.tokens.get(at) {
                if possible.iter().any(|token| token != expected && *token != UNREADABLE) {
                    allowed.insert(StatusCode::COMPARE_FAILURE);
                }
                if !possible.contains(expected) {
                    allowed.remove(&SUCCESS);
                }
            }
        }
    }

    fn check_success(&self, sent: &Sent, now: u64) {
        if sent.io.op != IoOp::Read {
            return;
        }
        let found = sent.buffer.tokens(&self.world.host, sent.units.end - sent.units.start);
        for (unit, token) in sent.units.clone().zip(found) {
            let possible = self.contents.possible((sent.io.nsid, unit), sent.submitted, now);
            assert!(
                token.is_some_and(|token| possible.contains(&token)),
                "{sent:?} has read {token:?} in unit {unit}, possible is {possible:?}"
            );
        }
    }

    /// Whether a namespace may have received a token for the second time after `since`.
    fn repeats(&self, nsid: u32, since: u64) -> bool {
        let under_way = |sent: &Sent| sent.io.nsid == nsid && sent.io.op.repeats();
        self.repeated.get(&nsid).is_some_and(|at| *at > since)
            || !self.erased.is_empty()
            || self.outstanding.values().any(under_way)
    }

    /// Checks a fused operation whose two commands have ended.
    fn check_pair(&mut self, key: Key, sent: &Sent) {
        let (first, second) = match sent.half {
            Half::First(second) => (key, (key.0, second)),
            Half::Second(first) => ((key.0, first), key),
            Half::Whole => return,
        };
        let (Some(one), Some(other)) = (self.ended.get(&first), self.ended.get(&second)) else {
            return;
        };
        let failed = StatusCode::ABORTED_FAILED_FUSED;
        match (*one, *other) {
            (SUCCESS, SUCCESS) => {
                let (place, token) = self.pairs[&second];
                let once =
                    self.repeats(place.0, sent.submitted) || self.replaced.insert((place, token));
                assert!(once, "two fused operations have replaced {token} in {place:?}: {sent:?}");
            }
            (one, other) => {
                assert!(other != SUCCESS, "{one} of the comparison, and the write: {sent:?}");
                assert!(one != SUCCESS || other != failed, "nothing had failed: {sent:?}");
                assert!((one, other) != (failed, failed), "nothing had failed: {sent:?}");
            }
        }
    }
}
