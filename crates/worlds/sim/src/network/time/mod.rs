//! Clocks of the nodes of a network, and 802.1AS messages between them.
//!
//! Each node has an oscillator and a steered clock ([`tsn::gptp`]). Messages are frames of the
//! network: they wait in the queues of ports, and for the gates of their class. A hardware time
//! stamp is the time at which the first bit of a message passes the port, a software time stamp the
//! time at which software sends or receives the message. Nodes do not forward messages. Each node
//! answers them or sends its own.

mod config;
mod node;
mod record;

pub use config::{ClockNode, TimeConfig};
pub use record::{ClockReport, EdgeReport, MeasuredSample, OffsetSample, lost_bytes};

use super::{Network, Place};
use crate::ethernet::{Frame, LineEvent, Port, Transmission};
use bytes::Bytes;
pub use node::is_ptp;
use node::{Act, TimeNode};
use record::Edges;
use std::collections::BTreeMap;
use tsn::Clock;
use wire::earliest;
use wire::{Duration, Instant};

/// The results for the clocks.
#[derive(Clone, Debug, Default)]
pub struct TimeReport {
    /// The clock of each station, then of each bridge.
    pub clocks: Vec<ClockReport>,
    /// The gate edges of the sender of each wire, if the sender has gates.
    pub edges: BTreeMap<usize, EdgeReport>,
}

/// A message of 802.1AS whose transmission has begun.
#[derive(Clone, Debug)]
pub(super) struct Left {
    start: Instant,
    end: Instant,
    handed: Instant,
    bytes: Bytes,
}

impl Left {
    /// The message that starts with a line event, if any.
    pub(super) fn from_event(event: &LineEvent) -> Option<Self> {
        let LineEvent::Transmit(Transmission { frame, start, end, .. }) = event else {
            return None;
        };
        let handed = frame.latency.created();
        let left = || Self { start: *start, end: *end, handed, bytes: frame.bytes.clone() };
        is_ptp(frame.id).then(left)
    }
}

/// Whether a frame is a message of 802.1AS with a correct FCS.
pub(super) fn is_intact_ptp(frame: &Frame) -> bool {
    is_ptp(frame.id) && !frame.corrupt
}

/// The clocks of a network.
pub(super) struct Time {
    stations: usize,
    nodes: Vec<TimeNode>,
    sample: Duration,
    /// When the offset of each node is recorded next.
    next_sample: Vec<Instant>,
    offsets: Vec<Vec<OffsetSample>>,
    edges: BTreeMap<usize, Edges>,
    /// For each node, whether its clock was locked before or does not use 802.1AS.
    synced: Vec<bool>,
    /// The node whose clock is the reference: the best grandmaster with power, or the last one.
    /// `None` before the first grandmaster: true time is the reference.
    reference: Option<usize>,
    acts: Vec<Act>,
}

impl Time {
    pub(super) fn new(config: TimeConfig, seed: u64, ports: impl Iterator<Item = usize>) -> Self {
        let config = config.seeded(seed);
        let (stations, sample) = (config.stations.len(), config.sample);
        let nodes = config.stations.into_iter().chain(config.bridges).zip(ports).enumerate();
        let nodes: Vec<_> =
            nodes.map(|(place, (node, ports))| TimeNode::new(place, ports, node)).collect();
        Self {
            stations,
            synced: nodes.iter().map(|node| node.config().node.is_none()).collect(),
            next_sample: vec![Instant::ZERO; nodes.len()],
            offsets: vec![Vec::new(); nodes.len()],
            nodes,
            sample,
            edges: BTreeMap::new(),
            reference: None,
            acts: Vec::new(),
        }
    }

    fn number(&self, place: Place) -> usize {
        match place {
            Place::Station(station) => station,
            Place::Bridge(bridge) => self.stations + bridge,
        }
    }

    /// Handles an arrived message of 802.1AS. Software receives it `delay` after its last bit.
    pub(super) fn receive(
        &mut self,
        place: Place,
        port: usize,
        sent: &Transmission,
        delay: Duration,
    ) {
        let number = self.number(place);
        self.nodes[number].received(port, &sent.frame.bytes, sent.start, sent.end + delay);
    }

    pub(super) fn left(&mut self, place: Place, port: usize, left: &Left) {
        let number = self.number(place);
        let Left { start, end, handed, bytes } = left;
        self.nodes[number].sent(port, bytes, (*start, *end), *handed);
    }

    pub(super) fn clock(&self, place: Place) -> &Clock {
        self.nodes[self.number(place)].clock()
    }

    pub(super) fn power(&mut self, now: Instant, place: Place, on: bool) {
        let number = self.number(place);
        self.nodes[number].power(now, on);
    }

    /// The time that a station's clock shows, in picoseconds, and the length of its measurement
    /// intervals.
    pub(super) fn shows(&self, station: usize, now: Instant) -> (i64, Duration) {
        (self.nodes[station].clock().local(now).as_ps(), self.sample)
    }

    /// The node that becomes the reference: the best grandmaster with power, otherwise the last
    /// grandmaster.
    fn best_reference(&self) -> Option<usize> {
        let best = self.nodes.iter().enumerate().filter_map(|(number, node)| {
            let is_master = node.node()?.domain().is_grandmaster();
            let own = node.config().node.as_ref()?.domains[0].own;
            is_master.then_some((own, number))
        });
        best.min().map(|(_, number)| number).or(self.reference)
    }

    /// Whether a node is the reference, or follows the reference with a settled servo. A node that
    /// has not received messages of a better clock is its own grandmaster, and therefore not
    /// locked.
    fn is_locked(&self, number: usize, now: Instant) -> bool {
        let node = &self.nodes[number];
        let grandmaster = node.node().and_then(|node| node.domain().grandmaster());
        node.is_synced(now) && grandmaster == self.reference.map(TimeConfig::identity)
    }

    /// The reference clock.
    fn reference(&self) -> Clock {
        self.reference.map_or_else(Clock::default, |number| *self.nodes[number].clock())
    }

    /// Records the offset of a node, if this is due. Returns when the next record is due.
    fn note(&mut self, number: usize, now: Instant) -> Instant {
        if self.next_sample[number] <= now {
            let node = &self.nodes[number];
            let own = node.clock().local(now).as_ps();
            let offset_ps = own.saturating_sub(self.reference().local(now).as_ps());
            let synced = self.is_locked(number, now);
            self.offsets[number].push(OffsetSample { at: now, offset_ps, synced });
            self.next_sample[number] = now + self.sample;
        }
        self.next_sample[number]
    }

    fn settle(&mut self, wire: usize, number: usize, port: &Port, now: Instant) {
        let Some(gates) = &port.config().gates else { return };
        let reference = self.reference();
        let edges = self.edges.entry(wire).or_insert_with(Edges::new);
        match self.nodes[number].has_power() {
            true => edges.settle(gates, &reference, now, self.synced[number]),
            false => edges.skip(now),
        }
    }
}

impl Network {
    /// Runs the clock of a station or bridge. Returns when the clock must run next.
    pub(super) fn run_clock(&mut self, place: Place, now: Instant) -> Option<Instant> {
        let time = self.time.as_mut()?;
        let number = time.number(place);
        let mut acts = std::mem::take(&mut time.acts);
        let is_due = time.next_sample[number] <= now;
        let reference = if is_due { time.best_reference() } else { time.reference };
        if time.reference != reference {
            // The errors of edges up to now are relative to the previous reference.
            self.settle_edges(now, None);
        }
        let time = self.time.as_mut()?;
        time.reference = reference;
        let due = time.note(number, now);
        // Edges up to now follow the clocks before this run.
        if time.nodes[number].next(now, None).is_some_and(|at| at <= now) {
            let only = Some(place).filter(|_| time.reference != Some(number));
            self.settle_edges(now, only);
        }
        let time = self.time.as_mut()?;
        let wake = time.nodes[number].run(now, &mut acts);
        time.synced[number] |= time.is_locked(number, now);
        let (clock, on_step) = (*time.nodes[number].clock(), time.nodes[number].config().on_step);
        for act in acts.drain(..) {
            match (act, place) {
                (Act::Clock { stepped }, Place::Station(station)) => {
                    let policy = stepped.then_some(on_step);
                    self.stations[station].nic.set_clock(now, clock, policy);
                }
                (Act::Clock { stepped }, Place::Bridge(bridge)) => {
                    let policy = stepped.then_some(on_step);
                    self.bridges[bridge].bridge.set_clock(now, clock, policy);
                }
                (Act::Send { port, frame, class }, Place::Station(station)) => {
                    self.stations[station].nic.send_untagged(now, port, frame, class);
                }
                (Act::Send { port, frame, class }, Place::Bridge(bridge)) => {
                    self.bridges[bridge].bridge.send(now, port, frame, class);
                }
            }
        }
        if let Some(time) = &mut self.time {
            time.acts = acts;
        }
        earliest([wake, Some(due)])
    }

    /// Sets the initial clock of every port.
    pub(super) fn start_clocks(&mut self) {
        let Some(time) = &self.time else { return };
        for (number, station) in self.stations.iter_mut().enumerate() {
            station.nic.set_clock(Instant::ZERO, *time.clock(Place::Station(number)), None);
        }
        for (number, bridge) in self.bridges.iter_mut().enumerate() {
            let clock = *time.clock(Place::Bridge(number));
            bridge.bridge.set_clock(Instant::ZERO, clock, None);
        }
    }

    /// When a node's clock must run for new inputs, which may be earlier than the time that the
    /// last run returned.
    pub(super) fn clock_wake(&self, place: Place, now: Instant) -> Option<Instant> {
        let time = self.time.as_ref()?;
        time.nodes[time.number(place)].next(now, None)
    }

    /// Passes messages whose transmission has begun to the sending node, with their time stamps.
    pub(super) fn stamp(&mut self, place: Place) {
        let Some(time) = &mut self.time else { return };
        let cables = match place {
            Place::Station(station) => &self.stations[station].cables[..],
            Place::Bridge(bridge) => &self.bridges[bridge].cables[..],
        };
        for (port, cable) in cables.iter().enumerate() {
            let Some((_, to)) = *cable else { continue };
            for left in self.directions[to].left.drain(..) {
                time.left(place, port, &left);
            }
        }
    }

    /// Counts the edges of gates up to `now`: of one node, or of all nodes.
    pub(super) fn settle_edges(&mut self, now: Instant, only: Option<Place>) {
        let Some(time) = &mut self.time else { return };
        for (number, station) in self.stations.iter().enumerate() {
            if only.is_some_and(|only| only != Place::Station(number)) {
                continue;
            }
            for (port, cables) in station.cables.iter().enumerate() {
                if let Some((_, wire)) = *cables {
                    time.settle(wire, number, station.nic.port(port), now);
                }
            }
        }
        let stations = self.stations.len();
        for (number, bridge) in self.bridges.iter().enumerate() {
            if only.is_some_and(|only| only != Place::Bridge(number)) {
                continue;
            }
            for (port, cables) in bridge.cables.iter().enumerate() {
                if let Some((_, wire)) = *cables {
                    time.settle(wire, stations + number, bridge.bridge.port(port), now);
                }
            }
        }
    }

    /// The results for the clocks until `now`. `None` if clocks are not simulated.
    pub(crate) fn time_report(&mut self, now: Instant) -> Option<TimeReport> {
        self.settle_edges(now, None);
        let time = self.time.as_ref()?;
        let clock = |(node, offsets): (&TimeNode, &Vec<OffsetSample>)| ClockReport {
            offsets: offsets.clone(),
            steps: node.stepped.clone(),
            grandmaster: node.node().and_then(|node| node.domain().grandmaster()),
            drift_ppt: node.free().drift_ppt(),
        };
        let edges = time.edges.iter().map(|(wire, edges)| (*wire, edges.report.clone()));
        Some(TimeReport {
            clocks: time.nodes.iter().zip(&time.offsets).map(clock).collect(),
            edges: edges.collect(),
        })
    }
}
