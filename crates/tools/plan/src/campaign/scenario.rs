//! The plan of a seed: a small network, a workload, and faults.

use super::fault::{Fault, Kind};
use crate::writer::Keys;
use stats::random::Random;

/// Parts of a plan, from which faults can be taken away.
#[derive(Clone)]
pub(super) struct Scenario {
    seed: u64,
    base: Keys,
    /// The cables, by name, each with its ends.
    pub cables: Vec<(String, [String; 2])>,
    /// The hosts and the nodes with drives.
    pub hosts: Vec<String>,
    pub nodes: Vec<String>,
    pub drives: Vec<String>,
    /// The bridges.
    pub bridges: Vec<String>,
    /// The second interfaces of stations; none without two paths.
    pub seconds: Vec<String>,
    /// Whether drives keep their contents without power.
    pub is_persistent: bool,
    /// Whether a switch node is in front of the drives.
    pub is_cascade: bool,
    /// Whether the hosts use one drive at the same time.
    pub is_shared: bool,
    /// Whether the queues of the bridge hold few frames.
    pub has_short_queues: bool,
    /// Whether a processor does all work of a node.
    pub is_serial: bool,
    /// The table and the number of transfers of each job.
    transfers: Vec<(String, u64)>,
    /// Bytes of a transfer.
    bs: u64,
    /// The time during which faults begin, in microseconds.
    pub span: [u64; 2],
    pub faults: Vec<Fault>,
}

/// Draws one of these values.
pub(super) fn one_of<T: Copy>(random: &mut Random, values: &[T]) -> T {
    values[random.below(values.len() as u64) as usize]
}

/// Whether an event of `percent` happens.
pub(super) fn chance(random: &mut Random, percent: u64) -> bool {
    random.below(100) < percent
}

/// When hosts have booted, at the latest, in microseconds.
const BOOTED: u64 = 20_000;

/// Bytes that a host moves, about.
const MOST_BYTES: u64 = 300 << 10;

impl Scenario {
    /// The scenario of a seed.
    pub fn new(seed: u64) -> Self {
        let random = &mut Random::for_component(seed, "campaign");
        let mut made = Self {
            seed,
            base: Keys::default(),
            cables: Vec::new(),
            hosts: Vec::new(),
            nodes: Vec::new(),
            drives: Vec::new(),
            bridges: Vec::new(),
            seconds: Vec::new(),
            is_persistent: false,
            is_cascade: false,
            is_shared: false,
            has_short_queues: false,
            is_serial: chance(random, 30),
            transfers: Vec::new(),
            bs: one_of(random, &[512, 512, 1024, 2048, 4096, 8192]),
            span: [BOOTED, BOOTED + one_of(random, &[40_000, 40_000, 400_000, 3_000_000])],
            faults: Vec::new(),
        };
        made.network(random);
        let further = &mut Random::for_component(seed, "campaign: paths and kills");
        if !made.is_cascade && made.hosts.len() <= made.nodes.len() && chance(further, 25) {
            made.second_paths(further);
        }
        made.links(random);
        made.parts(random);
        made.faults = Fault::draw(&made, random);
        if made.is_persistent && !made.is_shared && chance(further, 25) {
            for _ in 0..further.within(1..=3) {
                let kill = Fault::kill(&made, further);
                made.faults.extend(kill);
            }
        }
        made
    }

    /// Hosts, nodes, bridges, cables and drives.
    fn network(&mut self, random: &mut Random) {
        let (hosts, nodes) = match random.below(20) {
            0..8 => (1, 1),
            8..13 => (1, random.within(1..=3)),
            13..16 => (1, random.within(1..=2)),
            16..18 => (2, 2),
            // The drive moves, or both use it.
            _ => (2, 1),
        };
        let further = &mut Random::for_component(self.seed, "campaign: several hosts");
        self.is_shared = hosts > nodes && chance(further, 50);
        let mut is_direct = false;
        match (hosts, nodes) {
            (1, 1) => is_direct = chance(random, 65),
            (1, _) => self.is_cascade = chance(random, 35),
            _ => {}
        }
        self.is_cascade |= !is_direct && (hosts, nodes) == (1, 1) && chance(random, 60);
        self.hosts = (1..=hosts).map(|number| format!("host{number}")).collect();
        self.nodes = (1..=nodes).map(|number| format!("node{number}")).collect();
        let mut stations = [self.hosts.clone(), self.nodes.clone()].concat();
        if self.is_cascade {
            self.base.table("nodes.middle");
            stations.push("middle".into());
        }
        for (number, node) in self.nodes.iter().enumerate() {
            let table = format!("nodes.{node}");
            self.base.table(&table);
            if self.is_cascade {
                self.base.quoted(&table, "switch", "middle");
            }
            let drive = format!("drive{}", number + 1);
            self.base.quoted(&format!("drives.{drive}"), "node", node);
            self.drives.push(drive);
        }
        for (number, host) in self.hosts.iter().enumerate() {
            let own = match hosts {
                1 => self.drives.clone(),
                _ if self.is_shared => self.drives.clone(),
                _ => self.drives.get(number).into_iter().cloned().collect(),
            };
            let own: Vec<_> = own.iter().map(|drive| format!("\"{drive}\"")).collect();
            self.base.add(&format!("hosts.{host}"), "drives", format!("[{}]", own.join(", ")));
        }
        let ends: Vec<[String; 2]> = match is_direct {
            true => vec![[stations[0].clone(), stations[1].clone()]],
            false => stations.iter().map(|station| [station.clone(), "bridge".into()]).collect(),
        };
        if !is_direct {
            self.bridges.push("bridge".into());
            let mode = one_of(random, &["store-and-forward", "store-and-forward", "cut-through"]);
            self.base.quoted("bridges.bridge", "mode", mode);
            self.has_short_queues = chance(random, 30);
            if self.has_short_queues {
                self.base.add("bridges.bridge", "queue_frames", random.within(2..=12));
            }
        }
        ends.into_iter().for_each(|ends| self.cable(ends, random));
        if hosts > nodes && !self.is_shared {
            let at = random.within(self.span[0]..=self.span[1]);
            self.base.quoted("moves.move", "drive", "drive1");
            self.base.quoted("moves.move", "to", "host2");
            self.base.quoted("moves.move", "at", format!("{at}us"));
        }
    }

    fn cable(&mut self, ends: [String; 2], random: &mut Random) {
        let name = format!("cable{}", self.cables.len() + 1);
        let table = format!("cables.{name}");
        for (key, end) in ["a", "b"].into_iter().zip(&ends) {
            self.base.quoted(&table, key, end);
        }
        if chance(random, 50) {
            let from = random.within(0..=self.span[1]);
            let until = from + random.within(5_000..=500_000);
            self.base.add(&table, "during", format!("[\"{from}us..{until}us\"]"));
        }
        self.cables.push((name, ends));
    }

    /// Gives every host and node a second interface, into a network of its own or the same one.
    fn second_paths(&mut self, random: &mut Random) {
        let tables = [("hosts", self.hosts.clone()), ("nodes", self.nodes.clone())];
        for (kind, names) in tables {
            for name in names {
                let second = format!("{name}-b");
                self.base.quoted(&format!("{kind}.{name}"), "second", &second);
                self.base.table(&format!("nodes.{second}"));
                self.seconds.push(second);
            }
        }
        self.base.quoted("link", "paths", one_of(random, &["active", "both"]));
        if self.seconds.len() == 2 && chance(random, 60) {
            let ends = [self.seconds[0].clone(), self.seconds[1].clone()];
            return self.cable(ends, random);
        }
        if self.bridges.is_empty() || chance(random, 70) {
            self.bridges.push("bridge-b".into());
            self.base.table("bridges.bridge-b");
        }
        let bridge = self.bridges.last().expect("there is one").clone();
        for second in self.seconds.clone() {
            self.cable([second, bridge.clone()], random);
        }
    }

    /// Transport, policies and timers of links.
    fn links(&mut self, random: &mut Random) {
        let base = &mut self.base;
        let transport = one_of(random, &["tcp", "tcp", "raw", "raw", "raw", "tsn"]);
        base.quoted("", "transport", transport);
        base.add("", "seed", self.seed);
        // The longest run takes some seconds of virtual time.
        base.quoted("limits", "time", "60s");
        base.add("limits", "events", 20_000_000);
        let wait = format!("wait={}us", random.within(1..=20));
        base.quoted("", "aggregation", one_of(random, &["adaptive", "per-tlp", wait.as_str()]));
        if transport == "raw" {
            let rate = format!("rate={}M", random.within(100..=900));
            let congestion = one_of(random, &["swift", "swift", "none", rate.as_str()]);
            base.quoted("", "congestion", congestion);
            base.add("link", "ack_frames", random.within(1..=8));
        }
        if chance(random, 10) {
            base.quoted("", "rate_limit", format!("{}M", random.within(100..=900)));
        }
        base.quoted("link", "rate", one_of(random, &["1G", "1G", "2.5G", "10G"]));
        base.quoted("link", "delay_up_to", format!("{}us", random.within(5..=500)));
        // Above the least retransmission timeout of TCP. Keepalives are most of the work of a long run.
        let loss_limit = if self.span[1] < 1_000_000 { 50 } else { 200 };
        base.quoted("link", "loss_limit", format!("{loss_limit}ms"));
        base.quoted("link", "keepalive", format!("{}ms", loss_limit / 4));
        let survive = one_of(random, &["0ms", "5ms", "300ms", "10s", "10s", "10s", "10s", "10s"]);
        // Hosts do not bring a switch node up again whose link was down.
        let must_survive = self.is_cascade || survive == "0ms" && !self.seconds.is_empty();
        base.quoted("link", "survive", if must_survive { "10s" } else { survive });
        if chance(random, 30) {
            base.quoted("link", "keep", format!("{}KiB", one_of(random, &[1, 4, 16, 64])));
        }
        base.quoted("link", "max_frame", format!("{}KiB", one_of(random, &[1, 4, 32])));
        if self.is_serial {
            base.quoted("link", "processor", "serial");
            base.quoted("link", "wake_time", format!("{}us", random.within(1..=5)));
            base.quoted("link", "tlp_time", format!("{}ns", random.within(10..=300)));
        }
    }

    /// Hosts, drives and their workloads.
    fn parts(&mut self, random: &mut Random) {
        let base = &mut self.base;
        base.quoted("host", "memory", "4MiB");
        // Above the time after which a connection is lost, as in live nodes.
        base.quoted("host", "completion_timeout", "900ms");
        let push = one_of(random, &["off", "entries", "all", "all"]);
        base.quoted("host", "push", if self.is_cascade { "off" } else { push });
        match chance(random, 50) {
            true => base.quoted("host", "polling", format!("{}us", random.within(20..=100))),
            false => base.quoted("host", "interrupt", format!("{}us", random.within(1..=40))),
        }
        base.quoted("drive", "preset", one_of(random, &["null", "optane", "970-pro"]));
        let media = one_of(random, &["persistent", "persistent", "volatile"]);
        self.is_persistent = media == "persistent";
        base.quoted("drive", "media", media);
        base.quoted("drive", "size", "4MiB");
        base.add("drive", "mps", one_of(random, &[128, 256, 512]));
        base.add("drive", "reads_in_flight", one_of(random, &[1, 2, 8, 32]));
        for (number, host) in self.hosts.iter().enumerate() {
            let table = format!("hosts.{host}.workload");
            if self.is_shared {
                // Each host compares what it reads with what it wrote.
                base.quoted(&table, "offset", format!("{}MiB", 2 * number));
            }
            if self.is_shared && self.is_persistent {
                let kind = ["write-exclusive-registrants-only", "register"][number];
                base.quoted(&format!("hosts.{host}"), "drive_reservation", kind);
            }
            let rw = one_of(random, &["randrw", "randrw", "randwrite", "rw"]);
            base.quoted(&table, "rw", rw);
            base.quoted(&table, "bs", format!("{}B", self.bs));
            base.add(&table, "iodepth", one_of(random, &[1, 2, 4, 8, 16]));
            let jobs = self.drives.len() as u64 * random.within(1..=2) / self.hosts.len() as u64;
            base.add(&table, "numjobs", jobs.max(1));
            // Few blocks, so that each is written and read often.
            let blocks = random.within(16..=40);
            base.quoted(&table, "size", format!("{}B", self.bs * blocks));
            let most = (MOST_BYTES / (self.bs * jobs.max(1))).clamp(10, 200);
            let transfers = random.within(most / 4..=most);
            // The transfers take the time during which faults begin.
            let rate = transfers * self.bs * 1_000_000 / (self.span[1] - BOOTED);
            base.quoted(&table, "rate", format!("{}B/s", rate.max(1)));
            self.transfers.push((table, transfers));
        }
    }

    /// Whether no drive moves, which would wait for a lost completion, or is behind a switch node.
    pub fn has_lasting_links(&self) -> bool {
        !self.is_cascade && (self.is_shared || self.hosts.len() <= self.drives.len())
    }

    /// The most transfers of a job.
    pub fn most_transfers(&self) -> u64 {
        self.transfers.iter().map(|(_, count)| *count).max().unwrap_or(0)
    }

    /// The same scenario with these faults, and `transfers` per job at most.
    pub fn with(&self, faults: Vec<Fault>, transfers: u64) -> Self {
        let mut fewer = Self { faults, ..self.clone() };
        fewer.transfers.iter_mut().for_each(|(_, count)| *count = (*count).min(transfers));
        fewer
    }

    /// Whether the plan has a fault of this kind.
    pub fn has(&self, kind: Kind) -> bool {
        self.faults.iter().any(|fault| fault.kind == kind)
    }

    /// The text of the plan.
    pub fn text(&self) -> String {
        let mut keys = self.base.clone();
        for (table, count) in &self.transfers {
            keys.quoted(table, "io_size", format!("{}B", count * self.bs));
        }
        let mut lists: Vec<(&str, &'static str, Vec<String>)> = Vec::new();
        for fault in &self.faults {
            let quoted = format!("\"{}\"", fault.value);
            let same = |list: &&mut (&str, &str, Vec<String>)| {
                (list.0, list.1) == (fault.table.as_str(), fault.key)
            };
            match lists.iter_mut().find(same) {
                Some((.., values)) => values.push(quoted),
                None if fault.kind.is_share() => keys.add(&fault.table, fault.key, quoted),
                None => lists.push((&fault.table, fault.key, vec![quoted])),
            }
        }
        for (table, key, values) in lists {
            keys.add(table, key, format!("[{}]", values.join(", ")));
        }
        keys.text()
    }
}
