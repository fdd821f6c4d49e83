//! Systems in a tree of ideal links, in true time.

use std::collections::{BTreeMap, BTreeSet};
use tsn::gptp::message::Message;
use tsn::gptp::{ClockConfig, Node, NodeClock, NodeConfig, Output};
use wire::{Duration, Instant};

/// The time from the reception of a message to its answer: a hundredth of the longest residence
/// time (IEEE 802.1AS-2020, B.2.2).
const PROCESSING: Duration = Duration::from_us(100);

pub struct System {
    pub node: Node,
    pub clock: NodeClock,
    /// For each port: the system at the other end, the port there, and the delay.
    links: Vec<(usize, usize, Duration)>,
}

#[derive(Default)]
pub struct World {
    pub systems: Vec<System>,
    now: Instant,
    /// Messages by time of arrival, then by order of sending.
    on_the_way: BTreeMap<(Instant, u64), (usize, usize, Message, Instant)>,
    sent: u64,
    pub down: BTreeSet<usize>,
}

impl World {
    /// A tree of `systems` and `links`. A link has the indices of its two systems and its delay.
    pub fn new(
        systems: Vec<(ClockConfig, NodeConfig)>,
        links: &[(usize, usize, Duration)],
    ) -> Self {
        let mut ports = vec![Vec::new(); systems.len()];
        for &(a, b, delay) in links {
            let (at, other) = (ports[a].len(), ports[b].len());
            ports[a].push((b, other, delay));
            ports[b].push((a, at, delay));
        }
        let made = systems.into_iter().zip(ports).map(|((clock, node), links)| {
            let clock = NodeClock::new(clock);
            let now = clock.free().local(Instant::ZERO);
            System { node: Node::new(node, links.len(), now), clock, links }
        });
        Self { systems: made.collect(), ..Self::default() }
    }

    /// How far the steered clock of `system` is ahead of the clock of `against`, in picoseconds.
    pub fn offset(&self, system: usize, against: usize) -> i64 {
        let local = |at: usize| self.systems[at].clock.steered().local(self.now).as_ps();
        local(system) - local(against)
    }

    pub fn run_until(&mut self, end: Instant) {
        loop {
            let mut next = end;
            for at in 0..self.systems.len() {
                next = next.min(self.turn(at));
            }
            if let Some((&(due, _), _)) = self.on_the_way.first_key_value() {
                next = next.min(due);
            }
            if next >= end {
                self.now = end;
                return;
            }
            self.now = next;
            while let Some(entry) = self.on_the_way.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let (to, port, message, came) = entry.remove();
                if !self.down.contains(&to) {
                    let System { node, clock, .. } = &mut self.systems[to];
                    node.handle(port, &message, clock.stamp(came));
                }
            }
        }
    }

    /// Executes all due actions of a system. Returns when its next action is due.
    fn turn(&mut self, at: usize) -> Instant {
        let now = self.now;
        let System { node, clock, links } = &mut self.systems[at];
        clock.run(now);
        loop {
            match node.poll(clock.free().local(now)) {
                Output::Timeout(next) => {
                    let due = clock.free().global(next).max(now + Duration::from_ps(1));
                    return clock.next_walk().map_or(due, |walk| walk.min(due));
                }
                Output::Frequency(ppt) => clock.adjust(now, ppt),
                Output::Step(ps) => clock.step(now, ps),
                Output::Send { .. } if self.down.contains(&at) => {}
                Output::Send { port, message } => {
                    if message.is_event() {
                        node.sent(port, &message, clock.stamp(now));
                    }
                    let (to, there, delay) = links[port];
                    let came = now + delay;
                    self.sent += 1;
                    let key = (came + PROCESSING, self.sent);
                    self.on_the_way.insert(key, (to, there, message, came));
                }
            }
        }
    }
}
