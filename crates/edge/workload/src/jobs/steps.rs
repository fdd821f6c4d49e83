//! The steps of a transfer: issue, submission, reaping of completions, completion.

use super::{Action, Jobs};
use crate::job::Part;
use crate::pattern::{fill, first_difference, matches};
use crate::{CommandKey, Mismatch, Observer, Outcome, Submission, Transfer};
use nvme::initiator::{Io, Op};
use wire::nvme::StatusCode;
use wire::{Duration, Instant};

impl Jobs {
    /// Starts the next transfer of a job in this slot, if one is left.
    pub(super) fn issue(&mut self, now: Instant, number: usize, slot: usize) {
        let job = &mut self.jobs[number];
        let over = self.end.is_some_and(|end| now >= end) || job.is_exhausted(self.fio.transfers());
        if over || self.stopped || job.drives.iter().any(|drive| self.released[*drive]) {
            return;
        }
        if job.since_pause >= self.fio.thinktime_blocks && self.fio.thinktime > Duration::ZERO {
            job.resting.push(slot);
            if job.slots.iter().any(|slot| slot.busy) {
                return;
            }
            job.since_pause = 0;
            job.next_issue = job.next_issue.max(now + self.fio.thinktime);
            for slot in std::mem::take(&mut job.resting) {
                self.agenda.schedule(job.next_issue, Action::Issue { job: number, slot });
            }
            return;
        }
        if job.next_issue > now {
            let at = job.next_issue;
            return self.agenda.schedule(at, Action::Issue { job: number, slot });
        }
        if let Some(interval) = self.fio.interval() {
            job.next_issue = job.next_issue.max(now) + interval;
        }
        let verification = self.settings.verification.as_ref();
        let initial = verification.and_then(|verification| verification.initial);
        job.choose(&self.fio, slot, now, self.most, (verification.is_some(), initial));
        let at = job.cpu.occupy(now, self.settings.costs.submit);
        self.in_flight += 1;
        self.agenda.schedule(at, Action::Submit { job: number, slot });
    }

    pub(super) fn submit(
        &mut self,
        now: Instant,
        number: usize,
        slot: usize,
        observer: &mut dyn Observer,
    ) {
        let queue = self.jobs[number].queue;
        if self.jobs[number].slots[slot].parts.iter().any(|part| self.missing[part.drive]) {
            match self.stopped {
                true => self.in_flight -= 1,
                false => self.parked.push((number, slot)),
            }
            return;
        }
        let parts = std::mem::take(&mut self.jobs[number].slots[slot].parts);
        for part in &parts {
            let place = &self.jobs[number].slots[slot];
            let buffer = place.buffer + part.at;
            if let (true, Some(verification)) = (place.write, &self.settings.verification) {
                let pattern = verification.patterns[part.drive];
                let mut ram = self.ram.borrow_mut();
                let filled = ram.fill(buffer, part.length as usize, |bytes| {
                    fill(pattern, part.offset, place.version, bytes);
                });
                filled.expect("our own buffer");
            }
            let (since, op) = (place.since, if place.write { Op::Write } else { Op::Read });
            let Part { drive, offset, length, .. } = *part;
            let shift = self.block_shifts[drive];
            let (slba, blocks) = (offset >> shift, (length >> shift) as u32);
            let io = Io { op, nsid: self.fio.nsid, slba, blocks, buffer };
            let prepared = self.drives[drive].borrow_mut().prepare(now, queue, io);
            let id = prepared.expect("a queue holds its job's commands").get();
            let key = CommandKey::new(drive, queue, id);
            self.queues[drive][queue].own(id, (number, slot));
            observer.submit(now, Submission { key, since, op, offset, buffer, length });
            self.announce(drive, queue);
        }
        let place = &mut self.jobs[number].slots[slot];
        place.left = parts.len();
        place.parts = parts;
    }

    /// Rings the doorbell of a queue with a new command, at once or (with `batch`) at the end of
    /// [`Work::run`](crate::Work::run).
    fn announce(&mut self, drive: usize, queue: usize) {
        if !self.settings.batch {
            self.drives[drive].borrow_mut().ring(queue);
        } else if !std::mem::replace(&mut self.queues[drive][queue].unannounced, true) {
            self.unannounced.push((drive, queue));
        }
    }

    pub(super) fn reap(
        &mut self,
        now: Instant,
        drive: usize,
        queue: usize,
        observer: &mut dyn Observer,
    ) {
        // The CPU of the queue's job handles the completions.
        let Some(job) = self.job_of(queue) else { return };
        let cpu = self.jobs[job].cpu.free_at();
        if cpu > now {
            return self.agenda.schedule(cpu, Action::Reap { drive, queue });
        }
        if !std::mem::take(&mut self.queues[drive][queue].signalled) || self.missing[drive] {
            // The drive was lost after the signal.
            return;
        }
        let mut driver = self.drives[drive].borrow_mut();
        let before = driver.spurious_completions();
        let done = driver.reap(queue);
        self.tally.spurious += driver.spurious_completions() - before;
        drop(driver);
        for done in done {
            let owner = self.queues[drive][queue].owners[usize::from(done.id.get())].take();
            let (number, slot) = owner.expect("it was submitted");
            let at = self.jobs[number].cpu.occupy(now, self.settings.costs.complete);
            observer.finish(at, CommandKey::new(drive, queue, done.id.get()));
            let place = &mut self.jobs[number].slots[slot];
            if !done.status.is_success() {
                self.tally.failures += 1;
                let refused = done.status.code == StatusCode::RESERVATION_CONFLICT;
                self.tally.conflicts += u64::from(refused);
                if place.outcome == Outcome::Done {
                    place.outcome = Outcome::Failed(done.status);
                }
            }
            place.left -= 1;
            if place.left == 0 {
                self.agenda.schedule(at, Action::Complete { job: number, slot });
            }
        }
    }

    pub(super) fn complete(
        &mut self,
        now: Instant,
        number: usize,
        slot: usize,
        observer: &mut dyn Observer,
    ) {
        self.in_flight -= 1;
        let job = &mut self.jobs[number];
        job.release(slot);
        job.since_pause += 1;
        let place = &job.slots[slot];
        let (block, done) = (place.block, place.outcome == Outcome::Done);
        let mut transfer = Transfer {
            job: number,
            op: if place.write { Op::Write } else { Op::Read },
            offset: job.base + block * self.fio.bs as u64,
            length: self.fio.bs as u64,
            since: place.since,
            outcome: place.outcome,
            compared: 0,
            reads_back: job.read_back.is_some(),
        };
        if done {
            self.tally.latency.record(now - place.since);
            self.tally.bytes += self.fio.bs as u64;
            for part in &place.parts {
                self.tally.drive_bytes[part.drive] += part.length;
            }
        }
        match (&self.settings.verification, place.write, done) {
            (Some(_), true, true) => job.versions.confirm(block),
            (Some(_), true, false) => job.versions.doubt(block),
            (Some(_), false, true) => transfer.compared = self.compare(number, slot, observer),
            _ => {}
        }
        observer.transfer(now, &transfer);
        self.issue(now, number, slot);
    }

    /// Compares the data of a read with the expected data. Returns the number of bytes compared: 0
    /// if the expected data are not known.
    fn compare(&mut self, number: usize, slot: usize, observer: &mut dyn Observer) -> u64 {
        let (job, place) = (&self.jobs[number], &self.jobs[number].slots[slot]);
        let (Some(version), Some(verification), true) =
            (place.expected, &self.settings.verification, job.versions.is_certain(place.block))
        else {
            return 0;
        };
        let mut ram = self.ram.borrow_mut();
        for Part { drive, offset, at, length } in place.parts.iter().copied() {
            let pattern = verification.patterns[drive];
            self.tally.verified += length >> self.block_shifts[drive];
            let compared = ram.show(place.buffer + at, length as usize, |bytes| {
                if matches(pattern, offset, version, bytes) {
                    return;
                }
                self.tally.mismatches += 1;
                if let Some((index, expected)) = first_difference(pattern, offset, version, bytes) {
                    let (found, offset) = (bytes[index], offset + index as u64);
                    observer.mismatch(&Mismatch { job: number, drive, offset, expected, found });
                }
            });
            compared.expect("our own buffer");
        }
        self.fio.bs as u64
    }

    /// Ends a transfer that waited for a lost drive, with [`Outcome::Lost`].
    pub(super) fn lose(&mut self, now: Instant, number: usize, slot: usize) {
        self.tally.failures += 1;
        self.jobs[number].slots[slot].outcome = Outcome::Lost;
        self.agenda.schedule(now, Action::Complete { job: number, slot });
    }
}
