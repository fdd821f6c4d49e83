//! Where the frames of streams spend their time: by listener, hop and cause, along time, and the
//! frame with the longest latency. Memory does not grow with time.

mod along;
mod cause;
mod flight;
mod port;
#[cfg(test)]
mod tests;

pub use along::{Along, Bin};
pub use cause::{Cause, Causes, Sums};
pub use port::Behind;

use crate::run::in_ns;
use cause::Spent;
use flight::{Flight, Start, spent};
use port::Port;
use sim::Config;
use sim::ethernet::traffic::StreamId;
use sim::ethernet::{Frame, FrameStage, LineEvent, Transmission};
use sim::measure::{Observer, Point};
use sim::network::Place;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use wire::Instant;

/// Maximum number of points along time of a listener, and of all listeners.
const POINTS: usize = 200;
const ALL_POINTS: usize = 40_000;
/// Maximum number of frames of a stream that are followed.
const FOLLOWED: usize = 1024;
/// A frame is no longer followed when a frame has arrived that was sent by more than this number
/// later.
const OVERTAKEN: u64 = 64;

/// Returns a key by which streams are sorted, the most urgent first: those with a deadline by their
/// margin, then the others, and those of which no frame arrived, by their longest latency.
pub fn urgency(margin_ns: Option<i64>, longest_ns: u64) -> impl Ord + use<> {
    (margin_ns.is_none(), margin_ns, Reverse(longest_ns))
}

/// A frame at one hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The wire onto which the port of the hop sends.
    pub wire: usize,
    /// Time before the port, at the port, on the line and in the cable.
    pub causes: Causes,
    /// Frames behind which the frame waited, at most 16, in the order of the line.
    pub behind: Vec<Behind>,
}

/// The frame with the longest latency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worst {
    /// Number of the frame in its stream, from 0.
    pub number: u64,
    /// When the application sent the frame.
    pub sent: Instant,
    /// The latency in picoseconds.
    pub latency: u64,
    /// The hops, the first one first.
    pub hops: Vec<Hop>,
}

/// A stream at one listener.
#[derive(Clone, Debug)]
pub struct ListenerHops {
    /// All followed frames.
    pub all: Sums,
    /// The hops with the wires onto which their ports send. A stream with several paths has the
    /// hops of all paths.
    pub hops: Vec<(usize, Sums)>,
    /// The frame with the longest latency.
    pub worst: Option<Worst>,
    /// The latency along time.
    pub along: Along,
}

#[derive(Clone, Debug)]
struct Stream {
    first: u64,
    /// The frames that have not arrived everywhere, by ID.
    flights: BTreeMap<u64, Flight>,
    /// The ID after the last frame that was followed.
    next: u64,
    listeners: Vec<ListenerHops>,
    /// The stations of the listeners, sorted, with their indices.
    stations: Vec<(usize, usize)>,
}

/// The hops of all streams.
#[derive(Clone, Debug, Default)]
pub struct StreamHops {
    /// The ports by wire, each with its node and the node at the other end.
    ports: Vec<(Port, [usize; 2])>,
    streams: Vec<Vec<Stream>>,
    stations: usize,
    points: usize,
}

impl StreamHops {
    /// Creates the hops before the simulation; `None` if no station sends a stream.
    pub fn new(config: &Config) -> Option<Self> {
        let network = &config.network;
        let stations = network.stations.len();
        let number = |place: Place| match place {
            Place::Station(station) => station,
            Place::Bridge(bridge) => stations + bridge,
        };
        let ports = network.cables.iter().flat_map(|cable| {
            let is_limited = !cable.rate_steps.is_empty();
            [[cable.a, cable.b], [cable.b, cable.a]].map(|ends| {
                let port = Port::new(network.port(ends[0]), is_limited);
                (port, ends.map(|end| number(end.node())))
            })
        });
        let listener = || ListenerHops {
            all: Sums::default(),
            hops: Vec::new(),
            worst: None,
            along: Along::new(),
        };
        let mut count = 0;
        let streams = network.stations.iter().enumerate().map(|(station, config)| {
            let streams = config.traffic.iter().enumerate().map(|(number, traffic)| {
                let stations = traffic.listeners_by_station();
                count += stations.len();
                let first = StreamId::new(station, number).first_frame();
                Stream {
                    first,
                    next: first,
                    flights: BTreeMap::new(),
                    listeners: stations.iter().map(|_| listener()).collect(),
                    stations,
                }
            });
            streams.collect()
        });
        let (streams, ports) = (streams.collect(), ports.collect());
        let points = (ALL_POINTS / count.max(1)).clamp(16, POINTS);
        (count > 0).then_some(Self { ports, streams, stations, points })
    }

    /// Returns a stream at a listener, in the order of the configuration.
    pub fn listener(&self, stream: StreamId, listener: usize) -> Option<&ListenerHops> {
        let streams = self.streams.get(usize::from(stream.station))?;
        streams.get(usize::from(stream.number))?.listeners.get(listener)
    }

    fn stream(streams: &mut [Vec<Stream>], frame: u64) -> Option<&mut Stream> {
        let StreamId { station, number } = StreamId::of_frame(frame)?;
        streams.get_mut(usize::from(station))?.get_mut(usize::from(number))
    }

    fn transmit(&mut self, wire: usize, sent: &Transmission) {
        let (port, [node, _]) = &self.ports[wire];
        let Some(stream) = Self::stream(&mut self.streams, sent.frame.id) else { return };
        let spent = spent(&sent.frame.latency);
        let is_sender = *node < self.stations;
        let flight = match is_sender {
            true => stream.begin(sent.frame.id),
            false => stream.flights.get_mut(&sent.frame.id),
        };
        let Some(flight) = flight else { return };
        let before = if is_sender { None } else { flight.before(*node, &spent) };
        if before.is_none() && !is_sender {
            return;
        }
        let since = |stage: FrameStage| {
            let before = before.map_or(0, |before| flight.starts[before].spent[stage as usize]);
            spent[stage as usize] - before
        };
        let (queued, mut window) = (since(FrameStage::Queue), since(FrameStage::Queue));
        let mut causes = Causes::default();
        let mut behind = Vec::new();
        if queued > 0 {
            window += since(FrameStage::Shaper);
            if is_sender {
                // The frame waited in the host first, then crossed the interface.
                window += since(FrameStage::Nic) + since(FrameStage::Gate);
            }
            let start = sent.start.as_ps();
            behind = port.divide((start, window, queued), sent.class as u8, &mut causes);
        }
        flight.start(Start { wire, before, spent, queued: causes, behind });
    }
}

impl Stream {
    /// Begins to follow a frame, or returns it for a further port of its sender.
    fn begin(&mut self, frame: u64) -> Option<&mut Flight> {
        if frame >= self.next {
            self.next = frame + 1;
            if self.flights.len() == FOLLOWED {
                self.flights.pop_first();
            }
            self.flights.insert(frame, Flight::default());
        }
        self.flights.get_mut(&frame)
    }

    fn arrive(&mut self, at: Instant, station: usize, frame: &Frame, points: usize) {
        let listener = self.stations.binary_search_by_key(&station, |(station, _)| *station);
        let Ok(listener) = listener.map(|at| self.stations[at].1) else { return };
        let Some(flight) = self.flights.get_mut(&frame.id) else { return };
        let spent = spent(&frame.latency);
        let Some(last) = flight.before(station, &spent) else { return };
        if !flight.arrived.contains(&listener) {
            flight.arrived.push(listener);
            let number = frame.id - self.first;
            let arrival = Arrival { frame, number, flight, last, spent };
            self.listeners[listener].add(at, &arrival, points);
        }
        if flight.arrived.len() == self.listeners.len() {
            self.flights.remove(&frame.id);
        }
        while let Some(first) = self.flights.first_entry()
            && first.key() + OVERTAKEN < frame.id
        {
            first.remove();
        }
    }
}

/// A frame that has arrived at a listener, with the start that brought it there.
struct Arrival<'a> {
    frame: &'a Frame,
    number: u64,
    flight: &'a Flight,
    last: usize,
    spent: Spent,
}

impl ListenerHops {
    fn add(&mut self, at: Instant, arrival: &Arrival<'_>, points: usize) {
        let latency = arrival.frame.latency.total().as_ps();
        let path = arrival.flight.path(arrival.last, &arrival.spent);
        let mut all = Causes::default();
        for (start, causes) in &path {
            all += causes;
            let known = self.hops.iter_mut().find(|(wire, _)| *wire == start.wire);
            match known {
                Some((_, sums)) => sums.add(causes),
                None => {
                    let mut sums = Sums::default();
                    sums.add(causes);
                    self.hops.push((start.wire, sums));
                }
            }
        }
        self.all.add(&all);
        self.along.add(at.as_ps(), latency, points);
        if self.worst.as_ref().is_none_or(|worst| worst.latency < latency) {
            let hop = |(start, causes): &(&Start, Causes)| Hop {
                wire: start.wire,
                causes: *causes,
                behind: start.behind.clone(),
            };
            let (number, sent) = (arrival.number, arrival.frame.latency.created());
            self.worst =
                Some(Worst { number, sent, latency, hops: path.iter().map(hop).collect() });
        }
    }
}

impl Observer for StreamHops {
    fn line(&mut self, _: Instant, point: Point, event: &LineEvent) {
        let Point::Wire(wire) = point else { return };
        let wire = usize::from(wire);
        if let LineEvent::Transmit(sent) = event {
            self.transmit(wire, sent);
        }
        self.ports[wire].0.handle(event);
    }

    fn delivered(&mut self, _: Instant, point: Point, sent: &Transmission) {
        let Point::Wire(wire) = point else { return };
        let (wire, id) = (usize::from(wire), sent.frame.id);
        let stream = Self::stream(&mut self.streams, id);
        if let Some(flight) = stream.and_then(|stream| stream.flights.get_mut(&id))
            && !sent.frame.corrupt
        {
            let (_, [_, node]) = self.ports[wire];
            flight.reach(wire, node);
        }
    }

    fn arrival(&mut self, at: Instant, station: usize, frame: &Frame) {
        if let Some(stream) = Self::stream(&mut self.streams, frame.id) {
            stream.arrive(at, station, frame, self.points);
        }
    }
}
