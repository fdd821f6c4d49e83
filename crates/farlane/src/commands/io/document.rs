//! The document of `--json`, of which the text shows the most important part.

use crate::commands::rounded;
use load::io::{Bin, GroupResult, Outage, Recorder, Row, Section, Session};
use report::span::size;
use serde::Serialize;
use stats::Latency;
use std::fmt;
use wire::Duration;
use workload::Mismatch;

/// The whole document.
#[derive(Serialize)]
pub struct Document {
    schema: u32,
    pub drive: Drive,
    pub targets: Vec<Target>,
    pub randseed: u64,
    pub ended: &'static str,
    pub why: Option<String>,
    pub sections: Vec<SectionResult>,
}

/// What was under load.
#[derive(Serialize)]
pub struct Target {
    pub name: String,
    pub doorbells: Option<&'static str>,
    pub completions: Option<&'static str>,
    pub drive: Drive,
}

/// The drive under load.
#[derive(Clone, Serialize)]
pub struct Drive {
    pub function: String,
    pub serial_number: String,
    pub namespaces: Vec<Namespace>,
}

/// A namespace of it.
#[derive(Clone, Serialize)]
pub struct Namespace {
    pub nsid: u32,
    pub block_bytes: u64,
    pub bytes: u64,
}

/// A section's results.
#[derive(Serialize)]
pub struct SectionResult {
    pub name: String,
    pub target: usize,
    pub group: usize,
    /// The section's number, from 0.
    #[serde(skip)]
    number: usize,
    /// The latencies of all transfers.
    #[serde(skip)]
    pub latency: Latency,
    pub workload: Option<Parameters>,
    pub elapsed_ns: u64,
    pub host_cpu_ns_per_io: f64,
    pub peer_cpu_ns_per_io: Option<f64>,
    pub jobs: Vec<RowResult>,
    pub all: RowResult,
    pub errors: Vec<Cause>,
    pub outages: Vec<OutageResult>,
    pub verified_bytes: u64,
    pub mismatches: u64,
    pub wrong: Vec<Wrong>,
    pub interval_ns: u64,
    pub timeline: Vec<Interval>,
}

/// What jobs did.
#[derive(Serialize)]
pub struct Parameters {
    rw: &'static str,
    bs: usize,
    iodepth: usize,
    numjobs: usize,
    offset: u64,
    size: u64,
    nsid: u32,
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rw, bs, iodepth, numjobs, nsid, .. } = self;
        let (bs, part) = (size(*bs as u64), size(self.size));
        write!(
            f,
            "rw {rw}, bs {bs}, iodepth {iodepth}, numjobs {numjobs}, size {part}, nsid {nsid}; "
        )
    }
}

/// The transfers of a job of one kind, or of all.
#[derive(Clone, Serialize)]
pub struct RowResult {
    pub job: Option<usize>,
    pub op: &'static str,
    pub n: u64,
    pub iops: f64,
    pub bytes: u64,
    pub bytes_per_s: f64,
    pub lost: u64,
    pub min_ns: u64,
    pub mean_ns: u64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub p99_9_ns: u64,
    pub p99_99_ns: u64,
    pub max_ns: u64,
}

/// Transfers that failed.
#[derive(Serialize)]
pub struct Cause {
    pub cause: String,
    pub n: u64,
}

/// A time without the drive.
#[derive(Serialize)]
pub struct OutageResult {
    pub start_ns: u64,
    pub length_ns: u64,
    pub lost: u64,
}

/// Wrong data.
#[derive(Serialize)]
pub struct Wrong {
    pub job: usize,
    pub lba: u64,
    pub byte: u64,
    pub offset: u64,
    pub expected: u8,
    pub found: u8,
}

/// Transfers that ended in an interval.
#[derive(Serialize)]
pub struct Interval {
    pub iops: f64,
    pub bytes_per_s: f64,
    pub mean_ns: u64,
    pub max_ns: u64,
}

impl Document {
    /// A document without sections, of at least one target.
    pub fn new(sessions: &[Session], randseed: u64) -> Self {
        let targets: Vec<Target> = sessions.iter().map(of_target).collect();
        let (drive, sections) = (targets[0].drive.clone(), Vec::new());
        Self { schema: 1, drive, targets, randseed, ended: "done", why: None, sections }
    }

    /// Adds the results of a group of sections on a target.
    pub fn add(&mut self, result: &GroupResult<'_>) {
        let GroupResult { first, sections, target, recorders, peer_cpu } = *result;
        let transfers = recorders.iter().map(|recorder| recorder.ended).sum();
        // Reading back would count too.
        let alone = recorders.iter().all(|recorder| recorder.read_back == Duration::ZERO);
        let peer = peer_cpu.filter(|_| alone).map(|cpu| per_transfer(cpu, transfers));
        for ((number, section), recorder) in (first..).zip(sections).zip(recorders) {
            self.add_section((number, section), target, recorder, peer);
        }
        self.sections.sort_by_key(|section| (section.number, section.target));
    }

    fn add_section(
        &mut self,
        (number, section): (usize, &Section),
        target: usize,
        recorder: &Recorder,
        peer_cpu_ns_per_io: Option<f64>,
    ) {
        let nsid = section.workload.nsid();
        let mut namespaces = self.targets[target].drive.namespaces.iter();
        let namespace = namespaces.find(|namespace| namespace.nsid == nsid);
        let (bytes, block) = namespace.map_or((0, 512), |of| (of.bytes, of.block_bytes));
        let together = recorder.all();
        let all = of_row(&together, None, recorder.worked);
        let rows = recorder.rows();
        let timeline = &recorder.timeline;
        let bins = timeline.closed(recorder.worked);
        self.sections.push(SectionResult {
            name: section.name.clone(),
            target,
            group: section.group,
            number,
            latency: together.latency,
            workload: section.fio(bytes).map(|fio| Parameters {
                rw: fio.rw.name(),
                bs: fio.bs,
                iodepth: fio.iodepth,
                numjobs: fio.numjobs,
                offset: fio.offset,
                size: fio.size,
                nsid,
            }),
            elapsed_ns: recorder.worked.as_ns(),
            host_cpu_ns_per_io: per_transfer(recorder.cpu, recorder.beside),
            peer_cpu_ns_per_io,
            jobs: rows.map(|row| of_row(row, Some(row.job), recorder.span(row.op))).collect(),
            all,
            errors: recorder.errors.iter().map(of_error).collect(),
            outages: recorder.outages.iter().map(|of| of_outage(of, recorder)).collect(),
            verified_bytes: recorder.verified,
            mismatches: recorder.mismatches,
            wrong: recorder.wrong.iter().map(|mismatch| of_mismatch(mismatch, block)).collect(),
            interval_ns: timeline.interval.as_ns(),
            timeline: bins.iter().map(of_bin).collect(),
        });
    }

    /// The names of the sections that ran at the same time on the same target.
    pub fn beside<'a>(&'a self, section: &'a SectionResult) -> Vec<&'a str> {
        let beside = self.sections.iter().filter(|other| {
            (other.group, other.target) == (section.group, section.target)
                && other.number != section.number
        });
        beside.map(|other| other.name.as_str()).collect()
    }

    /// Transfers that failed.
    pub fn failed(&self) -> u64 {
        self.sections.iter().flat_map(|section| &section.errors).map(|error| error.n).sum()
    }

    /// Reads with wrong data.
    pub fn mismatches(&self) -> u64 {
        self.sections.iter().map(|section| section.mismatches).sum()
    }
}

fn of_target(session: &Session) -> Target {
    let driver = session.driver();
    let namespace = |of: &nvme::initiator::NamespaceInfo| Namespace {
        nsid: of.nsid,
        block_bytes: 1 << of.block_shift,
        bytes: of.blocks << of.block_shift,
    };
    let ways = session.ways;
    Target {
        name: session.name.clone(),
        doorbells: ways.map(|(doorbells, _)| doorbells.name()),
        completions: ways.map(|(_, completions)| completions),
        drive: Drive {
            function: session.slot.node().bdf.to_string(),
            serial_number: driver.serial().to_owned(),
            namespaces: driver.namespaces().iter().map(namespace).collect(),
        },
    }
}

fn per_transfer(cpu: Duration, transfers: u64) -> f64 {
    rounded(cpu.as_ns() as f64 / transfers.max(1) as f64, 1)
}

fn per_second(count: u64, span: Duration) -> f64 {
    rounded(count as f64 * 1e9 / span.as_ns().max(1) as f64, 1)
}

fn of_row(row: &Row, job: Option<usize>, span: Duration) -> RowResult {
    let latency: &Latency = &row.latency;
    let summary = latency.summary();
    RowResult {
        job,
        op: row.op,
        n: summary.n,
        iops: per_second(summary.n, span),
        bytes: row.bytes,
        bytes_per_s: per_second(row.bytes, span),
        lost: row.lost,
        min_ns: summary.min_ns,
        mean_ns: summary.mean_ns,
        p50_ns: summary.p50_ns,
        p90_ns: summary.p90_ns,
        p99_ns: summary.p99_ns,
        p99_9_ns: summary.p99_9_ns,
        p99_99_ns: latency.quantile_ns(0.9999),
        max_ns: summary.max_ns,
    }
}

fn of_bin((bin, length): &(Bin, Duration)) -> Interval {
    Interval {
        iops: per_second(bin.transfers, *length),
        bytes_per_s: per_second(bin.bytes, *length),
        mean_ns: bin.sum_ns / bin.transfers.max(1),
        max_ns: bin.max_ns,
    }
}

fn of_error((cause, n): (&String, &u64)) -> Cause {
    Cause { cause: cause.clone(), n: *n }
}

fn of_outage(outage: &Outage, recorder: &Recorder) -> OutageResult {
    let Outage { start, end, lost } = *outage;
    OutageResult {
        start_ns: start.since(recorder.start).as_ns(),
        length_ns: end.unwrap_or(start).since(start).as_ns(),
        lost,
    }
}

fn of_mismatch(mismatch: &Mismatch, block: u64) -> Wrong {
    let Mismatch { job, offset, expected, found, .. } = *mismatch;
    Wrong { job, lba: offset / block, byte: offset % block, offset, expected, found }
}
