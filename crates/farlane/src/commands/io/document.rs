//! The document of `--json`. The text shows its most important figures.

use crate::commands::rounded;
use load::io::{Bin, GroupResult, Outage, Recorder, Row, Section, Session};
use report::span::size;
use schemars::JsonSchema;
use serde::Serialize;
use stats::Latency;
use std::fmt;
use wire::Duration;
use workload::Mismatch;

/// Load on live drives (docs/io.md). The document is printed after every run that started its work.
/// After errors the exit status is 1, and `why`, `errors`, `wrong` and one line on stderr describe
/// the errors.
#[derive(JsonSchema, Serialize)]
pub struct IoDocument {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
    /// The drive of the first target.
    pub drive: IoDrive,
    /// The drives under load: first each `--connect`, then each `--vfio-user`, in the order of the
    /// command line.
    pub targets: Vec<IoTarget>,
    /// The seed of order and data: `--randseed`, or a random number.
    pub randseed: u64,
    /// `done`, `interrupted` (Ctrl-C) or `stopped` (after an error).
    pub ended: &'static str,
    /// The error after which the run stopped; null if there was none.
    pub why: Option<String>,
    /// One element per started section and target, in the order of the job file; options are one
    /// section.
    pub sections: Vec<IoSection>,
}

/// A drive under load and the path to the drive.
#[derive(JsonSchema, Serialize)]
pub struct IoTarget {
    /// The address or the socket.
    pub name: String,
    /// `mapped` or `message`; null with `--connect`.
    pub doorbells: Option<&'static str>,
    /// `msix` or `polled`; null with `--connect`.
    pub completions: Option<&'static str>,
    /// The drive.
    pub drive: IoDrive,
}

/// A drive under load.
#[derive(Clone, JsonSchema, Serialize)]
pub struct IoDrive {
    /// Function of the drive in this host's hierarchy.
    pub function: String,
    /// Serial number (Identify Controller, SN).
    pub serial_number: String,
    /// The active namespaces.
    pub namespaces: Vec<IoNamespace>,
}

/// An active namespace.
#[derive(Clone, JsonSchema, Serialize)]
pub struct IoNamespace {
    /// Namespace identifier.
    pub nsid: u32,
    /// Size of a logical block.
    pub block_bytes: u64,
    /// Size of the namespace.
    pub bytes: u64,
}

/// Results of a section on a target.
#[derive(JsonSchema, Serialize)]
pub struct IoSection {
    /// Name of the section; without a job file the kind of work.
    pub name: String,
    /// Index of the target in `targets`.
    pub target: usize,
    /// Number of the group, from 0. Sections of one group run at the same time
    /// (docs/io.md#job-files).
    pub group: usize,
    /// The section's number, from 0.
    #[serde(skip)]
    number: usize,
    /// The latencies of all transfers.
    #[serde(skip)]
    pub latency: Latency,
    /// The parameters that were used; null for configuration reads.
    pub workload: Option<IoWorkload>,
    /// Time from the first transfer to the end of the last one, without reading back.
    pub elapsed_ns: u64,
    /// CPU time of this node during the work of the section, spinning included, divided by the
    /// number of transfers of the section's group that ended meanwhile; 0 for configuration reads.
    pub host_cpu_ns_per_io: f64,
    /// CPU time of the process at the other end, in steps of 10 ms, divided by the number of
    /// transfers of the section's group. Null if the process is not visible, or if a section of the
    /// group read back data (docs/io.md#cpu-time).
    pub peer_cpu_ns_per_io: Option<f64>,
    /// One element per job and kind of transfer that succeeded or was lost at least once.
    pub jobs: Vec<IoTransfers>,
    /// All reads and writes together; `job` is null.
    pub all: IoTransfers,
    /// Transfers that failed, one element per cause.
    pub errors: Vec<IoCause>,
    /// The times without the drive, in order.
    pub outages: Vec<IoOutage>,
    /// Bytes that were read and compared with the written data.
    pub verified_bytes: u64,
    /// Commands that read other data than were written.
    pub mismatches: u64,
    /// The first 16 mismatches.
    pub wrong: Vec<IoMismatch>,
    /// Length of an interval of `timeline`: 100 ms, or longer if there would be more than 4096
    /// intervals. The last interval continues to the end of the work.
    pub interval_ns: u64,
    /// Reads and writes by the interval in which they ended.
    pub timeline: Vec<IoInterval>,
}

/// The parameters of a section.
#[derive(JsonSchema, Serialize)]
pub struct IoWorkload {
    /// fio's word, such as `randread`, `write` or `randrw`.
    rw: &'static str,
    /// Bytes per transfer.
    bs: usize,
    /// Transfers in flight per job.
    iodepth: usize,
    /// Number of jobs.
    numjobs: usize,
    /// First byte of the first job's part.
    offset: u64,
    /// Bytes of the part of each job.
    size: u64,
    /// Namespace identifier.
    nsid: u32,
}

impl fmt::Display for IoWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rw, bs, iodepth, numjobs, nsid, .. } = self;
        let (bs, part) = (size(*bs as u64), size(self.size));
        write!(
            f,
            "rw {rw}, bs {bs}, iodepth {iodepth}, numjobs {numjobs}, size {part}, nsid {nsid}; "
        )
    }
}

/// The transfers of one kind of a job, or all transfers. The latency is the time from the
/// submission of a transfer to the removal of its entry from the completion queue. Percentiles have
/// three significant digits.
#[derive(Clone, JsonSchema, Serialize)]
pub struct IoTransfers {
    /// Number of the job, from 0; null for all jobs.
    pub job: Option<usize>,
    /// `read`, `write`, `verify` (read back at the end), `configread`, or `all`.
    pub op: &'static str,
    /// Transfers of `bs` bytes that succeeded.
    pub n: u64,
    /// Transfers per second that succeeded.
    pub iops: f64,
    /// Bytes moved.
    pub bytes: u64,
    /// Bytes moved per second.
    pub bytes_per_s: f64,
    /// Transfers that were lost with their drive.
    pub lost: u64,
    /// The shortest latency.
    pub min_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p99_9_ns: u64,
    /// 99.99th percentile.
    pub p99_99_ns: u64,
    /// The longest latency.
    pub max_ns: u64,
}

/// Transfers that failed for one cause.
#[derive(JsonSchema, Serialize)]
pub struct IoCause {
    /// The NVMe status, `lost with its drive`, or `no answer`.
    pub cause: String,
    /// Transfers.
    pub n: u64,
}

/// A time without the drive.
#[derive(JsonSchema, Serialize)]
pub struct IoOutage {
    /// Time at which the drive was lost, since the start of the section's work.
    pub start_ns: u64,
    /// Time until the drive was attached again, or the section's group ended.
    pub length_ns: u64,
    /// Transfers of the section that were lost with the drive.
    pub lost: u64,
}

/// A read that returned other data than were written.
#[derive(JsonSchema, Serialize)]
pub struct IoMismatch {
    /// Number of the job, from 0.
    pub job: usize,
    /// Block of the first wrong byte.
    pub lba: u64,
    /// Offset of the first wrong byte in the block.
    pub byte: u64,
    /// Offset of the first wrong byte in the namespace.
    pub offset: u64,
    /// The byte that was written.
    pub expected: u8,
    /// The byte that was read.
    pub found: u8,
}

/// Transfers that ended in an interval.
#[derive(JsonSchema, Serialize)]
pub struct IoInterval {
    /// Transfers per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Mean latency; 0 without transfers.
    pub mean_ns: u64,
    /// The longest latency.
    pub max_ns: u64,
}

impl IoDocument {
    /// A document without sections, of at least one target.
    pub fn new(sessions: &[Session], randseed: u64) -> Self {
        let targets: Vec<IoTarget> = sessions.iter().map(target_of).collect();
        let (drive, sections) = (targets[0].drive.clone(), Vec::new());
        Self { schema: 1, drive, targets, randseed, ended: "done", why: None, sections }
    }

    /// Adds the results of a group of sections on a target.
    pub fn add(&mut self, result: &GroupResult<'_>) {
        let GroupResult { first, sections, target, recorders, peer_cpu } = *result;
        let transfers = recorders.iter().map(|recorder| recorder.ended).sum();
        // The CPU time of the other side includes reading back.
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
        let (bytes, block) =
            namespace.map_or((0, 512), |namespace| (namespace.bytes, namespace.block_bytes));
        let together = recorder.all();
        let all = row_result(&together, None, recorder.worked);
        let rows = recorder.rows();
        let timeline = &recorder.timeline;
        let bins = timeline.closed(recorder.worked);
        self.sections.push(IoSection {
            name: section.name.clone(),
            target,
            group: section.group,
            number,
            latency: together.latency,
            workload: section.fio(bytes).map(|fio| IoWorkload {
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
            jobs: rows.map(|row| row_result(row, Some(row.job), recorder.span(row.op))).collect(),
            all,
            errors: recorder.errors.iter().map(cause_of).collect(),
            outages: recorder
                .outages
                .iter()
                .map(|outage| outage_result(outage, recorder))
                .collect(),
            verified_bytes: recorder.verified,
            mismatches: recorder.mismatches,
            wrong: recorder.wrong.iter().map(|mismatch| wrong_read(mismatch, block)).collect(),
            interval_ns: timeline.interval.as_ns(),
            timeline: bins.iter().map(interval_of).collect(),
        });
    }

    /// Returns the names of the sections that ran at the same time on the same target.
    pub fn concurrent<'a>(&'a self, section: &'a IoSection) -> Vec<&'a str> {
        let others = self.sections.iter().filter(|other| {
            (other.group, other.target) == (section.group, section.target)
                && other.number != section.number
        });
        others.map(|other| other.name.as_str()).collect()
    }

    /// Returns the number of failed transfers.
    pub fn failed(&self) -> u64 {
        self.sections.iter().flat_map(|section| &section.errors).map(|error| error.n).sum()
    }

    /// Returns the number of reads with wrong data.
    pub fn mismatches(&self) -> u64 {
        self.sections.iter().map(|section| section.mismatches).sum()
    }
}

fn target_of(session: &Session) -> IoTarget {
    let driver = session.driver();
    let namespace = |info: &nvme::initiator::NamespaceInfo| IoNamespace {
        nsid: info.nsid,
        block_bytes: 1 << info.block_shift,
        bytes: info.blocks << info.block_shift,
    };
    let ways = session.ways;
    IoTarget {
        name: session.name.clone(),
        doorbells: ways.map(|(doorbells, _)| doorbells.name()),
        completions: ways.map(|(_, completions)| completions),
        drive: IoDrive {
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

fn row_result(row: &Row, job: Option<usize>, span: Duration) -> IoTransfers {
    let latency: &Latency = &row.latency;
    let summary = latency.summary();
    IoTransfers {
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

fn interval_of((bin, length): &(Bin, Duration)) -> IoInterval {
    IoInterval {
        iops: per_second(bin.transfers, *length),
        bytes_per_s: per_second(bin.bytes, *length),
        mean_ns: bin.sum_ns / bin.transfers.max(1),
        max_ns: bin.max_ns,
    }
}

fn cause_of((cause, n): (&String, &u64)) -> IoCause {
    IoCause { cause: cause.clone(), n: *n }
}

fn outage_result(outage: &Outage, recorder: &Recorder) -> IoOutage {
    let Outage { start, end, lost } = *outage;
    IoOutage {
        start_ns: start.since(recorder.start).as_ns(),
        length_ns: end.unwrap_or(start).since(start).as_ns(),
        lost,
    }
}

fn wrong_read(mismatch: &Mismatch, block: u64) -> IoMismatch {
    let Mismatch { job, offset, expected, found, .. } = *mismatch;
    IoMismatch { job, lba: offset / block, byte: offset % block, offset, expected, found }
}
