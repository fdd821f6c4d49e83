//! Results of a section's transfers: latencies by job and kind, errors, wrong data, and throughput
//! over time.

use super::samples::SharedSamples;
use report::span::micros;
use stats::Latency;
use std::collections::BTreeMap;
use wire::{Duration, Instant};
use workload::{Mismatch, Observer, Outcome, Transfer};

/// Maximum number of stored mismatches; all are counted.
const KEPT: usize = 16;
/// Kinds of transfers, in the order of rows.
const KINDS: [&str; 4] = ["read", "write", "verify", "configread"];
const VERIFY: usize = 2;
/// The kind of configuration reads.
pub const CONFIG_READ: usize = 3;

/// The transfers of one kind of a job.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Number of the job.
    pub job: usize,
    /// `read`, `write`, `configread`, or `verify` (read back after the end).
    pub op: &'static str,
    /// Latencies of the transfers that succeeded.
    pub latency: Latency,
    /// Bytes of the transfers that succeeded.
    pub bytes: u64,
    /// Transfers that were lost with their drive.
    pub lost: u64,
}

/// An interval without the drive.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    /// Time at which the drive was lost.
    pub start: Instant,
    /// Time at which the drive was back.
    pub end: Option<Instant>,
    /// Number of transfers that were lost with the drive.
    pub lost: u64,
}

/// Observes the jobs of a section.
#[derive(Debug)]
pub struct Recorder {
    /// Start of the first section. Times of samples count from it.
    pub epoch: Instant,
    /// Start of this section's work.
    pub start: Instant,
    /// Name of the section.
    pub name: String,
    rows: Vec<Option<Box<Row>>>,
    /// Number of transfers that succeeded. `bytes`: the bytes of these transfers.
    transfers: u64,
    bytes: u64,
    /// Duration of the workload, without reading back.
    pub worked: Duration,
    /// CPU time of this node during the workload.
    pub cpu: Duration,
    /// Number of transfers that ended during the workload, also of concurrent sections.
    pub beside: u64,
    /// Number of all ended transfers, including failed transfers, transfers during a ramp, and
    /// transfers that read back.
    pub ended: u64,
    /// Duration of reading back.
    pub read_back: Duration,
    /// Number of failed transfers by cause.
    pub errors: BTreeMap<String, u64>,
    /// Number of all failed transfers.
    pub failed: u64,
    /// Intervals without the drive, in order.
    pub outages: Vec<Outage>,
    /// Number of compared bytes.
    pub verified: u64,
    /// Number of commands that read other data than were written.
    pub mismatches: u64,
    /// The first mismatches.
    pub wrong: Vec<Mismatch>,
    /// Throughput and latency of the workload over time.
    pub timeline: Timeline,
    /// Whether transfers are not measured yet, as with fio's `ramp_time`.
    pub ramping: bool,
    /// Number of the section's first job that this recorder observes.
    pub first_job: usize,
    /// Files for every transfer, if requested.
    pub samples: Option<SharedSamples>,
}

impl Recorder {
    /// Creates the recorder of a section in a run that began at `epoch`.
    pub fn new(epoch: Instant, name: &str, samples: Option<SharedSamples>) -> Self {
        Self {
            epoch,
            start: epoch,
            name: name.to_owned(),
            rows: Vec::new(),
            transfers: 0,
            bytes: 0,
            worked: Duration::ZERO,
            cpu: Duration::ZERO,
            beside: 0,
            ended: 0,
            read_back: Duration::ZERO,
            errors: BTreeMap::new(),
            failed: 0,
            outages: Vec::new(),
            verified: 0,
            mismatches: 0,
            wrong: Vec::new(),
            timeline: Timeline::default(),
            ramping: false,
            first_job: 0,
            samples,
        }
    }

    /// Returns the rows by job and kind.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().flatten().map(|row| &**row)
    }

    /// Returns the reads and writes of all jobs together.
    pub fn all(&self) -> Row {
        let mut all = Row { op: "all", ..Row::default() };
        for row in self.rows().filter(|row| row.op != KINDS[VERIFY]) {
            all.latency.merge(&row.latency);
            all.bytes += row.bytes;
            all.lost += row.lost;
        }
        all
    }

    /// Returns the duration of transfers of this kind.
    pub fn span(&self, op: &str) -> Duration {
        if op == KINDS[VERIFY] { self.read_back } else { self.worked }
    }

    /// Returns the progress line. The function takes constant time, because no command is processed
    /// meanwhile.
    pub fn progress(&self, now: Instant) -> String {
        let per_second = 1e9 / now.since(self.start).as_ns().max(1) as f64;
        let last = self.timeline.bins.last().copied().unwrap_or_default();
        format!(
            "{}: {:.1} s, {:.0} IOPS, {:.0} MB/s; of late mean {} us, max {} us; errors {}",
            self.name,
            1.0 / per_second,
            self.transfers as f64 * per_second,
            self.bytes as f64 * per_second / 1e6,
            micros(last.sum_ns / last.transfers.max(1)),
            micros(last.max_ns),
            self.failed,
        )
    }

    /// Returns a shorter progress line.
    pub fn brief(&self, now: Instant) -> String {
        let Self { name, transfers, bytes, failed, .. } = self;
        let per_second = 1e9 / now.since(self.start).as_ns().max(1) as f64;
        let [iops, rate] = [*transfers, *bytes].map(|count| count as f64 * per_second);
        format!("{name}: {iops:.0} IOPS, {:.0} MB/s, errors {failed}", rate / 1e6)
    }

    /// Records a transfer of this kind that succeeded.
    pub fn succeed(&mut self, job: usize, kind: usize, latency: Duration, bytes: u64) {
        let row = self.row(job, kind);
        row.latency.record(latency);
        row.bytes += bytes;
        self.ended += 1;
        self.transfers += 1;
        self.bytes += bytes;
    }

    /// Adds the results of the section's jobs on another connection, which ran at the same time.
    pub fn merge(&mut self, other: &Self) {
        for row in other.rows() {
            let kind = KINDS.iter().position(|kind| *kind == row.op).expect("a kind");
            let own = self.row_of(row.job, kind);
            own.latency.merge(&row.latency);
            own.bytes += row.bytes;
            own.lost += row.lost;
        }
        self.transfers += other.transfers;
        self.bytes += other.bytes;
        self.worked = self.worked.max(other.worked);
        self.read_back = self.read_back.max(other.read_back);
        self.cpu = self.cpu + other.cpu;
        self.beside += other.beside;
        self.ended += other.ended;
        self.failed += other.failed;
        for (cause, count) in &other.errors {
            *self.errors.entry(cause.clone()).or_default() += count;
        }
        self.outages.extend(&other.outages);
        self.verified += other.verified;
        self.mismatches += other.mismatches;
        self.wrong.extend(other.wrong.iter().take(KEPT.saturating_sub(self.wrong.len())));
        self.timeline.merge(&other.timeline);
    }

    fn row(&mut self, job: usize, kind: usize) -> &mut Row {
        self.row_of(self.first_job + job, kind)
    }

    fn row_of(&mut self, job: usize, kind: usize) -> &mut Row {
        let at = job * KINDS.len() + kind;
        if self.rows.len() <= at {
            self.rows.resize(at + 1, None);
        }
        let new = || Box::new(Row { job, op: KINDS[kind], ..Row::default() });
        self.rows[at].get_or_insert_with(new)
    }

    /// Records that the drive is lost. Transfers that are lost from now on belong to this outage.
    pub fn lose(&mut self, now: Instant) {
        if self.outages.last().is_none_or(|outage| outage.end.is_some()) {
            self.outages.push(Outage { start: now, end: None, lost: 0 });
        }
    }

    /// Records that the drive is back, or that the work ends without it.
    pub fn resume(&mut self, now: Instant) {
        if let Some(outage) = self.outages.last_mut() {
            outage.end.get_or_insert(now);
        }
    }

    /// Records a failed transfer.
    pub fn fail(&mut self, cause: String) {
        self.ended += 1;
        self.failed += 1;
        *self.errors.entry(cause).or_default() += 1;
    }
}

impl Observer for Recorder {
    fn transfer(&mut self, now: Instant, transfer: &Transfer) {
        let Transfer { job, op, length, since, outcome, .. } = *transfer;
        let latency = now - since;
        let kind = match transfer.reads_back {
            true => VERIFY,
            false => usize::from(op == nvme::initiator::Op::Write),
        };
        self.verified += transfer.compared;
        if self.ramping && outcome == Outcome::Done {
            self.ended += 1;
            return;
        }
        if let Some(samples) = &self.samples {
            let mut samples = samples.lock().expect("no thread panics");
            samples.write(now, &self.name, KINDS[kind], since - self.epoch, transfer);
        }
        match outcome {
            Outcome::Done => {
                self.succeed(job, kind, latency, length);
                if kind != VERIFY {
                    self.timeline.add(now - self.start, latency, length);
                }
            }
            Outcome::Failed(status) => self.fail(status.code.to_string()),
            Outcome::Lost => {
                self.row(job, kind).lost += 1;
                self.outages.last_mut().into_iter().for_each(|outage| outage.lost += 1);
                self.fail("lost with its drive".to_owned());
            }
        }
    }

    fn mismatch(&mut self, mismatch: &Mismatch) {
        self.mismatches += 1;
        if self.wrong.len() < KEPT {
            self.wrong.push(*mismatch);
        }
    }
}

/// The transfers that ended in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Number of transfers.
    pub transfers: u64,
    /// Bytes of the transfers.
    pub bytes: u64,
    /// Sum of the latencies of the transfers in nanoseconds.
    pub sum_ns: u64,
    /// The longest latency in nanoseconds.
    pub max_ns: u64,
}

impl Bin {
    fn and(self, other: Self) -> Self {
        Self {
            transfers: self.transfers + other.transfers,
            bytes: self.bytes + other.bytes,
            sum_ns: self.sum_ns + other.sum_ns,
            max_ns: self.max_ns.max(other.max_ns),
        }
    }
}

/// Throughput and latency over time, in bounded memory.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Length of an interval: 100 ms, doubled each time that all bins are used.
    pub interval: Duration,
    /// The intervals.
    pub bins: Vec<Bin>,
}

/// Maximum number of intervals.
const MOST_BINS: usize = 4096;

impl Default for Timeline {
    fn default() -> Self {
        Self { interval: Duration::from_ms(100), bins: Vec::new() }
    }
}

impl Timeline {
    /// Returns the intervals of a workload of this duration, each with its length. The last
    /// interval lasts to the end of the workload, because rates of a short remainder are not
    /// meaningful.
    pub fn closed(&self, worked: Duration) -> Vec<(Bin, Duration)> {
        let whole = (worked.as_ps() / self.interval.as_ps()).max(1) as usize;
        let (bins, rest) = self.bins.split_at(self.bins.len().min(whole));
        let mut closed: Vec<_> = bins.iter().map(|bin| (*bin, self.interval)).collect();
        let before = Duration::from_ps(self.interval.as_ps() * (whole as u64 - 1));
        if let Some((last, length)) = closed.last_mut()
            && bins.len() == whole
        {
            *last = rest.iter().copied().fold(*last, Bin::and);
            *length = worked - before;
        }
        closed
    }

    /// Adds the transfers of another workload that began at the same time.
    fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        while self.interval < other.interval {
            self.double();
        }
        while other.interval < self.interval {
            other.double();
        }
        let bins = self.bins.len().max(other.bins.len());
        self.bins.resize(bins, Bin::default());
        self.bins.iter_mut().zip(other.bins).for_each(|(own, bin)| *own = own.and(bin));
    }

    fn double(&mut self) {
        let merge = |pair: &[Bin]| pair.iter().copied().fold(Bin::default(), Bin::and);
        self.bins = self.bins.chunks(2).map(merge).collect();
        self.interval = Duration::from_ps(self.interval.as_ps() * 2);
    }

    /// Records a transfer that ended at this time.
    fn add(&mut self, at: Duration, latency: Duration, bytes: u64) {
        let mut bin = (at.as_ps() / self.interval.as_ps()) as usize;
        while bin >= MOST_BINS {
            self.double();
            bin /= 2;
        }
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, Bin::default());
        }
        let place = &mut self.bins[bin];
        place.transfers += 1;
        place.bytes += bytes;
        place.sum_ns += latency.as_ns();
        place.max_ns = place.max_ns.max(latency.as_ns());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_double_in_length_when_their_number_is_exhausted() {
        let mut timeline = Timeline::default();
        for ms in [0, 99, 100, 250] {
            timeline.add(Duration::from_ms(ms), Duration::from_us(ms + 1), 10);
        }
        let counts = |timeline: &Timeline| -> Vec<u64> {
            timeline.bins.iter().map(|bin| bin.transfers).collect()
        };
        assert_eq!(counts(&timeline), [2, 1, 1]);
        assert_eq!((timeline.bins[0].sum_ns, timeline.bins[0].max_ns), (101_000, 100_000));
        // 4096 × 100 ms is the first time after the last interval.
        timeline.add(Duration::from_ms(409_600), Duration::ZERO, 10);
        assert_eq!(timeline.interval, Duration::from_ms(200));
        assert_eq!((counts(&timeline)[..2].to_vec(), timeline.bins.len()), (vec![3, 1], 2049));
        assert_eq!(timeline.bins.iter().map(|bin| bin.bytes).sum::<u64>(), 50);
    }

    #[test]
    fn last_interval_extends_to_the_end() {
        let ms = Duration::from_ms;
        let closed = |times: &[u64], worked| {
            let mut timeline = Timeline::default();
            times.iter().for_each(|at| timeline.add(ms(*at), Duration::from_us(1), 1));
            let closed = timeline.closed(ms(worked)).into_iter();
            closed.map(|(bin, length)| (bin.transfers, length)).collect::<Vec<_>>()
        };
        assert_eq!(closed(&[10, 150, 230], 230), [(1, ms(100)), (2, ms(130))]);
        assert_eq!(closed(&[10, 20], 20), [(2, ms(20))], "shorter than an interval");
        assert_eq!(closed(&[10, 200], 200), [(1, ms(100)), (1, ms(100))]);
        assert_eq!(closed(&[10], 500), [(1, ms(100))], "nothing ended in the others");
        assert_eq!(closed(&[], 500), []);
    }
}
