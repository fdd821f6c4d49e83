//! One command at a time through a quiet network.

use super::Kind;
use sim::ethernet::cable::Faults;
use sim::ethernet::frame::{FCS, GAP, MINIMUM, PREAMBLE};
use sim::ethernet::port::{Algorithm, Config as Port};
use sim::measure::{CommandRecord, Observer, Point, Stage};
use sim::workload::{Fio, Rw, Workload};
use sim::world::Attached;
use sim::{Config, World};
use std::cell::RefCell;
use std::rc::Rc;
use switch::aggregate::Policy;
use wire::frame::FrameReport;
use wire::{Duration, Instant};

/// Commands of a simulation.
const COMMANDS: u64 = 16;

/// The frames of a command in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wire {
    /// Bytes of all frames on the wire, preamble and gap included.
    pub bytes: u64,
    /// Number of frames.
    pub frames: u64,
    /// Bytes of the longest frame, header to FCS, with tags.
    pub longest: u64,
}

impl Wire {
    /// Raises each number to that of `other`.
    pub fn raise(&mut self, other: Self) {
        self.bytes = self.bytes.max(other.bytes);
        self.frames = self.frames.max(other.frames);
        self.longest = self.longest.max(other.longest);
    }
}

/// A part of a command in one direction through the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Whether the leg leads to the host.
    pub up: bool,
    /// TLPs of the leg.
    pub tlps: u64,
    /// Bytes of its tunnel frames.
    pub bytes: u64,
    /// From the end of the previous leg's sending to the begin of this one.
    pub after: Duration,
}

/// A command through a quiet network.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The legs of the last command.
    pub legs: Vec<Leg>,
    /// The longest latency, without firmware and media.
    pub nodes: Duration,
    /// The shortest latency, with the shortest time of firmware and media.
    pub least: Duration,
    /// The frames of a command on the wire, host to device node and back, each TLP in a frame of its
    /// own.
    pub wire: [Wire; 2],
    /// Bytes of tunnel frames down and up before the first command, by which TCP opens its windows.
    pub booted: [u64; 2],
}

impl Probe {
    /// The probe of commands that may take either course.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let legs = if other.legs.len() > self.legs.len() { other.legs } else { self.legs };
        let mut wire = self.wire;
        wire.iter_mut().zip(other.wire).for_each(|(most, own)| most.raise(own));
        let booted = [0, 1].map(|at| self.booted[at].min(other.booted[at]));
        let (nodes, least) = (self.nodes.max(other.nodes), self.least.min(other.least));
        Self { legs, nodes, least, wire, booted }
    }
}

#[derive(Debug, Default)]
struct Seen {
    commands: Vec<CommandRecord>,
    /// Time, direction, TLPs and bytes of sent tunnel frames.
    tunnel: Vec<(Instant, bool, u64, u64)>,
    /// Time, direction and bytes of frames on the wire.
    wire: Vec<(Instant, usize, u64)>,
    /// The wires of the host's and the device node's stations.
    wires: [Vec<u16>; 2],
    /// Bytes that MACsec adds.
    security: [u64; 2],
}

struct Watcher(Rc<RefCell<Seen>>);

impl Observer for Watcher {
    fn command(&mut self, record: &CommandRecord) {
        self.0.borrow_mut().commands.push(*record);
    }

    fn tunnel_frame(&mut self, at: Instant, point: Point, frame: &FrameReport) {
        let up = matches!(point, Point::TunnelDevice(_));
        let tlps = frame.trace_ids.len() as u64;
        if frame.sent && tlps > 0 {
            let bytes = frame.end() - frame.begin;
            self.0.borrow_mut().tunnel.push((at, up, tlps, bytes));
        }
    }

    fn ethernet_frame(&mut self, at: Instant, point: Point, bytes: &[u8]) {
        let Point::Wire(wire) = point else { return };
        let mut seen = self.0.borrow_mut();
        let Some(side) = (0..2).find(|side| seen.wires[*side].contains(&wire)) else { return };
        let length = ((bytes.len() + FCS) as u64 + seen.security[side]).max(MINIMUM as u64);
        seen.wire.push((at, side, length));
    }
}

/// Simulates commands of one kind and size of a host, one at a time.
///
/// # Errors
/// The error of the simulation.
pub fn run(config: &Config, host: usize, command: (Kind, usize)) -> Result<Probe, String> {
    let mut quiet = quiet(config, host, command);
    let seen = simulate(&quiet)?;
    if let Attached::Switch(switch) = &mut quiet.hosts[0].attached {
        switch.aggregation = Policy::PerTlp;
    }
    let alone = simulate(&quiet)?;
    let media = |record: &CommandRecord| {
        record.breakdown.get(Stage::Firmware) + record.breakdown.get(Stage::Media)
    };
    let both = || seen.commands.iter().chain(&alone.commands);
    let nodes = both().map(|record| record.until.since(record.since) - media(record));
    let Some(longest) = nodes.clone().max() else {
        return Err("no command of the host ends in a quiet network".into());
    };
    let drive = config.hosts[host].drives()[0];
    let [_, shortest] = super::media::span(drive, command, 0, Some(0));
    let least = nodes.min().unwrap_or_default() + shortest;
    let first = seen.commands.first().map_or(Instant::ZERO, |record| record.since);
    let booted = [false, true].map(|up| {
        let before = seen.tunnel.iter().filter(|(at, way, ..)| *at < first && *way == up);
        before.map(|(.., bytes)| bytes).sum()
    });
    Ok(Probe { legs: legs(&seen), nodes: longest, least, wire: per_command(&alone), booted })
}

fn simulate(config: &Config) -> Result<Seen, String> {
    let mut seen = Seen::default();
    if let Some(([host, device], _)) =
        config.hosts[0].links().first().and_then(|link| link.transport.stations())
    {
        for (side, station) in [host, device].into_iter().enumerate() {
            let ports = &config.network.stations[station].ports;
            seen.security[side] = ports.iter().map(|port| port.security.into()).max().unwrap_or(0);
            for (cable, ends) in config.network.cables.iter().enumerate() {
                for (way, end) in [ends.a, ends.b].into_iter().enumerate() {
                    if end.node() == sim::network::Place::Station(station) {
                        seen.wires[side].push((2 * cable + way) as u16);
                    }
                }
            }
        }
    }
    let seen = Rc::new(RefCell::new(seen));
    let mut world = World::new(config).map_err(|error| error.to_string())?;
    world.observe(Box::new(Watcher(seen.clone())));
    world.run().map_err(|error| error.to_string())?;
    drop(world);
    Ok(std::mem::take(&mut seen.borrow_mut()))
}

/// The frames of a command: of all commands but the last one, whose acknowledgements may miss.
fn per_command(seen: &Seen) -> [Wire; 2] {
    let (Some(first), Some(last)) = (seen.commands.first(), seen.commands.last()) else {
        return Default::default();
    };
    let (from, until) = (first.since, last.since);
    let commands = seen.commands.len() as u64 - 1;
    [0, 1].map(|side| {
        let own =
            seen.wire.iter().filter(|(at, way, _)| *way == side && (from..until).contains(at));
        let bytes: u64 = own.clone().map(|(.., bytes)| bytes + (PREAMBLE + GAP) as u64).sum();
        // A keepalive or an acknowledgement more.
        let more = (PREAMBLE + MINIMUM + GAP) as u64;
        Wire {
            bytes: bytes.div_ceil(commands.max(1)) + more,
            frames: (own.clone().count() as u64).div_ceil(commands.max(1)) + 1,
            longest: own.map(|(.., bytes)| *bytes).max().unwrap_or(MINIMUM as u64),
        }
    })
}

/// The legs of the last command until its result.
fn legs(seen: &Seen) -> Vec<Leg> {
    let Some(last) = seen.commands.last() else { return Vec::new() };
    let within = |at: Instant| (last.since..last.until).contains(&at);
    let mut legs: Vec<Leg> = Vec::new();
    let mut ended = last.since;
    for (at, up, tlps, bytes) in seen.tunnel.iter().filter(|(at, ..)| within(*at)) {
        match legs.last_mut() {
            Some(leg) if leg.up == *up => {
                leg.tlps += tlps;
                leg.bytes += bytes;
            }
            _ => legs.push(Leg { up: *up, tlps: *tlps, bytes: *bytes, after: at.since(ended) }),
        }
        ended = *at;
    }
    // The result does not wait for the completion head doorbell.
    while legs.last().is_some_and(|leg| !leg.up) {
        legs.pop();
    }
    legs
}

/// The configuration with one host, one command at a time, and nothing else on the network.
fn quiet(config: &Config, host: usize, (kind, bytes): (Kind, usize)) -> Config {
    let mut config = config.clone();
    config.hosts = vec![config.hosts[host].clone()];
    let host = &mut config.hosts[0];
    host.software.start_delay = Duration::ZERO;
    let rw = match kind {
        Kind::Read => Rw::RandRead,
        Kind::Write => Rw::RandWrite,
    };
    let (nsid, offset) = match &host.workload {
        Workload::Fio(fio) => (fio.nsid, fio.offset),
        _ => (1, 0),
    };
    let size = bytes as u64 * COMMANDS;
    let limit = Some(COMMANDS);
    let fio = Fio { size, offset, nsid, number_ios: limit, ..Fio::new(rw, bytes, 1) };
    host.workload = Workload::Fio(fio);
    config.moves.clear();
    config.shared.clear();
    config.outages.clear();
    config.runtime = None;
    let network = &mut config.network;
    network.bulk.clear();
    network.bridge_outages.clear();
    network.time = None;
    network
        .cables
        .iter_mut()
        .for_each(|cable| cable.faults = [Faults::default(), Faults::default()]);
    network.streams.iter_mut().for_each(|stream| stream.filters.clear());
    for station in &mut network.stations {
        station.traffic.clear();
        station.ports.iter_mut().for_each(calm);
    }
    network.bridges.iter_mut().flat_map(|bridge| &mut bridge.ports).for_each(calm);
    config
}

/// Removes what delays frames at a port.
fn calm(port: &mut Port) {
    (port.gates, port.preemption) = (None, None);
    port.cqf.clear();
    port.classes.iter_mut().for_each(|class| class.algorithm = Algorithm::StrictPriority);
}
