//! Runs a component with its parts of the world.

use super::moves::group_of;
use super::{Disturbance, DisturbanceKind, Error, Kind, Move, Outage, World};
use crate::kernel::Component;
use crate::measure::Point;
use crate::node::{Context, PushRooms, device, switch};
use crate::transport::Transport;
use ::node::faults::{Fault, FaultKind};
use ::switch::tunnel::Tunnel;
use std::collections::BTreeSet;
use wire::{Duration, Instant};

/// Interval of checks whether a host has released a drive.
const RELEASE_POLL: Duration = Duration::from_us(1);

/// The context of a component, borrowed from the world's fields.
macro_rules! context {
    ($world:ident, $host:expr) => {
        Context {
            now: $world.kernel.now(),
            kernel: &mut $world.kernel,
            journeys: &mut $world.journeys,
            tracker: &mut $world.trackers[$host],
            observer: &mut $world.observer,
        }
    };
}

/// A device node with its environment and context.
macro_rules! device {
    ($world:ident, $device:expr) => {{
        let home = $world.device_homes[$device];
        let device = &mut $world.devices[$device];
        let host = $world.switch_hosts[$world.device_switches[device.link()]];
        let env = device::Env {
            transports: &mut $world.transports,
            network: &mut $world.network,
            streams: &mut $world.streams,
            link: &mut $world.device_links[home],
            below: $world.device_below[home],
        };
        (device, env, context!($world, host))
    }};
}

impl World {
    pub(super) fn dispatch(&mut self, component: Component) -> Result<(), Error> {
        let next = match self.kinds[component.index()] {
            Kind::Host(host) => {
                let below = self.host_components[host].below;
                let waited = self.hosts[host].software.began.is_none();
                let (rooms, interrupted) = (self.push_rooms(host), self.is_interrupted(host));
                let mut context = context!(self, host);
                let link = &mut self.root_links[host];
                let next = self.hosts[host].run(link, (below, rooms, interrupted), &mut context);
                if waited {
                    if let Some(error) = self.hosts[host].software.failure() {
                        return Err(Error::Boot { host, error: error.clone() });
                    }
                    self.record_baseline();
                }
                if std::mem::take(&mut self.hosts[host].reset) {
                    self.reset_below(below);
                }
                next
            }
            Kind::Switch(switch) => self.run_switch(switch),
            Kind::Device(device) => self.run_device(device),
            Kind::Power(number) => self.run_power(number),
            Kind::Move(number) => self.run_move(number),
            Kind::Disturbance(number) => self.run_disturbance(number),
            Kind::End => Some(self.until).filter(|until| *until > self.kernel.now()),
            Kind::Station(station) => {
                let mut context = context!(self, 0);
                self.network.show_station(station, &mut context)
            }
            Kind::Bridge(bridge) => {
                let mut context = context!(self, 0);
                self.network.show_bridge(bridge, &mut context)
            }
            Kind::Bulk(number) => {
                let mut context = context!(self, 0);
                self.bulk[number].run(&mut self.network, &mut context)
            }
            Kind::Drive(drive) => {
                let (host, above) = self.drive_above[drive];
                let (link, above) = match above {
                    None => (&mut self.root_links[host], self.host_components[host].host),
                    Some(link) => (&mut self.device_links[link], self.device_components[link]),
                };
                let mut context = context!(self, host);
                let next = self.drives[drive].run(link, above, &mut context);
                while let Some((at, fault)) = self.drives[drive].poll_fault() {
                    let point = match self.drive_above[drive].1 {
                        None => Point::RootPort(host as u16),
                        Some(link) => Point::DevicePort(link as u16),
                    };
                    context!(self, host).observe_fault(at, point, &fault);
                }
                self.wake_other_controllers(drive);
                next
            }
        };
        // Replaces wake-ups that other components have armed during the run.
        self.kernel.arm_or_disarm(component, next);
        Ok(())
    }

    /// The rooms for pushed bytes of a host's switch.
    fn push_rooms(&self, host: usize) -> PushRooms {
        match self.kinds[self.host_components[host].below.index()] {
            Kind::Switch(switch) if self.hosts[host].pushes() => self.switches[switch].push_rooms(),
            _ => PushRooms::default(),
        }
    }

    /// Whether a link of the host's own switch is interrupted.
    fn is_interrupted(&self, host: usize) -> bool {
        match self.kinds[self.host_components[host].below.index()] {
            Kind::Switch(switch) => self.switches[switch].tunnels().any(Tunnel::is_interrupted),
            _ => false,
        }
    }

    /// Resets the component below a root port or a device node.
    fn reset_below(&mut self, below: Component) {
        let now = self.kernel.now();
        match self.kinds[below.index()] {
            Kind::Drive(drive) => {
                self.drives[drive].hot_reset(now);
                self.wake_other_controllers(drive);
            }
            Kind::Switch(switch) => {
                // The switch has TLPs to send.
                self.switches[switch].hot_reset(now);
                self.kernel.arm_by(below, now);
            }
            _ => unreachable!("a switch or a drive is below a port"),
        }
    }

    fn run_device(&mut self, number: usize) -> Option<Instant> {
        let (device, env, mut context) = device!(self, number);
        let next = device.run(env, &mut context);
        if std::mem::take(&mut self.devices[number].reset) {
            self.reset_below(self.device_below[self.device_homes[number]]);
        }
        next
    }

    /// Switches the power of a device node off or on.
    fn run_power(&mut self, number: usize) -> Option<Instant> {
        let now = self.kernel.now();
        let (Outage { station, from, until }, kills) = self.outages[number];
        let stations = self.stations_with(station);
        if now < from {
            return Some(from);
        }
        if until.is_some_and(|until| now >= until) {
            for station in stations {
                let on = self.network.power_on(now, station);
                let on = on.chain(self.bulk.iter().filter_map(|bulk| bulk.owner_at(station)));
                on.for_each(|component| self.kernel.arm_by(component, now));
            }
            if kills {
                self.devices_at(station).into_iter().for_each(|device| self.go_on(device));
            }
            return None;
        }
        for station in stations {
            let neighbours = self.network.power_off(now, station);
            neighbours.into_iter().for_each(|component| self.kernel.arm_by(component, now));
        }
        for number in self.devices_at(station) {
            let drive = self.drive_of(number);
            let (device, env, mut context) = device!(self, number);
            let stop = Fault::new(FaultKind::Stop).within(from, until);
            context.observe_fault(now, Point::DevicePort(device.number()), &stop);
            if kills {
                device.kill(&mut self.drives[drive], env, &mut context);
            } else {
                device.power_cycle(env, &mut context);
                self.drives[drive].power_cycle(now);
            }
        }
        until
    }

    /// Starts a device node and its drive after a kill.
    fn go_on(&mut self, device: usize) {
        let (now, drive) = (self.kernel.now(), self.drive_of(device));
        let saved = self.devices[device].go_on(now);
        self.drives[drive].go_on(now, saved);
        let home = self.device_homes[device];
        self.kernel.arm_by(self.device_below[home], now);
        self.kernel.arm_by(self.device_components[home], now);
    }

    /// The device nodes at a station.
    pub(super) fn devices_at(&self, station: usize) -> Vec<usize> {
        let is_here = |device: &usize| {
            self.device_stations(self.device_homes[*device]).any(|other| other == station)
        };
        (0..self.devices.len()).filter(is_here).collect()
    }

    /// When the next process of a killed device node starts.
    fn killed_until(&self, device: usize) -> Option<Instant> {
        let now = self.kernel.now();
        let own = |(outage, kills): &&(Outage, bool)| {
            *kills && outage.from <= now && self.devices_at(outage.station).contains(&device)
        };
        let ends =
            self.outages.iter().filter(own).map(|(kill, _)| kill.until.unwrap_or(Instant::MAX));
        ends.filter(|until| *until > now).min()
    }

    /// The drive of a device node without a switch.
    pub(super) fn drive_of(&self, device: usize) -> usize {
        self.device_drives[self.device_homes[device]].expect("it was checked")
    }

    /// The stations of the device node at the end of a tunnel link.
    fn device_stations(&self, link: usize) -> impl Iterator<Item = usize> {
        self.transports[link].iter().filter_map(Transport::device_station)
    }

    /// A station of a device node, and the node's other one.
    fn stations_with(&self, station: usize) -> BTreeSet<usize> {
        let ends = (0..self.transports.len()).map(|link| self.device_stations(link));
        let own = ends.map(Iterator::collect::<Vec<_>>).filter(|own| own.contains(&station));
        own.flatten().chain([station]).collect()
    }

    /// Disturbs a node or the drives of a host.
    fn run_disturbance(&mut self, number: usize) -> Option<Instant> {
        let now = self.kernel.now();
        let Disturbance { at, kind } = self.disturbances[number];
        if now < at {
            return Some(at);
        }
        match kind {
            DisturbanceKind::Stall(station, span) => {
                let processor = self.network.processor(station).expect("it was checked");
                processor.occupy(now, span);
            }
            DisturbanceKind::ConnectionReset(station) => {
                let changed = self.network.reset_connections(now, station);
                changed.into_iter().for_each(|component| self.kernel.arm_by(component, now));
            }
            DisturbanceKind::DriveReset(host) => {
                let tracker = &mut self.trackers[host];
                self.hosts[host].software.reset_drives(now, tracker);
                self.kernel.arm_by(self.host_components[host].host, now);
            }
        }
        None
    }

    /// Moves a device node to another host when the first host has released it.
    fn run_move(&mut self, number: usize) -> Option<Instant> {
        let now = self.kernel.now();
        let Move { at, from: [host, port], to: [other, _] } = self.moves[number];
        if now < at {
            return Some(at);
        }
        let link = self.link_of(self.moves[number].from);
        let device = self.device_numbers[link];
        if let Some(until) = self.killed_until(device) {
            return Some(until);
        }
        if !self.hosts[host].software.release(port) {
            return Some(now + RELEASE_POLL);
        }
        self.devices[device].move_to(now, group_of(other));
        let next = self.run_device(device);
        self.hand_over(number);
        self.kernel.arm_by_next(self.device_components[link], next);
        None
    }

    /// The drives behind a port whose link came up or went down, by their numbers at the host.
    /// Empty for a cascaded switch that came up, because hosts do not bring it up again.
    fn drives_changed(&self, switch: usize, port: usize, up: bool) -> Vec<usize> {
        let below = self.device_below[self.switches[switch].first + port];
        match self.kinds[below.index()] {
            Kind::Switch(_) if up => Vec::new(),
            Kind::Switch(lower) => (0..self.switches[lower].links().len())
                .flat_map(|port| self.drives_changed(lower, port, up))
                .collect(),
            _ if self.switch_above[switch].is_none() => vec![port],
            Kind::Drive(drive) => vec![usize::from(self.drives[drive].number)],
            _ => unreachable!("a switch or a drive is below a port"),
        }
    }

    /// Whether the links of all switches of a host are up.
    fn all_up(&self, host: usize) -> bool {
        let own = self.switches.iter().zip(&self.switch_hosts).filter(|(_, owner)| **owner == host);
        own.into_iter().all(|(switch, _)| switch.up == switch.links().len())
    }

    fn run_switch(&mut self, switch: usize) -> Option<Instant> {
        let host = self.switch_hosts[switch];
        let links = self.switches[switch].links();
        let above = self.switch_above[switch];
        let (link, above) = match above {
            None => (&mut self.root_links[host], self.host_components[host].host),
            Some(link) => (&mut self.device_links[link], self.device_components[link]),
        };
        let mut env = switch::Env {
            transports: &mut self.transports[links.clone()],
            network: &mut self.network,
            streams: &mut self.streams[links.clone()],
            link,
            above,
            far: &self.device_components[links],
        };
        let mut context = context!(self, host);
        let next = self.switches[switch].run(&mut env, &mut context);
        while let Some((port, up, buses)) = self.switches[switch].changes.pop_front() {
            if self.switch_above[switch].is_some() {
                // As in live nodes, a host sees only the links of its own switch.
                continue;
            }
            let now = self.kernel.now();
            let mut context = context!(self, host);
            self.hosts[host].catch_up(&mut self.root_links[host], &mut context);
            let drives = self.drives_changed(switch, port, up);
            let tracker = &mut self.trackers[host];
            self.hosts[host].link_changed(now, (up, buses), drives, tracker);
            self.kernel.arm_by(self.host_components[host].host, now);
        }
        if self.hosts[host].software.is_waiting() && self.all_up(host) {
            self.hosts[host].software.boot();
            let component = self.host_components[host].host;
            self.kernel.arm_by(component, self.kernel.now());
        }
        next
    }
}
