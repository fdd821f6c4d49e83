//! Simulation of congestion control: senders over raw Ethernet that always have data, and the
//! network between them, without hosts and drives.

mod figures;
mod star;

pub use figures::jain;
pub use star::{BOTTLENECK, BOTTLENECK_PORT, incast, star};

use crate::kernel::{Component, Kernel, LimitReached, Limits};
use crate::measure::{Journeys, Latency, Load, Tracker};
use crate::network::{EndId, Network, NetworkConfig};
use crate::node::Context;
use crate::transport::{Encapsulation, RawConfig};
use switch::raw;
use thiserror::Error;
use wire::earliest;
use wire::{Duration, Instant};

/// A sender that always has data for one receiver.
#[derive(Clone, Copy, Debug)]
pub struct FlowConfig {
    /// The sending and the receiving station, the priority, and the settings of raw Ethernet.
    pub raw: RawConfig,
    /// Start of sending.
    pub start: Instant,
    /// End of sending.
    pub stop: Instant,
    /// Bytes passed to the raw transport in one call.
    pub segment: usize,
}

/// The configuration of a simulation of flows.
#[derive(Clone, Debug)]
pub struct FlowsConfig {
    /// Seed of all random numbers except those of faults, which have their own seeds.
    pub seed: u64,
    /// Stations, bridges, cables.
    pub network: NetworkConfig,
    /// The flows.
    pub flows: Vec<FlowConfig>,
    /// The watched port: index of the bridge, and index of its port.
    pub watch: (usize, usize),
    /// Simulated time.
    pub time: Duration,
    /// Time between samples.
    pub interval: Duration,
}

/// The measurements of one interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// End of the interval.
    pub at: Instant,
    /// Bytes delivered, by flow.
    pub delivered: Vec<u64>,
    /// The load of each direction of each cable. Index 2n is cable n from end a to end b, 2n + 1
    /// the other direction.
    pub loads: Vec<Load>,
    /// The longest wait at the watched port.
    pub longest_wait: Duration,
}

/// The results of a simulation of flows.
#[derive(Clone, Debug)]
pub struct FlowsReport {
    /// Digest of all events.
    pub digest: u64,
    /// The samples, in the order of time.
    pub samples: Vec<Sample>,
    /// Waits of all frames at the watched port.
    pub waits: Latency,
    /// Frames dropped at the watched port because a queue was full.
    pub dropped: u64,
    /// Counters of each sender.
    pub senders: Vec<raw::Counters>,
    /// Counters of each receiver.
    pub receivers: Vec<raw::Counters>,
}

/// Why a simulation of flows failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlowsError {
    /// The configuration contradicts itself.
    #[error("{0}")]
    Config(String),
    /// A limit was reached.
    #[error(transparent)]
    Limit(#[from] LimitReached),
}

enum Kind {
    Station(usize),
    Bridge(usize),
    Flow(usize),
}

struct Flow {
    config: FlowConfig,
    ends: [EndId; 2],
    delivered: u64,
}

struct Flows {
    kernel: Kernel,
    kinds: Vec<Kind>,
    network: Network,
    flows: Vec<Flow>,
    journeys: Journeys,
    tracker: Tracker,
}

/// Simulates flows for [`FlowsConfig::time`].
///
/// # Errors
/// If the configuration is invalid, or a limit of the simulation is reached.
pub fn run(config: &FlowsConfig) -> Result<FlowsReport, FlowsError> {
    let mut flows = Flows::new(config)?;
    let mut samples = Vec::new();
    let mut before = (vec![0; config.flows.len()], Vec::new());
    let mut at = Instant::ZERO;
    while at < Instant::ZERO + config.time {
        at += config.interval;
        flows.run_until(at)?;
        let delivered: Vec<u64> = flows.flows.iter().map(|flow| flow.delivered).collect();
        let loads: Vec<Load> = flows.network.loads().map(|(_, load)| load).collect();
        let since = |(now, before): (&u64, &u64)| now - before;
        let none = vec![Load::default(); loads.len()];
        let past = if before.1.is_empty() { &none } else { &before.1 };
        samples.push(Sample {
            at,
            delivered: delivered.iter().zip(&before.0).map(since).collect(),
            loads: loads.iter().zip(past).map(|(now, before)| *now - *before).collect(),
            longest_wait: flows.network.longest_wait(),
        });
        before = (delivered, loads);
    }
    let (waits, dropped) = flows.network.watched().unwrap_or_default();
    let counters = |end: usize| {
        let ends = flows.flows.iter().map(|flow| flow.ends[end]);
        ends.filter_map(|place| flows.network.raw_counters(place)).collect()
    };
    Ok(FlowsReport {
        digest: flows.kernel.digest(),
        samples,
        waits,
        dropped,
        senders: counters(0),
        receivers: counters(1),
    })
}

impl Flows {
    fn new(config: &FlowsConfig) -> Result<Self, FlowsError> {
        let fail = |reason: &str| Err(FlowsError::Config(reason.to_owned()));
        if config.interval == Duration::ZERO {
            return fail("the sampling interval is 0; it must be above 0");
        }
        let (bridge, port) = config.watch;
        if config.network.bridges.get(bridge).is_none_or(|bridge| port >= bridge.ports.len()) {
            return fail("the watched port is not a port of a bridge");
        }
        let mut kernel = Kernel::new(config.seed, Limits::default());
        let mut kinds = Vec::new();
        let mut add = |kind: Kind| {
            let component = kernel.add();
            kernel.arm(component, Instant::ZERO);
            kinds.push(kind);
            component
        };
        let stations: Vec<Component> =
            (0..config.network.stations.len()).map(|n| add(Kind::Station(n))).collect();
        let bridges: Vec<Component> =
            (0..config.network.bridges.len()).map(|n| add(Kind::Bridge(n))).collect();
        let owners: Vec<Component> = (0..config.flows.len()).map(|n| add(Kind::Flow(n))).collect();
        let mut network = Network::new(&config.network, config.seed, stations, &bridges)
            .map_err(FlowsError::Config)?;
        network.watch(bridge, port);
        let mut flows = Vec::new();
        for ((flow, owner), number) in config.flows.iter().zip(owners).zip(1..) {
            let known = |station: &usize| *station < config.network.stations.len();
            let [from, to] = flow.raw.stations;
            if !flow.raw.stations.iter().all(known) || from == to || flow.raw.priority > 7 {
                return fail("a flow needs two different stations and a priority of 0 to 7");
            }
            if flow.segment == 0 {
                return fail("a flow's segments have 0 bytes; the minimum is 1");
            }
            let none = Encapsulation::default();
            let ends = network.open_raw(&flow.raw, number, none, [owner; 2]);
            flows.push(Flow { config: *flow, ends, delivered: 0 });
        }
        let (journeys, tracker) = (Journeys::default(), Tracker::default());
        Ok(Self { kernel, kinds, network, flows, journeys, tracker })
    }

    fn run_until(&mut self, until: Instant) -> Result<(), LimitReached> {
        while self.kernel.next_time().is_some_and(|at| at <= until) {
            let Some(component) = self.kernel.pop()? else { break };
            let mut context = Context {
                now: self.kernel.now(),
                kernel: &mut self.kernel,
                journeys: &mut self.journeys,
                tracker: &mut self.tracker,
                observer: &mut None,
            };
            let next = match self.kinds[component.index()] {
                Kind::Station(station) => self.network.run_station(station, &mut context),
                Kind::Bridge(bridge) => self.network.run_bridge(bridge, &mut context),
                Kind::Flow(flow) => self.flows[flow].run(&mut self.network, &mut context),
            };
            self.kernel.arm_or_disarm(component, next);
        }
        Ok(())
    }
}

impl Flow {
    fn run(&mut self, network: &mut Network, context: &mut Context) -> Option<Instant> {
        let now = context.now;
        while let Some(arrived) = network.receive(self.ends[1]) {
            self.delivered += arrived.bytes.len() as u64;
        }
        let FlowConfig { start, stop, segment, .. } = self.config;
        if now >= stop {
            return None;
        }
        if now < start {
            return earliest([Some(start)]);
        }
        loop {
            let room = network.room(now, self.ends[0]);
            if room == 0 {
                return None;
            }
            let station = network.send(now, self.ends[0], vec![0; room.min(segment)].into(), 0);
            context.kernel.arm_by(station, now);
        }
    }
}
