//! Tunnels as flows, and the latency of commands from their delays.

use super::arrivals::Steps;
use super::flows::{self, Flow};
use super::solve::Solver;
use crate::commands::{HostCommands, Kind, media};
use node::push::Mode;
use plan::Planned;
use sim::ethernet::frame::{FCS, HEADER, MTU};
use sim::network::Wiring;
use sim::pcie::{LinkConfig, Rate};
use sim::transport::TransportConfig;
use sim::workload::Workload;
use sim::world::{HostConfig, TunnelLink};
use wire::{Duration, raw};

/// The guaranteed latency of a kind of command of a host.
#[derive(Clone, Debug)]
pub struct CommandBound {
    /// Name of the host.
    pub host: String,
    /// The kind.
    pub kind: Kind,
    /// The longest latency, from the application's call to the result; `Err`: why there is none.
    pub bound: Result<Duration, String>,
}

/// The flows of the tunnels of all hosts.
pub(super) struct Tunnels<'a> {
    /// For each host its commands, or why they are unknown.
    hosts: &'a [Result<HostCommands, String>],
    /// For each host and link the flows down and up, or why there are none.
    links: Vec<Vec<Result<[usize; 2], String>>>,
}

impl<'a> Tunnels<'a> {
    /// Adds the flows of all tunnels and of all flows over TCP.
    pub fn new(
        planned: &Planned,
        wiring: &Wiring<'_>,
        hosts: &'a [Result<HostCommands, String>],
        flows: &mut Vec<Flow>,
    ) -> Self {
        let mut links = Vec::new();
        for (number, (host, commands)) in planned.config.hosts.iter().zip(hosts).enumerate() {
            let drives = host.drives().len();
            let of_link = |link: TunnelLink<'_>| {
                let mut add = |side: usize| {
                    let flow =
                        direction(wiring, &link, side, &planned.hosts[number], commands, drives)?;
                    flows.push(flow);
                    Ok::<_, String>(flows.len() - 1)
                };
                Ok([add(0)?, add(1)?])
            };
            links.push(host.links().into_iter().map(of_link).collect());
        }
        let bulk = planned.flows.iter().zip(&planned.config.network.bulk);
        let bulk = bulk.map(|(name, bulk)| {
            (
                name.clone(),
                (bulk.stations, bulk.priority),
                "a flow over TCP sends as much as it can",
            )
        });
        let second = planned.tunnel_links().filter_map(|link| {
            let path = link.link.second?.stations()?;
            Some((format!("second path to {}", link.name), path, "a tunnel has two paths"))
        });
        for (name, ([from, to], priority), why) in bulk.chain(second) {
            for stations in [[from, to], [to, from]] {
                let command = (HEADER + MTU + FCS, Err(why.to_owned()));
                let name = name.clone();
                flows.extend(flows::between(wiring, name, stations, priority, command));
            }
        }
        Self { hosts, links }
    }

    /// The bounds of all kinds of commands.
    pub fn commands(
        &self,
        planned: &Planned,
        solver: &Solver<'_>,
        settled: &Result<(), String>,
    ) -> Vec<CommandBound> {
        let mut all = Vec::new();
        for (number, commands) in self.hosts.iter().enumerate() {
            let host = &planned.hosts[number];
            let config = &planned.config.hosts[number];
            match commands {
                Ok(commands) => {
                    for (at, kind) in commands.work.kinds.iter().enumerate() {
                        let bound = settled
                            .clone()
                            .and_then(|()| self.command(config, commands, at, (number, solver)));
                        all.push(CommandBound { host: host.clone(), kind: *kind, bound });
                    }
                }
                Err(why) => {
                    for kind in kinds(config) {
                        let bound = Err(why.clone());
                        all.push(CommandBound { host: host.clone(), kind, bound });
                    }
                }
            }
        }
        all
    }

    fn command(
        &self,
        config: &HostConfig,
        commands: &HostCommands,
        at: usize,
        (host, solver): (usize, &Solver<'_>),
    ) -> Result<Duration, String> {
        let (kind, probe) = &commands.probes[at];
        let others = commands.work.in_flight() - 1;
        let work = (*kind, commands.work.bytes);
        let drives = config.drives();
        let total = commands.work.total;
        let media = drives.iter().map(|drive| media::span(drive, work, others, total)[0]);
        let media = media.max().unwrap_or_default();
        let (mut extra, mut others) = ([0, 0], [0, 0]);
        for link in &self.links[host] {
            let flows = link.clone()?;
            for side in [0, 1] {
                if let Some(port) = solver.shaped(flows[side]) {
                    return Err(format!("its frames pass an asynchronous shaper at {port}"));
                }
                let more = solver.extra(flows[side])?;
                extra[side] = extra[side].max(more.sum);
                others[side] = others[side].max(more.others);
            }
        }
        let crossing = |up: bool| probe.legs.iter().filter(|leg| leg.up == up).count() as u64;
        let legs = extra[0] * crossing(false) + extra[1] * crossing(true);
        let crossings = [crossing(false), crossing(true)];
        // Without a network, all commands delay each other in the nodes.
        let rate = |side: usize| solver.slowest(self.links[host].first()?.as_ref().ok()?[side]);
        let wire = [0, 1].map(|side| rate(side).unwrap_or(0) * commands.wire[side].bytes);
        let crossings = if probe.legs.is_empty() { [1, 1] } else { crossings };
        let nodes = contention(config, commands, crossings, wire);
        let mut slow = 0;
        if links_over_tcp(config) {
            for side in [0, 1] {
                let own = probe.legs.iter().filter(|leg| leg.up == (side == 1));
                let waiting = own.map(|leg| leg.bytes).sum::<u64>() * commands.work.in_flight();
                let rounds = slow_start(waiting, probe.booted[side]);
                let trip = least_trip(probe).as_ps() + others[0] + others[1];
                // The windows of all rounds together are less than twice the bytes.
                slow += rounds * trip + rounds.min(1) * extra[side].saturating_sub(others[side]);
            }
        }
        let legs = legs + slow;
        let total = probe.nodes + media + Duration::from_ps(legs + nodes);
        let fetched = self.fetched((host, config), commands, at, others, rate(0).unwrap_or(0));
        // Few reads in flight need no window.
        let slow = if config.root.push == Mode::All { slow } else { 0 };
        let fetched = fetched.map(|fetched| media + Duration::from_ps(fetched + slow));
        Ok(fetched.map_or(total, |fetched| total.min(fetched)))
    }

    /// The longest latency, without media, of writes whose data the drive fetches: it fetches the
    /// data of one command after another, with few reads in flight, and each message waits only for
    /// these and for doorbells. `None` for other commands.
    fn fetched(
        &self,
        (host, config): (usize, &HostConfig),
        commands: &HostCommands,
        at: usize,
        others: [u64; 2],
        per_byte: u64,
    ) -> Option<u64> {
        let (kind, probe) = &commands.probes[at];
        let legs = probe.legs.len() as u64;
        if *kind != Kind::Write || legs <= 2 || self.links[host].is_empty() {
            return None;
        }
        let drives = config.drives();
        let reads = drives.iter().map(|drive| {
            let request = drive.read_request.min(config.software.max_read_request);
            // Completions of 64 bytes have as many bytes of headers.
            2 * drive.reads_in_flight as u64 * request as u64
        });
        let in_flight = commands.work.in_flight();
        let waiting = reads.max()? + in_flight * DOORBELLS;
        let each = others[0].max(others[1]) + waiting * per_byte;
        in_flight.checked_mul(probe.nodes.as_ps().checked_add(legs.checked_mul(each)?)?)
    }
}

/// Bytes on the wire of the messages of a command besides its data: doorbells, entries and their
/// acknowledgements.
const DOORBELLS: u64 = 1_024;

fn links_over_tcp(config: &HostConfig) -> bool {
    config.links().iter().any(|link| matches!(link.transport, TransportConfig::Tcp(_)))
}

/// The first bytes that smoltcp sends before an acknowledgement.
const FIRST_WINDOW: u64 = 2_048;

/// The round trips until TCP's window, which has grown by `booted` bytes, holds `waiting` bytes: it
/// doubles in each.
fn slow_start(waiting: u64, booted: u64) -> u64 {
    let windows = std::iter::successors(Some(FIRST_WINDOW + booted), |window| Some(window * 2));
    windows.take_while(|window| *window < waiting).count() as u64
}

/// A round trip of the quiet network at most: the time of all nodes.
fn least_trip(probe: &crate::commands::probe::Probe) -> Duration {
    let pauses = probe.legs.iter().map(|leg| leg.after.as_ps());
    probe.nodes - Duration::from_ps(pauses.sum::<u64>().min(probe.nodes.as_ps()))
}

/// The kinds of commands that a host sends, as far as its workload says.
fn kinds(config: &HostConfig) -> Vec<Kind> {
    match &config.workload {
        Workload::ConfigReads { .. } | Workload::Idle => Vec::new(),
        _ => match crate::commands::HostWork::new(0, config) {
            Ok(work) => work.kinds,
            Err(_) => Kind::ALL.to_vec(),
        },
    }
}

/// A direction of a link as a flow.
fn direction(
    wiring: &Wiring<'_>,
    link: &TunnelLink<'_>,
    side: usize,
    host: &str,
    commands: &Result<HostCommands, String>,
    drives: usize,
) -> Result<Flow, String> {
    let Some((stations, priority)) = link.transport.stations() else {
        return Err("its transport has no network".into());
    };
    let stations = [stations[side], stations[1 - side]];
    let longest = match link.transport {
        // The encapsulation of experiments adds at most 256 bytes.
        TransportConfig::Raw(raw) => HEADER + raw::HEADER + raw.settings.segment + 256 + FCS,
        _ => HEADER + MTU + FCS,
    };
    let command = commands.as_ref().map_err(Clone::clone).map(|commands| {
        let [depth, jobs] = commands.work.depth;
        let first = (depth * jobs.div_ceil(drives as u64)).max(commands.at_boot);
        let interval = commands.least.as_ps().max(1);
        let mut steps = vec![Steps { first, each: first, interval, late: 0 }];
        if let Some(interval) = commands.work.interval {
            // Those in flight, and those that start.
            let (first, each) = (first + jobs, jobs);
            steps.push(Steps { first, each, interval: interval.as_ps().max(1), late: 0 });
        }
        // At most one command passes while the line carries its data, beside those in flight.
        let stations = link.transport.stations().map(|(stations, _)| stations);
        let port = stations.map(|[host, _]| &wiring.network.stations[host].ports[0]);
        let data = port.map(|port| port.rate.ps_per_byte() * commands.work.bytes as u64);
        if let Some(data) = data {
            let interval = data / commands.work.kinds.len().max(1) as u64;
            steps.push(Steps { first: first + 1, each: 1, interval, late: 0 });
        }
        (steps, commands.wire[side])
    });
    flows::between(wiring, format!("tunnel of {host}"), stations, priority, (longest, command))
}

/// How long the other commands of a host delay a command in its nodes, beyond the time for which
/// they delay it on the wire: commands pass processor, PCIe links and wire in order, so that each
/// other command delays it at one of them (J. Jayachandran and T. Abdelzaher, "A Delay Composition
/// Theorem for Real-Time Pipelines", ECRTS 2007), in each of the `legs`.
fn contention(config: &HostConfig, commands: &HostCommands, legs: [u64; 2], wire: [u64; 2]) -> u64 {
    let [depth, jobs] = commands.work.depth;
    let software = config.software.submit.as_ps() + config.software.complete.as_ps();
    let cpu = software.max(config.root.memory_read.as_ps());
    let links = config.links();
    let drives = config.drives();
    let stream = drives.iter().map(|drive| match drive.timing.stream_rate {
        0 => 0,
        rate => commands.work.bytes as u64 * 1_000_000 / (rate / 1_000_000).max(1),
    });
    let stream = stream.max().unwrap_or(0);
    let others = depth * jobs - 1;
    let mut sum = 0;
    for side in [0, 1] {
        let bytes = commands.wire[side].bytes as usize;
        let time =
            |link: &LinkConfig| Rate::new(link.generation, link.width).duration(bytes).as_ps();
        let below = links.iter().map(|link| time(link.link)).max().unwrap_or(0);
        let stage = cpu.max(time(&config.link)).max(below).max(stream);
        sum += legs[side] * others * stage.saturating_sub(wire[side]);
    }
    sum
}
