//! The streams of a plan as a scheduling problem.

use crate::bound::flows::{self, Flow};
use crate::schedule::windows;
use plan::Planned;
use plan::simulate::places;
use sim::ethernet::Rate;
use sim::ethernet::frame::GAP;
use sim::ethernet::port::Algorithm;
use sim::ethernet::traffic::{Pattern, StreamId};
use sim::ethernet::{bridge, port};
use sim::network::{CableEnd, Place, TrafficConfig, Wiring};
use sim::transport::TransportConfig;
use std::collections::{BTreeMap, BTreeSet};
use wire::Duration;

/// How long frames take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// As on the line: preamble, tag and gap of IEEE 802.3 and 802.1Q, the delays of stations. A
    /// frame may arrive in a later period than that of its sending.
    #[default]
    Line,
    /// The model of tsnkit 0.3.0 (`core/_stream.py`, `core/_constants.py`): times in slots of
    /// 100 ns, each rounded up, sizes rounded up to 100 bytes, no preamble and no gap, a whole
    /// number of bits per ns. Each frame is delivered in the period of its sending.
    Tsnkit,
}

/// A slot of [`Timing::Tsnkit`] (`T_SLOT`).
pub const SLOT: Duration = Duration::from_ns(100);

/// Streams, and the ports that they share. All times are in picoseconds.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The streams to place.
    pub streams: Vec<Stream>,
    /// The ports on their paths.
    pub ports: Vec<Port>,
    /// How far the clocks of two nodes differ at most: added to both ends of each window.
    pub margin: u64,
    /// Windows begin and end at multiples of this.
    pub grain: u64,
    /// Whether a frame is delivered in the period of its sending.
    pub within_period: bool,
}

/// A port.
#[derive(Clone, Debug)]
pub struct Port {
    /// The port.
    pub place: CableEnd,
    /// Its name in the plan.
    pub name: String,
    /// The class of each priority code point.
    pub classes: [u8; 8],
    /// The most entries of its list.
    pub entries: usize,
}

/// A stream: the same burst of frames each period.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The stream in the configuration.
    pub id: StreamId,
    /// Its name in the plan.
    pub name: String,
    /// Its period.
    pub period: u64,
    /// The ports on its paths, each after the ports before it.
    pub hops: Vec<Hop>,
    /// The listeners.
    pub ends: Vec<End>,
    /// The priorities that it may have, the best first.
    pub priorities: Vec<u8>,
}

/// A stream at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The number of the port.
    pub port: usize,
    /// The hop before; `None` at the sender.
    pub before: Option<usize>,
    /// From the start of the first frame at the hop before, or from the release at the sender, to
    /// the arrival in the queue.
    pub after: u64,
    /// How long the burst occupies the line, gaps included.
    pub busy: u64,
    /// How long the gap behind a frame occupies the line.
    pub gap: u64,
    /// From the release to the latest start with which all listeners beyond meet their deadlines.
    pub latest: u64,
    /// Whether a burst that waits here leaves in the same way as one that does not.
    pub waits: bool,
}

/// A listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The station.
    pub station: usize,
    /// The last hop.
    pub hop: usize,
    /// From the start of the first frame at this hop to the arrival of the last frame at the
    /// application.
    pub after: u64,
    /// The deadline.
    pub deadline: Option<u64>,
}

impl Stream {
    /// The time from the release to the start at each hop, if the stream never waits.
    pub fn earliest(&self) -> Vec<u64> {
        let mut starts: Vec<u64> = Vec::with_capacity(self.hops.len());
        for hop in &self.hops {
            starts.push(hop.before.map_or(0, |before| starts[before]) + hop.after);
        }
        starts
    }
}

/// Whether a stream is scheduled: it is periodic and has a deadline. All others are background.
pub fn is_scheduled(stream: &TrafficConfig) -> bool {
    matches!(stream.pattern, Pattern::Periodic(_))
        && stream.listeners.iter().any(|listener| listener.deadline.is_some())
}

impl Timing {
    fn rounded(self, ps: u64) -> u64 {
        match self {
            Self::Line => ps,
            Self::Tsnkit => ps.next_multiple_of(SLOT.as_ps()),
        }
    }

    /// Frame and gap on the line. `bytes` is the frame with preamble, `size` its length.
    fn line(self, rate: Rate, bytes: usize, size: usize) -> [u64; 2] {
        match self {
            Self::Line => [bytes, GAP].map(|bytes| rate.duration(bytes).as_ps()),
            Self::Tsnkit => {
                let bits = 8 * size.div_ceil(SLOT.as_ns() as usize) as u64;
                [bits.div_ceil(rate.bits_per_second() / 1_000_000_000) * SLOT.as_ps(), 0]
            }
        }
    }
}

/// Builds the problem of a plan.
///
/// # Errors
/// The first stream that has no fixed times or no class of its own, with the port.
pub fn build(
    planned: &Planned,
    timing: Timing,
    (margin, grain): (Duration, Duration),
) -> Result<Problem, String> {
    let mut builder = Builder {
        planned,
        wiring: planned.config.network.wiring(),
        timing,
        ports: Vec::new(),
        numbers: BTreeMap::new(),
    };
    let others = builder.others();
    let mut streams = Vec::new();
    for (name, id) in &planned.streams {
        if is_scheduled(planned.config.network.stream(*id)) {
            let stream = builder.stream(name, *id, &others);
            streams.push(stream.map_err(|why| format!("stream {name}: {why}"))?);
        }
    }
    let within_period = timing == Timing::Tsnkit;
    let places = builder.ports.iter().map(|port| port.place);
    // Lists have whole nanoseconds (IEEE 802.1Q-2022, 12.29.1.2.3).
    let grain = Duration::from_ps(grain.as_ps().max(1).next_multiple_of(1000));
    let grain = windows::common_grain(&planned.config.network, places, grain)?.as_ps();
    let margin = margin.as_ps();
    Ok(Problem { streams, ports: builder.ports, margin, grain, within_period })
}

struct Builder<'a> {
    planned: &'a Planned,
    wiring: Wiring<'a>,
    timing: Timing,
    ports: Vec<Port>,
    numbers: BTreeMap<CableEnd, usize>,
}

/// What background traffic uses: priority code points, and classes of 802.1AS messages.
struct Others {
    codes: BTreeSet<u8>,
    classes: BTreeSet<u8>,
}

impl Builder<'_> {
    fn others(&self) -> Others {
        let (config, network) = (&self.planned.config, self.wiring.network);
        let code = |station, priority| network.tag(station, priority).map_or(0, |tag| tag.pcp & 7);
        let streams = self.planned.streams.iter().map(|(_, id)| *id);
        let streams = streams.filter(|id| !is_scheduled(network.stream(*id)));
        let mut codes: BTreeSet<u8> =
            streams.map(|id| network.stream_tag(id).map_or(0, |tag| tag.pcp & 7)).collect();
        let tunnels = places::links(config).flat_map(|(_, link)| link.transports());
        let tunnels = tunnels.filter_map(TransportConfig::stations);
        let flows = network.bulk.iter().map(|flow| (flow.stations, flow.priority));
        for (stations, priority) in tunnels.chain(flows) {
            codes.extend(stations.map(|station| code(station, priority)));
        }
        let clocks = network.time.iter().flat_map(|time| time.stations.iter().chain(&time.bridges));
        Others { codes, classes: clocks.map(|clock| clock.class).collect() }
    }

    fn port(&mut self, place: CableEnd) -> usize {
        let (planned, ports) = (self.planned, &mut self.ports);
        *self.numbers.entry(place).or_insert_with(|| {
            let config = planned.config.network.port(place);
            let (classes, entries) = (config.queue_of_priority, config.gate_entries);
            ports.push(Port { place, name: planned.port_name(place), classes, entries });
            ports.len() - 1
        })
    }

    fn stream(&mut self, name: &str, id: StreamId, others: &Others) -> Result<Stream, String> {
        let network = self.wiring.network;
        let traffic = network.stream(id);
        fixed(traffic)?;
        let flow = flows::of_stream(&self.wiring, name, id, 0)?;
        let hops = self.hops(&flow, traffic)?;
        let ends = flow.ends.iter().zip(&traffic.listeners).map(|(end, listener)| {
            let hop = *end.before.first().ok_or("no path leads to a listener")?;
            let (place, own) = (flow.hops[hop].port, &hops[hop]);
            let rx_delay = match self.timing {
                Timing::Line => network.stations[end.station].rx_delay.as_ps(),
                Timing::Tsnkit => 0,
            };
            let after = own.busy - own.gap + self.propagation(place) + rx_delay;
            let deadline = listener.deadline.map(|deadline| self.timing.rounded(deadline.as_ps()));
            Ok(End { station: end.station, hop, after, deadline })
        });
        let ends = ends.collect::<Result<Vec<_>, String>>()?;
        let priorities = self.priorities(id, &flow, others)?;
        let period = self.timing.rounded(traffic.pattern.interval().as_ps());
        let mut stream = Stream { id, name: name.to_owned(), period, hops, ends, priorities };
        self.limit(&mut stream)?;
        Ok(stream)
    }

    fn line(&self, flow: &Flow, traffic: &TrafficConfig, place: CableEnd) -> [u64; 2] {
        let network = self.wiring.network;
        let [bytes, _] = flow.on_line(network, place);
        self.timing.line(network.port(place).rate, bytes, traffic.length)
    }

    fn propagation(&self, place: CableEnd) -> u64 {
        let cable = self.wiring.across(place).map(|(cable, _)| cable);
        let time = cable.map(|cable| self.wiring.network.cables[cable].propagation);
        self.timing.rounded(time.unwrap_or_default().as_ps())
    }

    fn hops(&mut self, flow: &Flow, traffic: &TrafficConfig) -> Result<Vec<Hop>, String> {
        let network = self.wiring.network;
        let more = u64::from(traffic.burst - 1);
        // From frame to frame of the burst, and the line time of a frame, by hop.
        let mut spaces: Vec<[u64; 2]> = Vec::new();
        let mut hops = Vec::new();
        for hop in &flow.hops {
            let port = self.port(hop.port);
            let name = &self.ports[port].name;
            let [longest, shortest] = flow.on_line(network, hop.port);
            if hop.before.len() > 1 || longest != shortest {
                return Err(format!("copies of its frames (802.1CB) at {name}"));
            }
            let before = hop.before.first().copied();
            let delay = match hop.port.node() {
                Place::Bridge(at) if network.bridges[at].mode == bridge::Mode::CutThrough => {
                    return Err(format!("{name} is a port of a cut-through bridge"));
                }
                Place::Bridge(at) => network.bridges[at].delay,
                Place::Station(_) if self.timing == Timing::Tsnkit => Duration::ZERO,
                Place::Station(at) => network.stations[at].tx_delay,
            };
            let mut after = self.timing.rounded(delay.as_ps());
            if let Some(before) = before {
                after += spaces[before][1] + self.propagation(flow.hops[before].port);
            }
            let [line, gap] = self.line(flow, traffic, hop.port);
            if let (Place::Station(at), 1..) = (hop.port.node(), more) {
                let ring = network.stations[at].tx_ring as u64;
                // The frames beyond the ring come after the delay of the pipeline.
                if more >= ring && after > ring * (line + gap) {
                    let burst = traffic.burst;
                    return Err(format!("{name} takes {ring} of {burst} frames at once (tx_ring)"));
                }
            }
            let arrive = before.map_or(0, |before| spaces[before][0]);
            let space = arrive.max(line + gap);
            spaces.push([space, line]);
            let busy = more * space + line + gap;
            let waits = more == 0 || arrive <= line + gap;
            hops.push(Hop { port, before, after, busy, gap, latest: u64::MAX, waits });
        }
        Ok(hops)
    }

    /// The priorities whose classes no background traffic uses at the stream's ports.
    fn priorities(&self, id: StreamId, flow: &Flow, others: &Others) -> Result<Vec<u8>, String> {
        let network = self.wiring.network;
        let tag = network.stream_tag(id);
        let own = tag.map_or(0, |tag| tag.pcp & 7);
        let taken = |priority: u8| {
            flow.hops.iter().map(|hop| hop.port).find(|place| {
                let config = network.port(*place);
                let class = config.queue_of_priority[usize::from(priority)];
                let same = |code: &u8| config.queue_of_priority[usize::from(*code)] == class;
                others.codes.iter().any(same)
                    || others.classes.contains(&class)
                    || !is_strict(config, class)
            })
        };
        let further = (0..8).rev().filter(|priority| tag.is_some() && *priority != own);
        let all: Vec<u8> =
            std::iter::once(own).chain(further).filter(|one| taken(*one).is_none()).collect();
        match (all.is_empty(), taken(own)) {
            (true, Some(place)) => Err(format!(
                "no class is free for it: other traffic or a shaper has class {} at {}",
                network.port(place).queue_of_priority[usize::from(own)],
                self.planned.port_name(place)
            )),
            _ => Ok(all),
        }
    }

    /// Sets the latest starts.
    fn limit(&self, stream: &mut Stream) -> Result<(), String> {
        let earliest = stream.earliest();
        let latest = |deadline: Option<u64>, after: u64| match deadline {
            Some(deadline) => deadline.checked_sub(after),
            None => Some(u64::MAX),
        };
        for end in &stream.ends {
            let most = latest(end.deadline, end.after).unwrap_or(0);
            let hop = &mut stream.hops[end.hop];
            hop.latest = hop.latest.min(most);
            let (Some(deadline), needed) = (end.deadline, earliest[end.hop] + end.after) else {
                continue;
            };
            if deadline < needed {
                let time = |ps| Duration::from_ps(ps).exact();
                return Err(format!(
                    "the deadline of {} is too short: a frame takes {} through an empty network \
                     until the end of {}",
                    time(deadline),
                    time(needed),
                    self.ports[hop.port].name
                ));
            }
        }
        for at in (0..stream.hops.len()).rev() {
            let Hop { before, after, latest, .. } = stream.hops[at];
            if let Some(before) = before {
                let most = if latest == u64::MAX { latest } else { latest - after };
                stream.hops[before].latest = stream.hops[before].latest.min(most);
            }
        }
        Ok(())
    }
}

fn is_strict(config: &port::Config, class: u8) -> bool {
    matches!(config.classes[usize::from(class)].algorithm, Algorithm::StrictPriority)
        && config.cqf.iter().all(|pair| !pair.classes.contains(&class))
}

/// Checks that the frames of a stream have fixed times.
fn fixed(traffic: &TrafficConfig) -> Result<(), String> {
    let wrong = [
        (traffic.jitter > Duration::ZERO, "jitter"),
        (traffic.on_off.is_some(), "off"),
        (!traffic.babbles.is_empty(), "babbles"),
    ];
    match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
        Some((_, key)) => Err(format!("frames of a stream with '{key}' have no fixed times")),
        None => Ok(()),
    }
}
