//! The JSON document of `--json`. The tables of the text show parts of this document.

use super::hops::Names;
use super::over_seeds::{Measured, OverSeeds, merged};
use super::phases::Phases;
pub use super::rows::{
    Credit, Host, Listener, Overload, Port, PortClass, Replayed, SegmentTotals, SimLatency,
    SimLink, SimNotPushed, SimPush, SimRun, SimSegment, SimSegments, SimTunnel, Stream,
};
use super::simulate::{Commands, Failed, Results, RunOptions, breakdown_in_ns, in_ns, remarks};
use crate::Planned;
use crate::simulate::clocks;
use crate::simulate::flows::{self, Flow};
use crate::simulate::handled::{self, Elimination, Policing};
use crate::simulate::limits;
use crate::simulate::{places, requirements};
use report::document::{Ended, rounded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sim::ethernet::traffic::StreamId;
use sim::measure::{ClassStats, QueueStats, STAGES, Stage};
use sim::network::ListenerReport;
use sim::world::Report;
use std::collections::BTreeMap;

/// Version of the document.
const SCHEMA: u32 = 2;

wire::named! {
    /// Where a plan ran.
    #[derive(Deserialize, JsonSchema, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum World {
        /// In the simulator, in virtual time.
        Sim "sim",
        /// On live nodes.
        Live "live",
    }
}

/// A simulation of a plan (docs/plan.md). All times are virtual. The same plan and seed give the
/// same document on any machine.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(rename = "Simulation")]
pub struct SimReport {
    /// Version of the document: 2.
    #[schemars(extend("const" = 2))]
    pub schema: u32,
    /// The file of the plan, as given.
    pub plan: String,
    /// The world of the run. `live`: times are real, `digest` and `events` are zero, and there are
    /// no `streams`, `ports`, `links` and `segments`.
    pub world: World,
    /// Text of the plan, followed by the options `--set` as comments. Not in combinations of a
    /// sweep, because the sweep's document has the text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub plan_text: String,
    /// `true`, only after Ctrl-C: the results cover the time until then, and `runs` and `phases`
    /// contain only simulations that ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Only with `--sweep`: the values of this combination, as text by dotted key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Digest of everything that happened, 16 hexadecimal digits.
    pub digest: String,
    /// Wake-ups of components.
    pub events: u64,
    /// Virtual time at the end, enumeration and bring-up included.
    pub time_ns: u64,
    /// Latency of the application's transfers or configuration reads on all hosts, from call to
    /// answer.
    pub latency_ns: SimLatency,
    /// Transfers per second of all hosts, from the beginning of the first workload to the end of
    /// the last one.
    pub iops: u64,
    /// Bytes moved per second by all hosts, from the beginning of the first workload to the end of
    /// the last one.
    pub bytes_per_s: u64,
    /// Jain's index of the bytes per second that the drives moved for the application, over all
    /// drives of all hosts: 1 if all are equal, 1/n if only one moved data; null without data.
    /// Always about 1 unless the workload has a `runtime`.
    pub fairness: Option<f64>,
    /// The hosts, in the order of the plan; empty without hosts (docs/plan.md#without-hosts), and
    /// then `latency_ns`, `iops` and `bytes_per_s` are zero and `segments` is null.
    pub hosts: Vec<Host>,
    /// Frames of each `[traffic.NAME]`, in the order of the plan.
    pub streams: Vec<Stream>,
    /// Only if there are any: flows over TCP, in the order of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Flow>,
    /// Only if there are any: replication and elimination of `[streams.NAME]`, by stream and node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub eliminations: Vec<Elimination>,
    /// Only if there are any: filters, by stream and bridge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policings: Vec<Policing>,
    /// TCP segments with data, and raw frames with data, that stations sent again.
    pub retransmitted: u64,
    /// Only with `[clocks]`: the clocks of stations, then of bridges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<clocks::Clock>,
    /// Only with `[clocks]`: ports with gates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gate_edges: Vec<clocks::GateEdges>,
    /// Only if there are any: ports of stations and bridges that frames passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// Only if there are any: ports to which streams offer more than gates, shaper and line can
    /// carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overloads: Vec<Overload>,
    /// Only if there are any: periods that do not divide one another, and whether the run covers
    /// the time after which they repeat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// The plan's requirements, and whether the run met them.
    pub requirements: Vec<requirements::Row>,
    /// The time of NVMe commands by segment; null without commands.
    pub segments: Option<SimSegments>,
    /// Both directions of every PCIe link and cable, while the workloads ran.
    pub links: Vec<SimLink>,
    /// Both directions of every tunnel, while the workloads ran.
    pub tunnels: Vec<SimTunnel>,
    /// The longest wait for each limit of real systems (docs/model.md). Not in sweeps, and not with
    /// `--phases` after Ctrl-C.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<limits::Limit>,
    /// The limits as a text table.
    #[serde(skip)]
    pub limits_text: String,
    /// Only with `--phases`: results of the other phases. All other fields are results of trial 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// Only with several runs: results of the further seeds. All other fields are results of the
    /// first seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<SimRun>,
    /// Only with several runs: results over all seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_seeds: Option<OverSeeds>,
    /// Measurements for tables and for results over seeds.
    #[serde(skip)]
    pub measured: Measured,
}

/// A sweep: points with other values of keys. It has no `limits`.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Sweep")]
pub struct SweepDocument {
    /// Version of the document: 2.
    #[schemars(extend("const" = 2))]
    pub schema: u32,
    /// The file of the plan, as given.
    pub plan: String,
    /// Text of the plan, followed by the options `--set` as comments.
    pub plan_text: String,
    /// `true`, only after Ctrl-C: the points that were not finished are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Dotted paths of the keys.
    #[serde(skip)]
    pub keys: Vec<String>,
    /// One simulation per point, with `set`; the last key varies fastest.
    pub combinations: Vec<SimReport>,
    /// Only if there are any: points that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedPoint>,
}

/// A point of a sweep that failed.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct FailedPoint {
    /// The values of this point, as text by dotted key.
    pub set: BTreeMap<String, String>,
    /// The reason.
    pub why: String,
}

impl SweepDocument {
    /// Creates a document without points.
    pub fn new((plan, text): (&str, &str), keys: Vec<String>) -> Self {
        let (plan, plan_text) = (plan.to_owned(), text.to_owned());
        let (combinations, failed) = (Vec::new(), Vec::new());
        Self { schema: SCHEMA, plan, plan_text, interrupted: false, keys, combinations, failed }
    }
}

/// A simulation that failed. `farlane sim --json` prints this document, with exit status 1, if a
/// host did not come up, a limit of `[limits]` was reached, or a drive did not come back. A plan with
/// an error has no document.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct FailedRun {
    /// Version of the document: 2.
    #[schemars(extend("const" = 2))]
    pub schema: u32,
    /// The file of the plan, as given.
    pub plan: String,
    /// Text of the plan, followed by the options `--set` as comments.
    pub plan_text: String,
    /// Seed of the run that failed.
    pub seed: u64,
    /// The reason, as printed on stderr.
    pub failed: String,
    /// The longest waits until the failure; for a run other than the first one, only the waits that
    /// follow from the plan alone.
    pub limits: Vec<limits::Limit>,
}

impl FailedRun {
    /// Creates the document with every limit that was observed. Without observed limits, the
    /// document has the limits that follow from the plan alone.
    pub fn new(options: &RunOptions, planned: &Planned, failed: &Failed) -> Self {
        let known = limits::planned_rows(&planned.config, &options.assumed);
        let rows = if failed.limits.is_empty() { &known } else { &failed.limits };
        Self {
            schema: SCHEMA,
            plan: options.name.clone(),
            plan_text: options.text.clone(),
            seed: planned.config.seed,
            failed: failed.why.clone(),
            limits: rows.iter().map(limits::Limit::from).collect(),
        }
    }
}

fn per_second(count: u64, span_ns: u64) -> u64 {
    (u128::from(count) * 1_000_000_000 / u128::from(span_ns.max(1))) as u64
}

/// Returns Jain's index of the drives' throughput to four digits (R. Jain, D.-M. Chiu and W. Hawe,
/// "A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
/// Computer Systems", DEC-TR-301, 1984).
fn fairness(report: &Report) -> Option<f64> {
    let rates: Vec<f64> = report
        .hosts
        .iter()
        .flat_map(|host| {
            let span = host.span.as_ns().max(1) as f64;
            host.drive_bytes.iter().map(move |bytes| *bytes as f64 / span)
        })
        .collect();
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    let index = sum * sum / (rates.len() as f64 * squares);
    (squares > 0.0).then(|| rounded(index, 4))
}

fn parts(ns: [u64; STAGES]) -> Vec<SimSegment> {
    let all = Stage::ALL.iter().zip(ns).filter(|(_, ns)| *ns > 0);
    all.map(|(stage, ns)| SimSegment { segment: stage.name().into(), ns }).collect()
}

fn segments(commands: &Commands) -> Option<SimSegments> {
    let median = breakdown_in_ns(&commands.all.example(500)?.breakdown);
    let p99 = breakdown_in_ns(&commands.all.example(990)?.breakdown);
    let mean = in_ns(commands.sums, commands.all.count);
    let total = |ns: [u64; STAGES]| ns.iter().sum();
    let total_ns = SegmentTotals { mean: total(mean), median: total(median), p99: total(p99) };
    Some(SimSegments { mean: parts(mean), median: parts(median), p99: parts(p99), total_ns })
}

impl SimReport {
    /// Creates the document from the results of a simulation.
    pub fn new(plan: &str, planned: &Planned, results: &Results) -> Self {
        let Results { report, commands, limits, requirements, interrupted, .. } = results;
        let names = planned.hosts.iter().zip(&planned.recordings);
        let hosts = report.hosts.iter().zip(names).map(|(host, (name, recorded))| {
            let span_ns = host.span.as_ns();
            Host {
                host: name.clone(),
                latency_ns: host.latency.summary().into(),
                root_port_ns: host.root_port.summary().into(),
                config_read_ns: host.config_reads.summary().into(),
                commands: host.commands,
                bytes: host.bytes,
                span_ns,
                iops: per_second(host.latency.count(), span_ns),
                bytes_per_s: host.throughput(),
                verified_blocks: host.verified,
                mismatches: host.mismatches,
                failures: host.failures,
                reservation_conflicts: Some(host.conflicts).filter(|conflicts| *conflicts > 0),
                pushed: SimPush::from_host(host),
                recorded: recorded.as_deref().map(Replayed::from),
            }
        });
        let hosts: Vec<Host> = hosts.collect();
        let links = report.links.iter().map(|link| SimLink {
            link: planned.link_name(&link.name),
            utilisation_ppm: link.utilisation_ppm,
            packets: link.load.packets,
            bytes: link.load.bytes,
            busy_ns: link.load.busy.as_ns(),
        });
        let tunnels = report.tunnels.iter().map(|tunnel| {
            let hundredths = tunnel.tlps * 100 / tunnel.frames.max(1);
            SimTunnel {
                tunnel: planned.link_name(&tunnel.name),
                frames: tunnel.frames,
                tlps: tunnel.tlps,
                failovers: tunnel.failovers,
                copies: tunnel.copies,
                tlps_per_frame: hundredths as f64 / 100.0,
            }
        });
        let named = |words: &str| planned.link_name(words);
        let (eliminations, policings) = handled::rows(report, &planned.identified, &named);
        let host_latencies = planned.hosts.iter().cloned();
        let host_latencies =
            host_latencies.zip(report.hosts.iter().map(|host| host.latency.clone())).collect();
        let reports = planned.streams.iter().filter_map(|(_, id)| report.stream(*id));
        let listeners = reports.flat_map(|stream| &stream.listeners);
        let measured = Measured {
            commands: commands.all.count,
            hosts: host_latencies,
            streams: listeners.map(|listener| listener.latency.clone()).collect(),
            part_failed: results.part_failed.clone(),
            contention: results.contention.clone(),
        };
        Self {
            schema: SCHEMA,
            plan: plan.to_owned(),
            world: World::Sim,
            plan_text: String::new(),
            interrupted: *interrupted,
            set: BTreeMap::new(),
            seed: planned.config.seed,
            digest: format!("{:016x}", report.digest),
            events: report.events,
            time_ns: report.time.as_ns(),
            latency_ns: merged(report.hosts.iter().map(|host| &host.latency)),
            iops: report.transfers_per_second(),
            bytes_per_s: report.throughput(),
            fairness: fairness(report),
            hosts,
            streams: streams(planned, results),
            flows: flows::rows(report, &named),
            eliminations,
            policings,
            retransmitted: report.retransmitted,
            clocks: clocks::clocks(&planned.config, report, &named),
            gate_edges: clocks::edges(&planned.config, report, &named),
            ports: ports(planned, report),
            overloads: overloads(planned),
            remarks: remarks(planned, report),
            requirements: requirements.clone(),
            segments: segments(commands),
            links: links.collect(),
            tunnels: tunnels.collect(),
            limits: limits.iter().map(limits::Limit::from).collect(),
            limits_text: planned.link_name(&limits::text(limits)),
            phases: None,
            runs: Vec::new(),
            over_seeds: None,
            measured,
        }
    }

    /// Returns whether all requirements are met, in this run, in further runs and in other phases.
    pub fn meets_requirements(&self) -> bool {
        let further = self.runs.iter().flat_map(|run| &run.requirements);
        self.requirements.iter().chain(further).all(|row| row.holds)
            && self.phases.as_ref().is_none_or(Phases::meets_requirements)
    }

    /// Returns how the command ended, which sets the exit status.
    pub fn ended(&self) -> Ended {
        match () {
            () if self.interrupted => Ended::Interrupted,
            () if self.meets_requirements() => Ended::Done,
            () => Ended::Missed,
        }
    }

    /// Returns the requirements, each in its worst trial or run.
    pub fn required(&self) -> Vec<&requirements::Row> {
        match &self.phases {
            Some(phases) => phases.requirements.iter().map(|tried| &tried.row).collect(),
            None => (0..self.requirements.len()).filter_map(|at| self.worst(at)).collect(),
        }
    }

    /// Returns a requirement in the worst of all runs.
    fn worst(&self, at: usize) -> Option<&requirements::Row> {
        let runs = self.runs.iter().map(|run| &run.requirements);
        let rows = std::iter::once(&self.requirements).chain(runs).filter_map(|rows| rows.get(at));
        rows.reduce(|a, b| if b.badness() > a.badness() { b } else { a })
    }

    /// Returns a short summary of all requirements; `None` without requirements.
    pub fn verdict(&self) -> Option<String> {
        requirements::verdict(self.required())
    }

    /// Returns the document of several seeds: the first one, with the others as rows.
    pub(super) fn with_runs(all: Vec<Self>) -> Option<Self> {
        let over_seeds = OverSeeds::new(&all);
        let mut all = all.into_iter();
        let first = all.next()?;
        Some(Self { over_seeds, runs: all.map(|document| document.as_run()).collect(), ..first })
    }

    /// Returns each stream at each of its listeners, with its name in tables.
    pub fn stream_rows(&self) -> Vec<(String, &Stream, &Listener)> {
        let rows = |stream| Stream::rows(stream).map(move |(name, own)| (name, stream, own));
        self.streams.iter().flat_map(rows).collect()
    }

    /// Returns this document as an element of `runs`.
    pub fn as_run(&self) -> SimRun {
        SimRun {
            seed: self.seed,
            digest: self.digest.clone(),
            events: self.events,
            latency_ns: self.latency_ns,
            iops: self.iops,
            bytes_per_s: self.bytes_per_s,
            requirements: self.requirements.clone(),
        }
    }
}

fn streams(planned: &Planned, results: &Results) -> Vec<Stream> {
    let (report, names) = (&results.report, Names::new(planned));
    let listener = |id: StreamId, at: usize, found: &ListenerReport| Listener {
        station: planned.stations[found.station].clone(),
        arrived: found.arrived,
        lost: found.lost,
        late: found.late,
        duplicates: found.duplicates,
        overtaken: found.overtaken,
        latency_ns: found.latency.summary().into(),
        histogram_ns: match results.hops {
            Some(_) => found.latency.bins().used().map(<[u64; 3]>::from).collect(),
            None => Vec::new(),
        },
        time: results.hops.as_ref().and_then(|hops| Some(names.time(hops.listener(id, at)?))),
    };
    let stream_row = |(name, id): &(String, StreamId)| {
        let found = report.stream(*id)?;
        let listeners = found.listeners.iter().enumerate();
        Some(Stream {
            name: name.clone(),
            sent: found.sent,
            backlog_bytes: found.backlog_bytes,
            listeners: listeners.map(|(at, own)| listener(*id, at, own)).collect(),
        })
    };
    planned.streams.iter().filter_map(stream_row).collect()
}

fn ports(planned: &Planned, report: &Report) -> Vec<Port> {
    let network = &planned.config.network;
    let used = report.queues.iter().enumerate().filter(|(_, queue)| queue.offered > 0);
    let port = |(wire, queue): (usize, &QueueStats)| {
        let classes = queue.classes.iter().enumerate().filter(|(_, class)| class.most_frames > 0);
        let ends = places::wire(network, wire)?;
        Some(Port {
            name: planned.link_name(&places::between(ends)),
            offered: queue.offered,
            dropped: queue.dropped,
            interrupted: queue.suspended,
            overrun: queue.overrun,
            classes: classes.map(class).collect(),
        })
    };
    used.filter_map(port).collect()
}

fn class((class, stats): (usize, &ClassStats)) -> PortClass {
    let bits = |picobits: i128| picobits as f64 / 1e12;
    let credit =
        |[lowest, highest]: [i128; 2]| Credit { lowest: bits(lowest), highest: bits(highest) };
    PortClass {
        class,
        most_frames: stats.most_frames,
        most_bytes: stats.most_bytes,
        full: stats.full,
        credit_bits: stats.credit.map(credit),
    }
}

fn overloads(planned: &Planned) -> Vec<Overload> {
    let row = |overload: &crate::Overload| Overload {
        port: planned.port_name(overload.place),
        classes: overload.classes.clone(),
        offered_bits_per_s: overload.offered,
        limit_bits_per_s: overload.limit,
        streams: planned.stream_names(&overload.streams),
    };
    planned.overloads.iter().map(row).collect()
}
