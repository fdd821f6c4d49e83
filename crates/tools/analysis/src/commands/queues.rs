//! Submission and completion queues as seen from the link.

use super::AnalyserCounters;
use super::rings::Ring;
use super::step::Step;
use follow::Ring as Memory;
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of stored doorbells of all queues whose entries are not fetched. A few doorbells
/// of each queue are always kept.
const MOST_DOORBELLS: usize = 1 << 16;
const FEW_DOORBELLS: usize = 64;
/// Maximum number of completion entries of one queue that the host has not taken.
const MOST_WAITING: usize = 65_536;

/// Number of an open command, unique within its controller.
pub(super) type Uid = u64;

/// A submission queue. Positions count entries since the creation of the queue: the entry at
/// position `p` is at index `p % entries`.
#[derive(Debug, Default)]
pub(super) struct SubmissionQueue {
    pub memory: Memory,
    tail: u64,
    fetched: u64,
    /// Number of fetched entries whose commands have not ended.
    in_drive: u64,
    /// SQHD of the latest completion entry; `None` after missing TLPs until the next completion
    /// entry.
    head: Option<u16>,
    /// Doorbells, each with the position after its last entry.
    doorbells: VecDeque<(u64, Step)>,
    /// After missing TLPs: whether the tail is unknown until the next doorbell, and whether the
    /// fetched position is unknown until the next fetch.
    lost: (bool, bool),
    /// Commands of pushed entries without a doorbell, by index.
    announced: BTreeMap<u64, Uid>,
    /// Pushed entries of the last lap, by position. The value is the command, or `None` after the
    /// drive fetched the entry from the host nevertheless.
    pushed: BTreeMap<u64, Option<Uid>>,
}

/// How an entry that the drive fetches was announced.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fetched {
    /// By this doorbell.
    Rung(Step),
    /// By the push that opened this command.
    Pushed(Uid),
}

/// The commands of pushed entries at a doorbell.
#[derive(Debug, Default)]
pub(super) struct Rung {
    /// Commands whose entries the doorbell announces.
    pub commands: Vec<Uid>,
    /// Commands whose entries the doorbell does not announce.
    pub others: Vec<Uid>,
}

impl SubmissionQueue {
    pub fn new(memory: Memory) -> Self {
        Self { memory, head: Some(0), ..Self::default() }
    }

    /// Marks a fetched entry as finished: its command ended, or there is no command.
    pub fn done(&mut self) {
        self.in_drive = self.in_drive.saturating_sub(1);
    }

    /// Records the SQHD of a completion entry.
    pub fn head(&mut self, head: u16) {
        self.head = Some(head);
    }

    /// Returns the positions of the ring.
    pub fn ring_state(&self) -> Ring {
        let rung = if self.lost.0 { 0 } else { self.unfetched_to(self.tail) };
        let entries = self.memory.entries();
        Ring::Submission {
            entries,
            outstanding: rung + self.in_drive,
            tail: (!self.lost.0).then(|| (self.tail % u64::from(entries)) as u32),
            head: self.head.map(|head| u32::from(head) % entries),
        }
    }

    /// Records that the host pushed the entry at `address`, which opened command `uid`. Returns the
    /// command of an earlier push to this place that had no doorbell; `None` if there was none, or
    /// if `address` is not in the queue.
    pub fn push(&mut self, address: u64, uid: Uid) -> Option<Uid> {
        self.announced.insert(self.memory.index(address)?.into(), uid)
    }

    /// Records that the host wrote `value` to the tail doorbell.
    fn ring(&mut self, value: u16, step: Step, counters: &mut AnalyserCounters) -> Rung {
        let entries = u64::from(self.memory.entries());
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
            // The doorbell covers at least one entry. Pushed entries or the first fetch show the
            // number.
            let more = pushed.unwrap_or(1).max(1);
            self.tail = (self.tail / entries + 2) * entries + u64::from(value);
            self.fetched = self.tail - more;
            more
        } else {
            let more = to_value(self.tail);
            self.tail += more;
            if self.tail - self.fetched >= entries {
                // More entries than fit: some were overwritten.
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

    /// Skips pushed entries, which the drive need not fetch.
    fn pass_pushed(&mut self) {
        while self.pushed.contains_key(&self.fetched) {
            self.fetched += 1;
        }
        while self.doorbells.front().is_some_and(|(end, _)| *end <= self.fetched) {
            self.doorbells.pop_front();
        }
    }

    /// Returns the number of entries in front of `position` that were neither pushed nor fetched.
    fn unfetched_to(&self, position: u64) -> u64 {
        let pushed = self.pushed.range(self.fetched..position.max(self.fetched)).count();
        position.saturating_sub(self.fetched) - pushed as u64
    }

    /// Returns the number of entries with a doorbell that were not fetched, as far as known.
    pub fn unfetched(&self) -> u64 {
        if self.lost == (false, false) { self.unfetched_to(self.tail) } else { 0 }
    }

    fn forget_doorbell(&mut self, counters: &mut AnalyserCounters) {
        if let Some((end, _)) = self.doorbells.pop_front() {
            self.fetched = end;
            counters.dropped += 1;
            self.pass_pushed();
        }
    }

    fn gap(&mut self) {
        self.doorbells.clear();
        self.announced.clear();
        self.pushed.clear();
        (self.lost, self.in_drive, self.head) = ((true, true), 0, None);
    }

    /// Records that the drive fetches the entry at `address`. Returns `None` if there was no
    /// doorbell for the entry.
    pub fn fetch(&mut self, address: u64, counters: &mut AnalyserCounters) -> Option<Fetched> {
        let index = self.memory.index(address).filter(|_| self.memory.begins(address))?;
        let (index, entries) = (u64::from(index), u64::from(self.memory.entries()));
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
    memory: Memory,
    /// MSI-X vector; `None` if interrupts are off.
    pub vector: Option<u16>,
    head: u16,
    /// Index and phase of the entry that the drive wrote last.
    posted: Option<(u16, bool)>,
    /// After missing TLPs: whether the head is unknown until the next head doorbell.
    lost: bool,
    /// Entries that the host has not taken: their indices and commands.
    waiting: VecDeque<(u16, Uid)>,
    /// Number of entries at the front of `waiting` that an interrupt has signalled.
    signals: usize,
}

impl CompletionQueue {
    pub fn new(memory: Memory, vector: Option<u16>) -> Self {
        Self { memory, vector, ..Self::default() }
    }

    /// Records that the drive wrote the completion entry of `uid` at `address`.
    pub fn post(&mut self, address: u64, uid: Uid, counters: &mut AnalyserCounters) {
        let Some(index) = self.memory.index(address) else { return };
        self.waiting.push_back((index, uid));
        if self.waiting.len() > MOST_WAITING {
            self.waiting.pop_front();
            self.signals = self.signals.saturating_sub(1);
            counters.dropped += 1;
        }
    }

    /// Records that the drive wrote an entry with this phase tag at `address`, for any command.
    pub fn written(&mut self, address: u64, phase: bool) {
        self.posted = self.memory.index(address).map(|index| (index, phase)).or(self.posted);
    }

    /// Returns the positions of the ring.
    pub fn ring_state(&self) -> Ring {
        // The first entry of a new queue is entry 0, with phase 1.
        let fresh = (!self.lost).then_some(0);
        Ring::Completion {
            entries: self.memory.entries(),
            tail: self.posted.map_or(fresh, |(last, _)| Some(self.memory.after(last, 1).into())),
            head: (!self.lost).then_some(self.head.into()),
            phase: self.posted.is_some_and(|(_, phase)| phase),
        }
    }

    /// Records that the drive signalled the queue's vector. Returns the commands of the signalled
    /// entries.
    pub fn signal(&mut self) -> Vec<Uid> {
        let from = std::mem::replace(&mut self.signals, self.waiting.len());
        self.waiting.iter().skip(from).map(|(_, uid)| *uid).collect()
    }

    /// Records that the host wrote `value` to the head doorbell. Returns the commands of the
    /// entries.
    pub fn take(&mut self, value: u16, counters: &mut AnalyserCounters) -> Vec<Uid> {
        if value > self.memory.last() {
            counters.bad_doorbells += 1;
            return Vec::new();
        }
        if std::mem::take(&mut self.lost) {
            // The host can take the entries that the drive wrote after the gap.
            self.head = self.waiting.front().map_or(value, |(index, _)| *index);
        }
        let taken = self.memory.distance(self.head, value);
        let mut done = Vec::new();
        while let Some(&(index, uid)) = self.waiting.front() {
            if self.memory.distance(self.head, index) >= taken {
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

    /// Returns the commands whose entries the host has not taken.
    pub fn into_waiting(self) -> impl Iterator<Item = Uid> {
        self.waiting.into_iter().map(|(_, uid)| uid)
    }

    fn gap(&mut self) {
        self.waiting.clear();
        (self.signals, self.posted, self.lost) = (0, None, true);
    }
}

/// All queues of a controller.
pub(super) type Queues = follow::Queues<SubmissionQueue, CompletionQueue>;

/// Records that the host wrote `value` to the tail doorbell of `id`. Returns `None` if there is no
/// such queue.
pub(super) fn ring(
    queues: &mut Queues,
    id: u16,
    value: u16,
    step: Step,
    counters: &mut AnalyserCounters,
) -> Option<Rung> {
    let queue = queues.submission.get_mut(&id)?;
    let rung = queue.ring(value, step, counters);
    if queue.doorbells.len() > FEW_DOORBELLS {
        let all: usize = queues.submission.values().map(|queue| queue.doorbells.len()).sum();
        let queue = queues.submission.get_mut(&id).filter(|_| all > MOST_DOORBELLS);
        queue.into_iter().for_each(|queue| queue.forget_doorbell(counters));
    }
    Some(rung)
}

/// Marks all queue positions as unknown after missing TLPs.
pub(super) fn gap(queues: &mut Queues) {
    queues.submission.values_mut().for_each(SubmissionQueue::gap);
    queues.completion.values_mut().for_each(CompletionQueue::gap);
}
