//! An observer that times what somebody waits for.

use super::acks::Acks;
use super::{Assumptions, Event, NEVER, Row};
use crate::analyse::{Analyser, Direction, Event as Found, Settings};
use sim::Config;
use sim::measure::{CommandRecord, Observer, Point};
use sim::world::Attached;
use std::collections::BTreeMap;
use wire::tlp::{Packet, Tlp};
use wire::{Bdf, Duration, Instant};

const COMPLETION: &str = "PCIe Base 4.0, 2.8 and 7.5.3.16 (Device Control 2)";
const IO: &str = "Linux drivers/nvme/host/core.c, nvme_io_timeout";
const ADMIN: &str = "Linux drivers/nvme/host/core.c, admin_timeout";
const RTO: &str = "Linux include/net/tcp.h, TCP_RTO_MIN";
const SIM_RTO: &str = "smoltcp's 1 s by the scaled clock of the simulation (sim::tcp::clock)";
const LOSS: &str = "the tunnel's loss_limit (docs/protocol.md)";

/// Waits of one kind.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    name: &'static str,
    limit: Duration,
    latest: Duration,
    source: &'static str,
    longest: Option<Event>,
    first: Option<Event>,
}

impl Meter {
    fn new(name: &'static str, limits: (Duration, Duration), source: &'static str) -> Self {
        let (limit, latest) = limits;
        Self { name, limit, latest, source, longest: None, first: None }
    }

    /// Somebody waited.
    pub fn add(&mut self, since: Instant, until: Instant, what: impl FnOnce() -> String) {
        let span = until.since(since);
        let longest = self.longest.as_ref().is_none_or(|longest| span > longest.span);
        let first = span >= self.limit && self.first.is_none();
        if !longest && !first {
            return;
        }
        let event = Event { at: Some(since), span, what: what() };
        if first {
            self.first = Some(event.clone());
        }
        if longest {
            self.longest = Some(event);
        }
    }

    fn row(&self) -> Row {
        Row {
            name: self.name.to_owned(),
            limit: self.limit,
            latest: self.latest,
            worst: self.longest.clone(),
            first: self.first.clone(),
            planned: false,
            endless: false,
            source: self.source,
        }
    }
}

/// A request on its way: since when, and what.
type Request = (Instant, &'static str);

/// See the module. All that it keeps is what is under way.
pub struct Waits {
    /// Whether a host's drive hangs at its root port.
    direct: Vec<bool>,
    requests: BTreeMap<(Point, Bdf, u16), Request>,
    heard: BTreeMap<Point, Instant>,
    /// Of the hosts, until their first I/O command is over.
    booting: Vec<Option<(Box<Analyser>, Instant)>>,
    /// When the last command of each host ended.
    ended: Vec<Instant>,
    acks: Acks,
    drive: Meter,
    root: Meter,
    io: Meter,
    admin: Meter,
    rto: Meter,
    sim_rto: Meter,
    silence: Meter,
}

impl Waits {
    /// For a configuration and what is around it.
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
        let analyser = || Box::new(Analyser::new(Settings::default()));
        Self {
            direct: hosts.clone().map(|h| matches!(h.attached, Attached::Direct(_))).collect(),
            requests: BTreeMap::new(),
            heard: BTreeMap::new(),
            booting: hosts.map(|_| Some((analyser(), Instant::ZERO))).collect(),
            ended: vec![Instant::ZERO; config.hosts.len()],
            acks: Acks::new(config),
            drive: Meter::new(
                "completion timeout of the drive",
                (range.earliest, range.latest),
                COMPLETION,
            ),
            root: Meter::new(
                "completion timeout of the root port",
                both(root.unwrap_or(range.latest)),
                COMPLETION,
            ),
            io: Meter::new("I/O timeout of the driver", both(assumed.io_timeout), IO),
            admin: Meter::new("admin timeout of the driver", both(assumed.admin_timeout), ADMIN),
            rto: Meter::new("TCP retransmission, Linux", both(assumed.rto_min), RTO),
            sim_rto: Meter::new("TCP retransmission, as simulated", (sim_rto, NEVER), SIM_RTO),
            silence: Meter::new("link lost by silence", both(loss), LOSS),
        }
    }

    /// Nothing happens any more: what is under way has waited until now. If
    /// the workloads are not `done`, commands are, since the last one ended at
    /// the latest.
    pub fn finish(&mut self, now: Instant, done: bool) {
        for (host, since) in self.ended.iter().enumerate().filter(|_| !done) {
            if *since > Instant::ZERO {
                let what = || format!("commands of host {host}, never answered");
                self.io.add(*since, now, what);
            }
        }
        for ((point, requester, tag), (since, kind)) in std::mem::take(&mut self.requests) {
            let meter = if matches!(point, Point::RootPort(host) if !self.direct[usize::from(host)])
            {
                &mut self.root
            } else {
                &mut self.drive
            };
            meter.add(since, now, || format!("{kind} of {requester}, tag {tag}, never answered"));
        }
        for (point, since) in std::mem::take(&mut self.heard) {
            self.silence.add(since, now, || format!("{}, until the end", end(point)));
        }
    }

    /// TCP segments and data frames of raw Ethernet sent again.
    pub fn sent_again(&self) -> u64 {
        self.acks.again
    }

    /// What was seen, by limit. Without a tunnel there is no link, and over raw
    /// Ethernet no TCP.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> =
            [&self.drive, &self.root, &self.io, &self.admin].map(Meter::row).into();
        if self.direct.iter().any(|direct| !direct) {
            if self.acks.any_tcp() {
                rows.extend([&self.rto, &self.sim_rto].map(Meter::row));
            }
            rows.push(self.silence.row());
        }
        rows
    }

    fn admin(&mut self, at: Instant, host: u16, up: bool, tlp: &Tlp) {
        let Some(Some((analyser, last))) = self.booting.get_mut(usize::from(host)) else { return };
        *last = at.max(*last);
        let direction = if up { Direction::Up } else { Direction::Down };
        analyser.push(*last, direction, tlp);
        while let Some(event) = analyser.next_event() {
            let Found::Command(command) = event else { continue };
            if let (true, Some(end)) = (command.is_admin(), command.end) {
                let what = || format!("{} of host {host}", command.name());
                self.admin.add(command.start, end, what);
            }
        }
    }
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
                self.direct[usize::from(host)]
            }
            _ => false,
        };
        // The CPU waits at the root port, the drive above its own link.
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
                let Some((since, kind)) = self.requests.remove(&key) else { return };
                let meter = if up { &mut self.root } else { &mut self.drive };
                let (requester, tag) = (c.requester, c.tag.get());
                return meter.add(since, at, || format!("{kind} of {requester}, tag {tag}"));
            }
            _ => return,
        };
        if asks {
            self.requests.insert((point, requester, tag), (at, tlp.mnemonic()));
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

    fn link(&mut self, at: Instant, point: Point, up: bool) {
        if !up && let Some(since) = self.heard.remove(&point) {
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

    fn frame(&mut self, at: Instant, point: Point, bytes: &[u8]) {
        let Point::Wire(wire) = point else { return };
        let (rto, sim_rto) = (&mut self.rto, &mut self.sim_rto);
        self.acks.frame(at, usize::from(wire), bytes, |since, until, link, down| {
            let from = if down { "host" } else { "device node" };
            let what = || format!("bytes of the {from} on link {link}");
            rto.add(since, until, what);
            sim_rto.add(since, until, what);
        });
    }
}
