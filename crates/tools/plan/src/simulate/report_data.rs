//! Data about the commands and frames of a simulation for its report. Memory does not grow with
//! time.

use super::places;
use report::latency::Latency;
use sim::Config;
use sim::ethernet::Rate;
use sim::ethernet::frame::{FCS, PREAMBLE};
use sim::measure::{CommandRecord, Observer, Op, Point};
use sim::network::CableEnd;
use stats::Bins;
use std::collections::BTreeMap;
use tsn::{Gates, QUEUES};
use wire::{Duration, Instant};

/// Maximum number of bins. With more bins, neighbouring bins are merged.
const POINTS: usize = 120;
/// Number of parts of a gate cycle.
pub const PARTS: usize = 220;

/// A bin of a time series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeBin {
    /// Number of commands that ended in the bin.
    pub count: u64,
    /// Bytes that the commands transferred.
    pub bytes: u64,
    /// Sum of the commands' durations in picoseconds.
    pub sum_ps: u128,
    /// The longest duration.
    pub worst: Duration,
}

/// Commands by the time of their end.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Start of the first bin.
    pub start: Instant,
    /// Length of a bin.
    pub width: Duration,
    /// The bins.
    pub bins: Vec<TimeBin>,
}

impl Timeline {
    fn new(start: Instant) -> Self {
        Self { start, width: Duration::from_us(1), bins: Vec::new() }
    }

    fn add(&mut self, record: &CommandRecord) {
        let since = record.until.since(self.start).as_ps();
        while since / self.width.as_ps() >= POINTS as u64 {
            self.halve();
        }
        let at = (since / self.width.as_ps()) as usize;
        if self.bins.len() <= at {
            self.bins.resize(at + 1, TimeBin::default());
        }
        let span = record.until.since(record.since);
        let bin = &mut self.bins[at];
        bin.count += 1;
        bin.bytes += record.length;
        bin.sum_ps += u128::from(span.as_ps());
        bin.worst = bin.worst.max(span);
    }

    fn halve(&mut self) {
        let joined = self.bins.chunks(2).map(|pair| {
            pair.iter().fold(TimeBin::default(), |sum, bin| TimeBin {
                count: sum.count + bin.count,
                bytes: sum.bytes + bin.bytes,
                sum_ps: sum.sum_ps + bin.sum_ps,
                worst: sum.worst.max(bin.worst),
            })
        });
        self.bins = joined.collect();
        self.width = self.width + self.width;
    }
}

/// Commands of one host and opcode.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Latency from the application's call to its answer.
    pub latency: Latency,
    /// By latency to three digits: the first command with this latency.
    samples: BTreeMap<u64, CommandRecord>,
    /// The longest command.
    pub worst: CommandRecord,
    series: Timeline,
}

impl Kind {
    fn new(first: &CommandRecord) -> Self {
        Self {
            latency: Latency::default(),
            samples: BTreeMap::new(),
            worst: *first,
            series: Timeline::new(first.since),
        }
    }

    fn add(&mut self, record: &CommandRecord) {
        let span = record.until.since(record.since);
        self.latency.record(span);
        let bucket = Bins::least_of_bin(span.as_ns());
        self.samples.entry(bucket).or_insert(*record);
        if span > self.worst.until.since(self.worst.since) {
            self.worst = *record;
        }
        self.series.add(record);
    }

    /// Returns the commands over time.
    pub fn timeline(&self) -> Timeline {
        let mut timeline = self.series.clone();
        let most = (self.latency.count() as usize / 4).clamp(8, POINTS);
        while timeline.bins.len() > most {
            timeline.halve();
        }
        timeline
    }

    /// Returns a command whose latency, to three digits, a share of `share` of all commands does
    /// not exceed.
    pub fn at(&self, share: f64) -> CommandRecord {
        if share >= 1.0 {
            return self.worst;
        }
        let bucket = Bins::least_of_bin(self.latency.bins().at_quantile(share));
        self.samples.get(&bucket).copied().unwrap_or(self.worst)
    }
}

/// Frames of a port with gates, folded into one gate cycle.
#[derive(Clone, Debug)]
pub struct Cycle {
    /// The port.
    pub place: CableEnd,
    /// Gates of the port.
    pub gates: Gates,
    rate: Rate,
    queues: [u8; QUEUES],
    /// Time in which frames were on the wire, by queue and part of the cycle.
    pub busy: Vec<[Duration; PARTS]>,
    /// Number of frames.
    pub frames: u64,
}

/// Commands and gate cycles, for a report.
#[derive(Clone, Debug)]
pub struct ReportData {
    /// Commands by host and opcode.
    pub kinds: BTreeMap<(u16, Op), Kind>,
    /// Gate cycles of the senders with gates, by wire.
    pub cycles: BTreeMap<usize, Cycle>,
}

impl ReportData {
    /// Creates empty data.
    pub fn new(config: &Config) -> Self {
        let network = &config.network;
        let cycles = (0..2 * network.cables.len()).filter_map(|wire| {
            let (place, _) = places::wire(network, wire)?;
            let port = network.port(place);
            let (gates, queues) = (port.gates.clone()?, port.queue_of_priority);
            // Ports with only cyclic queues have a cycle of 1 ns, because their classes have lists
            // of their own.
            let longer = gates.list().cycle_time() > port.rate.duration(PREAMBLE);
            if !longer {
                return None;
            }
            let busy = vec![[Duration::ZERO; PARTS]; QUEUES];
            Some((wire, Cycle { place, gates, rate: port.rate, queues, busy, frames: 0 }))
        });
        Self { kinds: BTreeMap::new(), cycles: cycles.collect() }
    }

    /// Returns the most frequent kind with its key; `None` without commands.
    pub fn main(&self) -> Option<((u16, Op), &Kind)> {
        let most = self.kinds.iter().max_by_key(|(_, kind)| kind.latency.count());
        most.map(|(name, kind)| (*name, kind))
    }
}

impl Observer for ReportData {
    fn command(&mut self, record: &CommandRecord) {
        let name = (record.host, record.op);
        self.kinds.entry(name).or_insert_with(|| Kind::new(record)).add(record);
    }

    fn ethernet_frame(&mut self, at: Instant, point: Point, bytes: &[u8]) {
        let Point::Wire(wire) = point else { return };
        if let Some(cycle) = self.cycles.get_mut(&usize::from(wire)) {
            cycle.frame(at, bytes);
        }
    }
}

impl Cycle {
    fn frame(&mut self, at: Instant, bytes: &[u8]) {
        let pcp = if bytes[12..14] == [0x81, 0] { bytes[14] >> 5 } else { 0 };
        let queue = usize::from(self.queues[usize::from(pcp)]);
        let list = self.gates.list();
        let cycle = list.cycle_time().as_ps();
        let local = self.gates.clock().local(at).as_ps();
        let base = (list.base_time().as_ps() % cycle) as i64;
        let phase = (local - base).rem_euclid(cycle as i64) as u64;
        let mut left = self.rate.duration(PREAMBLE + bytes.len() + FCS).as_ps();
        let mut from = phase;
        while left > 0 {
            let part = (u128::from(from) * PARTS as u128 / u128::from(cycle)) as usize % PARTS;
            let end = ((part as u128 + 1) * u128::from(cycle)).div_ceil(PARTS as u128) as u64;
            let step = left.min(end.saturating_sub(from).max(1));
            self.busy[queue][part] = self.busy[queue][part] + Duration::from_ps(step);
            left -= step;
            from = (from + step) % cycle;
        }
        self.frames += 1;
    }
}
