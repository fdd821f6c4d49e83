//! One node's clocks and its participation in 802.1AS: inputs, due times, outputs.

use bytes::Bytes;
use stats::random::Random;
use std::collections::BTreeMap;
use tsn::Clock;
use tsn::gptp::node::{frame, message_of};
use tsn::gptp::{Message, Node, NodeClock, Output, Stamp, Stamping};
use wire::{Duration, Instant};

use super::super::config::mac;
use super::config::ClockNode;
use crate::ethernet::Frame;
use wire::earliest;

/// This bit is set in the IDs of frames of 802.1AS. Bits 63 and 62 mark frames of streams and raw
/// frames.
const OF_PTP: u64 = 1 << 61;

/// Whether the frame with the ID `id` is a message of 802.1AS.
pub const fn is_ptp(id: u64) -> bool {
    id >> 61 == 1
}

/// An event at a port.
#[derive(Clone, Debug)]
enum Event {
    Received(Message, Stamp),
    Sent(Message, Stamp),
}

/// An action of a node.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Sends an untagged frame from the queue of a class.
    Send { port: usize, frame: Frame, class: usize },
    /// The clock of the node has changed.
    Clock { stepped: bool },
}

/// A node's clocks, and its participation in 802.1AS.
pub(super) struct TimeNode {
    place: usize,
    ports: usize,
    config: ClockNode,
    clock: NodeClock,
    node: Option<Node>,
    noise: Random,
    /// Events to handle, by time and then by order of [`Self::push`], each with its port.
    inbox: BTreeMap<(Instant, u64), (usize, Event)>,
    events: u64,
    steps: usize,
    frames: u64,
    powered_off: bool,
    /// Times at which the clock was set, with the steps.
    pub stepped: Vec<(Instant, i64)>,
}

impl TimeNode {
    /// The node `place`. `place` counts all stations, then all bridges.
    pub(super) fn new(place: usize, ports: usize, config: ClockNode) -> Self {
        let mut this = Self {
            place,
            ports,
            clock: NodeClock::new(config.clock),
            noise: Random::new(config.clock.seed ^ 1),
            config,
            node: None,
            inbox: BTreeMap::new(),
            events: 0,
            steps: 0,
            frames: 0,
            powered_off: false,
            stepped: Vec::new(),
        };
        this.begin(Instant::ZERO);
        this
    }

    fn begin(&mut self, now: Instant) {
        let local = self.clock.free().local(now);
        let make = |node: &_| Node::new(Clone::clone(node), self.ports, local);
        self.node = self.config.node.as_ref().map(make);
    }

    pub(super) fn config(&self) -> &ClockNode {
        &self.config
    }

    /// The clock that gates use.
    pub(super) fn clock(&self) -> &Clock {
        self.clock.steered()
    }

    /// The oscillator's clock.
    pub(super) fn free(&self) -> &Clock {
        self.clock.free()
    }

    /// The state of 802.1AS, while the node has power.
    pub(super) fn node(&self) -> Option<&Node> {
        self.node.as_ref().filter(|_| !self.powered_off)
    }

    pub(super) fn has_power(&self) -> bool {
        !self.powered_off
    }

    /// Whether the node is the grandmaster, or follows a grandmaster with a settled servo.
    pub(super) fn is_synced(&self, now: Instant) -> bool {
        let local = self.clock.free().local(now);
        self.node().is_some_and(|node| node.is_synced(local) && node.is_settled())
    }

    /// Switches the power off or on. A node without power keeps only the time of its clocks, as if
    /// from a battery.
    pub(super) fn power(&mut self, now: Instant, on: bool) {
        self.powered_off = !on;
        self.inbox.clear();
        if on {
            self.clock.adjust(now, 0);
            self.begin(now);
        }
    }

    /// Adds an arrived message. Its first bit passed at `start`, and software receives the message
    /// at `ready`.
    pub(super) fn received(&mut self, port: usize, bytes: &[u8], start: Instant, ready: Instant) {
        let Some(message) = message_of(bytes).filter(|_| !self.powered_off) else { return };
        let stamp = self.stamp(start, ready);
        self.push(ready, port, Event::Received(message, stamp));
    }

    /// Adds a message whose transmission has begun. Its first bit passed at `start`, its last bit
    /// passes at `end`, and software sent the message at `handed`.
    pub(super) fn sent(
        &mut self,
        port: usize,
        bytes: &[u8],
        (start, end): (Instant, Instant),
        handed: Instant,
    ) {
        let Some(message) = message_of(bytes).filter(Message::is_event) else { return };
        let stamp = self.stamp(start, handed);
        self.push(end, port, Event::Sent(message, stamp));
    }

    fn stamp(&mut self, wire: Instant, software: Instant) -> Stamp {
        match self.config.stamping {
            Stamping::Hardware => self.clock.stamp(wire),
            Stamping::Software => {
                let late = self.noise.exponential(self.config.noise.as_ps());
                self.clock.stamp(software + Duration::from_ps(late))
            }
        }
    }

    fn push(&mut self, due: Instant, port: usize, event: Event) {
        self.events += 1;
        self.inbox.insert((due, self.events), (port, event));
    }

    /// When the node must run next. `node` is the due time of 802.1AS, if known.
    pub(super) fn next(&self, now: Instant, node: Option<Instant>) -> Option<Instant> {
        let step = self.config.steps.get(self.steps).map(|(at, _)| *at);
        let inbox = self.inbox.first_key_value().map(|((due, _), _)| *due);
        let walk = self.clock.next_walk();
        earliest([step, inbox, walk, node]).map(|at| at.max(now))
    }

    /// Executes due actions, and adds actions for the network to `acts`. Returns the next due time.
    pub(super) fn run(&mut self, now: Instant, acts: &mut Vec<Act>) -> Option<Instant> {
        if self.clock.run(now) {
            acts.push(Act::Clock { stepped: false });
        }
        while let Some(&(at, ps)) = self.config.steps.get(self.steps).filter(|(at, _)| *at <= now) {
            debug_assert!(at <= now);
            self.steps += 1;
            self.step(now, ps, acts);
            self.node.iter_mut().for_each(Node::clock_was_set);
        }
        while let Some(entry) = self.inbox.first_entry().filter(|entry| entry.key().0 <= now) {
            let (port, event) = entry.remove();
            let Some(node) = &mut self.node else { continue };
            match event {
                Event::Received(message, stamp) => node.handle(port, &message, stamp),
                Event::Sent(message, stamp) => node.sent(port, &message, stamp),
            }
        }
        let mut next = None;
        while !self.powered_off
            && let Some(node) = &mut self.node
        {
            match node.poll(self.clock.free().local(now)) {
                Output::Timeout(at) => {
                    let at = self.clock.free().global(at);
                    next = Some(at.max(now + Duration::from_ps(1)));
                    break;
                }
                Output::Frequency(ppt) => {
                    self.clock.adjust(now, ppt);
                    acts.push(Act::Clock { stepped: false });
                }
                Output::Step(ps) => self.step(now, ps, acts),
                Output::Send { port, message } => {
                    self.frames += 1;
                    let id = OF_PTP | (self.place as u64) << 40 | self.frames;
                    let bytes = Bytes::from(frame(mac(self.place).0, &message));
                    let frame = Frame::new(id, bytes, 0, now);
                    acts.push(Act::Send { port, frame, class: self.config.class.into() });
                }
            }
        }
        self.next(now, next)
    }

    fn step(&mut self, now: Instant, ps: i64, acts: &mut Vec<Act>) {
        self.clock.step(now, ps);
        self.stepped.push((now, ps));
        acts.push(Act::Clock { stepped: true });
    }
}
