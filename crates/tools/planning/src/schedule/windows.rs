//! The windows of a candidate, and its lists.

use super::{Limits, Lists};
use plan::Planned;
use plan::simulate::places;
use sim::ethernet::port;
use sim::network::{CableEnd, NetworkConfig};
use sim::transport::TransportConfig;
use std::collections::BTreeSet;
use tsn::gates::hyperperiod;
use tsn::{Entry, GateControlList, GateStates, Gates};
use wire::{Duration, Instant};

/// How commands and all other classes share the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// No gates: priorities alone.
    Priorities,
    /// Commands and others in turns.
    Turns,
    /// A window for commands alone, and then all.
    Commands,
    /// A window for the others alone, and then all.
    Others,
}

impl Share {
    /// All ways.
    pub const ALL: [Self; 4] = [Self::Priorities, Self::Turns, Self::Commands, Self::Others];
}

/// The windows at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How the line is shared.
    pub share: Share,
    /// Length of a cycle.
    pub cycle: Duration,
    /// Length of the first window.
    pub first: Duration,
    /// Number of steps of a cycle by which `first` may change.
    pub steps: u64,
}

impl Window {
    /// The window with a first part that is `steps` shorter; `None` if it would be empty.
    pub fn shorter(&self, steps: u64, limits: &Limits<'_>) -> Option<Self> {
        let by = self.cycle.as_ps() / self.steps * steps;
        let first = rounded(self.first.as_ps().checked_sub(by)?, limits)?;
        (self.share != Share::Priorities).then_some(Self { first, ..*self })
    }

    /// The share of the line that commands have alone.
    pub fn reserved(&self) -> f64 {
        match self.share {
            Share::Priorities | Share::Others => 0.0,
            Share::Turns | Share::Commands => self.first.as_ps() as f64 / self.cycle.as_ps() as f64,
        }
    }

    /// The windows in words.
    pub fn words(&self) -> String {
        let (cycle, first) = (self.cycle.exact(), self.first.exact());
        match self.share {
            Share::Priorities => "no gates: priorities alone".to_owned(),
            Share::Turns => format!("commands for {first} of each {cycle}, then all others"),
            Share::Commands => format!("commands alone for {first} of each {cycle}, then all"),
            Share::Others => format!("all but commands for {first} of each {cycle}, then all"),
        }
    }

    /// The list of a port; the inner `None` is a port without gates, the outer one an empty window.
    pub fn list(&self, planned: &Planned, port: CableEnd) -> Option<Option<GateControlList>> {
        let own = commands(planned, port);
        if self.share == Share::Priorities || own == 0 {
            return Some(None);
        }
        let (first, then) = match self.share {
            Share::Turns => (own, !own),
            Share::Commands => (own, 0xff),
            Share::Others | Share::Priorities => (!own, 0xff),
        };
        if self.first >= self.cycle {
            return None;
        }
        let entries = [
            Entry::set(GateStates(first), self.first),
            Entry::set(GateStates(then), self.cycle - self.first),
        ];
        GateControlList::of_entries(Instant::ZERO, &entries).ok().map(Some)
    }
}

fn rounded(ps: u64, limits: &Limits<'_>) -> Option<Duration> {
    let grain = limits.grain.as_ps().max(1_000);
    let ps = ps / grain * grain;
    (ps > 0).then(|| Duration::from_ps(ps))
}

/// The stations and the priority of each path of a tunnel.
fn tunnels(planned: &Planned) -> impl Iterator<Item = ([usize; 2], u8)> {
    let transports = places::links(&planned.config).flat_map(|(_, link)| link.transports());
    transports.filter_map(TransportConfig::stations)
}

/// The classes of commands at a port, as a mask.
pub fn commands(planned: &Planned, port: CableEnd) -> u8 {
    let network = &planned.config.network;
    let config = network.port(port);
    let mut mask = 0;
    for (stations, priority) in tunnels(planned) {
        for station in stations {
            let pcp = network.tag(station, priority).map_or(0, |tag| tag.pcp & 7);
            mask |= 1 << config.queue_of_priority[usize::from(pcp)];
        }
    }
    mask
}

/// The ports that commands pass.
pub fn ports(planned: &Planned) -> Vec<CableEnd> {
    let wiring = planned.config.network.wiring();
    let mut ports = BTreeSet::new();
    for ([host, device], priority) in tunnels(planned) {
        for (from, to) in [(host, device), (device, host)] {
            let ways = places::all_routes(&wiring, from, to, priority);
            ports.extend(ways.iter().map(|egress| egress.place));
        }
    }
    ports.into_iter().collect()
}

/// The grain of times that the hardware of all `ports` can run: a multiple of `grain`.
///
/// # Errors
/// The grains have no common multiple.
pub fn common_grain(
    network: &NetworkConfig,
    ports: impl Iterator<Item = CableEnd>,
    grain: Duration,
) -> Result<Duration, String> {
    let grains = ports.map(|port| network.port(port).gate_grain).chain([grain]);
    hyperperiod(grains).ok_or_else(|| "the gate_grain of the ports have no common multiple".into())
}

/// The windows to try, the same at all ports.
pub fn candidates(planned: &Planned, share: Share, limits: &Limits<'_>) -> Vec<Window> {
    const STEPS: u64 = 16;
    let longest = cycle(&planned.config.network);
    if share == Share::Priorities {
        let first = Duration::from_ps(longest.as_ps() / 2);
        return vec![Window { share, cycle: longest, first, steps: STEPS }];
    }
    if limits.entries < 2 {
        return Vec::new();
    }
    let mut all = Vec::new();
    for halves in 0..6 {
        // Short cycles leave no time for frames.
        let Some(cycle) = rounded(longest.as_ps() >> halves, limits) else { continue };
        if cycle < Duration::from_us(20) {
            break;
        }
        for step in 1..STEPS {
            if let Some(first) = rounded(cycle.as_ps() / STEPS * step, limits) {
                all.push(Window { share, cycle, first, steps: 4 * STEPS });
            }
        }
    }
    all
}

/// All ports of stations and bridges.
pub fn all_ports(network: &NetworkConfig) -> impl Iterator<Item = &port::Config> {
    let stations = network.stations.iter().flat_map(|station| &station.ports);
    stations.chain(network.bridges.iter().flat_map(|bridge| &bridge.ports))
}

/// The longest cycle of the present gates; 1 ms without gates.
fn cycle(network: &NetworkConfig) -> Duration {
    let cycles =
        all_ports(network).filter_map(|port| Some(port.gates.as_ref()?.list().cycle_time()));
    cycles.max().unwrap_or(Duration::from_ms(1))
}

/// The plan with these lists in place of all lists.
pub fn apply(planned: &Planned, lists: &Lists) -> Planned {
    let mut planned = planned.clone();
    let network = &mut planned.config.network;
    let stations = network.stations.iter_mut().enumerate().flat_map(|(at, station)| {
        let ports = station.ports.iter_mut().enumerate();
        ports.map(move |(port, config)| (CableEnd::Station(at, port), config))
    });
    let bridges = network.bridges.iter_mut().enumerate().flat_map(|(at, bridge)| {
        let ports = bridge.ports.iter_mut().enumerate();
        ports.map(move |(port, config)| (CableEnd::Bridge(at, port), config))
    });
    for (place, config) in stations.chain(bridges) {
        // Cyclic queues have their own lists.
        if !config.cqf.is_empty() {
            continue;
        }
        let clock = config.gates.as_ref().map_or(config.clock, |gates| gates.clock());
        config.gates = lists.get(&place).map(|list| Gates::new(list.clone(), clock));
    }
    planned
}
