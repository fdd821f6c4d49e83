//! Submission and completion queues as seen from the link.

use super::Counters;
use super::rings::Ring;
use super::step::Step;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use wire::nvme::{COMPLETION_ENTRY, SUBMISSION_ENTRY};

/// Queues of one kind that a controller may have here.
const MOST_QUEUES: usize = 256;
/// Doorbells of all queues whose entries are not fetched; a few of each queue are always kept.
const MOST_DOORBELLS: usize = 1 << 16;
const FEW_DOORBELLS: usize = 64;
/// Completion entries of one queue that the host has not taken.
const MOST_WAITING: usize = 65_536;

/// Names an open command within its controller.
pub(super) type Uid = u64;

/// A submission queue. Entries are counted from its creation: the entry at
/// position `p` stands at index `p % entries`.
#[derive(Debug, Default)]
pub(super) struct SubmissionQueue {
    base: u64,
    entries: u32,
    tail: u64,
    fetched: u64,
    /// Entries that were fetched and whose command has not ended.
    in_drive: u64,
    /// SQHD of the latest completion entry; `None` until one is seen where TLPs are missing.
    head: Option<u16>,
    /// Doorbells with the position right after what they ring for.
    doorbells: VecDeque<(u64, Step)>,
    /// TLPs are missing: the tail is not known until a doorbell is seen, and
    /// what was fetched not until an entry is.
    lost: (bool, bool),
    /// Commands of entries that the host pushed and has not rung for, by index.
    announced: BTreeMap<u64, Uid>,
    /// Entries of the last lap that were pushed, by position, each with its command until the drive
    /// fetches it from the host all the same.
    pushed: BTreeMap<u64, Option<Uid>>,
}

/// An entry that the drive fetches.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fetched {
    /// The doorbell that rang for it.
    Rung(Step),
    /// The command that its push has opened.
    Pushed(Uid),
}

/// The commands of pushed entries at a doorbell.
#[derive(Debug, Default)]
pub(super) struct Rung {
    /// Those that it rings for.
    pub commands: Vec<Uid>,
    /// Those that it does not ring for.
    pub others: Vec<Uid>,
}

impl SubmissionQueue {
    pub fn new(base: u64, entries: u32) -> Self {
        Self { base, entries: entries.max(2), head: Some(0), ..Self::default() }
    }

    fn range(&self) -> Range<u64> {
        self.base..self.base.saturating_add(u64::from(self.entries) * SUBMISSION_ENTRY as u64)
    }

    /// A fetched entry needs no more: its command ended, or there is none.
    pub fn done(&mut self) {
        self.in_drive = self.in_drive.saturating_sub(1);
    }

    /// A completion entry with this SQHD was written.
    pub fn head(&mut self, head: u16) {
        self.head = Some(head);
    }

    /// Where the ring is.
    pub fn ring_state(&self) -> Ring {
        let rung = if self.lost.0 { 0 } else { self.unfetched_to(self.tail) };
        let entries = self.entries;
        Ring::Submission {
            entries,
            outstanding: rung + self.in_drive,
            tail: (!self.lost.0).then(|| (self.tail % u64::from(entries)) as u32),
            head: self.head.map(|head| u32::from(head) % entries),
        }
    }

    /// The host pushes the entry at `address`, which has opened this command; yields one that was
    /// pushed there before and not rung for.
    pub fn push(&mut self, address: u64, uid: Uid) -> Option<Uid> {
        let index = address.saturating_sub(self.base) / SUBMISSION_ENTRY as u64;
        self.announced.insert(index, uid)
    }

    /// The host wrote `value` to the tail doorbell.
    fn ring(&mut self, value: u32, step: Step, counters: &mut Counters) -> Rung {
        let entries = u64::from(self.entries);
        let announced = std::mem::take(&mut self.announced);
        self.in_drive += announced.len() as u64;
        if u64::from(value) >= entries {
            counters.bad_doorbells += 1;
            let others = announced.into_values().collect();
            return Rung { others, ..Rung::default() };
        }
        let to_value = |from: u64| (u64::from(value) + entries - from % entries) % entries;
        let pushed = announced.keys().map(|index| to_value(*index)).max();
        let more = if std::mem::take(&mut self.lost.0) {
            // It rings for one entry or more: pushed ones or the first fetch show how many.
            let more = pushed.unwrap_or(1).max(1);
            self.tail = (self.tail / entries + 2) * entries + u64::from(value);
            self.fetched = self.tail - more;
            more
        } else {
            let more = to_value(self.tail);
            self.tail += more;
            if self.tail - self.fetched >= entries {
                // More than fits: entries were overwritten.
                counters.bad_doorbells += 1;
                self.fetched = self.tail - more;
            }
            more
        };
        if pushed.is_some() && std::mem::take(&mut self.lost.1) {
            self.fetched = self.tail - more;
        }
        if more > 0 {
            self.doorbells.push_back((self.tail, step));
        }
        let lap = (self.tail + 1).saturating_sub(entries);
        while self.pushed.first_entry().is_some_and(|first| *first.key() < lap) {
            self.pushed.pop_first();
        }
        let mut rung = Rung::default();
        for (index, uid) in announced {
            let behind = to_value(index);
            if (1..=more).contains(&behind) {
                self.pushed.insert(self.tail - behind, Some(uid));
                rung.commands.push(uid);
            } else {
                rung.others.push(uid);
            }
        }
        self.pass_pushed();
        rung
    }

    /// The drive need not fetch what was pushed.
    fn pass_pushed(&mut self) {
        while self.pushed.contains_key(&self.fetched) {
            self.fetched += 1;
        }
        while self.doorbells.front().is_some_and(|(end, _)| *end <= self.fetched) {
            self.doorbells.pop_front();
        }
    }

    /// Entries in front of `position` that were neither pushed nor fetched.
    fn unfetched_to(&self, position: u64) -> u64 {
        let pushed = self.pushed.range(self.fetched..position.max(self.fetched)).count();
        position.saturating_sub(self.fetched) - pushed as u64
    }

    /// Entries that were rung for and not fetched, as far as that is known.
    fn unfetched(&self) -> u64 {
        if self.lost == (false, false) { self.unfetched_to(self.tail) } else { 0 }
    }

    /// Forgets the oldest doorbell.
    fn forget_doorbell(&mut self, counters: &mut Counters) {
        if let Some((end, _)) = self.doorbells.pop_front() {
            self.fetched = end;
            counters.dropped += 1;
            self.pass_pushed();
        }
    }

    /// The drive fetches the entry at `address`. `None` if no doorbell rang for it.
    pub fn fetch(&mut self, address: u64, counters: &mut Counters) -> Option<Fetched> {
        let offset = address.checked_sub(self.base)?;
        let (index, entries) = (offset / SUBMISSION_ENTRY as u64, u64::from(self.entries));
        if index >= entries || !offset.is_multiple_of(SUBMISSION_ENTRY as u64) {
            return None;
        }
        let behind = (self.tail + entries - 1 - index) % entries + 1;
        let latest = self.tail.checked_sub(behind);
        if let Some(command) = latest.and_then(|position| self.pushed.get_mut(&position)) {
            return command.take().map(Fetched::Pushed);
        }
        if std::mem::take(&mut self.lost.1) {
            self.fetched = self.tail.saturating_sub(behind);
        }
        let skip = (index + entries - self.fetched % entries) % entries;
        let position = self.fetched + skip;
        if position >= self.tail {
            return None;
        }
        counters.skipped_entries += self.unfetched_to(position);
        self.fetched = position + 1;
        while self.doorbells.front().is_some_and(|(end, _)| *end <= position) {
            self.doorbells.pop_front();
        }
        let step = self.doorbells.front().map(|(_, step)| *step);
        self.in_drive += u64::from(step.is_some());
        self.pass_pushed();
        step.map(Fetched::Rung)
    }
}

/// A completion queue.
#[derive(Debug, Default)]
pub(super) struct CompletionQueue {
    base: u64,
    entries: u32,
    /// MSI-X vector; `None` if interrupts are off.
    pub vector: Option<u16>,
    head: u32,
    /// Index and phase of the entry that the drive wrote last.
    posted: Option<(u32, bool)>,
    /// TLPs are missing: the head is not known until it is seen.
    lost: bool,
    /// Indices of entries that the host has not taken, with their commands.
    waiting: VecDeque<(u32, Uid)>,
    /// How many of them an interrupt has signalled, from the front.
    signals: usize,
}

impl CompletionQueue {
    pub fn new(base: u64, entries: u32, vector: Option<u16>) -> Self {
        Self { base, entries: entries.max(2), vector, ..Self::default() }
    }

    fn range(&self) -> Range<u64> {
        self.base..self.base.saturating_add(u64::from(self.entries) * COMPLETION_ENTRY as u64)
    }

    /// The drive wrote the entry of `uid` at `address`.
    pub fn post(&mut self, address: u64, uid: Uid, counters: &mut Counters) {
        let index = self.index(address);
        self.waiting.push_back((index as u32, uid));
        if self.waiting.len() > MOST_WAITING {
            self.waiting.pop_front();
            self.signals = self.signals.saturating_sub(1);
            counters.dropped += 1;
        }
    }

    fn index(&self, address: u64) -> u64 {
        address.saturating_sub(self.base) / COMPLETION_ENTRY as u64
    }

    /// The drive wrote an entry with this phase tag at `address`, of whatever command.
    pub fn written(&mut self, address: u64, phase: bool) {
        self.posted = Some((self.index(address) as u32 % self.entries, phase));
    }

    /// Where the ring is.
    pub fn ring_state(&self) -> Ring {
        // Of a fresh queue the first entry is 0, with phase 1.
        let fresh = (!self.lost).then_some(0);
        Ring::Completion {
            entries: self.entries,
            tail: self.posted.map_or(fresh, |(index, _)| Some((index + 1) % self.entries)),
            head: (!self.lost).then_some(self.head),
            phase: self.posted.is_some_and(|(_, phase)| phase),
        }
    }

    /// The drive signalled the queue's vector: yields the commands of its entries.
    pub fn signal(&mut self) -> Vec<Uid> {
        let from = std::mem::replace(&mut self.signals, self.waiting.len());
        self.waiting.iter().skip(from).map(|(_, uid)| *uid).collect()
    }

    /// The host wrote `value` to the head doorbell: yields the commands of the entries.
    pub fn take(&mut self, value: u32, counters: &mut Counters) -> Vec<Uid> {
        if value >= self.entries {
            counters.bad_doorbells += 1;
            return Vec::new();
        }
        if std::mem::take(&mut self.lost) {
            // It can take the entries seen since then.
            self.head = self.waiting.front().map_or(value, |(index, _)| index % self.entries);
        }
        let distance = |to: u32, from: u32| (to + self.entries - from) % self.entries;
        let taken = distance(value, self.head);
        let mut done = Vec::new();
        while let Some(&(index, uid)) = self.waiting.front() {
            if distance(index % self.entries, self.head) >= taken {
                break;
            }
            self.waiting.pop_front();
            done.push(uid);
        }
        self.head = value;
        self.signals = self.signals.saturating_sub(done.len());
        counters.unseen_completions += u64::from(taken).saturating_sub(done.len() as u64);
        done
    }
}

/// Which queue lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Submission(u16),
    Completion(u16),
}

/// All queues of a controller.
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub submission: BTreeMap<u16, SubmissionQueue>,
    pub completion: BTreeMap<u16, CompletionQueue>,
    /// Ends of the queues' memory by its start.
    places: BTreeMap<u64, (u64, Place)>,
}

impl Queues {
    /// Entries that were rung for and not fetched.
    pub fn unfetched(&self) -> u64 {
        self.submission.values().map(SubmissionQueue::unfetched).sum()
    }

    /// Adds a queue in the place of one with its number. `false` if there are too many.
    pub fn add_submission(&mut self, id: u16, queue: SubmissionQueue) -> bool {
        self.remove_submission(id);
        if self.submission.len() >= MOST_QUEUES {
            return false;
        }
        self.places.insert(queue.range().start, (queue.range().end, Place::Submission(id)));
        self.submission.insert(id, queue);
        true
    }

    /// As [`add_submission`](Self::add_submission).
    pub fn add_completion(&mut self, id: u16, queue: CompletionQueue) -> bool {
        self.remove_completion(id);
        if self.completion.len() >= MOST_QUEUES {
            return false;
        }
        self.places.insert(queue.range().start, (queue.range().end, Place::Completion(id)));
        self.completion.insert(id, queue);
        true
    }

    /// The host wrote `value` to the tail doorbell of `id`; `None` if there is no such queue.
    pub fn ring(
        &mut self,
        id: u16,
        value: u32,
        step: Step,
        counters: &mut Counters,
    ) -> Option<Rung> {
        let queue = self.submission.get_mut(&id)?;
        let rung = queue.ring(value, step, counters);
        if queue.doorbells.len() > FEW_DOORBELLS {
            let all: usize = self.submission.values().map(|queue| queue.doorbells.len()).sum();
            let queue = self.submission.get_mut(&id).filter(|_| all > MOST_DOORBELLS);
            queue.into_iter().for_each(|queue| queue.forget_doorbell(counters));
        }
        Some(rung)
    }

    /// Whether an entry of submission queue `id` begins at an address in its memory.
    pub fn begins_entry(&self, id: u16, address: u64) -> bool {
        let queue = self.submission.get(&id);
        queue.is_some_and(|queue| (address - queue.base).is_multiple_of(SUBMISSION_ENTRY as u64))
    }

    /// See [`SubmissionQueue::push`].
    pub fn push(&mut self, id: u16, address: u64, uid: Uid) -> Option<Uid> {
        self.submission.get_mut(&id)?.push(address, uid)
    }

    /// See [`SubmissionQueue::done`].
    pub fn done(&mut self, id: u16) {
        if let Some(queue) = self.submission.get_mut(&id) {
            queue.done();
        }
    }

    /// TLPs are missing.
    pub fn gap(&mut self) {
        for queue in self.submission.values_mut() {
            queue.doorbells.clear();
            queue.announced.clear();
            queue.pushed.clear();
            queue.lost = (true, true);
            queue.in_drive = 0;
            queue.head = None;
        }
        for queue in self.completion.values_mut() {
            queue.waiting.clear();
            queue.signals = 0;
            queue.posted = None;
            queue.lost = true;
        }
    }

    pub fn remove_submission(&mut self, id: u16) {
        if let Some(queue) = self.submission.remove(&id) {
            self.forget(queue.base, Place::Submission(id));
        }
    }

    /// Removes a queue: yields the commands of entries that the host has not taken.
    pub fn remove_completion(&mut self, id: u16) -> Vec<Uid> {
        let Some(queue) = self.completion.remove(&id) else { return Vec::new() };
        self.forget(queue.base, Place::Completion(id));
        queue.waiting.into_iter().map(|(_, uid)| uid).collect()
    }

    fn forget(&mut self, base: u64, place: Place) {
        if self.places.get(&base).is_some_and(|(_, there)| *there == place) {
            self.places.remove(&base);
        }
    }

    /// The queue whose memory holds `address`.
    pub fn at(&self, address: u64) -> Option<Place> {
        let (_, (end, place)) = self.places.range(..=address).next_back()?;
        (address < *end).then_some(*place)
    }
}
