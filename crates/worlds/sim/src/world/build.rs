//! Builds the components of a world from its configuration.

use super::config::{
    Attached, Config, Disturbance, DisturbanceKind, HostConfig, Move, Outage, SwitchConfig,
};
use super::moves::{first_group, group_of, origin};
use super::{Error, HostComponents, Kind, World, shared};
use crate::drive::DriveConfig;
use crate::ensure;
use crate::kernel::{Component, Kernel};
use crate::measure::Tracker;
use crate::network::{Bulk, Network};
use crate::node::{DeviceNode, DriveNode, DriveState, HostNode, PowerOn, RootConfig, SwitchNode};
use crate::pcie::{Deferral, Link, LinkConfig};
use crate::transport::{Encapsulation, Pipe, Transport, TransportConfig};
use node::drive::FIRST;
use node::push::Mode;
use std::cell::RefCell;
use std::rc::Rc;
use switch::push_store::CAPACITY;
use switch::tunnel;
use wire::frame::Role;
use wire::{Duration, Instant};

/// TCP port of the first link. Later links have the next ports.
pub const FIRST_PORT: u16 = 4420;

/// The most links of device nodes and flows, because each has its own TCP port.
pub const MAX_LINKS: usize = (u16::MAX - FIRST_PORT) as usize;

/// The most hosts, because observers and the groups of moving drives have 16 bits for a host.
pub const MAX_HOSTS: usize = u16::MAX as usize;

pub(super) fn build(config: &Config) -> Result<World, Error> {
    check(config)?;
    let mut world = World {
        kernel: Kernel::new(config.seed, config.limits),
        outages: all_outages(config).collect(),
        moves: config.moves.clone(),
        shared: config.shared.clone(),
        sharing: vec![Vec::new(); config.shared.len()],
        disturbances: config.disturbances.clone(),
        until: Instant::ZERO + config.runtime.unwrap_or_default(),
        ..World::default()
    };
    let network = &config.network;
    let stations = (0..network.stations.len()).map(|n| world.add(Kind::Station(n))).collect();
    let bridges: Vec<_> = (0..network.bridges.len()).map(|n| world.add(Kind::Bridge(n))).collect();
    world.network =
        Network::new(network, config.seed, stations, &bridges).map_err(Error::Config)?;
    if config.hosts.is_empty() {
        // A spare tracker for stations and bridges.
        world.trackers.push(Tracker::default());
    }
    for (number, host) in config.hosts.iter().enumerate() {
        world.add_host(number, host, &config.moves);
    }
    for host in config.uncompared().into_keys() {
        world.hosts[host].software.compare_nothing();
    }
    for (number, bulk) in network.bulk.iter().enumerate() {
        let owner = world.add(Kind::Bulk(number));
        let port = FIRST_PORT + (world.connections + number) as u16;
        world.bulk.push(Bulk::new(&mut world.network, bulk, port, owner));
    }
    for (number, (outage, kills)) in all_outages(config).enumerate() {
        world.add(Kind::Power(number));
        for device in world.devices_at(outage.station).into_iter().filter(|_| kills) {
            let drive = world.drive_of(device);
            world.drives[drive].keep();
        }
    }
    for (number, planned) in config.moves.iter().enumerate() {
        world.prepare_move(planned, config.hosts[planned.to[0]].workload.nsid());
        world.add(Kind::Move(number));
    }
    for number in 0..config.disturbances.len() {
        world.add(Kind::Disturbance(number));
    }
    if config.runtime.is_some() {
        world.add(Kind::End);
    }
    Ok(world)
}

fn check(config: &Config) -> Result<(), Error> {
    let at = |place: String| move |reason| Error::Config(format!("{place}: {reason}"));
    let lasts = config.runtime.is_none_or(|runtime| runtime > Duration::ZERO);
    let ends = lasts && (config.runtime.is_some() || !config.hosts.is_empty());
    ensure(ends, Error::Config("without hosts, 'runtime' must be set; it must be above 0".into()))?;
    let switches = config.hosts.iter().flat_map(HostConfig::switches);
    let paths: usize = switches.flat_map(|switch| switch.transports()).map(|all| all.len()).sum();
    let links = paths + config.network.bulk.len();
    let fits = links <= MAX_LINKS && config.hosts.len() <= MAX_HOSTS;
    let most = format!("too many links or hosts: the maximum is {MAX_LINKS} and {MAX_HOSTS}");
    ensure(fits, Error::Config(most))?;
    for (number, host) in config.hosts.iter().enumerate() {
        for switch in host.switches() {
            let ports = switch.transports().count();
            ensure((1..=32).contains(&ports), "a switch needs 1 to 32 ports")
                .map_err(at(format!("host {number}")))?;
            for (port, transports) in switch.transports().enumerate() {
                let at = at(format!("host {number}, port {port}"));
                check_transports(config, &transports, switch.max_payload).map_err(at)?;
            }
        }
        check_host(host).map_err(at(format!("host {number}")))?;
    }
    for (number, drive) in config.drives().enumerate() {
        check_drive(drive).map_err(at(format!("drive {number}")))?;
    }
    for (number, outage) in all_outages(config).enumerate() {
        let later = all_outages(config).skip(number + 1);
        check_outage(config, &outage, later).map_err(at(format!("outage {number}")))?;
    }
    for (number, disturbance) in config.disturbances.iter().enumerate() {
        check_disturbance(config, disturbance).map_err(at(format!("disturbance {number}")))?;
    }
    for (number, planned) in config.moves.iter().enumerate() {
        check_move(config, planned).map_err(at(format!("move {number}")))?;
    }
    for (number, drive) in config.shared.iter().enumerate() {
        shared::check(config, drive).map_err(at(format!("shared drive {number}")))?;
    }
    for (number, host) in config.hosts.iter().enumerate() {
        shared::check_registration(config, number, host).map_err(at(format!("host {number}")))?;
    }
    Ok(())
}

fn check_host(host: &HostConfig) -> Result<(), &'static str> {
    let last = host.drives().iter().map(|drive| drive.sizes().count()).min().unwrap_or(0);
    let nsid = host.workload.nsid() as usize;
    ensure((1..=last).contains(&nsid), "one of its drives lacks the namespace of its workload")?;
    ensure((1 << 20..=3 << 30).contains(&host.root.memory), "its memory is not 1 MiB to 3 GiB")?;
    let size = host.root.completion_size;
    let right = size.is_power_of_two() && (64..=4096).contains(&size);
    ensure(right, "completion_size is not a power of two of 64 to 4096")
}

fn check_drive(drive: &DriveConfig) -> Result<(), &'static str> {
    let whole = |size: u64| size > 0 && size.is_multiple_of(4096);
    ensure(drive.sizes().all(whole), "its size is not a multiple of 4096 above 0")?;
    let read = drive.read_request;
    let right = read.is_power_of_two() && (128..=4096).contains(&read);
    ensure(right, "read_request is not a power of two of 128 to 4096")?;
    ensure((1..=1024).contains(&drive.reads_in_flight), "reads_in_flight is not 1 to 1024")
}

fn check_move(config: &Config, planned: &Move) -> Result<(), &'static str> {
    let port = |[host, port]: [usize; 2]| match config.hosts.get(host).map(|host| &host.attached) {
        Some(Attached::Switch(switch)) if switch.switches.is_empty() => switch.ports.get(port),
        _ => None,
    };
    let ports = "it needs a port of one host's switch and a port of another host's switch";
    let from = port(planned.from).ok_or(ports)?;
    let to = port(planned.to).ok_or(ports)?;
    ensure(planned.from[0] != planned.to[0], ports)?;
    let single = [from, to].iter().all(|port| port.second.is_none());
    ensure(single, "drives with two paths cannot move")?;
    let stations = [from, to].map(|port| port.transport.stations());
    let [Some(([first, here], _)), Some(([second, there], _))] = stations else {
        return Err("it needs ports with a network transport");
    };
    ensure(
        here == there && first != second,
        "both ports must lead to the same station, from different ones",
    )?;
    let [one, other] =
        [planned.from, planned.to].map(|[host, _]| config.hosts[host].workload.nsid());
    ensure(one == other, "the workloads of both hosts must use the same namespace")?;
    let again = |other: &&Move| other.from == planned.from || other.to == planned.to;
    ensure(config.moves.iter().filter(again).count() == 1, "a port has more than one move")
}

/// Bytes of a tunnel frame with one TLP of the largest size.
fn largest_frame(max_payload: usize) -> usize {
    wire::frame::HEADER + 16 + max_payload + 4
}

/// Outages of device nodes, and whether only their processes are killed.
fn all_outages(config: &Config) -> impl Iterator<Item = (Outage, bool)> + '_ {
    let kills = config.kills.iter().map(|kill| (*kill, true));
    config.outages.iter().map(|outage| (*outage, false)).chain(kills)
}

fn check_outage(
    config: &Config,
    (outage, kills): &(Outage, bool),
    mut later: impl Iterator<Item = (Outage, bool)>,
) -> Result<(), &'static str> {
    let mut switches = config.hosts.iter().flat_map(HostConfig::switches);
    let of_host = switches.any(|switch| {
        let mut stations = switch.transports().flatten().filter_map(TransportConfig::stations);
        stations.any(|([host, _], _)| host == outage.station)
    });
    let known = outage.station < config.network.stations.len();
    ensure(known && !of_host, "its station is not a station of a device node")?;
    let volatile = config.drives().any(|drive| drive.volatile);
    ensure(!kills || !volatile, "a drive with volatile media does not outlive its process")?;
    let ordered = outage.until.is_none_or(|until| until > outage.from);
    ensure(ordered, "its end is not after its start")?;
    let ends = |one: &Outage| one.until.unwrap_or(Instant::MAX);
    let killed = later.any(|(other, kill)| {
        let meets = other.from <= ends(outage) && outage.from <= ends(&other);
        kill && other.station == outage.station && meets
    });
    ensure(!killed, "a kill is during it")
}

fn check_disturbance(config: &Config, disturbance: &Disturbance) -> Result<(), &'static str> {
    let station = |number: usize| config.network.stations.get(number);
    match disturbance.kind {
        DisturbanceKind::Stall(at, _) => {
            let serial = station(at).is_some_and(|station| station.processor.is_some());
            ensure(serial, "its station has no processor")
        }
        DisturbanceKind::ConnectionReset(at) => {
            ensure(station(at).is_some(), "there is no such station")
        }
        DisturbanceKind::DriveReset(host) => {
            ensure(host < config.hosts.len(), "there is no such host")
        }
    }
}

fn check_transports(
    config: &Config,
    transports: &[&TransportConfig],
    max_payload: usize,
) -> Result<(), &'static str> {
    for transport in transports {
        if let Some((stations, priority)) = transport.stations() {
            let known = |station: &usize| *station < config.network.stations.len();
            let two = stations.iter().all(known) && stations[0] != stations[1];
            ensure(two, "it needs two different stations of the network")?;
            ensure(priority <= 7, "priority is not 0 to 7")?;
        }
        let fits = transport.max_send() >= largest_frame(max_payload);
        ensure(fits, "the transport's send limit is too small for the largest TLP")?;
    }
    let [Some(first), Some(second)] = [0, 1].map(|path| transports.get(path)) else {
        return Ok(());
    };
    let ends = [first, second].map(|path| path.stations().map(|(stations, _)| stations));
    let two = ends.iter().all(Option::is_some) && ends[0] != ends[1];
    ensure(two, "its two paths need a network, and at one end different stations")
}

/// The tunnel settings of one end of a link. Each end has its own instance number, as in live
/// nodes. Tools match the traces of both ends by these numbers.
fn settings(config: &SwitchConfig, role: Role, instance: u64) -> tunnel::Settings {
    let several = config.transports().any(|paths| paths.len() > 1);
    tunnel::Settings {
        max_payload: config.max_payload as u16,
        keepalive: config.keepalive,
        loss_limit: config.loss_limit,
        survive: config.survive,
        paths: Some(config.paths).filter(|_| role == Role::Host && several),
        keep: config.keep,
        max_frame: config.max_frame,
        aggregation: config.aggregation,
        tlp_overhead: config.encapsulation.tlp,
        ..tunnel::Settings::new(role, instance)
    }
}

impl World {
    fn add(&mut self, kind: Kind) -> Component {
        let component = self.kernel.add();
        self.kinds.push(kind);
        self.kernel.arm(component, Instant::ZERO);
        component
    }

    fn add_host(&mut self, number: usize, config: &HostConfig, moves: &[Move]) {
        let host = self.add(Kind::Host(number));
        let mut link = Link::new(&config.link);
        link.up.set_deferred(config.root.deferral());
        self.root_links.push(link);
        self.trackers.push(Tracker::default());
        let first = self.drives.len();
        let queues = config.workload.queues();
        let (below, push) = match &config.attached {
            // Only the far end of a tunnel keeps pushed bytes.
            Attached::Direct(drive) => {
                let node = self.new_drive(0, queues, drive, Vec::new());
                (self.add_drive(number, node, None), Mode::Off)
            }
            Attached::Switch(switch) => {
                let keeps = if config.root.push == Mode::Off { 0 } else { CAPACITY };
                (self.add_switch(number, None, (queues, keeps), switch, moves), config.root.push)
            }
        };
        let root = RootConfig { push, ..config.root };
        let (drives, nsid) = (&self.drives[first..], config.workload.nsid());
        let patterns = drives.iter().map(|drive| drive.pattern(nsid)).collect();
        let rng = self.kernel.rng(&format!("host {number}"));
        let workload = (config.software, config.workload.clone(), config.outage());
        let mut node = HostNode::new(number as u16, root, workload, rng, patterns);
        if drives.iter().any(|drive| drive.volatile) {
            node.software.identify_contents();
        }
        if drives.iter().any(DriveNode::loses_completions) {
            node.software.look_for_late_commands();
        }
        if matches!(config.attached, Attached::Direct(_)) {
            node.software.boot();
        }
        if let Some(switch) = self.switch_hosts.iter().position(|owner| *owner == number) {
            let first = &self.transports[self.switches[switch].first][0];
            let [processor, _] = first.processors(&self.network);
            if processor.is_some() {
                // Each write occupies the processor when it arrives.
                self.root_links[number].up.set_deferred(Deferral::Nothing);
            }
            node.set_processor(processor);
        }
        self.hosts.push(node);
        self.host_components.push(HostComponents { host, below });
    }

    fn add_drive(&mut self, host: usize, node: DriveNode, above: Option<usize>) -> Component {
        let component = self.add(Kind::Drive(self.drives.len()));
        self.drives.push(node);
        self.drive_components.push(component);
        self.drive_above.push((host, above));
        component
    }

    /// The first controller of the next drive. `hosts` are the Host Identifiers of its controllers,
    /// if it has several.
    pub(super) fn new_drive(
        &self,
        number: u16,
        queues: u16,
        config: &DriveConfig,
        hosts: Vec<[u8; 16]>,
    ) -> DriveNode {
        let mut rng = self.kernel.rng(&format!("drive {}", self.drives.len()));
        let seed = rng.bits();
        let state = DriveState::new(config, PowerOn { queues, hosts, rng, seed });
        DriveNode::new(Rc::new(RefCell::new(state)), FIRST, number)
    }

    /// Adds a switch and everything below it. `above` is the tunnel link of the device node above
    /// the switch; `None`: the root port is above. Drives get `queues` I/O queues. Device nodes
    /// keep up to `keeps` pushed bytes.
    fn add_switch(
        &mut self,
        host: usize,
        above: Option<usize>,
        (queues, keeps): (u16, u32),
        config: &SwitchConfig,
        moves: &[Move],
    ) -> Component {
        let index = self.switches.len();
        let component = self.add(Kind::Switch(index));
        let goes = |planned: &Move| [planned.from[0], planned.to[0]].contains(&host);
        let group = if moves.iter().any(goes) { group_of(host) } else { 0 };
        let instance = above.map_or(host as u64 + 1, |link| 2 << 32 | link as u64);
        let upstream = switch::upstream::Settings {
            ports: config.transports().count() as u8,
            max_payload: config.max_payload,
            p2p: false,
            tunnel: tunnel::Settings { group, ..settings(config, Role::Host, instance) },
        };
        let first = self.transports.len();
        let paths: Vec<_> = config.transports().map(|all| all.len()).collect();
        self.switches.push(SwitchNode::new(upstream, first, config.rate_limit, &paths));
        self.switch_hosts.push(host);
        self.switch_above.push(above);
        for (number, port) in config.ports.iter().enumerate() {
            let place = ([host, number], index, component);
            let link = self.add_link(place, (config, keeps), &port.link, moves);
            let on_host = self.drive_above.iter().filter(|(owner, _)| *owner == host).count();
            // Only ports of a host's own switch lead to shared drives.
            let shared = self.shared_at([host, number]).filter(|_| above.is_none());
            let node = match shared {
                Some(shared) => self.next_controller(shared, on_host as u16, &port.drive),
                None => self.new_drive(on_host as u16, queues, &port.drive, Vec::new()),
            };
            self.device_drives[link] = Some(self.drives.len());
            self.device_below[link] = self.add_drive(host, node, Some(link));
            let [_, processor] = self.transports[link][0].processors(&self.network);
            self.drives.last_mut().expect("it was added").set_processor(processor);
        }
        for (number, lower) in config.switches.iter().enumerate() {
            let place = ([host, config.ports.len() + number], index, component);
            self.add_link(place, (config, 0), &lower.link, moves);
        }
        for (number, lower) in config.switches.iter().enumerate() {
            let link = first + config.ports.len() + number;
            let below = self.switches.len();
            self.device_below[link] =
                self.add_switch(host, Some(link), (queues, 0), &lower.switch, moves);
            let [_, processor] = self.transports[link][0].processors(&self.network);
            self.switches[below].set_processor(processor);
        }
        component
    }

    /// Adds a tunnel link of switch `index`, and the device node at its end without the component
    /// below.
    fn add_link(
        &mut self,
        (place, index, switch): ([usize; 2], usize, Component),
        (config, keeps): (&SwitchConfig, u32),
        below: &LinkConfig,
        moves: &[Move],
    ) -> usize {
        let link = self.transports.len();
        self.streams.push(Default::default());
        let end = settings(config, Role::Device, 1 << 32 | link as u64);
        let end = tunnel::Settings { push: keeps, ..end };
        let node = DeviceNode::new(end, config.rate_limit, first_group(moves, place));
        let device = self.add_device(place, node, moves);
        let paths = config.transports().nth(place[1]).unwrap_or_default();
        self.devices[self.device_numbers[link]].add_link(link, switch, paths.len());
        let paths = paths.into_iter();
        let stations = paths.clone().filter_map(TransportConfig::stations);
        let stations: Vec<_> = stations.map(|(stations, _)| stations).collect();
        if let [[host, node], [further_host, further_node]] = stations[..] {
            self.network.share_processor(host, further_host);
            self.network.share_processor(node, further_node);
        }
        let transport = |path| self.transport(path, config.encapsulation, [switch, device]);
        let paths: Vec<_> = paths.map(transport).collect();
        let [_, processor] = paths[0].processors(&self.network);
        self.devices[self.device_numbers[link]].processor = processor;
        self.transports.push(paths);
        self.device_components.push(device);
        self.device_links.push(Link::new(below));
        self.device_switches.push(index);
        self.device_drives.push(None);
        self.device_below.push(device);
        link
    }

    /// The component of the device node at port `place`. If the node moves between ports, all these
    /// ports share one device node, with the settings of its first host. Otherwise adds `node`.
    fn add_device(&mut self, place: [usize; 2], node: DeviceNode, moves: &[Move]) -> Component {
        let (link, first) = (self.device_numbers.len(), origin(moves, place));
        let shared = first_group(moves, place).is_some();
        let same = |link: &usize| origin(moves, self.place_of(*link)) == first;
        let known = (0..link).filter(|_| shared).find(same);
        let Some(known) = known else {
            let component = self.add(Kind::Device(self.devices.len()));
            self.device_numbers.push(self.devices.len());
            self.device_homes.push(link);
            self.devices.push(node);
            return component;
        };
        let device = self.device_numbers[known];
        self.device_numbers.push(device);
        if place == first {
            self.device_homes[device] = link;
            self.devices[device].begin_as(node);
        }
        self.device_components[known]
    }

    fn transport(
        &mut self,
        config: &TransportConfig,
        encapsulation: Encapsulation,
        owners: [Component; 2],
    ) -> Transport {
        let number = self.connections;
        self.connections += 1;
        match config {
            TransportConfig::Pipe(pipe) => Transport::Pipe(Box::new(Pipe::new(*pipe))),
            TransportConfig::Tcp(tcp) => {
                let port = FIRST_PORT + number as u16;
                let ends = self.network.open(tcp, port, owners);
                Transport::Network { ends, raw: false }
            }
            TransportConfig::Raw(raw) => {
                let connection = number as u32 + 1;
                let ends = self.network.open_raw(raw, connection, encapsulation, owners);
                Transport::Network { ends, raw: true }
            }
        }
    }
}
