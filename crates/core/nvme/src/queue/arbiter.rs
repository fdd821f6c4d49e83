//! The arbitration between submission queues (NVMe 1.4, section 4.13).

use super::Pending;
use crate::config::MAX_QUEUES;
use serde::{Deserialize, Serialize};

/// The priority of a submission queue under weighted round robin with urgent priority class
/// (section 4.13.2). Under round robin all queues have [`Admin`](Self::Admin).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Priority {
    /// The admin queue: before all other queues.
    #[default]
    Admin,
    /// Before all weighted queues.
    Urgent,
    High,
    Medium,
    Low,
}

impl Priority {
    const ALL: [Self; 5] = [Self::Admin, Self::Urgent, Self::High, Self::Medium, Self::Low];

    /// The priority for QPRIO, two bits (figure 156).
    pub(crate) fn from_bits(bits: u32) -> Self {
        Self::ALL[1 + (bits & 3) as usize]
    }

    /// The index among the weighted priorities.
    fn weight(self) -> Option<usize> {
        (self as usize).checked_sub(Self::High as usize)
    }
}

/// Queues of one priority, which take turns.
#[derive(Debug, Default)]
struct Group {
    pending: Pending,
    /// The queue of the present turn.
    turn: u16,
    /// The first queue whose turn fetched no commands since the last turn that did. When this queue
    /// is next again, all queues were tried.
    idle: Option<u16>,
}

impl Group {
    fn next(&self) -> Option<u16> {
        self.pending.next(self.turn).filter(|id| self.idle != Some(*id))
    }

    fn end(&mut self, id: u16, fetched: bool) {
        self.turn = if id >= MAX_QUEUES { 0 } else { id + 1 };
        self.idle = if fetched { None } else { self.idle.or(Some(id)) };
    }
}

/// The turn of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub queue: u16,
    /// The maximum number of commands to fetch, at least 1.
    pub limit: u16,
    priority: Priority,
    /// Whether the turn begins a round of the weights.
    begins: bool,
}

/// The submission queues with entries to fetch, and the order of their turns.
#[derive(Debug, Default)]
pub(crate) struct Arbiter {
    groups: [Group; Priority::ALL.len()],
    weighted: bool,
    /// Remaining commands of high, medium and low priority in this round.
    credits: [u16; 3],
}

impl Arbiter {
    /// An arbiter without queues: weighted round robin with urgent priority class if `weighted`,
    /// otherwise round robin.
    pub(crate) fn new(weighted: bool) -> Self {
        Self { weighted, ..Self::default() }
    }

    /// The priority of a queue whose QPRIO has these bits.
    pub(crate) fn priority(&self, bits: u32) -> Priority {
        if self.weighted { Priority::from_bits(bits) } else { Priority::default() }
    }

    pub(crate) fn insert(&mut self, priority: Priority, id: u16) {
        self.groups[priority as usize].pending.insert(id);
    }

    pub(crate) fn remove(&mut self, priority: Priority, id: u16) {
        self.groups[priority as usize].pending.remove(id);
    }

    /// Whether no queue has entries to fetch.
    pub(crate) fn is_empty(&self) -> bool {
        let groups = if self.weighted { Priority::ALL.len() } else { 1 };
        self.groups[..groups].iter().all(|group| group.pending.is_empty())
    }

    /// Makes the queues eligible again whose turns fetched no commands.
    pub(crate) fn begin(&mut self) {
        let groups = if self.weighted { Priority::ALL.len() } else { 1 };
        self.groups[..groups].iter_mut().for_each(|group| group.idle = None);
    }

    /// The next turn; `None` if no eligible queue is left. A queue may fetch up to `burst` commands
    /// per turn, and queues of a weighted priority together up to their weight per round.
    pub(crate) fn next(&self, burst: u16, weights: [u16; 3]) -> Option<Turn> {
        let turn = |priority: Priority, limit: u16, begins: bool| {
            let queue = self.groups[priority as usize].next()?;
            Some(Turn { queue, limit: limit.min(burst), priority, begins })
        };
        if !self.weighted {
            return turn(Priority::Admin, burst, false);
        }
        // The limit is the smaller of remaining credits and burst (section 4.13.2).
        let of_round = |priority: &Priority| match priority.weight() {
            None => turn(*priority, burst, false),
            Some(at) => turn(*priority, self.credits[at], false).filter(|turn| turn.limit > 0),
        };
        let of_next = |priority: &Priority| turn(*priority, weights[priority.weight()?], true);
        let (all, weighted) = (&Priority::ALL, &Priority::ALL[Priority::High as usize..]);
        all.iter().find_map(of_round).or_else(|| weighted.iter().find_map(of_next))
    }

    /// Ends a turn in which `count` commands were fetched.
    pub(crate) fn end(&mut self, turn: Turn, count: u16, weights: [u16; 3]) {
        self.groups[turn.priority as usize].end(turn.queue, count > 0);
        let Some(at) = turn.priority.weight().filter(|_| count > 0) else { return };
        if turn.begins {
            self.credits = weights;
        }
        self.credits[at] -= count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn priority() -> impl Strategy<Value = Priority> {
        (0..4u32).prop_map(Priority::from_bits)
    }

    /// An arbiter whose queues always have commands, with counts of the turns and commands.
    struct Backlogged {
        arbiter: Arbiter,
        burst: u16,
        weights: [u16; 3],
        /// Numbers of turns and commands by queue.
        turns: BTreeMap<u16, (u32, u32)>,
        /// Number of fetched commands by priority.
        served: [u32; 5],
    }

    impl Backlogged {
        fn new(queues: &[Priority], burst: u16, weights: [u16; 3]) -> Self {
            let mut arbiter = Arbiter::new(true);
            for (id, priority) in (1..).zip(queues) {
                arbiter.insert(*priority, id);
            }
            Self { arbiter, burst, weights, turns: BTreeMap::new(), served: [0; 5] }
        }

        /// Fetches up to `room` commands, but none from the `blocked` queues.
        fn fetch(&mut self, mut room: u16, blocked: &[u16], mut check: impl FnMut(&Self, Turn)) {
            self.arbiter.begin();
            while let Some(turn) = self.arbiter.next(self.burst, self.weights) {
                assert!(turn.limit > 0 && turn.limit <= self.burst);
                let is_blocked = blocked.contains(&turn.queue);
                let count = if is_blocked { 0 } else { turn.limit.min(room) };
                room -= count;
                self.arbiter.end(turn, count, self.weights);
                if count > 0 {
                    let (turns, commands) = self.turns.entry(turn.queue).or_default();
                    *turns += 1;
                    *commands += u32::from(count);
                    self.served[turn.priority as usize] += u32::from(count);
                    check(self, turn);
                }
            }
            assert!(room == 0 || self.arbiter.next(self.burst, self.weights).is_none());
        }
    }

    proptest! {
        /// For any two priorities, the numbers of served commands divided by the weights differ by
        /// at most one round.
        #[test]
        fn shares_follow_the_weights(
            queues in proptest::collection::vec(priority(), 1..12), burst in 0..8u32,
            weights: [u8; 3], rooms in proptest::collection::vec(1..600u16, 1..40),
        ) {
            let weights = weights.map(|weight| u16::from(weight) + 1);
            let burst = if burst == 7 { u16::MAX } else { 1 << burst };
            let queues: Vec<Priority> =
                queues.into_iter().filter(|one| *one != Priority::Urgent).collect();
            let mut backlogged = Backlogged::new(&queues, burst, weights);
            for room in rooms {
                if queues.is_empty() {
                    break;
                }
                backlogged.fetch(room, &[], |all, _| {
                    let level = |one: &Priority| {
                        let at = *one as usize;
                        (u64::from(all.served[at]), u64::from(all.weights[at - 2]))
                    };
                    for (a, b) in queues.iter().flat_map(|a| queues.iter().map(move |b| (a, b))) {
                        let ((served, weight), (other, others)) = (level(a), level(b));
                        assert!((served * others).abs_diff(other * weight) <= weight * others);
                    }
                });
                // Queues of one priority take turns.
                for (a, of_a) in (1..).zip(&queues) {
                    for (b, of_b) in (1..).zip(&queues) {
                        let turns = |id: u16| backlogged.turns.get(&id).map_or(0, |one| one.0);
                        let differ = turns(a).abs_diff(turns(b));
                        prop_assert!(of_a != of_b || differ <= 1, "{a} and {b}");
                    }
                }
            }
        }

        /// No queue is served while a queue of a higher class is eligible. A blocked queue does not
        /// block other queues.
        #[test]
        fn classes_are_strict_and_blocked_queues_are_passed(
            queues in proptest::collection::vec(priority(), 1..12), admin: bool,
            calls in proptest::collection::vec((1..50u16, 0..4096u16), 1..20),
        ) {
            let mut backlogged = Backlogged::new(&queues, 4, [3, 2, 1]);
            if admin {
                backlogged.arbiter.insert(Priority::Admin, 0);
            }
            for (room, mask) in calls {
                let blocked: Vec<u16> = (0..12).filter(|id| mask >> id & 1 != 0).collect();
                let free = |id: &u16| !blocked.contains(id);
                let all = (1..).zip(&queues).map(|(id, one)| (id, *one));
                let open: Vec<Priority> = all
                    .chain(admin.then_some((0, Priority::Admin)))
                    .filter(|(id, _)| free(id))
                    .map(|(_, one)| one)
                    .collect();
                let before: u32 = backlogged.served.iter().sum();
                backlogged.fetch(room, &blocked, |_, turn| {
                    let strict = |one: &&Priority| one.weight().is_none();
                    let first = open.iter().filter(strict).min();
                    assert!(first.is_none_or(|first| *first == turn.priority), "{turn:?}");
                });
                let fetched = backlogged.served.iter().sum::<u32>() - before;
                let expected = if open.is_empty() { 0 } else { room.into() };
                prop_assert_eq!(fetched, expected, "no room is left unused");
            }
        }
    }

    #[test]
    fn a_level_alone_has_every_round() {
        let mut alone = Backlogged::new(&[Priority::Low], 8, [100, 100, 1]);
        alone.fetch(50, &[], |_, turn| assert_eq!(turn.limit, 1, "the weight, below the burst"));
        assert_eq!(alone.turns[&1], (50, 50));
    }

    #[test]
    fn round_robin_knows_no_priority() {
        let mut arbiter = Arbiter::new(false);
        assert_eq!(arbiter.priority(3), Priority::Admin);
        for id in [0, 1, 5] {
            arbiter.insert(arbiter.priority(id.into()), id);
        }
        arbiter.begin();
        let mut order = Vec::new();
        for _ in 0..6 {
            let turn = arbiter.next(4, [1; 3]).unwrap();
            assert_eq!(turn.limit, 4);
            order.push(turn.queue);
            arbiter.end(turn, 4, [1; 3]);
        }
        assert_eq!(order, [0, 1, 5, 0, 1, 5]);
    }
}
