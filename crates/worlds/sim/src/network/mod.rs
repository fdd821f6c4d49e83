//! The network between nodes: stations, bridges, cables and background traffic. A station is a TCP
//! host with a network interface.

mod bulk;
mod check;
mod config;
mod ends;
mod handled;
mod links;
mod paths;
mod power;
mod queues;
mod raw;
mod record;
mod routes;
mod streams;
mod time;
mod timeline;
mod tree;
mod watch;
mod wiring;

pub(crate) use bulk::Bulk;
pub use bulk::{BulkConfig, BulkReport};
pub use config::{
    BridgeConfig, BridgeOutage, CableConfig, CableEnd, Listener, MAX_CABLES, MAX_STATIONS,
    MAX_STREAMS, NetworkConfig, StationConfig, TrafficConfig, ip, mac,
};

use crate::ethernet::port::Admission;
use crate::ethernet::traffic::{Source, StreamId};
use crate::ethernet::{
    Bridge, Cable, Frame, FrameStage, LineEvent, Nic, Port, Tag, Transmission, bridge, cable, nic,
    traffic,
};
use crate::kernel::Component;
use crate::measure::{Load, Point, Stage};
use crate::node::Context;
use crate::processor::Processor;
use crate::tcp::{self, Host};
use crate::transport::Arrived;
pub(crate) use ends::EndId;
use ends::{ConnectionEnd, Protocol};
pub use handled::Handled;
use paths::Handlings;
pub use paths::StreamConfig;
use record::Recorder;
pub use routes::{Path, ShortestPaths};
use std::collections::VecDeque;
use std::ops::Add;
use streams::Streams;
pub use streams::{ListenerReport, StreamReport};
pub use time::{
    ClockNode, ClockReport, EdgeReport, MeasuredSample, OffsetSample, TimeConfig, TimeReport,
    is_ptp, lost_bytes,
};
use time::{Left, Time};
use timeline::Followed;
pub use tree::{Place, Tree};
use tsn::preemption::{CONTINUATION_PREAMBLE, MCRC};
use watch::Watch;
use wire::earliest;
use wire::{Duration, Instant};
pub use wiring::{Groups, Wiring};

/// The most frames of a stream that wait for room in their interface. Further frames are dropped.
/// Equals the usual `txqueuelen` of an Ethernet interface in Linux.
const STREAM_QUEUE: usize = 1000;

struct Station {
    /// The TCP host, if the station has TCP connections. `tcp` has its parameters.
    host: Option<Box<Host>>,
    tcp: tcp::Config,
    nic: Nic,
    rx_delay: Duration,
    /// The sources of its streams, each with the tag of their frames.
    sources: Vec<(Source, Option<Tag>)>,
    /// For each source and port, frames that wait for the shaper or for room in the interface.
    waiting: Vec<VecDeque<(Frame, Admission)>>,
    /// Frames dropped because a queue in `waiting` was full.
    overflowed: u64,
    /// Whether streams send before tunnels in the next turn. Streams and tunnels alternate.
    streams_first: bool,
    ends: Vec<ConnectionEnd>,
    scheduler: raw::RawScheduler,
    /// The priorities of the station's sockets, and 0 for answers without a socket.
    priorities: Vec<u8>,
    /// For each port, the directions of its cable, if it has one: received and sent.
    cables: Vec<Option<(usize, usize)>>,
    /// Whether the station has no power. Such a station receives and sends nothing.
    powered_off: bool,
}

/// One direction of a cable, and the component that receives from it.
struct CableDirection {
    cable: Cable,
    to: Component,
    name: String,
    load: Load,
    /// Time for which an arrived frame has no effect, because it is in the receiver's pipeline.
    lag: Duration,
    /// Whether the sender supports preemption.
    preempts: bool,
    /// Whether the sender is without power.
    is_dark: bool,
    recorder: Recorder,
    /// Messages of 802.1AS whose transmission started in the present run of the sender.
    left: Vec<Left>,
    /// The sending port's state, if an observer follows the port.
    followed: Option<Box<Followed>>,
}

struct BridgeNode {
    bridge: Bridge,
    /// For each port, the directions of its cable, if it has one: received and sent.
    cables: Vec<Option<(usize, usize)>>,
    /// When the bridge loses its power (`false`) or gets it back (`true`), in reverse order of
    /// time.
    outages: Vec<(Instant, bool)>,
    /// Delay from the last bit of a frame to the bridge's own software.
    delay: Duration,
    /// Whether a port supports preemption, so that the bridge reacts to links.
    preempts: bool,
}

/// The network of a world.
#[derive(Default)]
pub(crate) struct Network {
    stations: Vec<Station>,
    bridges: Vec<BridgeNode>,
    directions: Vec<CableDirection>,
    station_components: Vec<Component>,
    streams: Streams,
    watch: Option<Watch>,
    time: Option<Time>,
}

impl Network {
    /// Builds the network. `stations` and `bridges` are the components that run its nodes.
    pub(crate) fn new(
        config: &NetworkConfig,
        seed: u64,
        stations: Vec<Component>,
        bridges: &[Component],
    ) -> Result<Self, String> {
        check::network(config)?;
        let wiring = config.wiring();
        let mut handlings = Handlings::from_wiring(&wiring)?;
        let mut groups = wiring.groups()?;
        let directions = config::directions(config, &stations, bridges);
        let ends = |place: CableEnd| {
            // Direction 2n goes from a to b.
            let (cable, _) = wiring.across(place)?;
            let (there, back) = (2 * cable, 2 * cable + 1);
            Some(if config.cables[cable].a == place { (back, there) } else { (there, back) })
        };
        let made = config.stations.iter().enumerate().map(|(number, station)| {
            let ports = 0..station.ports.len();
            let own = std::mem::take(&mut groups[number]).into_iter();
            let own = own.map(|(group, ports)| (group, ports.iter().collect()));
            let sources = station.traffic.iter().enumerate();
            Station {
                host: None,
                tcp: station.tcp(number),
                rx_delay: station.rx_delay,
                nic: Nic::new(station.nic(
                    number,
                    &wiring,
                    handlings.stations.remove(&number).unwrap_or_default(),
                    own.collect(),
                ))
                .with_processor(station.processor.map(Processor::new)),
                sources: sources
                    .map(|(at, traffic)| {
                        let id = StreamId::new(number, at);
                        (Source::new(traffic.source(id, config)), config.stream_tag(id))
                    })
                    .collect(),
                waiting: vec![VecDeque::new(); station.traffic.len() * station.ports.len()],
                overflowed: 0,
                streams_first: false,
                ends: Vec::new(),
                scheduler: raw::RawScheduler::new(config.mac(number), number),
                priorities: vec![0],
                cables: ports.map(|port| ends(CableEnd::Station(number, port))).collect(),
                powered_off: false,
            }
        });
        let made: Vec<Station> = made.collect();
        let switching = config.bridges.iter().enumerate().map(|(number, bridge)| {
            let ports = 0..bridge.ports.len();
            let cables = ports.map(|port| ends(CableEnd::Bridge(number, port)));
            let streams = handlings.bridges.remove(&number).unwrap_or_default();
            let groups = std::mem::take(&mut groups[config.stations.len() + number]).into_iter();
            let groups = groups.map(|(mac, ports)| (mac, ports.into_iter().collect())).collect();
            let here = config.bridge_outages.iter().filter(|outage| outage.bridge == number);
            let changes = here.flat_map(|outage| {
                std::iter::once((outage.from, false)).chain(outage.until.map(|until| (until, true)))
            });
            let mut outages: Vec<_> = changes.collect();
            outages.sort_unstable_by_key(|(at, on)| std::cmp::Reverse((*at, !on)));
            BridgeNode {
                cables: cables.collect(),
                delay: bridge.delay,
                preempts: bridge.ports.iter().any(|port| port.preemption.is_some()),
                outages,
                bridge: Bridge::new(bridge.machine(seed, number, streams, groups, &wiring)),
            }
        });
        let bridges = switching.collect();
        let station_components = stations;
        let streams = Streams::new(config);
        let ports = config.stations.iter().map(|station| station.ports.len());
        let ports = ports.chain(config.bridges.iter().map(|bridge| bridge.ports.len()));
        let time = config.time.clone().map(|time| Time::new(time, seed, ports));
        let mut this = Self {
            stations: made,
            bridges,
            directions,
            station_components,
            streams,
            watch: None,
            time,
        };
        this.start_clocks();
        Ok(this)
    }

    /// The load of every direction of every cable.
    pub(crate) fn loads(&self) -> impl Iterator<Item = (String, Load)> {
        self.directions.iter().map(|way| (way.name.clone(), way.load))
    }

    /// TCP data segments and raw data frames retransmitted so far.
    pub(crate) fn retransmitted(&self) -> u64 {
        let resent = |Station { host, ends, .. }: &Station| {
            host.as_ref().map_or(0, |host| host.counters().retransmitted) + raw::retransmitted(ends)
        };
        self.stations.iter().map(resent).sum()
    }

    /// Duplicate raw data frames that stations have dropped.
    pub(crate) fn raw_duplicates(&self) -> u64 {
        self.stations.iter().map(|station| raw::duplicates(&station.ends)).sum()
    }

    /// The counters of all cables together.
    pub(crate) fn cable_counters(&self) -> cable::Counters {
        let all = self.directions.iter().map(|direction| direction.cable.counters());
        all.fold(Default::default(), Add::add)
    }

    /// Runs a station; returns its next wake-up.
    pub(crate) fn run_station(&mut self, number: usize, context: &mut Context) -> Option<Instant> {
        let (now, place) = (context.now, Place::Station(number));
        let mut wake = self.run_clock(place, now);
        let station = &mut self.stations[number];
        for (port, cables) in station.cables.iter().enumerate() {
            let Some((from, _)) = *cables else { continue };
            let direction = &mut self.directions[from];
            while let Some((due, transmission)) = direction.arrival(from, context) {
                if station.powered_off {
                    self.streams.lose(std::iter::once(transmission.frame.id));
                    continue;
                }
                context.happened(0x4000 + number as u64, &transmission.frame.bytes);
                match &mut self.time {
                    Some(time) if time::is_intact_ptp(&transmission.frame) => {
                        time.receive(place, port, &transmission, station.rx_delay);
                    }
                    _ => station.nic.handle(due, nic::Input::FromLine { port, transmission }),
                }
            }
            wake = earliest([wake, direction.wake()]);
        }
        let time = self.time.as_ref();
        wake = earliest([wake, station.send_streams(now, number, &mut self.streams, time)]);
        if station.powered_off {
            return wake;
        }
        for (port, cables) in station.cables.iter().enumerate() {
            if let Some(cables) = *cables
                && let Some((is_up, change)) = links::state(&self.directions, cables, now)
            {
                station.nic.set_link(port, is_up);
                wake = earliest([wake, change]);
            }
        }
        loop {
            let world = (&mut self.directions[..], &mut self.streams, self.time.as_ref());
            let (moved, at) = station.turn(now, number, world, context);
            if !moved && !station.nic.begin_receiving(now) {
                self.streams.settle(station.nic.dropped());
                wake = earliest([wake, at]);
                break;
            }
        }
        self.stamp(place);
        earliest([wake, self.clock_wake(place, now)])
    }

    /// Runs a bridge; returns its next wake-up.
    pub(crate) fn run_bridge(&mut self, number: usize, context: &mut Context) -> Option<Instant> {
        let (now, place) = (context.now, Place::Bridge(number));
        self.power_bridge(now, number, true);
        let mut wake = self.run_clock(place, now);
        let BridgeNode { bridge, cables, outages, delay, preempts } = &mut self.bridges[number];
        wake = earliest([wake, outages.iter().rev().map(|(at, _)| *at).find(|at| *at > now)]);
        for (port, cable) in cables.iter().enumerate().filter(|_| *preempts) {
            let Some(cables) = *cable else { continue };
            if let Some((is_up, change)) = links::state(&self.directions, cables, now) {
                bridge.set_link(now, port, is_up);
                wake = earliest([wake, change]);
            }
        }
        loop {
            let (first, at) = next_arrival(&self.directions, cables, now);
            let Some((port, from)) = first else {
                wake = earliest([wake, at]);
                break;
            };
            let arrival = self.directions[from].arrival(from, context);
            let (due, transmission) = arrival.expect("it is due");
            // The digest includes the frame at its arrival.
            let digest = context.kernel.digest_mut();
            digest.word(0x5000 + number as u64);
            digest.word(transmission.frame.id);
            match &mut self.time {
                Some(time) if time::is_intact_ptp(&transmission.frame) => {
                    time.receive(place, port, &transmission, *delay);
                }
                // No bridge forwards a message of 802.1AS, not even with a wrong FCS.
                Some(_) if is_ptp(transmission.frame.id) => bridge.refuse_corrupt(),
                _ => bridge.handle(due, bridge::Input::Frame { port, transmission }),
            }
        }
        // Frames that arrive later are lost.
        self.power_bridge(now, number, false);
        let BridgeNode { bridge, cables, .. } = &mut self.bridges[number];
        self.streams.settle(bridge.dropped());
        loop {
            match bridge.poll(now) {
                bridge::Output::Line { port, event } => {
                    if let (Some(watch), LineEvent::Transmit(_)) = (&mut self.watch, &event) {
                        watch.starts(number, port, bridge.port(port).last_wait());
                    }
                    if let Some((_, to)) = cables[port] {
                        self.directions[to].carry(now, to, event, bridge.port(port), context);
                        self.streams.settle(self.directions[to].cable.dropped());
                    }
                }
                bridge::Output::Timeout(at) => {
                    self.streams.settle(bridge.dropped());
                    wake = earliest([wake, at]);
                    break;
                }
            }
        }
        self.stamp(place);
        earliest([wake, self.clock_wake(place, now)])
    }
}

/// The port and the cable direction of the first frame that has arrived at a bridge by `now`, and
/// when the bridge must run next for frames on its cables.
fn next_arrival(
    directions: &[CableDirection],
    cables: &[Option<(usize, usize)>],
    now: Instant,
) -> (Option<(usize, usize)>, Option<Instant>) {
    let (mut first, mut wake) = (None, None);
    let mut earliest_due = None;
    for (port, cable) in cables.iter().enumerate() {
        let Some((from, _)) = *cable else { continue };
        let Some(due) = directions[from].cable.next() else { continue };
        if due <= now && earliest_due.is_none_or(|earliest| due < earliest) {
            (first, earliest_due) = (Some((port, from)), Some(due));
        }
        wake = earliest([wake, Some(due + directions[from].lag)]);
    }
    (first, wake)
}

impl CableDirection {
    /// The next arrived frame, with its time of arrival.
    fn arrival(&mut self, number: usize, context: &mut Context) -> Option<(Instant, Transmission)> {
        let due = self.cable.next().filter(|due| *due <= context.now)?;
        let cable::Output::Deliver(sent) = self.cable.poll(context.now) else { return None };
        if let Some(observer) = &mut *context.observer {
            let point = Point::Wire(number as u16);
            self.recorder.delivered(point, &sent, observer.as_mut());
            observer.delivered(due, point, &sent);
        }
        Some((due, sent))
    }

    /// When the receiver must run next for frames on the way.
    fn wake(&self) -> Option<Instant> {
        self.cable.next().map(|due| due + self.lag)
    }

    fn carry(
        &mut self,
        now: Instant,
        number: usize,
        event: LineEvent,
        port: &Port,
        context: &mut Context,
    ) {
        self.occupy(&event);
        self.left.extend(Left::from_event(&event));
        self.show(now, number, &event, port, context);
        if let Some(observer) = context.observer {
            let point = Point::Wire(number as u16);
            self.recorder.handle(point, &event, observer.as_mut());
            observer.line(now, point, &event);
        }
        self.cable.handle(now, event);
        context.kernel.arm_by_next(self.to, self.wake());
    }

    /// Updates the load for a line event.
    fn occupy(&mut self, event: &LineEvent) {
        match event {
            LineEvent::Transmit(sent) => {
                self.load.add(sent.end - sent.start, sent.frame.line_length());
            }
            LineEvent::Suspend(suspend) => {
                self.load.busy = self.load.busy - (suspend.planned - suspend.end);
                self.load.bytes += MCRC as u64;
            }
            LineEvent::Resume(resume) => {
                self.load.busy = self.load.busy + (resume.end - resume.start);
                self.load.bytes += CONTINUATION_PREAMBLE as u64;
            }
        }
    }
}

impl Station {
    /// Queues the frames of streams that are due. Returns when the next frame is due.
    fn send_streams(
        &mut self,
        now: Instant,
        number: usize,
        streams: &mut Streams,
        time: Option<&Time>,
    ) -> Option<Instant> {
        let mut wake = None;
        let clock = time.map(|time| *time.clock(Place::Station(number)));
        let queues = self.waiting.chunks_mut(self.cables.len());
        for ((source, tag), waiting) in self.sources.iter_mut().zip(queues) {
            loop {
                match source.poll(now, clock.as_ref()) {
                    traffic::Output::Frame(_) if self.powered_off => {}
                    traffic::Output::Frame(mut frame) => {
                        let shows = time.map_or(0, |time| time.shows(number, now).0);
                        streams.send(&frame, shows);
                        let outputs = self.nic.prepare(&mut frame, *tag);
                        streams.settle(self.nic.dropped());
                        for port in outputs.ports() {
                            if waiting[port].len() == STREAM_QUEUE {
                                self.overflowed += 1;
                                streams.lose(std::iter::once(frame.id));
                            } else if let Some(admission) = self.nic.admit(now, port, &frame) {
                                waiting[port].push_back((frame.clone(), admission));
                            }
                        }
                    }
                    traffic::Output::Timeout(at) => break wake = earliest([wake, at]),
                }
            }
        }
        self.hand_over_streams(now, usize::MAX);
        wake
    }

    /// Passes up to `most` waiting frames of streams to the interface while there is room, in the
    /// order of eligibility. Returns the number of frames.
    fn hand_over_streams(&mut self, now: Instant, most: usize) -> usize {
        let nic = &mut self.nic;
        let mut count = 0;
        while count < most {
            let ports = self.cables.len();
            let heads = self.waiting.iter_mut().enumerate().filter_map(|(at, waiting)| {
                let (_, admission) = *waiting.front()?;
                let port = at % ports;
                let due = nic.hand_over_at(port, admission) <= now;
                (due && nic.takes(now, port, admission)).then_some((waiting, port, admission))
            });
            let next = heads.min_by_key(|(.., admission)| admission.eligible);
            let Some((waiting, port, admission)) = next else { break };
            let (mut frame, _) = waiting.pop_front().expect("it is the head");
            let kept = nic.hand_over_at(port, admission).max(frame.latency.until());
            frame.latency.book(FrameStage::Shaper, kept);
            frame.latency.book(FrameStage::Queue, now);
            nic.handle(now, nic::Input::Admitted { port, frame, admission });
            count += 1;
        }
        count
    }

    /// When the shaper next permits the host to send a waiting frame of a stream.
    fn shaper_wake(&self, now: Instant) -> Option<Instant> {
        let ports = self.cables.len();
        let heads = self.waiting.iter().enumerate();
        let heads = heads.filter_map(|(at, waiting)| Some((at % ports, waiting.front()?.1)));
        let kept = heads.map(|(port, admission)| self.nic.hand_over_at(port, admission));
        kept.filter(|at| *at > now).min()
    }

    /// Runs the interface and the TCP host once. Returns whether the interface got a frame, and
    /// when to run again.
    fn turn(
        &mut self,
        now: Instant,
        number: usize,
        (directions, streams, time): (&mut [CableDirection], &mut Streams, Option<&Time>),
        context: &mut Context,
    ) -> (bool, Option<Instant>) {
        let mut moved = false;
        let nic_wake = loop {
            match self.nic.poll(now) {
                nic::Output::Line { port, event } => {
                    if let Some((_, to)) = self.cables[port] {
                        directions[to].carry(now, to, event, self.nic.port(port), context);
                        streams.settle(directions[to].cable.dropped());
                    }
                }
                nic::Output::ToHost(frame) if StreamId::of_frame(frame.id).is_some() => {
                    let shows = time.map(|time| time.shows(number, now));
                    let known = streams.receive(now, number, &frame, shows);
                    if let Some(observer) = context.observer
                        && known
                    {
                        observer.arrival(now, number, &frame);
                    }
                }
                nic::Output::ToHost(frame) if raw::is_raw(&frame) => {
                    raw::RawScheduler::receive(now, &mut self.ends, frame);
                }
                nic::Output::ToHost(frame) => {
                    if let Some(host) = &mut self.host {
                        host.handle(now, tcp::Input::Frame(frame));
                    }
                }
                nic::Output::Timeout(at) => break at,
            }
        };
        if self.streams_first {
            let handed_over = self.hand_over_streams(now, 1) > 0;
            moved |= handed_over;
            // The turn remains with the streams until the interface has room.
            self.streams_first = !handed_over;
        }
        let host_wake = loop {
            let Some(host) = &mut self.host else { break None };
            let rooms = self.priorities.iter().map(|priority| self.nic.room_for(*priority));
            let frames = rooms.min().expect("there is one at least");
            let frames = if self.nic.busy(now).is_some() { 0 } else { frames };
            host.handle(now, tcp::Input::CanTransmit { frames });
            match host.poll(now) {
                tcp::Output::Transmit(frame) => {
                    self.nic.handle(now, nic::Input::FromHost(frame));
                    (moved, self.streams_first) = (true, true);
                }
                tcp::Output::Timeout(at) => break at,
                event => self.notify_owner(now, event, context),
            }
        };
        let (raw_moved, raw_wake) =
            self.scheduler.turn(now, &mut self.ends, &mut self.nic, context);
        self.streams_first |= raw_moved;
        moved |= self.hand_over_streams(now, usize::MAX) > 0;
        (moved || raw_moved, earliest([nic_wake, host_wake, raw_wake, self.shaper_wake(now)]))
    }

    /// Passes an event to the owner of its socket.
    fn notify_owner(&mut self, now: Instant, event: tcp::Output, context: &mut Context) {
        let id = match &event {
            tcp::Output::Connected(id) | tcp::Output::Writable(id) | tcp::Output::Closed(id) => *id,
            tcp::Output::Received { socket, .. } => *socket,
            tcp::Output::Transmit(_) | tcp::Output::Timeout(_) => return,
        };
        let this = |end: &&mut ConnectionEnd| matches!(&end.protocol, Protocol::Tcp(socket) if socket.id == id);
        let Some(end) = self.ends.iter_mut().find(this) else { return };
        match event {
            tcp::Output::Connected(_) => end.connected = true,
            tcp::Output::Closed(_) => (end.connected, end.closed) = (false, true),
            tcp::Output::Received { data, latency, .. } => {
                end.inbox.push_back(Arrived::in_frame(data, &latency, Stage::Tcp));
            }
            _ => {}
        }
        context.kernel.arm_by(end.owner, now);
    }
}
