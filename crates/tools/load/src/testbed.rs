//! The machines of a bench, which run rounds of a case on every path, and the floor of raw TCP.

use crate::TraceTarget;
use crate::case::{Case, FILL, Path};
use crate::cpu::CpuTime;
use crate::floor::{self, Copies};
use crate::initiator_host::InitiatorHost;
use crate::local::{self, LocalLink, Node};
use live::attached::Switch;
use live::{Attached, Clock, NvmeDrive, Waiting, random_number};
use node::push::{self, Mode};
use nvme::initiator::{Io, Settings};
use report::latency::Latency;
use report::{Failure, Outcome};
use stats::random::Random;
use std::collections::BTreeMap;
use switch::aggregate::Policy;
use wire::nvme::StatusCode;
use wire::trace::NodeRole;
use wire::{Duration, Instant};

/// Bytes of each drive. The whole drive is written before the measurement.
const DRIVE: u64 = 64 << 20;
/// Time for which a machine runs after a round, so that TLPs in flight arrive.
const SETTLE: Duration = Duration::from_ms(2);

/// The results of one round of one case.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Commands per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Mean latency in ns, from submission to completion as the driver measures it.
    pub mean_ns: u64,
    /// Median of the latency in ns.
    pub p50_ns: u64,
    /// 99th percentile of the latency in ns.
    pub p99_ns: u64,
    /// 99.9th percentile of the latency in ns.
    pub p99_9_ns: u64,
    /// CPU time of the host node per command.
    pub host_cpu_ns: f64,
    /// CPU time of the device node per command.
    pub device_cpu_ns: f64,
}

/// All rounds of one case on one path at one payload size.
pub struct Series {
    /// The path to the drive.
    pub path: Path,
    /// Maximum TLP payload in bytes.
    pub mps: u16,
    /// Mode of push.
    pub push: Mode,
    /// The workload.
    pub case: Case,
    /// The rounds so far.
    pub rounds: Vec<Round>,
    /// Latencies of all rounds.
    pub latency: Latency,
}

impl Series {
    /// Creates a series without rounds.
    pub fn new(path: Path, mps: u16, push: Mode, case: Case) -> Self {
        Self { path, mps, push, case, rounds: Vec::new(), latency: Latency::default() }
    }

    /// Returns a short name.
    pub fn name(&self) -> String {
        let Self { path, mps, push, case, .. } = self;
        format!("{path}, MPS {mps}, push {push}, {}", case.name())
    }
}

/// All rounds of raw TCP.
#[derive(Default)]
pub struct Floor {
    /// Latencies of all round trips.
    pub latency: Latency,
    /// Median round trip in nanoseconds, by round.
    pub ping_pong_p50: Vec<u64>,
    /// Bytes per second of one stream, by round.
    pub stream: Vec<u64>,
    /// Bytes per second of a stream with a copy on each side, by round.
    pub copied_stream: Vec<u64>,
}

impl Floor {
    /// Measures one more round.
    ///
    /// # Errors
    /// If the kernel provides no connection.
    pub fn measure(&mut self, clock: Clock, waiting: Waiting, span: Duration) -> Outcome {
        let latency = floor::measure(clock, waiting, 2000)?;
        self.ping_pong_p50.push(latency.summary().p50_ns);
        self.latency.merge(&latency);
        self.stream.push(floor::stream(clock, span, Copies::None)?);
        self.copied_stream.push(floor::stream(clock, span, Copies::OnEachSide)?);
        Ok(())
    }
}

/// A machine with its drive, and the buffers of the commands that load the drive.
pub struct LoadGenerator<A> {
    mps: u16,
    /// The machine.
    pub host: InitiatorHost<A>,
    buffers: Vec<u64>,
    random: Random,
    /// Number of commands at sequential addresses so far.
    sequential: u64,
}

/// The measured machines, by payload size.
pub struct Testbed {
    /// The clock of all machines.
    pub clock: Clock,
    direct: Vec<LoadGenerator<NvmeDrive>>,
    tunnelled: Vec<Tunnelled>,
}

struct Tunnelled {
    path: Path,
    push: Mode,
    load: LoadGenerator<Switch>,
    _far: Node,
}

impl Tunnelled {
    fn serves(&self, path: Path, mps: u16, push: Mode) -> bool {
        (self.path, self.load.mps, self.push) == (path, mps, push)
    }
}

/// Returns settings with queues deep enough for every workload.
pub fn settings() -> Settings {
    Settings { entries: 256, ..Settings::default() }
}

/// Starts a machine with a drive in a separate node. Machine and node record into `trace`.
///
/// # Errors
/// If a node does not come up.
pub fn tunnelled(
    link: LocalLink,
    trace: &TraceTarget,
) -> Result<(LoadGenerator<Switch>, Node), Failure> {
    let far = Node::device(&local::loopback(), link, 0, DRIVE, trace.for_node("device0"))?;
    let tracer = trace.open(NodeRole::Host, random_number(), link.clock)?;
    let host = local::host(link, settings(), std::slice::from_ref(&far.address), tracer)?;
    Ok((LoadGenerator::new(link.max_payload, host, DRIVE)?, far))
}

impl Testbed {
    /// Starts the machines that the rounds of `all` need.
    ///
    /// # Errors
    /// If a machine does not come up.
    pub fn new(waiting: Waiting, all: &[Series]) -> Result<Self, Failure> {
        let clock = Clock::start();
        let mut bed = Self { clock, direct: Vec::new(), tunnelled: Vec::new() };
        for Series { path, mps, push: mode, .. } in all {
            let (max_payload, aggregation, path) = (*mps, Policy::Adaptive, *path);
            let push = push::Settings { mode: *mode, ..push::Settings::default() };
            let cipher = path.cipher();
            let link = LocalLink { clock, waiting, max_payload, aggregation, push, cipher };
            if path == Path::Direct && bed.direct.iter().all(|load| load.mps != *mps) {
                let host = local::direct(link, settings(), "FARLANE-BENCH", DRIVE)?;
                bed.direct.push(LoadGenerator::new(max_payload, host, DRIVE)?);
            }
            let serves = |one: &Tunnelled| one.serves(path, *mps, *mode);
            if path != Path::Direct && !bed.tunnelled.iter().any(serves) {
                let (load, _far) = tunnelled(link, &TraceTarget::default())?;
                bed.tunnelled.push(Tunnelled { path, push: *mode, load, _far });
            }
        }
        Ok(bed)
    }

    /// Runs one round of a series for `span`, after a warm-up of a tenth of `span`.
    ///
    /// # Errors
    /// As [`LoadGenerator::round`].
    pub fn round(&mut self, series: &mut Series, span: Duration) -> Result<(), Failure> {
        let (mps, case, latency) = (series.mps, series.case, &mut series.latency);
        let done = match series.path {
            Path::Direct => {
                let load = self.direct.iter_mut().find(|load| load.mps == mps);
                load.expect("made for every series").round(case, span, latency)?
            }
            path => {
                let wanted = |one: &&mut Tunnelled| one.serves(path, mps, series.push);
                let found = self.tunnelled.iter_mut().find(wanted);
                found.expect("made for every series").load.round(case, span, latency)?
            }
        };
        series.rounds.push(done);
        Ok(())
    }
}

impl<A: Attached> LoadGenerator<A> {
    /// Creates a load generator, and writes the whole drive, which has `size` bytes.
    ///
    /// # Errors
    /// If a command fails or takes too long.
    pub fn new(mps: u16, mut host: InitiatorHost<A>, size: u64) -> Result<Self, Failure> {
        host.stop_observing();
        let buffers = (0..32).map(|_| host.buffer(128 << 10)).collect::<Result<_, _>>()?;
        let mut load = Self { mps, host, buffers, random: Random::new(1), sequential: 0 };
        // Memory that was never written has other access times.
        let drive = size / u64::from(FILL.bs);
        load.load(FILL, |_, commands| commands < drive, &mut Latency::default())?;
        Ok(load)
    }

    /// Runs one round of one case for `span`, after a warm-up of a tenth of `span`.
    ///
    /// # Errors
    /// If a command fails or takes too long.
    pub fn round(
        &mut self,
        case: Case,
        span: Duration,
        latency: &mut Latency,
    ) -> Result<Round, Failure> {
        let (warm_up, mut scratch) = (Duration::from_ns(span.as_ns() / 10), Latency::default());
        self.load(case, |elapsed, _| elapsed < warm_up, &mut scratch)?;
        let mut own = Latency::default();
        let cpu = CpuTime::now();
        let (commands, elapsed) = self.load(case, |elapsed, _| elapsed < span, &mut own)?;
        let (host, device) = CpuTime::now().since(cpu);
        latency.merge(&own);
        let summary = own.summary();
        let per_second = 1e9 / elapsed.as_ns().max(1) as f64;
        let each = |ns: u64| ns as f64 / commands.max(1) as f64;
        Ok(Round {
            iops: commands as f64 * per_second,
            bytes_per_s: commands as f64 * f64::from(case.bs) * per_second,
            mean_ns: summary.mean_ns,
            p50_ns: summary.p50_ns,
            p99_ns: summary.p99_ns,
            p99_9_ns: summary.p99_9_ns,
            host_cpu_ns: each(host),
            device_cpu_ns: each(device),
        })
    }

    /// Runs the machine without load until TLPs in flight have arrived.
    ///
    /// # Errors
    /// As [`live::HostIo::pump`].
    pub fn settle(&mut self) -> Result<(), Failure> {
        let clock = *self.host.machine.clock();
        let until = clock.now() + SETTLE;
        while clock.now() < until {
            self.host.machine.pump(&mut self.host.memory)?;
        }
        Ok(())
    }

    /// Keeps `iodepth` commands in flight while `goes_on` returns true for the time and the number
    /// of commands, then waits for their end.
    fn load(
        &mut self,
        case: Case,
        goes_on: impl Fn(Duration, u64) -> bool,
        latency: &mut Latency,
    ) -> Result<(u64, Duration), Failure> {
        let clock = *self.host.machine.clock();
        let start = clock.now();
        let mut open: BTreeMap<u16, (Instant, usize)> = BTreeMap::new();
        for slot in 0..case.iodepth {
            self.submit(case, slot, clock.now(), &mut open)?;
        }
        self.host.drives[0].driver.ring(0);
        let mut commands = 0;
        while !open.is_empty() {
            self.host.turn()?;
            let done = self.host.reap(0);
            let now = clock.now();
            // All completions are processed before the first new command, which may reuse an
            // identifier.
            let mut free = Vec::new();
            for done in done {
                if done.status.code != StatusCode::SUCCESS {
                    return Err(Failure(format!("{}: {}", case.name(), done.status.code)));
                }
                let Some((since, slot)) = open.remove(&done.id.get()) else { continue };
                latency.record(now - since);
                commands += 1;
                free.push(slot);
            }
            if goes_on(now - start, commands) && !free.is_empty() {
                for slot in free {
                    self.submit(case, slot, now, &mut open)?;
                }
                self.host.drives[0].driver.ring(0);
            }
            let timeouts = self.host.drives[0].driver.check_timeouts(now);
            timeouts.map_err(|error| Failure(format!("{}: {error}", case.name())))?;
        }
        Ok((commands, clock.now() - start))
    }

    fn submit(
        &mut self,
        case: Case,
        slot: usize,
        now: Instant,
        open: &mut BTreeMap<u16, (Instant, usize)>,
    ) -> Result<(), Failure> {
        let driver = &mut self.host.drives[0].driver;
        let namespace = driver.namespaces()[0];
        let blocks = case.bs >> namespace.block_shift;
        let places = namespace.blocks / u64::from(blocks);
        let place = if case.random {
            self.random.below(places)
        } else {
            self.sequential += 1;
            self.sequential % places
        };
        let slba = place * u64::from(blocks);
        let (op, nsid, buffer) =
            (case.next_op(&mut self.random), namespace.nsid, self.buffers[slot]);
        let id = driver.prepare(now, 0, Io { op, nsid, slba, blocks, buffer });
        let id = id.map_err(|_| Failure("the queue is full".into()))?;
        open.insert(id.get(), (now, slot));
        Ok(())
    }
}
