//! The configuration of a network.

use super::BulkConfig;
use super::CableDirection;
use super::TimeConfig;
use super::paths::StreamConfig;
use super::record::Recorder;
use super::routes::Path;
use super::wiring::Wiring;
use crate::ethernet::cable::{self, Delivery, Faults};
use crate::ethernet::frame::{GAP, PREAMBLE, TAG};
use crate::ethernet::nic::{Outputs, Tagging};
use crate::ethernet::streams::Handling;
use crate::ethernet::traffic::{self, OnOff, Pattern, StreamId};
use crate::ethernet::{Cable, Mac, Rate, Tag, bridge, nic, port};
use crate::kernel::Component;
use crate::measure::Load;
use crate::processor::ProcessorConfig;
use crate::tcp;
use stats::random::Random;
use std::net::Ipv4Addr;
use wire::{Duration, Instant};

/// Stations, bridges and the cables between them.
#[derive(Clone, Debug, Default)]
pub struct NetworkConfig {
    /// Computers and device nodes.
    pub stations: Vec<StationConfig>,
    /// Bridges.
    pub bridges: Vec<BridgeConfig>,
    /// Cables. Frames without their own path use a tree of these cables; see [`Wiring::spanning`].
    pub cables: Vec<CableConfig>,
    /// Streams with handling in nodes.
    pub streams: Vec<StreamConfig>,
    /// Flows over TCP in the background.
    pub bulk: Vec<BulkConfig>,
    /// Bridges without power.
    pub bridge_outages: Vec<BridgeOutage>,
    /// Drifting clocks and 802.1AS. `None`: gates use the clocks of their configuration.
    pub time: Option<TimeConfig>,
}

impl NetworkConfig {
    /// The port at an end of a cable.
    ///
    /// # Panics
    /// If the port does not exist.
    pub fn port(&self, place: CableEnd) -> &port::Config {
        match place {
            CableEnd::Station(station, port) => &self.stations[station].ports[port],
            CableEnd::Bridge(bridge, port) => &self.bridges[bridge].ports[port],
        }
    }

    /// The address of a station.
    pub fn mac(&self, station: usize) -> Mac {
        self.stations[station].mac(station)
    }

    /// A stream of background traffic.
    pub fn stream(&self, id: StreamId) -> &TrafficConfig {
        &self.stations[usize::from(id.station)].traffic[usize::from(id.number)]
    }

    /// The destination address of a stream.
    pub fn destination(&self, id: StreamId) -> Mac {
        let stream = self.stream(id);
        stream.group(id).unwrap_or_else(|| self.mac(stream.listeners[0].station))
    }

    /// The tag of the frames of a stream.
    pub fn stream_tag(&self, id: StreamId) -> Option<Tag> {
        let TrafficConfig { priority, vlan, pcp, .. } = *self.stream(id);
        let own = self.tag(id.station.into(), priority);
        if vlan.is_none() && pcp.is_none() {
            return own;
        }
        let Tag { vid, pcp: mapped } = own.unwrap_or(Tag { vid: 0, pcp: priority });
        Some(Tag { vid: vlan.unwrap_or(vid), pcp: pcp.unwrap_or(mapped) })
    }

    /// The tag of frames of a station's host with this priority.
    pub fn tag(&self, station: usize, priority: u8) -> Option<Tag> {
        self.stations[station].tag(priority)
    }
}

/// A TCP host with a network interface.
#[derive(Clone, Debug)]
pub struct StationConfig {
    /// The ports of the station's interface, at least one. All have the station's address. Frames
    /// without their own path use the first. The depths of the queues are not used; `tx_ring`
    /// limits them.
    pub ports: Vec<port::Config>,
    /// Delay from the TCP host to the port, for encapsulation, TCP engine and MAC.
    pub tx_delay: Duration,
    /// Delay from the last bit received to the TCP host.
    pub rx_delay: Duration,
    /// Frames per transmit ring of the interface. TLPs that wait for room in a ring can still be
    /// aggregated.
    pub tx_ring: usize,
    /// 802.1Q tags of sent frames.
    pub tagging: Option<Tagging>,
    /// The address; `None`: [`mac`].
    pub mac: Option<Mac>,
    /// How long TCP delays an acknowledgement to send it with data; `None`: no delay.
    pub ack_delay: Option<Duration>,
    /// The processor that does all work of the station's node. `None`: the delays of interface, host
    /// software and firmware pass in parallel.
    pub processor: Option<ProcessorConfig>,
    /// Background traffic that the station sends.
    pub traffic: Vec<TrafficConfig>,
}

/// A station that receives a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The station.
    pub station: usize,
    /// The path from the sender. The paths of all listeners form a tree. `None`: the tree of the
    /// network.
    pub path: Option<Path>,
    /// Deadline of each frame. Frames that arrive later or are lost count as late.
    pub deadline: Option<Duration>,
}

impl Listener {
    /// A listener on the tree of the network, without deadline.
    pub const fn new(station: usize) -> Self {
        Self { station, path: None, deadline: None }
    }
}

/// Background traffic of a station.
#[derive(Clone, Debug)]
pub struct TrafficConfig {
    /// The stations that receive the stream: at least one, each once.
    pub listeners: Vec<Listener>,
    /// The destination, a group address. `None`: the address of the only listener, or an address of
    /// the stream if it has several listeners or a path.
    pub group: Option<Mac>,
    /// Bytes per frame, header to FCS, without tag; of a recording, bytes of the longest frame.
    pub length: usize,
    /// Priority, 0 to 7.
    pub priority: u8,
    /// VLAN of the frames; `None`: that of the station.
    pub vlan: Option<u16>,
    /// Priority code point of the frames, 0 to 7; `None`: that of the station for `priority`.
    pub pcp: Option<u8>,
    /// When frames are sent.
    pub pattern: Pattern,
    /// How late each burst of a periodic stream may be: a random time, evenly distributed. At most
    /// the interval.
    pub jitter: Duration,
    /// Pauses. A burst due in a pause is sent at its end.
    pub on_off: Option<OnOff>,
    /// Frames per burst, sent at once; at least one.
    pub burst: u32,
    /// Time of the first burst. With a random pattern, the first burst follows one interval later.
    pub start: Instant,
    /// End of the stream: no frame is sent at this time or later.
    pub stop: Option<Instant>,
    /// Whether times are by the station's own clock, if the station has one. Otherwise they are in
    /// true time.
    pub own_clock: bool,
    /// Times in which the stream also sends frames without pause, as from a faulty application; in
    /// order.
    pub babbles: Vec<(Instant, Instant)>,
    /// Seed of random intervals.
    pub seed: u64,
}

impl TrafficConfig {
    /// A stream of single frames to a station from time zero on, without end.
    pub fn new(to: usize, length: usize, priority: u8, pattern: Pattern) -> Self {
        let (burst, start, stop, seed) = (1, Instant::ZERO, None, 0);
        Self {
            listeners: vec![Listener::new(to)],
            group: None,
            length,
            priority,
            vlan: None,
            pcp: None,
            pattern,
            jitter: Duration::ZERO,
            on_off: None,
            burst,
            start,
            stop,
            own_clock: true,
            babbles: Vec::new(),
            seed,
        }
    }

    /// Mean length of the frames in bytes.
    pub fn mean_length(&self) -> usize {
        match &self.pattern {
            Pattern::Recorded(recording) => recording.length,
            _ => self.length,
        }
    }

    /// Frames that the stream itself sends at once, at most. Recordings count as single frames.
    pub fn largest_burst(&self) -> u32 {
        match self.pattern {
            Pattern::Envelope { frames, .. } => frames,
            _ => self.burst,
        }
    }
}

impl NetworkConfig {
    /// The cable end that sends in a direction. Direction 2n is from `a` to `b` of cable n, 2n + 1
    /// from `b` to `a`.
    pub fn sender(&self, direction: usize) -> CableEnd {
        let cable = &self.cables[direction / 2];
        if direction.is_multiple_of(2) { cable.a } else { cable.b }
    }
}

/// The most stations: frame IDs have 15 bits for the number of the station.
pub const MAX_STATIONS: usize = 1 << 15;

/// The most cables: [`Point::Wire`](crate::measure::Point::Wire) has 16 bits for their directions.
pub const MAX_CABLES: usize = 1 << 15;

/// The most streams of a station: frame IDs have 8 bits for the number of the stream.
pub const MAX_STREAMS: usize = 256;

/// A time without power at a bridge. Its links are down, and its waiting frames are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeOutage {
    /// The bridge.
    pub bridge: usize,
    /// Start of the outage.
    pub from: Instant,
    /// End of the outage; `None`: never.
    pub until: Option<Instant>,
}

/// A bridge.
#[derive(Clone, Debug)]
pub struct BridgeConfig {
    /// The ports of the bridge.
    pub ports: Vec<port::Config>,
    /// When a frame is forwarded.
    pub mode: bridge::Mode,
    /// Time to the output queue, from the last bit or from the header as `mode` defines.
    pub delay: Duration,
    /// Standard deviation of `delay`.
    pub jitter: Duration,
}

/// An end of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CableEnd {
    /// A port of a station.
    Station(usize, usize),
    /// A port of a bridge.
    Bridge(usize, usize),
}

impl CableEnd {
    /// The first port of a station.
    pub const fn station(station: usize) -> Self {
        Self::Station(station, 0)
    }
}

/// A cable.
#[derive(Clone, Debug)]
pub struct CableConfig {
    /// One end.
    pub a: CableEnd,
    /// The other end.
    pub b: CableEnd,
    /// Propagation delay.
    pub propagation: Duration,
    /// Faults from `a` to `b`, and from `b` to `a`.
    pub faults: [Faults; 2],
    /// Rate limits of the ports at both ends, in the order of time.
    pub rate_steps: Vec<port::RateStep>,
}

impl CableConfig {
    /// A faultless cable.
    pub fn new(a: CableEnd, b: CableEnd, propagation: Duration) -> Self {
        Self { a, b, propagation, faults: Default::default(), rate_steps: Vec::new() }
    }
}

/// The address of a station without a configured one.
pub fn mac(station: usize) -> Mac {
    Mac::local(station as u32 + 1)
}

/// The IPv4 address of a station: 10.0.0.1 and so on.
pub fn ip(station: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0001 + station as u32)
}

impl StationConfig {
    /// A station with `delay` in both pipelines, a ring of `tx_ring` frames and no further options.
    pub fn new(rate: Rate, delay: Duration, tx_ring: usize) -> Self {
        Self {
            ports: vec![port::Config::new(rate)],
            tx_delay: delay,
            rx_delay: delay,
            tx_ring,
            tagging: None,
            mac: None,
            ack_delay: None,
            processor: None,
            traffic: Vec::new(),
        }
    }

    fn mac(&self, number: usize) -> Mac {
        self.mac.unwrap_or_else(|| mac(number))
    }

    /// The tag of frames of the host with this priority.
    fn tag(&self, priority: u8) -> Option<Tag> {
        self.tagging.map(|tagging| tagging.tag(priority))
    }

    pub(super) fn tcp(&self, number: usize) -> tcp::Config {
        // A socket is full with one unsent byte, so that TLPs wait in the tunnel, which can
        // aggregate them.
        let config = tcp::Config::new(self.mac(number), ip(number));
        tcp::Config { ack_delay: self.ack_delay, low_water: 1, ..config }
    }

    pub(super) fn nic(
        &self,
        number: usize,
        wiring: &Wiring<'_>,
        streams: Vec<Handling>,
        groups: Vec<(Mac, Outputs)>,
    ) -> nic::Config {
        let port = |(port, config): (usize, &port::Config)| {
            let rate_steps = steps(wiring, CableEnd::Station(number, port));
            port::Config { rate_steps, ..config.clone() }
        };
        nic::Config {
            mac: self.mac(number),
            ports: self.ports.iter().enumerate().map(port).collect(),
            tx_delay: self.tx_delay,
            rx_delay: self.rx_delay,
            tx_ring: self.tx_ring,
            tagging: self.tagging,
            streams,
            groups,
        }
    }
}

impl TrafficConfig {
    /// The stations of the listeners, sorted, each with the index of the listener.
    pub fn listeners_by_station(&self) -> Vec<(usize, usize)> {
        let mut all: Vec<_> = self.listeners.iter().map(|to| to.station).zip(0..).collect();
        all.sort_unstable();
        all
    }

    /// The group address of the stream `id`; `None` if the frames have the listener's address.
    pub fn group(&self, id: StreamId) -> Option<Mac> {
        let own = self.listeners.len() > 1 || self.listeners[0].path.is_some();
        self.group.or_else(|| own.then(|| Mac::group(id)))
    }

    /// The time that a frame takes on the line of the sender's first port, gap included.
    fn line_time(&self, id: StreamId, network: &NetworkConfig) -> Duration {
        let tag = network.stream_tag(id).map_or(0, |_| TAG);
        let port = &network.stations[usize::from(id.station)].ports[0];
        let bytes = PREAMBLE + self.length + tag + usize::from(port.security) + GAP;
        port.rate.duration(bytes)
    }

    pub(super) fn source(&self, id: StreamId, network: &NetworkConfig) -> traffic::Config {
        traffic::Config {
            source: network.mac(id.station.into()),
            destination: network.destination(id),
            length: self.length,
            priority: self.priority,
            pattern: self.pattern.clone(),
            jitter: self.jitter,
            on_off: self.on_off,
            burst: self.burst,
            start: self.start,
            stop: self.stop,
            own_clock: self.own_clock,
            babbles: self.babbles.clone(),
            line_time: self.line_time(id, network),
            seed: self.seed,
            first_id: id.first_frame(),
        }
    }
}

impl BridgeConfig {
    pub(super) fn machine(
        &self,
        seed: u64,
        number: usize,
        streams: Vec<Handling>,
        groups: Vec<(Mac, Vec<usize>)>,
        wiring: &Wiring<'_>,
    ) -> bridge::Config {
        let port = |(port, config): (usize, &port::Config)| {
            let steps = steps(wiring, CableEnd::Bridge(number, port));
            match steps.is_empty() {
                true => config.clone(),
                false => port::Config { rate_steps: steps, ..config.clone() },
            }
        };
        let ports = 0..self.ports.len();
        let is_in_tree = |port: usize| {
            let here = wiring.across(CableEnd::Bridge(number, port));
            here.is_some_and(|(cable, _)| wiring.spanning()[cable])
        };
        // A complete filtering database, as if management had configured it.
        let addresses = ports.clone().flat_map(|port| {
            wiring
                .beyond(number, port)
                .into_iter()
                .map(move |station| (wiring.network.mac(station), port))
        });
        bridge::Config {
            ports: self.ports.iter().enumerate().map(port).collect(),
            mode: self.mode,
            delay: self.delay,
            jitter: self.jitter,
            seed: Random::for_component(seed, &format!("bridge {number}")).bits(),
            addresses: addresses.collect(),
            groups,
            learns: false,
            forwards: ports.map(is_in_tree).collect(),
            streams,
        }
    }
}

/// The rate steps of the cable at a cable end.
pub(super) fn steps(wiring: &Wiring<'_>, place: CableEnd) -> Vec<port::RateStep> {
    let cable = wiring.across(place).map(|(cable, _)| &wiring.network.cables[cable]);
    cable.map(|cable| cable.rate_steps.clone()).unwrap_or_default()
}

/// Both directions of every cable: direction 2n is from `a` to `b` of cable n.
pub(super) fn directions(
    config: &NetworkConfig,
    stations: &[Component],
    bridges: &[Component],
) -> Vec<CableDirection> {
    let component = |place| match place {
        CableEnd::Station(station, _) => stations[station],
        CableEnd::Bridge(bridge, _) => bridges[bridge],
    };
    let delivery = |place| match place {
        CableEnd::Bridge(bridge, _) if config.bridges[bridge].mode == bridge::Mode::CutThrough => {
            Delivery::Header
        }
        _ => Delivery::Whole,
    };
    // Ports with preemption receive control packets without delay. A processor takes arrived frames
    // together.
    let lag = |from, to| match to {
        _ if config.port(from).preemption.is_some() => Duration::ZERO,
        CableEnd::Station(station, _) => match config.stations[station].processor {
            Some(_) => Duration::ZERO,
            None => config.stations[station].rx_delay,
        },
        // With jitter the delay may be zero.
        CableEnd::Bridge(bridge, _) if config.bridges[bridge].jitter > Duration::ZERO => {
            Duration::ZERO
        }
        CableEnd::Bridge(bridge, _) => config.bridges[bridge].delay,
    };
    let faults = |from: CableEnd, to: CableEnd, faults: &Faults| {
        let dark = config.bridge_outages.iter().filter(|outage| {
            [from, to]
                .iter()
                .any(|end| matches!(end, CableEnd::Bridge(at, _) if *at == outage.bridge))
        });
        let cuts = dark.map(|outage| (outage.from, outage.until.unwrap_or(Instant::MAX)));
        let cuts = faults.cuts.iter().copied().chain(cuts).collect();
        Faults { cuts, ..faults.clone() }
    };
    let way =
        |cable: &CableConfig, from: CableEnd, to: CableEnd, own_faults: &Faults| CableDirection {
            cable: Cable::new(cable::Config {
                propagation: cable.propagation,
                delivery: delivery(to),
                faults: faults(from, to, own_faults),
            }),
            to: component(to),
            name: format!("{} to {}", name(from), name(to)),
            load: Load::default(),
            lag: lag(from, to),
            is_dark: false,
            left: Vec::new(),
            preempts: config.port(from).preemption.is_some(),
            recorder: Recorder::new(config.port(from).preemption.is_some()),
            followed: None,
        };
    config
        .cables
        .iter()
        .flat_map(|cable| {
            let CableConfig { a, b, faults, .. } = cable;
            [way(cable, *a, *b, &faults[0]), way(cable, *b, *a, &faults[1])]
        })
        .collect()
}

fn name(place: CableEnd) -> String {
    match place {
        CableEnd::Station(station, 0) => format!("station {station}"),
        CableEnd::Station(station, port) => format!("station {station} port {port}"),
        CableEnd::Bridge(bridge, port) => format!("bridge {bridge} port {port}"),
    }
}
