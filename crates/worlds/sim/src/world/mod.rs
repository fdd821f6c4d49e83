//! A world: nodes, links and networks, which run until all workloads are done.

mod build;
mod config;
mod dispatch;
mod inspect;
mod line;
mod moves;
mod preset;
mod report;
mod shared;

pub use build::{FIRST_PORT, MAX_HOSTS, MAX_LINKS};
pub use config::{
    Attached, Config, ControllerPort, Disturbance, DisturbanceKind, HostConfig, LowerConfig, Move,
    Outage, PortConfig, SharedDrive, SwitchConfig, TunnelLink,
};
pub use inspect::TunnelState;
pub use preset::READS_IN_FLIGHT;
pub use report::{HostReport, LinkReport, Report, TunnelReport};

use crate::kernel::{Component, Kernel, LimitReached};
use crate::measure::{Journeys, Latency, Load, Observer, Point, Pushed, Tracker};
use crate::network::{Bulk, Network};
use crate::node::{DeviceNode, DriveNode, HostNode, SwitchNode};
use crate::pcie::Link;
use crate::transport::{End, Stream, Transport};
use crate::workload::BootError;
use pcie::{Bus, Ram};
use std::cell::RefCell;
use std::ops::Add;
use std::rc::Rc;
use switch::tunnel::Tunnel;
use thiserror::Error;
use wire::Instant;
use wire::frame::HEADER;

/// Why a simulation failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// A limit was reached.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// A host did not start.
    #[error("host {host}: {error}")]
    Boot {
        /// Number of the host.
        host: usize,
        /// The cause.
        error: BootError,
    },
    /// No event is left, but a workload is not done.
    #[error("deadlock at {at}: no event is left, but host {host} is not done")]
    Stuck {
        /// The time.
        at: Instant,
        /// Number of the first host that is not done.
        host: usize,
    },
    /// A limit was reached while a drive's link was down.
    #[error("{limit}; drive {drive} of host {host} has been unreachable since {since}")]
    DriveLost {
        /// The limit.
        limit: LimitReached,
        /// Number of the host.
        host: usize,
        /// Number of the drive.
        drive: usize,
        /// When the link of the drive went down.
        since: Instant,
    },
    /// The configuration contradicts itself.
    #[error("{0}")]
    Config(String),
}

/// The kind of a component, with its number among the components of the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Host(usize),
    Switch(usize),
    Device(usize),
    Drive(usize),
    Station(usize),
    Bridge(usize),
    Bulk(usize),
    /// Switches a device node off and on, for the outage with this number.
    Power(usize),
    /// Moves a device node to another host, for the move with this number.
    Move(usize),
    /// The disturbance with this number.
    Disturbance(usize),
    /// The end of the runtime.
    End,
}

/// The components of a host.
#[derive(Clone, Debug)]
struct HostComponents {
    host: Component,
    /// The switch or the drive below the root port.
    below: Component,
}

/// The counters at the start of the first workload. Reports subtract them.
#[derive(Clone, Debug, Default)]
struct Baseline {
    at: Instant,
    loads: Vec<Load>,
    /// Of every tunnel link and direction.
    tunnels: Vec<TunnelReport>,
    /// Push counters of each host.
    pushed: Vec<Pushed>,
}

/// A simulation: all components and their state.
#[derive(Default)]
pub struct World {
    kernel: Kernel,
    journeys: Journeys,
    observer: Option<Box<dyn Observer>>,
    kinds: Vec<Kind>,
    host_components: Vec<HostComponents>,
    hosts: Vec<HostNode>,
    trackers: Vec<Tracker>,
    /// The links below the root ports, by host.
    root_links: Vec<Link>,
    switches: Vec<SwitchNode>,
    switch_hosts: Vec<usize>,
    /// For each switch, the tunnel link above it; `None` below a root port.
    switch_above: Vec<Option<usize>>,
    /// For each tunnel link: the transports of its paths.
    transports: Vec<Vec<Transport>>,
    /// Number of transports so far.
    connections: usize,
    streams: Vec<[Stream; 2]>,
    network: Network,
    bulk: Vec<Bulk>,
    devices: Vec<DeviceNode>,
    /// For each device node: its first tunnel link, which identifies its drive. The next vectors
    /// are indexed by tunnel link.
    device_homes: Vec<usize>,
    device_numbers: Vec<usize>,
    device_components: Vec<Component>,
    device_links: Vec<Link>,
    device_switches: Vec<usize>,
    device_drives: Vec<Option<usize>>,
    /// The drive or the switch below each device node.
    device_below: Vec<Component>,
    drives: Vec<DriveNode>,
    drive_components: Vec<Component>,
    /// The host of each drive, and the tunnel link above it.
    drive_above: Vec<(usize, Option<usize>)>,
    baseline: Option<Baseline>,
    /// Outages of device nodes, and whether only their processes are killed.
    outages: Vec<(Outage, bool)>,
    moves: Vec<Move>,
    shared: Vec<SharedDrive>,
    /// The controllers of each shared drive, by their number among all drives.
    sharing: Vec<Vec<usize>>,
    disturbances: Vec<Disturbance>,
    /// The run does not end before this time.
    until: Instant,
}

impl World {
    /// Builds a world.
    ///
    /// # Errors
    /// [`Error::Config`] if the configuration contradicts itself.
    pub fn new(config: &Config) -> Result<Self, Error> {
        build::build(config)
    }

    /// Sets the observer, which replaces a previous one.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.network.follow(&*observer);
        self.observer = Some(observer);
    }

    /// The memory of a host, for its programs.
    pub fn memory(&self, host: usize) -> Rc<RefCell<Ram>> {
        self.hosts[host].ram.clone()
    }

    /// Runs a program on a host in addition to the workload. The program gets its own bus. The
    /// simulation does not wait for the end of the program.
    pub fn run_program<T: Future<Output = ()> + 'static>(
        &mut self,
        host: usize,
        program: impl FnOnce(Bus) -> T,
    ) {
        self.hosts[host].run_program(program);
        self.kernel.arm_by(self.host_components[host].host, self.kernel.now());
    }

    /// Runs until every workload is done and the runtime is over.
    ///
    /// # Errors
    /// If a limit is reached, a host does not start, or no event is left.
    pub fn run(&mut self) -> Result<Report, Error> {
        while !self.is_done() {
            self.step()?;
        }
        Ok(self.report())
    }

    /// Runs until every workload is done and the runtime is over, or until `until`. Returns whether
    /// the simulation is done.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_until(&mut self, until: Instant) -> Result<bool, Error> {
        while !self.is_done() {
            if self.kernel.next_time().is_some_and(|at| at > until) {
                return Ok(false);
            }
            self.step()?;
        }
        Ok(true)
    }
    /// Runs all events of the next instant. Returns whether the simulation is done.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_instant(&mut self) -> Result<bool, Error> {
        let at = self.kernel.next_time().unwrap_or(self.kernel.now());
        self.run_until(at)
    }

    /// A TLP that waits at a link end although it has credits and the network has room: the link
    /// end, and the bytes of the TLP. After all events of an instant the result is `None`, unless
    /// the aggregation policy waits. Links with two paths do not count.
    pub fn held_back(&self) -> Option<(Point, usize)> {
        let now = self.kernel.now();
        let waits = |link: usize, end, sender: Option<&Tunnel>| {
            let tunnel = sender.filter(|tunnel| tunnel.is_up())?;
            let [transport] = &self.transports[link][..] else { return None };
            let room = transport.peek_room(now, end, &self.network);
            let length = tunnel.queue().next_length()?;
            (HEADER + length <= room).then_some(length)
        };
        (0..self.transports.len()).find_map(|link| {
            let switch = &self.switches[self.device_switches[link]];
            let host = waits(link, End::Host, switch.sender(now, link - switch.first));
            let device = &self.devices[self.device_numbers[link]];
            let device = waits(link, End::Device, device.sender(now, link));
            let host = host.map(|length| (Point::TunnelHost(link as u16), length));
            host.or(device.map(|length| (Point::TunnelDevice(link as u16), length)))
        })
    }

    fn is_done(&self) -> bool {
        self.kernel.now() >= self.until && self.hosts.iter().all(HostNode::is_done)
    }

    /// Runs the next component.
    fn step(&mut self) -> Result<(), Error> {
        let next = self.kernel.pop().map_err(|limit| self.limit_error(limit))?;
        let Some(component) = next else {
            let host = self.hosts.iter().position(|host| !host.software.is_done());
            return Err(Error::Stuck { at: self.kernel.now(), host: host.unwrap_or(0) });
        };
        self.dispatch(component)
    }

    /// The error for a limit. Names a drive whose link is down, if there is one.
    fn limit_error(&self, limit: LimitReached) -> Error {
        let missing =
            |(host, node): (usize, &HostNode)| node.software.missing().map(|drive| (host, drive));
        match self.hosts.iter().enumerate().find_map(missing) {
            Some((host, (drive, since))) => Error::DriveLost { limit, host, drive, since },
            None => Error::Limit(limit),
        }
    }

    /// The present virtual time.
    pub fn now(&self) -> Instant {
        self.kernel.now()
    }

    /// The number of wake-ups so far.
    pub fn events(&self) -> u64 {
        self.kernel.events()
    }

    /// The error counters of all root complexes, then switches, then drives.
    pub fn errors(&self) -> Vec<pcie::Errors> {
        let roots = self.hosts.iter().map(|host| *host.errors());
        let switches = self.switches.iter().flat_map(SwitchNode::errors);
        let drives = self.drives.iter().map(DriveNode::errors);
        roots.chain(switches).chain(drives).collect()
    }

    /// The lifetime counters of a drive, by its index in [`Config::drives`]. They count since the
    /// first power-on, or since the last one for a volatile drive.
    pub fn drive_counters(&self, drive: usize) -> nvme::state::History {
        self.drives[drive].counters()
    }

    /// The number of TLPs on links and in tunnels now.
    pub fn tlps_in_flight(&self) -> usize {
        self.journeys.in_use()
    }

    /// The number of retransmitted TCP segments with data and raw Ethernet data frames.
    pub fn retransmitted(&self) -> u64 {
        self.network.retransmitted()
    }

    /// Watches a port of a bridge: records the waits of its frames from now on.
    pub fn watch(&mut self, bridge: usize, port: usize) {
        self.network.watch(bridge, port);
    }

    /// Waits at the watched port, and the number of frames dropped there because a queue was full.
    /// `None` if no port is watched.
    pub fn waits(&self) -> Option<(Latency, u64)> {
        self.network.watched()
    }

    /// Accepts the TLPs that all links may defer until now.
    fn take_deferred(&mut self) {
        let now = self.kernel.now();
        let links = self.root_links.iter_mut().chain(&mut self.device_links);
        links.for_each(|link| link.take_deferred_up(now));
    }

    fn loads(&self) -> Vec<(String, Load)> {
        let (now, mut loads) = (self.kernel.now(), Vec::new());
        let links = [("host", "root", &self.root_links), ("link", "device", &self.device_links)];
        for (owner, port, links) in links {
            for (number, link) in links.iter().enumerate() {
                loads.push((format!("{owner} {number} {port} port down"), link.down.load(now)));
                loads.push((format!("{owner} {number} {port} port up"), link.up.load(now)));
            }
        }
        for (number, transports) in self.transports.iter().enumerate() {
            for (end, name) in [(End::Host, "down"), (End::Device, "up")] {
                if let Some(load) = transports[0].load(end) {
                    loads.push((format!("link {number} network {name}"), load));
                }
            }
        }
        loads.extend(self.network.loads());
        loads
    }

    /// Records the counters when the first workload begins.
    fn record_baseline(&mut self) {
        if self.baseline.is_none() && self.hosts.iter().any(|host| host.software.began.is_some()) {
            self.take_deferred();
            let loads = self.loads().into_iter().map(|(_, load)| load).collect();
            let tunnels = self.tunnels().collect();
            let pushed = (0..self.hosts.len()).map(|host| self.pushed(host)).collect();
            self.baseline = Some(Baseline { at: self.kernel.now(), loads, tunnels, pushed });
        }
    }

    /// Counts of every tunnel link and direction since the start.
    fn tunnels(&self) -> impl Iterator<Item = TunnelReport> {
        self.streams.iter().enumerate().flat_map(|(number, pair)| {
            let switch = &self.switches[self.device_switches[number]];
            let host = switch.counters(number - switch.first);
            let device = self.devices[self.device_numbers[number]].two_paths();
            let ends = [(host.failovers, device[1]), (device[0], host.copies)];
            let ways = ["down", "up"].into_iter().zip(pair).zip(ends);
            ways.map(move |((way, stream), (failovers, copies))| TunnelReport {
                name: format!("link {number} {way}"),
                frames: stream.frames,
                tlps: stream.tlps,
                failovers,
                copies,
            })
        })
    }

    /// The results so far.
    pub fn report(&mut self) -> Report {
        self.take_deferred();
        let now = self.kernel.now();
        let nothing = Baseline::default();
        let baseline = self.baseline.as_ref().unwrap_or(&nothing);
        let links = self.loads().into_iter().enumerate().map(|(at, (name, load))| {
            let load = load - baseline.loads.get(at).copied().unwrap_or_default();
            LinkReport { name, load, utilisation_ppm: load.utilisation_ppm(now - baseline.at) }
        });
        let none = TunnelReport::default();
        let tunnels = self.tunnels().enumerate().map(|(at, now)| {
            let before = baseline.tunnels.get(at).unwrap_or(&none);
            TunnelReport {
                frames: now.frames - before.frames,
                tlps: now.tlps - before.tlps,
                failovers: now.failovers - before.failovers,
                copies: now.copies - before.copies,
                name: now.name,
            }
        });
        Report {
            digest: self.kernel.digest(),
            events: self.kernel.events(),
            time: now,
            hosts: (0..self.hosts.len()).map(|host| self.host_report(host)).collect(),
            links: links.collect(),
            tunnels: tunnels.collect(),
            streams: self.network.streams(now),
            bulk: self.bulk.iter().map(|bulk| bulk.report(&self.network)).collect(),
            handled: self.network.handled(now),
            retransmitted: self.network.retransmitted(),
            queues: self.network.queues(now),
            time_of_nodes: self.network.time_report(now),
        }
    }

    /// The push counters of a host since its creation.
    fn pushed(&self, host: usize) -> Pushed {
        let of_host =
            |device: &&DeviceNode| self.switch_hosts[self.device_switches[device.link()]] == host;
        let kept = self.devices.iter().filter(of_host).map(DeviceNode::kept);
        kept.fold(self.hosts[host].pushed(), Pushed::add)
    }

    fn host_report(&self, number: usize) -> HostReport {
        let before = self.baseline.as_ref().and_then(|baseline| baseline.pushed.get(number));
        let (host, tracker) = (&self.hosts[number], &self.trackers[number]);
        let began = host.software.began.unwrap_or(self.kernel.now());
        let ended = host.software.ended.unwrap_or(self.kernel.now());
        let tally = host.software.tally();
        HostReport {
            latency: tally.latency.clone(),
            root_port: tracker.root_port.clone(),
            config_reads: host.config_reads.clone(),
            breakdown: tracker.breakdown,
            commands: tracker.commands,
            total: tracker.total,
            bytes: tally.bytes,
            drive_bytes: tally.drive_bytes.clone(),
            verified: tally.verified,
            mismatches: tally.mismatches,
            spurious: tally.spurious,
            failures: tally.failures,
            conflicts: tally.conflicts,
            pushed: self.pushed(number) - before.copied().unwrap_or_default(),
            began,
            span: ended.since(began),
        }
    }
}
