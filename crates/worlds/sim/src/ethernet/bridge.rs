//! A bridge with any number of ports, store-and-forward or cut-through.
//!
//! Store-and-forward: a frame with a correct FCS enters its output queue after its last bit plus
//! the bridge's delay. Cut-through: a frame enters its output queue after its header plus the
//! delay, before the FCS is known, so that corrupt frames pass. A frame waits in the queue while
//! the output is busy or its gate is closed. A cut-through bridge also stores frames to a faster
//! output, whose line would otherwise run empty, and preemptable frames, because they may be
//! interrupted.

use std::collections::{BTreeMap, VecDeque};

use tsn::{Clock, StepPolicy};
use wire::{Duration, Instant};

use super::frame::{Frame, Mac, Transmission};
use super::port::{Admission, Reception, SchedulerGroups};
use super::streams::{Handling, StreamTable, Verdict};
use super::{Dropped, FrameStage, LineEvent, Port, port, streams};
use crate::kernel::pop_if;
use stats::random::Random;

/// When a frame is forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// After its last bit. Cables to the bridge deliver [`super::cable::Delivery::Whole`].
    #[default]
    StoreAndForward,
    /// After its header. Cables to the bridge deliver [`super::cable::Delivery::Header`].
    CutThrough,
}

/// A bridge's parameters.
#[derive(Clone, Debug)]
pub struct Config {
    /// The ports of the bridge.
    pub ports: Vec<port::Config>,
    /// When a frame is forwarded.
    pub mode: Mode,
    /// Time to the output queue, from the last bit or from the header as `mode` defines.
    pub delay: Duration,
    /// Standard deviation of `delay`, which is never below zero. Frames from one port to another
    /// stay in order.
    pub jitter: Duration,
    /// Seed of the jitter.
    pub seed: u64,
    /// Known addresses and their ports. Others are learned if `learns`.
    pub addresses: Vec<(Mac, usize)>,
    /// The output ports of group addresses (IEEE 802.1Q-2022, 8.8.1: static filtering entries).
    /// Frames for other groups are sent to all other ports.
    pub groups: Vec<(Mac, Vec<usize>)>,
    /// Whether source addresses are learned (IEEE 802.1Q-2022, 8.7). Entries
    /// do not age.
    pub learns: bool,
    /// For each port, whether it forwards frames without their own path. In a network with loops
    /// the forwarding ports form a tree, as with the spanning tree protocol (IEEE 802.1Q-2022,
    /// 8.4). Empty: all ports forward.
    pub forwards: Vec<bool>,
    /// The handling of streams. Filters and elimination need [`Mode::StoreAndForward`], which
    /// checks the FCS first.
    pub streams: Vec<Handling>,
}

/// The most addresses that a bridge learns.
pub const MAX_ADDRESSES: usize = 8192;

/// Input of a bridge.
#[derive(Clone, Debug)]
pub enum Input {
    /// A port has received a whole frame, or its header; see [`Mode`].
    Frame {
        /// The port.
        port: usize,
        /// The frame.
        transmission: Transmission,
    },
}

/// Output of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A line event happens at a port now.
    Line {
        /// The port.
        port: usize,
        /// The event.
        event: LineEvent,
    },
    /// No output before this time.
    Timeout(Option<Instant>),
}

/// Counters of a bridge, in addition to the counters of its ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames received.
    pub received: u64,
    /// Frames dropped by the FCS check.
    pub fcs_errors: u64,
    /// Frames whose destination is behind the port that received them, or of a VLAN of which a port
    /// is no member.
    pub filtered: u64,
    /// Frames given to output ports; a flooded frame counts once for each port.
    pub forwarded: u64,
    /// Frames sent to all other ports, because their destination is unknown or a group.
    pub flooded: u64,
    /// Frames passed to an output port before they were received whole.
    pub cut_through: u64,
    /// Frames that a stream's filter or recovery function discarded.
    pub eliminated: u64,
}

#[derive(Debug)]
struct Egress {
    port: Port,
    /// When to poll the port.
    wake: Option<Instant>,
}

/// A frame in the bridge's pipeline.
#[derive(Clone, Debug)]
struct Ready {
    at: Instant,
    port: usize,
    frame: Frame,
    admission: Admission,
}

/// The output ports of group addresses, in little memory: a large network has many at each bridge.
#[derive(Debug)]
struct Groups {
    /// The addresses, sorted.
    addresses: Vec<Mac>,
    /// For each address, the end of its ports in `ports`; they begin at the end of the one before.
    ends: Vec<u32>,
    ports: Vec<u16>,
}

impl Groups {
    fn new(mut groups: Vec<(Mac, Vec<usize>)>) -> Self {
        groups.sort_unstable();
        let mut this = Self { addresses: Vec::new(), ends: Vec::new(), ports: Vec::new() };
        for (address, ports) in groups {
            this.addresses.push(address);
            this.ports.extend(ports.into_iter().map(|port| port as u16));
            this.ends.push(this.ports.len() as u32);
        }
        this
    }

    fn find(&self, address: Mac) -> Option<&[u16]> {
        if self.addresses.is_empty() || !address.is_group() {
            return None;
        }
        let at = self.addresses.binary_search(&address).ok()?;
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.ports[begin as usize..self.ends[at] as usize])
    }
}

/// A bridge.
#[derive(Debug)]
pub struct Bridge {
    config: Config,
    outputs: Vec<Egress>,
    /// Configured addresses, sorted, because a large network has many at each bridge.
    known: Vec<(Mac, u32)>,
    group_ports: Groups,
    learned: BTreeMap<Mac, usize>,
    random: Random,
    groups: SchedulerGroups,
    /// Whether ports filter VLANs.
    filters: bool,
    streams: StreamTable,
    /// Frames on their way to output queues, in the order of time, then of arrival.
    pipeline: VecDeque<Ready>,
    /// For each pair of ports, when the last frame left the pipeline. Used only with jitter, to
    /// keep frames in order.
    last: BTreeMap<(usize, usize), Instant>,
    counters: Counters,
    dropped: Dropped,
}

impl Bridge {
    /// An idle bridge.
    ///
    /// # Panics
    /// If an address is at a port that does not exist, or a stream's handling is invalid.
    pub fn new(mut config: Config) -> Self {
        let ports = config.ports.len();
        assert!(config.addresses.iter().all(|&(_, port)| port < ports), "an unknown port");
        let known = std::mem::take(&mut config.addresses).into_iter();
        let mut known: Vec<(Mac, u32)> = known.map(|(mac, port)| (mac, port as u32)).collect();
        known.sort_unstable();
        let groups = Groups::new(std::mem::take(&mut config.groups));
        let output = |config: &port::Config| Egress {
            port: Port::new(config.clone()),
            wake: Some(Instant::ZERO),
        };
        Self {
            outputs: config.ports.iter().map(output).collect(),
            known,
            group_ports: groups,
            filters: config.ports.iter().any(|port| !port.vlans.is_empty()),
            learned: BTreeMap::new(),
            random: Random::new(config.seed),
            groups: SchedulerGroups::default(),
            streams: StreamTable::new(&config.streams).expect("checked before"),
            pipeline: VecDeque::new(),
            last: BTreeMap::new(),
            counters: Counters::default(),
            dropped: Dropped::default(),
            config,
        }
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// A port, for its counters.
    pub fn port(&self, index: usize) -> &Port {
        &self.outputs[index].port
    }

    /// Frames of streams that the bridge or its ports dropped.
    pub fn dropped(&mut self) -> &mut Dropped {
        &mut self.dropped
    }

    /// Frames in the pipeline.
    pub fn in_pipeline(&self) -> usize {
        self.pipeline.len()
    }

    /// Takes a frame.
    pub fn handle(&mut self, now: Instant, input: Input) {
        let Input::Frame { port: from, transmission } = input;
        if let Some(control) = transmission.frame.control.filter(|_| !transmission.frame.corrupt) {
            let output = &mut self.outputs[from];
            output.port.handle(now, port::Input::Control(control));
            output.wake = Some(now);
            return;
        }
        self.counters.received += 1;
        if transmission.frame.corrupt && self.config.mode == Mode::StoreAndForward {
            self.counters.fcs_errors += 1;
            self.dropped.note(&transmission.frame);
            return;
        }
        let mut transmission = transmission;
        transmission.frame.security = 0;
        match self.streams.take(now, from, &mut transmission.frame) {
            Verdict::Drop => {
                self.counters.eliminated += 1;
                self.dropped.note(&transmission.frame);
            }
            Verdict::None => self.forward_by_address(now, from, transmission, None),
            Verdict::Pass { at, ipv } => match self.streams.ports(at, from) {
                Some(to) => {
                    let to = to.to_vec();
                    self.streams.copied(at, to.len());
                    self.forward(now, from, &to, transmission, ipv);
                }
                None => self.forward_by_address(now, from, transmission, ipv),
            },
        }
    }

    /// Counts a corrupt frame whose destination is the bridge itself.
    pub fn refuse_corrupt(&mut self) {
        self.counters.received += 1;
        self.counters.fcs_errors += 1;
    }

    /// Forwards a frame without its own path (IEEE 802.1Q-2022, 8.6).
    fn forward_by_address(
        &mut self,
        now: Instant,
        from: usize,
        transmission: Transmission,
        ipv: Option<u8>,
    ) {
        let destination = transmission.frame.destination();
        let vlan = self.filters.then(|| self.config.ports[from].vlan_of(transmission.frame.tag));
        if !self.is_member(from, vlan) {
            self.counters.filtered += 1;
            self.dropped.note(&transmission.frame);
            return;
        }
        if let Some(to) = self.group_ports.find(destination) {
            let is_open = |to: &usize| *to != from && self.is_member(*to, vlan);
            let mut open = to.iter().map(|to| usize::from(*to)).filter(is_open);
            return match (open.next(), open.next()) {
                (Some(to), None) => self.enter(now, from, to, transmission, ipv),
                (first, second) => {
                    let to: Vec<usize> = first.into_iter().chain(second).chain(open).collect();
                    self.counters.filtered += u64::from(to.is_empty());
                    self.forward(now, from, &to, transmission, ipv);
                }
            };
        }
        if !self.forwards(from) {
            self.counters.filtered += 1;
            self.dropped.note(&transmission.frame);
            return;
        }
        self.learn(transmission.frame.source(), from);
        match self.port_of(destination) {
            Some(to) if to == from || !self.is_member(to, vlan) => {
                self.counters.filtered += 1;
                self.dropped.note(&transmission.frame);
            }
            Some(to) => self.enter(now, from, to, transmission, ipv),
            None => {
                self.counters.flooded += 1;
                let open =
                    |to: &usize| *to != from && self.forwards(*to) && self.is_member(*to, vlan);
                let others: Vec<usize> = (0..self.outputs.len()).filter(open).collect();
                self.forward(now, from, &others, transmission, ipv);
            }
        }
    }

    /// Gives a frame to each of these ports.
    fn forward(
        &mut self,
        now: Instant,
        from: usize,
        to: &[usize],
        transmission: Transmission,
        ipv: Option<u8>,
    ) {
        self.dropped.note_copies(&transmission.frame, to.len());
        to.iter().for_each(|to| self.enter(now, from, *to, transmission.clone(), ipv));
    }

    /// Whether a port is a member of the VLAN, if ports filter VLANs.
    fn is_member(&self, port: usize, vlan: Option<u16>) -> bool {
        vlan.is_none_or(|vlan| self.config.ports[port].is_member(vlan))
    }

    fn forwards(&self, port: usize) -> bool {
        self.config.forwards.get(port).is_none_or(|forwards| *forwards)
    }

    /// The counters of each stream until `now`, by the stream's number.
    pub fn streams(&self, now: Instant) -> impl Iterator<Item = (usize, streams::Counters)> {
        self.streams.counters(now)
    }

    /// Drops all frames and forgets the state of streams and schedulers, as in a power loss. Frames
    /// already on lines, counters and learned addresses stay.
    pub fn reset(&mut self, now: Instant) {
        self.pipeline.drain(..).for_each(|ready| self.dropped.note(&ready.frame));
        for output in &mut self.outputs {
            output.port.clear(now);
            self.dropped.append(output.port.dropped());
            output.wake = Some(now);
        }
        self.groups = SchedulerGroups::default();
        self.streams.restart(now);
    }

    /// Replaces the bridge's clock at `now`; see [`Port::set_clock`].
    pub fn set_clock(&mut self, now: Instant, clock: Clock, stepped: Option<StepPolicy>) {
        self.streams.set_clock(clock);
        for output in &mut self.outputs {
            output.port.set_clock(now, clock, stepped);
            output.wake = Some(now);
        }
    }

    /// Adds a frame that the bridge itself made to the queue of `class` at a port. Such frames do
    /// not use the room of the queue.
    pub fn send(&mut self, now: Instant, port: usize, frame: Frame, class: usize) {
        let output = &mut self.outputs[port];
        output.port.handle(now, port::Input::Frame(frame, Admission::own(class)));
        self.dropped.append(output.port.dropped());
        output.wake = Some(now);
    }

    /// Sets whether the link at a port is up; see [`Port::set_link`].
    pub fn set_link(&mut self, now: Instant, port: usize, is_up: bool) {
        let output = &mut self.outputs[port];
        if output.port.set_link(is_up) {
            output.wake = Some(now);
        }
    }

    /// The next transmission, or when to poll again.
    pub fn poll(&mut self, now: Instant) -> Output {
        self.move_ready(now);
        let mut wake = self.pipeline.front().map(|ready| ready.at);
        for (index, output) in self.outputs.iter_mut().enumerate() {
            if output.wake.is_some_and(|at| at <= now) {
                let happens = output.port.poll(now);
                self.dropped.append(output.port.dropped());
                match happens {
                    port::Output::Line(event) => return Output::Line { port: index, event },
                    port::Output::Timeout(at) => output.wake = at,
                }
            }
            if let Some(at) = output.wake {
                wake = Some(wake.map_or(at, |wake| wake.min(at)));
            }
        }
        Output::Timeout(wake)
    }

    fn learn(&mut self, source: Mac, from: usize) {
        let learns = self.config.learns && !source.is_group();
        if learns && self.learned.len() < MAX_ADDRESSES && self.port_of(source).is_none() {
            self.learned.insert(source, from);
        }
    }

    /// The port that leads to an address, if it is known.
    fn port_of(&self, address: Mac) -> Option<usize> {
        let known = self.known.binary_search_by_key(&address, |(mac, _)| *mac);
        known
            .map(|at| self.known[at].1 as usize)
            .ok()
            .or_else(|| self.learned.get(&address).copied())
    }

    /// Puts a frame into the pipeline.
    fn enter(
        &mut self,
        now: Instant,
        from: usize,
        to: usize,
        transmission: Transmission,
        ipv: Option<u8>,
    ) {
        let Transmission { mut frame, end, rate, preemptable, class, .. } = transmission;
        let faster = self.outputs[to].port.rate() > rate;
        let cut = self.config.mode == Mode::CutThrough && !faster && !preemptable;
        self.counters.cut_through += u64::from(cut);
        let known = if cut { now } else { end.max(now) };
        if known > now {
            // The rest of the frame has not arrived yet.
            frame.latency.book(FrameStage::Serialisation, known);
        }
        let output = &mut self.outputs[to].port;
        let reception = Reception { from: Some((from, class)), at: known };
        let Some(admission) = output.admit(&mut self.groups, reception, (&frame, ipv)) else {
            self.dropped.append(output.dropped());
            return;
        };
        let at = match self.config.jitter {
            Duration::ZERO => known + self.config.delay,
            jitter => {
                let last = self.last.entry((from, to)).or_default();
                *last = (known + jittered(&mut self.random, self.config.delay, jitter)).max(*last);
                *last
            }
        };
        let ready = Ready { at, port: to, frame, admission };
        match self.pipeline.back() {
            Some(last) if last.at > at => {
                let place = self.pipeline.partition_point(|other| other.at <= at);
                self.pipeline.insert(place, ready);
            }
            _ => self.pipeline.push_back(ready),
        }
    }

    /// Moves frames that have passed the pipeline to their queues.
    fn move_ready(&mut self, now: Instant) {
        while let Some(ready) = pop_if(&mut self.pipeline, |ready| ready.at <= now) {
            let Ready { at, port, mut frame, admission } = ready;
            frame.latency.book(FrameStage::Bridge, at);
            self.counters.forwarded += 1;
            let output = &mut self.outputs[port];
            output.port.handle(now, port::Input::Frame(frame, admission));
            self.dropped.append(output.port.dropped());
            output.wake = Some(now);
        }
    }
}

/// The bridge's delay for one frame.
fn jittered(random: &mut Random, delay: Duration, jitter: Duration) -> Duration {
    let jitter = random.normal(jitter.as_ps());
    Duration::from_ps(delay.as_ps().saturating_add_signed(jitter))
}
