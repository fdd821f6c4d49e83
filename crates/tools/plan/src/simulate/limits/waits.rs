//! An observer that measures how long requests, commands and bytes wait.

use super::acks::{Acks, Wait};
use super::{Assumptions, CompletionTimeout, NEVER, Row};
use analysis::commands::{Analyser, AnalyserSettings, Direction, Event as Found};
use sim::Config;
use sim::measure::{CommandRecord, LinkChange, Observer, Point};
use sim::world::{Attached, HostConfig};
use std::collections::BTreeMap;
use wire::tlp::{Packet, Tlp};
use wire::{Bdf, Duration, Instant};

pub(super) const COMPLETION: &str = "PCIe Base 4.0, 2.8 and 7.5.3.16 (Device Control 2)";
pub(super) const IO: &str = "Linux drivers/nvme/host/core.c, nvme_io_timeout";
pub(super) const ADMIN: &str = "Linux drivers/nvme/host/core.c, admin_timeout";
const RTO: &str = "Linux include/net/tcp.h, TCP_RTO_MIN";
const SIM_RTO: &str = "smoltcp's 1 s by the scaled clock of the simulation (sim::tcp::clock)";
const DEAD: &str = "Linux TCP_RTO_MIN; the tunnel's loss_limit (docs/protocol.md)";
const LOSS: &str = "the tunnel's loss_limit (docs/protocol.md)";

/// A request in flight.
#[derive(Clone, Copy, Debug)]
struct Request {
    since: Instant,
    kind: &'static str,
    /// Whether the drive sent the request.
    up: bool,
}

/// Point at which a request was seen, requester, and tag.
type Key = (Point, Bdf, u16);

/// Measures waits. Only waits that have not ended are stored.
pub struct Waits {
    hosts: Vec<HostConfig>,
    requests: BTreeMap<Key, Request>,
    heard: BTreeMap<Point, Instant>,
    /// Analysers of the hosts, until the first I/O command has ended.
    booting: Vec<Option<(Box<Analyser>, Instant)>>,
    /// By host: time at which the last command ended.
    ended: Vec<Instant>,
    acks: Acks,
    drive: Row,
    root: Row,
    io: Row,
    admin: Row,
    rto: Row,
    sim_rto: Row,
    dead: Row,
    silence: Row,
}

impl Waits {
    /// Creates the observer for a configuration and the timeouts of real systems.
    pub fn new(config: &Config, assumed: &Assumptions) -> Self {
        let range = assumed.completion_timeout;
        let both = |limit| (limit, limit);
        let hosts = config.hosts.iter();
        let root = hosts.clone().map(|host| host.root.completion_timeout).min();
        let loss = hosts.clone().filter_map(|host| match &host.attached {
            Attached::Switch(switch) => Some(switch.loss_limit),
            Attached::Direct(_) => None,
        });
        let loss = loss.min().unwrap_or(Duration::from_ms(800));
        let sim_rto = Duration::from_ms(1_000 / sim::tcp::clock::SCALE);
        let analyser = || Box::new(Analyser::new(AnalyserSettings::default()));
        Self {
            hosts: config.hosts.clone(),
            requests: BTreeMap::new(),
            heard: BTreeMap::new(),
            booting: hosts.map(|_| Some((analyser(), Instant::ZERO))).collect(),
            ended: vec![Instant::ZERO; config.hosts.len()],
            acks: Acks::new(config),
            drive: Row::new(
                "completion timeout of the drive",
                (range.earliest, range.latest),
                COMPLETION,
            ),
            root: Row::new(
                "completion timeout of the root port",
                both(root.unwrap_or(range.latest)),
                COMPLETION,
            ),
            io: Row::new("I/O timeout of the driver", both(assumed.io_timeout), IO),
            admin: Row::new("admin timeout of the driver", both(assumed.admin_timeout), ADMIN),
            rto: Row::new("TCP retransmission, Linux", both(assumed.rto_min), RTO),
            sim_rto: Row::new("TCP retransmission, as simulated", (sim_rto, NEVER), SIM_RTO),
            dead: Row::new("TCP bytes never acknowledged", (assumed.rto_min.min(loss), loss), DEAD),
            silence: Row::new("link lost by silence", both(loss), LOSS),
        }
    }

    /// Ends the simulation: open requests have waited until `now`. If the workloads are not `done`,
    /// commands have waited since the last command ended.
    pub fn finish(&mut self, now: Instant, done: bool) {
        for (host, since) in self.ended.iter().enumerate().filter(|_| !done) {
            if *since > Instant::ZERO {
                let description = || format!("commands of host {host}, never answered");
                self.io.add(*since, now, description);
            }
        }
        for (key, request) in std::mem::take(&mut self.requests) {
            self.unanswered(now, key, request);
        }
        let (dead, long) = (&mut self.dead, self.rto.limit);
        self.acks.finish(now, |wait| {
            // Bytes in flight at a normal end are not late.
            if !done || wait.until.since(wait.since) >= long {
                dead.add(wait.since, wait.until, || format!("{}, until the end", bytes_of(wait)));
            }
        });
        for (point, since) in std::mem::take(&mut self.heard) {
            self.silence.add(since, now, || format!("{}, until the end", end(point)));
        }
    }

    /// Returns the number of retransmitted TCP segments and data frames of raw Ethernet.
    pub fn retransmissions(&self) -> u64 {
        self.acks.retransmitted
    }

    /// Returns the measured waits by limit. Limits of links need a tunnel, limits of TCP a link
    /// over TCP.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> =
            [&self.drive, &self.root, &self.io, &self.admin].map(Row::clone).into();
        if !self.hosts.iter().all(is_direct) {
            if self.acks.any_tcp() {
                rows.extend([&self.rto, &self.sim_rto].map(Row::clone));
                rows.extend(self.dead.worst.is_some().then(|| self.dead.clone()));
            }
            rows.push(self.silence.clone());
        }
        rows
    }

    /// Records a request whose tag is used again, or that can no longer be answered. A requester
    /// that waited for the completion timeout has given up, because it does not use the tag again
    /// earlier.
    fn unanswered(&mut self, now: Instant, key: Key, request: Request) {
        let (point, requester, tag) = key;
        let Request { since, kind, up } = request;
        let wait_limit = match point {
            Point::RootPort(host) if !up => Some(&self.hosts[usize::from(host)]),
            _ => None,
        };
        let (row, timeout, early) = match wait_limit {
            // The timeout starts when the request has passed the root port.
            Some(host) => {
                (&mut self.root, host.root.completion_timeout, host.link.downstream_port.transmit)
            }
            // The timeout of the simulated drive's register.
            None => (&mut self.drive, CompletionTimeout::DEFAULT.latest, Duration::ZERO),
        };
        let waited = now.since(since);
        let gave_up = waited + early >= timeout;
        let span = if gave_up { waited.max(timeout) } else { waited };
        row.add_span(since, span, || format!("{kind} of {requester}, tag {tag}, never answered"));
    }

    /// Drops the requests of a drive that was reset.
    fn reset(&mut self, now: Instant, link: u16) {
        let point = Point::DevicePort(link);
        let is_at_point = |key: &Key| key.0 == point;
        let keys: Vec<Key> = self.requests.keys().copied().filter(is_at_point).collect();
        for key in keys {
            let Some(Request { since, kind, .. }) = self.requests.remove(&key) else { continue };
            let (_, requester, tag) = key;
            let description =
                || format!("{kind} of {requester}, tag {tag}, until its link was lost");
            self.drive.add(since, now, description);
        }
    }

    fn admin(&mut self, at: Instant, host: u16, up: bool, tlp: &Tlp) {
        let Some(Some((analyser, last))) = self.booting.get_mut(usize::from(host)) else { return };
        *last = at.max(*last);
        let direction = if up { Direction::Up } else { Direction::Down };
        analyser.push(*last, direction, tlp);
        while let Some(event) = analyser.next_event() {
            let Found::Command(command) = event else { continue };
            if let (true, Some(end)) = (command.is_admin(), command.end) {
                let description = || format!("{} of host {host}", command.name());
                self.admin.add(command.start, end, description);
            }
        }
    }
}

fn is_direct(host: &HostConfig) -> bool {
    matches!(host.attached, Attached::Direct(_))
}

fn bytes_of(wait: Wait) -> String {
    let from = if wait.down { "host" } else { "device node" };
    format!("bytes of the {from} on link {}", wait.link)
}

fn end(point: Point) -> String {
    match point {
        Point::TunnelHost(link) => format!("link {link}, the host's end"),
        Point::TunnelDevice(link) => format!("link {link}, the device node's end"),
        other => format!("{other:?}"),
    }
}

impl Observer for Waits {
    fn tlp(&mut self, at: Instant, point: Point, up: bool, tlp: &Tlp) {
        let direct = match point {
            Point::RootPort(host) => {
                self.admin(at, host, up, tlp);
                is_direct(&self.hosts[usize::from(host)])
            }
            _ => false,
        };
        // The CPU waits at the root port, the drive at its own link.
        let asks = match point {
            Point::RootPort(_) => !up || direct,
            _ => up,
        };
        let (requester, tag) = match tlp.packet {
            Packet::MemoryRead(r) => (r.requester, r.tag.get()),
            Packet::ConfigRead(r) | Packet::ConfigWrite(r) => (r.requester, r.tag.get()),
            Packet::Completion(c) => {
                let last = tlp.data.is_empty() || usize::from(c.byte_count) <= tlp.data.len();
                if !last {
                    return;
                }
                let key = (point, c.requester, c.tag.get());
                let Some(request) = self.requests.remove(&key) else { return };
                let Request { since, kind, .. } = request;
                let row = if up { &mut self.root } else { &mut self.drive };
                let (requester, tag) = (c.requester, c.tag.get());
                return row.add(since, at, || format!("{kind} of {requester}, tag {tag}"));
            }
            _ => return,
        };
        if asks {
            let key = (point, requester, tag);
            let request = Request { since: at, kind: tlp.mnemonic(), up };
            if let Some(before) = self.requests.insert(key, request) {
                self.unanswered(at, key, before);
            }
        }
    }

    fn stream(&mut self, at: Instant, point: Point, sent: bool, bytes: &[u8]) {
        if sent {
            return self.acks.sent(at, point, bytes.len());
        }
        if let Some(since) = self.heard.insert(point, at) {
            self.silence.add(since, at, || end(point));
        }
    }

    fn link(&mut self, at: Instant, point: Point, change: LinkChange) {
        if matches!(change, LinkChange::Up | LinkChange::Resumed) {
            return;
        }
        let dead = &mut self.dead;
        self.acks.lost(at, point, |wait| never(dead, wait));
        if let (Point::TunnelDevice(link), LinkChange::Down) = (point, change) {
            self.reset(at, link);
        }
        if let Some(since) = self.heard.remove(&point) {
            self.silence.add(since, at, || format!("{}, which is lost", end(point)));
        }
    }

    fn command(&mut self, record: &CommandRecord) {
        if let Some(booting) = self.booting.get_mut(usize::from(record.host)) {
            *booting = None;
            self.ended[usize::from(record.host)] = record.until;
        }
        self.io.add(record.since, record.until, || {
            let CommandRecord { host, drive, queue, id, op, .. } = record;
            format!("{} of host {host}, drive {drive}, queue {queue}, command {id}", op.name())
        });
    }

    fn ethernet_frame(&mut self, at: Instant, point: Point, bytes: &[u8]) {
        let Point::Wire(wire) = point else { return };
        let Self { acks, rto, sim_rto, dead, .. } = self;
        acks.frame(at, usize::from(wire), bytes, |wait| match wait.acknowledged {
            true => {
                rto.add(wait.since, wait.until, || bytes_of(wait));
                sim_rto.add(wait.since, wait.until, || bytes_of(wait));
            }
            false => never(dead, wait),
        });
    }
}

fn never(dead: &mut Row, wait: Wait) {
    let description = || format!("{}, until their connection ended", bytes_of(wait));
    dead.add(wait.since, wait.until, description);
}
