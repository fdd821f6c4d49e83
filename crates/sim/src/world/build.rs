//! Builds the components of a world from its configuration.

use super::config::{Attached, Config, HostConfig, Move, SwitchConfig};
use super::moves::{first_group, group_of, origin};
use super::{Error, HostComponents, Kind, World};
use crate::drive::DriveConfig;
use crate::kernel::{Component, Kernel};
use crate::measure::Tracker;
use crate::network::Network;
use crate::node::{DeviceNode, DriveNode, HostNode, SwitchNode};
use crate::pcie::{Link, LinkConfig};
use crate::transport::{Encapsulation, Pipe, Transport, TransportConfig};
use crate::workload::Software;
use switch::tunnel;
use wire::Instant;
use wire::frame::Role;

/// TCP port of the first link; the others follow.
pub const FIRST_PORT: u16 = 4420;

pub(super) fn build(config: &Config) -> Result<World, Error> {
    check(config)?;
    let mut world = World {
        kernel: Kernel::new(config.seed, config.limits),
        outages: config.outages.clone(),
        moves: config.moves.clone(),
        ..World::default()
    };
    let network = &config.network;
    let stations = (0..network.stations.len()).map(|n| world.add(Kind::Station(n))).collect();
    let bridges: Vec<_> = (0..network.bridges.len()).map(|n| world.add(Kind::Bridge(n))).collect();
    world.network =
        Network::new(network, config.seed, stations, &bridges).map_err(Error::Config)?;
    for (number, host) in config.hosts.iter().enumerate() {
        world.add_host(number, host, &config.moves);
    }
    for number in 0..config.outages.len() {
        world.add(Kind::Power(number));
    }
    for (number, planned) in config.moves.iter().enumerate() {
        world.prepare_move(planned, config.hosts[planned.to[0]].workload.nsid());
        world.add(Kind::Move(number));
    }
    Ok(world)
}

fn check(config: &Config) -> Result<(), Error> {
    let fail = |what: String| Err(Error::Config(what));
    if config.hosts.is_empty() {
        return fail("no host".into());
    }
    for (number, host) in config.hosts.iter().enumerate() {
        let switches = match &host.attached {
            Attached::Switch(switch) => switch.all(),
            Attached::Direct(_) => Vec::new(),
        };
        for switch in switches {
            if !(1..=32).contains(&switch.transports().count()) {
                return fail(format!("host {number}: a switch has 1 to 32 ports"));
            }
            check_ports(config, number, switch)?;
        }
        let last = host.drives().iter().map(|drive| drive.sizes().count()).min().unwrap_or(0);
        if !(1..=last).contains(&(host.workload.nsid() as usize)) {
            return fail(format!(
                "host {number}: each of its drives has the namespace of its work"
            ));
        }
        if host.root.memory < 1 << 20 || host.root.memory > 3 << 30 {
            return fail(format!("host {number}: memory of 1 MiB to 3 GiB"));
        }
        let size = host.root.completion_size;
        if !size.is_power_of_two() || !(64..=4096).contains(&size) {
            return fail(format!("host {number}: completion_size is a power of two, 64 to 4096"));
        }
    }
    for (number, drive) in config.drives().enumerate() {
        if drive.sizes().any(|size| size == 0 || !size.is_multiple_of(4096)) {
            return fail(format!("drive {number}: its size is a multiple of 4096"));
        }
        if !drive.read_request.is_power_of_two() || !(128..=4096).contains(&drive.read_request) {
            return fail(format!("drive {number}: read_request is a power of two, 128 to 4096"));
        }
        if !(1..=1024).contains(&drive.reads_in_flight) {
            return fail(format!("drive {number}: reads_in_flight is 1 to 1024"));
        }
    }
    check_outages(config)?;
    config.moves.iter().enumerate().try_for_each(|(number, planned)| {
        let fail = |what: &str| Error::Config(format!("move {number}: {what}"));
        check_move(config, planned).map_err(fail)
    })
}

fn check_move(config: &Config, planned: &Move) -> Result<(), &'static str> {
    let port = |[host, port]: [usize; 2]| match config.hosts.get(host).map(|host| &host.attached) {
        Some(Attached::Switch(switch)) if switch.switches.is_empty() => switch.ports.get(port),
        _ => None,
    };
    let ports = "it goes from a port of a host's switch to one of another's";
    let (Some(from), Some(to)) = (port(planned.from), port(planned.to)) else {
        return Err(ports);
    };
    if planned.from[0] == planned.to[0] {
        return Err(ports);
    }
    let stations = [from, to].map(|port| port.transport.stations());
    let [Some(([first, here], _)), Some(([second, there], _))] = stations else {
        return Err("it needs a network");
    };
    if here != there || first == second {
        return Err("both ports lead to one station, from two");
    }
    let [one, other] =
        [planned.from, planned.to].map(|[host, _]| config.hosts[host].workload.nsid());
    if one != other {
        return Err("both hosts work on one namespace");
    }
    let again = |other: &&Move| other.from == planned.from || other.to == planned.to;
    if config.moves.iter().filter(again).count() > 1 {
        return Err("a port has one move");
    }
    Ok(())
}

/// Bytes that the largest TLP needs in the stream, with its frame's header.
fn largest_frame(max_payload: usize) -> usize {
    wire::frame::HEADER + 16 + max_payload + 4
}

fn check_outages(config: &Config) -> Result<(), Error> {
    let switches = config.hosts.iter().filter_map(|host| match &host.attached {
        Attached::Switch(switch) => Some(switch),
        Attached::Direct(_) => None,
    });
    let hosts: Vec<usize> = switches
        .flat_map(SwitchConfig::all)
        .flat_map(SwitchConfig::transports)
        .filter_map(|transport| transport.stations().map(|([host, _], _)| host))
        .collect();
    for (number, outage) in config.outages.iter().enumerate() {
        let fail = |what: &str| Err(Error::Config(format!("outage {number}: {what}")));
        if outage.station >= config.network.stations.len() || hosts.contains(&outage.station) {
            return fail("its station is a device node's");
        }
        if outage.until.is_some_and(|until| until <= outage.from) {
            return fail("it ends after it began");
        }
    }
    Ok(())
}

fn check_ports(config: &Config, host: usize, switch: &SwitchConfig) -> Result<(), Error> {
    for (number, transport) in switch.transports().enumerate() {
        let fail = |what: &str| Err(Error::Config(format!("host {host}, port {number}: {what}")));
        if let Some((stations, priority)) = transport.stations() {
            let known = |station: &usize| *station < config.network.stations.len();
            if !stations.iter().all(known) || stations[0] == stations[1] {
                return fail("its stations are two of the network");
            }
            if priority > 7 {
                return fail("priority is 0 to 7");
            }
        }
        if transport.max_send() < largest_frame(switch.max_payload) {
            return fail("the transport takes less at once than the largest TLP needs");
        }
    }
    Ok(())
}

/// The tunnel settings of one end. Each end has its own instance number, as in
/// live nodes; traces are matched by it.
fn settings(config: &SwitchConfig, role: Role, instance: u64) -> tunnel::Settings {
    tunnel::Settings {
        max_payload: config.max_payload as u16,
        keepalive: config.keepalive,
        loss_limit: config.loss_limit,
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
        let (below, switch) = match &config.attached {
            Attached::Direct(drive) => (self.add_drive(number, 0, queues, drive, None), None),
            Attached::Switch(switch) => {
                let (component, index) = self.add_switch(number, None, queues, switch, moves);
                (component, Some(index))
            }
        };
        let (drives, nsid) = (first..self.drives.len(), config.workload.nsid());
        let patterns =
            self.drives[drives.clone()].iter().map(|drive| drive.pattern(nsid)).collect();
        let (bus, ram) = HostNode::parts(&config.root);
        let rng = self.kernel.rng(&format!("host {number}"));
        let mut software = Software::new(
            config.software,
            config.workload.clone(),
            bus.clone(),
            ram.clone(),
            rng,
            patterns,
        );
        if self.drives[drives].iter().any(DriveNode::is_volatile) {
            software.identify_contents();
        }
        if config.root.ecrc {
            software.enable_ecrc();
        }
        if switch.is_none() {
            software.boot();
        }
        self.hosts.push(HostNode::new(number as u16, config.root, bus, ram, software));
        self.host_components.push(HostComponents { host, below });
    }

    fn add_drive(
        &mut self,
        host: usize,
        number: u16,
        queues: u16,
        config: &DriveConfig,
        above: Option<usize>,
    ) -> Component {
        let index = self.drives.len();
        let component = self.add(Kind::Drive(index));
        let mut rng = self.kernel.rng(&format!("drive {index}"));
        let seed = rng.bits();
        self.drives.push(DriveNode::new(config, number, queues, rng, seed));
        self.drive_components.push(component);
        self.drive_above.push((host, above));
        component
    }

    /// A switch below a root port, or below the device node of the link
    /// `above`, with everything below it.
    fn add_switch(
        &mut self,
        host: usize,
        above: Option<usize>,
        queues: u16,
        config: &SwitchConfig,
        moves: &[Move],
    ) -> (Component, usize) {
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
        self.switches.push(SwitchNode::new(upstream, first, config.rate_limit));
        self.switch_hosts.push(host);
        self.switch_above.push(above);
        for (number, port) in config.ports.iter().enumerate() {
            let place = ([host, number], index, component);
            let link = self.add_link(place, config, (&port.transport, &port.link), moves);
            let on_host = self.drive_above.iter().filter(|(of, _)| *of == host).count();
            self.device_drives[link] = Some(self.drives.len());
            self.device_below[link] =
                self.add_drive(host, on_host as u16, queues, &port.drive, Some(link));
        }
        for (number, lower) in config.switches.iter().enumerate() {
            let place = ([host, config.ports.len() + number], index, component);
            self.add_link(place, config, (&lower.transport, &lower.link), moves);
        }
        for (number, lower) in config.switches.iter().enumerate() {
            let link = first + config.ports.len() + number;
            let below = self.add_switch(host, Some(link), queues, &lower.switch, moves);
            self.device_below[link] = below.0;
        }
        (component, index)
    }

    /// Adds a tunnel link of switch `index` and the device node at its end, without
    /// the component below.
    fn add_link(
        &mut self,
        (place, index, switch): ([usize; 2], usize, Component),
        config: &SwitchConfig,
        (transport, below): (&TransportConfig, &LinkConfig),
        moves: &[Move],
    ) -> usize {
        let link = self.transports.len();
        self.streams.push(Default::default());
        let end = settings(config, Role::Device, 1 << 32 | link as u64);
        let node = DeviceNode::new(end, config.rate_limit, first_group(moves, place));
        let device = self.add_device(place, node, moves);
        self.devices[self.device_numbers[link]].add_link(link, switch);
        let transport = self.transport(transport, link, config.encapsulation, [switch, device]);
        self.transports.push(transport);
        self.device_components.push(device);
        self.device_links.push(Link::new(below));
        self.device_switches.push(index);
        self.device_drives.push(None);
        self.device_below.push(device);
        link
    }

    /// The device node that port `place` leads to: `node`, or an existing one of
    /// several ports, with the settings of the host that uses it first.
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
        link: usize,
        encapsulation: Encapsulation,
        owners: [Component; 2],
    ) -> Transport {
        match config {
            TransportConfig::Pipe(pipe) => Transport::Pipe(Box::new(Pipe::new(*pipe))),
            TransportConfig::Tcp(tcp) => {
                let port = FIRST_PORT + link as u16;
                let ends = self.network.open(tcp, port, owners);
                Transport::Network { ends, raw: false }
            }
            TransportConfig::Raw(raw) => {
                let connection = link as u32 + 1;
                let ends = self.network.open_raw(raw, connection, encapsulation, owners);
                Transport::Network { ends, raw: true }
            }
        }
    }
}
