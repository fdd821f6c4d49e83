//! The document of `--json`, from which the tables are printed as well.

use super::phases::Phases;
use super::simulate::{Commands, Failed, Results, breakdown_in_ns, in_ns, remarks};
use crate::simulate::clocks;
use crate::simulate::handled::{self, Elimination, Policing};
use crate::simulate::limits::{self, Assumptions};
use crate::simulate::{places, requirements};
use crate::{Planned, Recording};
use report::document::{Ended, rounded};
use serde::Serialize;
use sim::ethernet::traffic::StreamId;
use sim::measure::{ClassStats, QueueStats, STAGES, Stage};
use sim::world::{HostReport, Report};
use std::collections::BTreeMap;

/// Version of the document.
const SCHEMA: u32 = 1;

/// One simulation.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    pub schema: u32,
    pub plan: String,
    /// Whether a signal ended it: it has what was finished.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Keys that the sweep has set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    pub seed: u64,
    pub digest: String,
    pub events: u64,
    pub time_ns: u64,
    pub latency_ns: Latency,
    pub iops: u64,
    pub bytes_per_s: u64,
    pub fairness: Option<f64>,
    pub hosts: Vec<Host>,
    pub streams: Vec<Stream>,
    /// Replication and elimination, by stream and node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub eliminations: Vec<Elimination>,
    /// Filters, by stream and bridge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policings: Vec<Policing>,
    /// Data segments of TCP and raw data frames that stations sent again.
    pub retransmitted: u64,
    /// Clocks of stations and bridges, and the gates that run by them, if clocks are simulated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<clocks::Clock>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gate_edges: Vec<clocks::Edges>,
    /// Ports that frames passed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// Classes to which streams offer more than a port lets through.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overloads: Vec<Overload>,
    /// What is remarkable, and what it means for this run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    pub requirements: Vec<requirements::Row>,
    pub segments: Option<Segments>,
    pub links: Vec<Link>,
    pub tunnels: Vec<Tunnel>,
    /// Waits against the limits of real systems; not in sweeps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<limits::Document>,
    /// The same as a table.
    #[serde(skip)]
    pub limits_text: String,
    /// Other phases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// Further seeds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Run>,
}

/// Every combination of a sweep.
#[derive(Clone, Debug, Serialize)]
pub struct SweepDocument {
    pub schema: u32,
    pub plan: String,
    /// Whether a signal ended it: it has the combinations that were finished.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    pub combinations: Vec<Document>,
}

impl SweepDocument {
    /// Of these combinations, all of the sweep unless it was `interrupted`.
    pub fn new(plan: &str, combinations: Vec<Document>, interrupted: bool) -> Self {
        Self { schema: SCHEMA, plan: plan.to_owned(), interrupted, combinations }
    }
}

/// A simulation that failed.
#[derive(Clone, Debug, Serialize)]
pub struct FailedRun {
    pub schema: u32,
    pub plan: String,
    pub seed: u64,
    pub failed: String,
    pub limits: Vec<limits::Document>,
}

impl FailedRun {
    /// With every limit that was watched, or else with those that follow from the plan alone.
    pub fn new(plan: &str, planned: &Planned, assumed: &Assumptions, failed: &Failed) -> Self {
        let known = limits::planned_rows(&planned.config, assumed);
        let rows = if failed.limits.is_empty() { &known } else { &failed.limits };
        Self {
            schema: SCHEMA,
            plan: plan.to_owned(),
            seed: planned.config.seed,
            failed: failed.why.clone(),
            limits: rows.iter().map(limits::Document::from).collect(),
        }
    }
}

/// Samples of one latency, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Latency {
    pub n: u64,
    pub min: u64,
    pub mean: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub max: u64,
    pub jitter: u64,
    /// The largest less the smallest.
    pub peak_to_peak: u64,
}

/// A stream, from the beginning of the simulation.
#[derive(Clone, Debug, Serialize)]
pub struct Stream {
    pub name: String,
    pub sent: u64,
    pub arrived: u64,
    pub lost: u64,
    pub late: u64,
    pub duplicates: u64,
    pub overtaken: u64,
    pub latency_ns: Latency,
    pub backlog_bytes: u64,
}

/// A class of a port to which streams offer more than it lets through.
#[derive(Clone, Debug, Serialize)]
pub struct Overload {
    pub port: String,
    pub classes: Vec<usize>,
    pub offered_bits_per_s: u64,
    pub limit_bits_per_s: u64,
    pub streams: Vec<String>,
}

/// A port of a station or bridge.
#[derive(Clone, Debug, Serialize)]
pub struct Port {
    pub name: String,
    pub offered: u64,
    pub dropped: u64,
    pub interrupted: u64,
    pub overrun: u64,
    pub classes: Vec<Class>,
}

/// A class of a port that frames waited in.
#[derive(Clone, Debug, Serialize)]
pub struct Class {
    pub class: usize,
    pub most_frames: usize,
    pub most_bytes: usize,
    pub full: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit_bits: Option<Credit>,
}

/// The extremes of a credit.
#[derive(Clone, Debug, Serialize)]
pub struct Credit {
    pub lowest: f64,
    pub highest: f64,
}

/// A host.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    pub host: String,
    pub latency_ns: Latency,
    pub root_port_ns: Latency,
    pub config_read_ns: Latency,
    pub commands: u64,
    pub bytes: u64,
    pub span_ns: u64,
    pub iops: u64,
    pub bytes_per_s: u64,
    pub verified_blocks: u64,
    pub mismatches: u64,
    pub failures: u64,
    /// What it pushed, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed: Option<Pushed>,
    /// The recording that it replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
}

/// What went in front of doorbells, and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Pushed {
    pub messages: u64,
    pub entries: u64,
    pub unpushed_entries: u64,
    pub bytes: u64,
    pub hits: u64,
    pub hit_bytes: u64,
    pub misses: u64,
    pub unused_bytes: u64,
    pub not_pushed: Vec<NotPushed>,
}

/// Commands that were not pushed, or only in part, for one reason.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct NotPushed {
    pub reason: &'static str,
    pub commands: u64,
}

impl Pushed {
    fn of(host: &HostReport) -> Option<Self> {
        let sim::measure::Pushed { messages, entries, unpushed, bytes, .. } = host.pushed;
        let sim::measure::Pushed { hits, hit_bytes, misses, unused_bytes, .. } = host.pushed;
        let pushed = Self {
            messages,
            entries,
            unpushed_entries: unpushed,
            bytes,
            hits,
            hit_bytes,
            misses,
            unused_bytes,
            not_pushed: host
                .pushed
                .not_pushed
                .iter()
                .map(|(reason, commands)| NotPushed { reason: reason.name(), commands })
                .collect(),
        };
        (messages > 0 || !pushed.not_pushed.is_empty()).then_some(pushed)
    }
}

/// A recording that was replayed.
#[derive(Clone, Debug, Serialize)]
pub struct Recorded {
    pub files: Vec<String>,
    pub at: &'static str,
    pub latency_ns: Latency,
    pub commands: u64,
    pub left_out: u64,
    pub gaps: u64,
}

impl From<&Recording> for Recorded {
    fn from(recording: &Recording) -> Self {
        Self {
            files: recording.files.iter().map(|file| file.display().to_string()).collect(),
            at: recording.at,
            latency_ns: recording.latency.summary().into(),
            commands: recording.operations.len() as u64,
            left_out: recording.left_out,
            gaps: recording.gaps,
        }
    }
}

/// The time of commands by segment.
#[derive(Clone, Debug, Serialize)]
pub struct Segments {
    pub mean: Vec<Part>,
    pub median: Vec<Part>,
    pub p99: Vec<Part>,
    pub total_ns: Totals,
}

/// Sums of the parts.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Totals {
    pub mean: u64,
    pub median: u64,
    pub p99: u64,
}

/// The time in one stage.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Part {
    pub segment: &'static str,
    pub ns: u64,
}

/// One direction of a link or wire.
#[derive(Clone, Debug, Serialize)]
pub struct Link {
    pub link: String,
    pub utilisation_ppm: u64,
    pub packets: u64,
    pub bytes: u64,
    pub busy_ns: u64,
}

/// One direction of a tunnel.
#[derive(Clone, Debug, Serialize)]
pub struct Tunnel {
    pub tunnel: String,
    pub frames: u64,
    pub tlps: u64,
    pub tlps_per_frame: f64,
}

/// Another seed.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    pub seed: u64,
    pub digest: String,
    pub events: u64,
    pub latency_ns: Latency,
    pub iops: u64,
    pub bytes_per_s: u64,
    pub requirements: Vec<requirements::Row>,
}

impl From<stats::Summary> for Latency {
    fn from(summary: stats::Summary) -> Self {
        let stats::Summary { n, min_ns: min, mean_ns: mean, p50_ns: p50, p90_ns: p90, .. } =
            summary;
        let stats::Summary { p99_ns: p99, p99_9_ns: p99_9, max_ns: max, .. } = summary;
        let (jitter, peak_to_peak) = (summary.jitter_ns, max - min);
        Self { n, min, mean, p50, p90, p99, p99_9, max, jitter, peak_to_peak }
    }
}

/// The transfers of all hosts together; jitter is between those of one host.
fn together(report: &Report) -> Latency {
    let (mut all, mut steps) = (stats::Latency::default(), 0);
    for host in &report.hosts {
        all.merge(&host.latency);
        let stats::Summary { n, jitter_ns, .. } = host.latency.summary();
        steps += u128::from(jitter_ns) * u128::from(n.saturating_sub(1));
    }
    let pairs = all.count().saturating_sub(report.hosts.len() as u64).max(1);
    Latency { jitter: (steps / u128::from(pairs)) as u64, ..all.summary().into() }
}

fn per_second(count: u64, span_ns: u64) -> u64 {
    (u128::from(count) * 1_000_000_000 / u128::from(span_ns.max(1))) as u64
}

/// Jain's index (R. Jain, D.-M. Chiu and W. Hawe, "A Quantitative Measure of Fairness and
/// Discrimination for Resource Allocation in Shared Computer Systems", DEC-TR-301, 1984) of what
/// each drive moved a second, to four digits.
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

fn parts(ns: [u64; STAGES]) -> Vec<Part> {
    let all = Stage::ALL.iter().zip(ns).filter(|(_, ns)| *ns > 0);
    all.map(|(stage, ns)| Part { segment: stage.name(), ns }).collect()
}

fn segments(commands: &Commands) -> Option<Segments> {
    let median = breakdown_in_ns(&commands.all.example(500)?.breakdown);
    let p99 = breakdown_in_ns(&commands.all.example(990)?.breakdown);
    let mean = in_ns(commands.sums, commands.all.count);
    let total = |ns: [u64; STAGES]| ns.iter().sum();
    let total_ns = Totals { mean: total(mean), median: total(median), p99: total(p99) };
    Some(Segments { mean: parts(mean), median: parts(median), p99: parts(p99), total_ns })
}

impl Document {
    /// The results of a simulation.
    pub fn new(plan: &str, planned: &Planned, results: &Results) -> Self {
        let Results { report, commands, limits, requirements, interrupted } = results;
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
                pushed: Pushed::of(host),
                recorded: recorded.as_deref().map(Recorded::from),
            }
        });
        let hosts: Vec<Host> = hosts.collect();
        let links = report.links.iter().map(|link| Link {
            link: planned.link_name(&link.name),
            utilisation_ppm: link.utilisation_ppm,
            packets: link.load.packets,
            bytes: link.load.bytes,
            busy_ns: link.load.busy.as_ns(),
        });
        let tunnels = report.tunnels.iter().map(|tunnel| {
            let hundredths = tunnel.tlps * 100 / tunnel.frames.max(1);
            Tunnel {
                tunnel: planned.link_name(&tunnel.name),
                frames: tunnel.frames,
                tlps: tunnel.tlps,
                tlps_per_frame: hundredths as f64 / 100.0,
            }
        });
        let named = |words: &str| planned.link_name(words);
        let (eliminations, policings) = handled::rows(report, &planned.identified, &named);
        Self {
            schema: SCHEMA,
            plan: plan.to_owned(),
            interrupted: *interrupted,
            set: BTreeMap::new(),
            seed: planned.config.seed,
            digest: format!("{:016x}", report.digest),
            events: report.events,
            time_ns: report.time.as_ns(),
            latency_ns: together(report),
            iops: report.transfers_per_second(),
            bytes_per_s: report.throughput(),
            fairness: fairness(report),
            hosts,
            streams: streams(planned, report),
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
            limits: limits.iter().map(limits::Document::from).collect(),
            limits_text: planned.link_name(&limits::text(limits)),
            phases: None,
            runs: Vec::new(),
        }
    }

    /// Whether all requirements are met, in this run, in further ones and in other phases.
    pub fn meets_requirements(&self) -> bool {
        let further = self.runs.iter().flat_map(|run| &run.requirements);
        self.requirements.iter().chain(further).all(|row| row.holds)
            && self.phases.as_ref().is_none_or(Phases::meets_requirements)
    }

    /// How the command ended.
    pub fn ended(&self) -> Ended {
        match () {
            () if self.interrupted => Ended::Interrupted,
            () if self.meets_requirements() => Ended::Done,
            () => Ended::Missed,
        }
    }

    /// The requirements, each in its worst trial if phases were tried.
    pub fn required(&self) -> impl Iterator<Item = &requirements::Row> {
        let trials = self.phases.iter().flat_map(|of| &of.requirements).map(|of| &of.row);
        let own = self.requirements.iter().filter(|_| self.phases.is_none());
        trials.chain(own)
    }

    /// All requirements in a few words.
    pub fn verdict(&self) -> Option<String> {
        requirements::verdict(self.required())
    }

    /// The same as one of several runs.
    pub fn as_run(&self) -> Run {
        Run {
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

fn streams(planned: &Planned, report: &Report) -> Vec<Stream> {
    let of = |(name, id): &(String, StreamId)| {
        let found = report.stream(*id)?;
        Some(Stream {
            name: name.clone(),
            sent: found.sent,
            arrived: found.arrived,
            lost: found.lost,
            late: found.late,
            duplicates: found.duplicates,
            overtaken: found.overtaken,
            latency_ns: found.latency.summary().into(),
            backlog_bytes: found.backlog_bytes,
        })
    };
    planned.streams.iter().filter_map(of).collect()
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

fn class((class, stats): (usize, &ClassStats)) -> Class {
    let bits = |picobits: i128| picobits as f64 / 1e12;
    let credit =
        |[lowest, highest]: [i128; 2]| Credit { lowest: bits(lowest), highest: bits(highest) };
    Class {
        class,
        most_frames: stats.most_frames,
        most_bytes: stats.most_bytes,
        full: stats.full,
        credit_bits: stats.credit.map(credit),
    }
}

fn overloads(planned: &Planned) -> Vec<Overload> {
    let of = |overload: &crate::Overload| Overload {
        port: planned.port_name(overload.place),
        classes: overload.classes.clone(),
        offered_bits_per_s: overload.offered,
        limit_bits_per_s: overload.limit,
        streams: planned.stream_names(&overload.streams),
    };
    planned.overloads.iter().map(of).collect()
}
