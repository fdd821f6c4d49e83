//! What the worst frame of each stream and the worst command of each host met at the ports on their
//! way, from which a search of phases derives what to move.

use super::places;
use sim::Config;
use sim::ethernet::traffic::StreamId;
use sim::ethernet::{Frame, FrameStage, LineEvent, Transmission};
use sim::measure::{CommandRecord, Observer, Point};
use sim::network::Place;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tsn::QUEUES;
use wire::Instant;

/// Maximum number of observed hosts and listeners; the first ones.
const OBSERVED: usize = 200;
/// Maximum number of known transmissions of a host, and of a stream.
const RECENT: usize = 1024;
/// Transmissions of a frame are forgotten when a frame has arrived that was sent by more than this
/// number later.
const OVERTAKEN: u64 = 64;

/// A transmission of a subject's frame at a port. Times are in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The wire onto which the port sends.
    pub wire: usize,
    /// Class of the frame.
    pub class: u8,
    /// When the frame reached the port; at its sender, when it was created.
    pub arrival: u64,
    /// When the transmission began.
    pub start: u64,
    /// When the transmission ended, or was interrupted.
    pub end: u64,
    /// For how long the gate alone delayed the frame.
    pub gate: u64,
    /// Since when frames of this class and of higher ones have always been at the port.
    pub busy: u64,
    /// The latest time at which no frame of this class or a higher one was on the line or ready for
    /// it.
    pub free: u64,
}

/// The latest burst of a stream at a port, or the latest of the longest frames of a host's tunnels.
/// Times are in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Number of the host, or that of the stream after all hosts.
    pub source: usize,
    /// Class of the frames.
    pub class: u8,
    /// The wire from which the frames came; `None` at their sender.
    pub from: Option<usize>,
    /// When the first frame reached the port.
    pub first: u64,
    /// When the latest frame reached the port.
    pub last: u64,
    /// Frames of a burst.
    pub frames: u64,
    /// Time of a frame on the line, gap included.
    pub time: u64,
    /// The same on the line from which the frame came.
    pub time_before: u64,
}

/// What the worst frame or command met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// The latency in picoseconds.
    pub latency: u64,
    /// Transmissions of the frame, or of the frames of the host's tunnels during the command, in
    /// the order of time.
    pub hops: Vec<Hop>,
    /// The streams and hosts at the wires of the hops.
    pub bursts: BTreeMap<usize, Vec<Burst>>,
}

/// A transmission of a frame of a stream or host, and for how long gates alone, and all waits, have
/// delayed the frame until then.
#[derive(Clone, Copy, Debug)]
struct Passed {
    id: u64,
    hop: Hop,
    gate: u64,
    waited: u64,
}

/// Times of a class and the classes above it, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    /// Since when frames have always been at the port.
    since: u64,
    /// Since when they have followed each other on the line.
    begin: u64,
    /// The end of the latest one, with its gap.
    until: u64,
}

/// The state of a port.
#[derive(Clone, Debug)]
struct Port {
    ends: [usize; 2],
    gap: u64,
    /// End of the latest transmission, with its gap.
    last: u64,
    /// For each class and the classes above it.
    busy: [Busy; QUEUES],
    bursts: BTreeMap<usize, Burst>,
}

/// Observes the contention of hosts and listeners.
#[derive(Clone, Debug)]
pub struct Contentions {
    ports: Vec<Port>,
    stations: usize,
    /// Hosts by the addresses of their stations.
    hosts: BTreeMap<[u8; 6], usize>,
    /// Recent transmissions, the hosts first.
    recent: Vec<VecDeque<Passed>>,
    /// Streams with their index in `recent`, and the frames of a burst.
    streams: BTreeMap<StreamId, (usize, u64)>,
    /// Listeners by stream and station.
    listeners: BTreeMap<(StreamId, usize), usize>,
    worst: Vec<Contention>,
}

impl Contentions {
    /// Creates the observer before the simulation, for the streams in this order.
    pub fn new(config: &Config, streams: impl Iterator<Item = StreamId>) -> Self {
        let network = &config.network;
        let stations = network.stations.len();
        let number = |place: Place| match place {
            Place::Station(station) => station,
            Place::Bridge(bridge) => stations + bridge,
        };
        let wires = (0..2 * network.cables.len()).filter_map(|wire| places::wire(network, wire));
        let port = |(from, to): (sim::network::CableEnd, sim::network::CableEnd)| Port {
            ends: [number(from.node()), number(to.node())],
            gap: network.port(from).rate.duration(sim::ethernet::frame::GAP).as_ps(),
            last: 0,
            busy: [Busy::default(); QUEUES],
            bursts: BTreeMap::new(),
        };
        let links = places::links(config);
        let hosts = links.filter_map(|(host, link)| {
            let ([station, _], _) = link.transport.stations()?;
            Some((network.mac(station).0, host))
        });
        let mut all = Self {
            ports: wires.map(port).collect(),
            stations,
            hosts: hosts.collect(),
            recent: vec![VecDeque::new(); config.hosts.len()],
            streams: BTreeMap::new(),
            listeners: BTreeMap::new(),
            worst: vec![Contention::default(); config.hosts.len()],
        };
        for id in streams {
            let stream = network.stream(id);
            all.streams.insert(id, (all.recent.len(), u64::from(stream.burst)));
            all.recent.push(VecDeque::new());
            for listener in stream.listeners.iter().take(OBSERVED.saturating_sub(all.worst.len())) {
                all.listeners.insert((id, listener.station), all.worst.len());
                all.worst.push(Contention::default());
            }
        }
        all
    }

    /// Returns what each host and each listener of the streams met, after the simulation.
    pub fn finish(&mut self) -> Vec<Contention> {
        for (wire, met) in self.worst.iter_mut().flat_map(|worst| &mut worst.bursts) {
            // Sources that began later repeat too.
            let later = self.ports[*wire].bursts.values();
            let is_new = |burst: &&Burst| met.iter().all(|known| known.source != burst.source);
            let new: Vec<Burst> = later.filter(is_new).copied().collect();
            met.extend(new);
        }
        std::mem::take(&mut self.worst)
    }

    /// Returns where the transmissions of the frame's sender are.
    fn owner(&self, sent: &Transmission) -> Option<usize> {
        if let Some(id) = StreamId::of_frame(sent.frame.id) {
            return self.streams.get(&id).map(|(at, _)| *at);
        }
        let address = |from: usize| sent.frame.bytes.get(from..from + 6)?.try_into().ok();
        [0, 6]
            .into_iter()
            .filter_map(address)
            .find_map(|mac: [u8; 6]| self.hosts.get(&mac))
            .copied()
    }

    fn transmit(&mut self, wire: usize, sent: &Transmission) {
        let (start, class) = (sent.start.as_ps(), sent.class as u8);
        let end = sent.end.as_ps();
        let spent = |stage| sent.frame.latency.spent(stage).as_ps();
        let waited = [FrameStage::Queue, FrameStage::Gate, FrameStage::Shaper].map(spent);
        let (gate, waited) = (waited[1], waited.iter().sum::<u64>());
        let node = self.ports[wire].ends[0];
        let owner = self.owner(sent);
        let same = |passed: &&Passed| {
            passed.id == sent.frame.id && self.ports[passed.hop.wire].ends[1] == node
        };
        let before = owner.and_then(|owner| self.recent[owner].iter().rev().find(same)).copied();
        let arrival = match before {
            Some(passed) => start.saturating_sub(waited.saturating_sub(passed.waited)),
            None if node < self.stations => sent.frame.latency.created().as_ps(),
            None => start,
        };
        let port = &mut self.ports[wire];
        for busy in &mut port.busy[..=usize::from(class)] {
            if arrival > busy.until {
                busy.since = arrival;
            }
            // Nothing was on the line, or a frame of a lower class.
            if start > port.last {
                busy.begin = start;
            }
            busy.until = end + port.gap;
        }
        port.last = end + port.gap;
        let Busy { since, begin, .. } = port.busy[usize::from(class)];
        let free = since.max(begin);
        let Some(owner) = owner else { return };
        let gated = gate.saturating_sub(before.map_or(0, |passed| passed.gate));
        let hop = Hop { wire, class, arrival, start, end, gate: gated, busy: since, free };
        let stream = StreamId::of_frame(sent.frame.id);
        let frames = stream.map_or(1, |stream| self.streams[&stream].1);
        let new = Burst {
            source: owner,
            class,
            from: before.map(|passed| passed.hop.wire),
            first: arrival,
            last: arrival,
            frames,
            time: end - start + port.gap,
            time_before: before.map_or(0, |passed| passed.hop.end - passed.hop.start),
        };
        let burst = port.bursts.entry(owner).or_insert(new);
        *burst = match stream {
            Some(id) if (sent.frame.id - id.first_frame()).is_multiple_of(frames) => new,
            Some(_) => Burst { first: burst.first, ..new },
            None if burst.time > new.time => *burst,
            None => new,
        };
        let recent = &mut self.recent[owner];
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back(Passed { id: sent.frame.id, hop, waited, gate });
    }

    /// Returns what a subject met that had `latency` and these hops.
    fn contention(&self, latency: u64, hops: Vec<Hop>) -> Contention {
        let wires: BTreeSet<usize> = hops.iter().map(|hop| hop.wire).collect();
        let bursts = |wire: usize| (wire, self.ports[wire].bursts.values().copied().collect());
        Contention { latency, bursts: wires.into_iter().map(bursts).collect(), hops }
    }
}

impl Observer for Contentions {
    fn line(&mut self, _: Instant, point: Point, event: &LineEvent) {
        if let (Point::Wire(wire), LineEvent::Transmit(sent)) = (point, event) {
            self.transmit(wire.into(), sent);
        }
    }

    fn arrival(&mut self, _: Instant, station: usize, frame: &Frame) {
        let Some(id) = StreamId::of_frame(frame.id) else { return };
        let Some((owner, _)) = self.streams.get(&id) else { return };
        let latency = frame.latency.total().as_ps();
        if let Some(&subject) = self.listeners.get(&(id, station))
            && self.worst[subject].latency < latency
        {
            let (mut node, mut hops) = (station, Vec::new());
            let recent = self.recent[*owner].iter().rev();
            for Passed { hop, .. } in recent.filter(|passed| passed.id == frame.id) {
                let [from, to] = self.ports[hop.wire].ends;
                if to == node {
                    hops.push(*hop);
                    node = from;
                }
            }
            hops.reverse();
            self.worst[subject] = self.contention(latency, hops);
        }
        let recent = &mut self.recent[*owner];
        while recent.front().is_some_and(|passed| passed.id + OVERTAKEN < frame.id) {
            recent.pop_front();
        }
    }

    fn command(&mut self, record: &CommandRecord) {
        let (host, since) = (usize::from(record.host), record.since.as_ps());
        let latency = record.until.as_ps() - since;
        if self.worst[host].latency < latency {
            let hops = self.recent[host].iter().map(|passed| passed.hop);
            let hops = hops.filter(|hop| hop.start >= since).collect();
            self.worst[host] = self.contention(latency, hops);
        }
    }
}
