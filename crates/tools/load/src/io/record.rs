//! What a section's transfers came to: latencies by job and kind, errors, wrong data, and the
//! course along time.

use super::samples::SharedSamples;
use report::span::micros;
use stats::Latency;
use std::collections::BTreeMap;
use wire::{Duration, Instant};
use workload::{Mismatch, Observer, Outcome, Transfer};

/// Wrong bytes that are kept, of all that are counted.
const KEPT: usize = 16;
/// Kinds of transfers, in the order of rows.
const KINDS: [&str; 4] = ["read", "write", "verify", "configread"];
const VERIFY: usize = 2;
/// The kind of configuration reads.
pub const CONFIG_READ: usize = 3;

/// The transfers of a job of one kind.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The job's number.
    pub job: usize,
    /// `read`, `write`, `configread`; `verify`: read back after the end.
    pub op: &'static str,
    /// Of those that succeeded.
    pub latency: Latency,
    /// Bytes of those.
    pub bytes: u64,
    /// Transfers that were lost with their drive.
    pub lost: u64,
}

/// A time without the drive.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    /// When the drive was lost.
    pub start: Instant,
    /// When it was back.
    pub end: Option<Instant>,
    /// Transfers that were lost with it.
    pub lost: u64,
}

/// Observes the jobs of a section.
#[derive(Debug)]
pub struct Recorder {
    /// When the first section began: samples count from there.
    pub epoch: Instant,
    /// When the work of this section began.
    pub start: Instant,
    /// The section's name.
    pub name: String,
    rows: Vec<Option<Box<Row>>>,
    /// Transfers that succeeded, and their bytes.
    transfers: u64,
    bytes: u64,
    /// How long the workload took, without reading back.
    pub worked: Duration,
    /// CPU time of this node meanwhile.
    pub cpu: Duration,
    /// Transfers that ended meanwhile, with those of the sections beside it.
    pub beside: u64,
    /// Transfers that ended, whether they succeeded or count, or were read back.
    pub ended: u64,
    /// How long reading back took.
    pub read_back: Duration,
    /// Transfers that failed, by cause.
    pub errors: BTreeMap<String, u64>,
    /// All of them.
    pub failed: u64,
    /// Times without the drive, in order.
    pub outages: Vec<Outage>,
    /// Bytes compared.
    pub verified: u64,
    /// Commands that read other data than were written.
    pub mismatches: u64,
    /// The first of them.
    pub wrong: Vec<Mismatch>,
    /// The course of the workload.
    pub timeline: Timeline,
    /// Transfers are not measured yet, as of fio's `ramp_time`.
    pub ramping: bool,
    /// Every transfer, if wanted.
    pub samples: Option<SharedSamples>,
}

impl Recorder {
    /// Of a section of a run that began at `epoch`.
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
            samples,
        }
    }

    /// The rows, by job and kind.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().flatten().map(|row| &**row)
    }

    /// Reads and writes of all jobs together.
    pub fn all(&self) -> Row {
        let mut all = Row { op: "all", ..Row::default() };
        for row in self.rows().filter(|row| row.op != KINDS[VERIFY]) {
            all.latency.merge(&row.latency);
            all.bytes += row.bytes;
            all.lost += row.lost;
        }
        all
    }

    /// How long transfers of this kind went on.
    pub fn span(&self, op: &str) -> Duration {
        if op == KINDS[VERIFY] { self.read_back } else { self.worked }
    }

    /// The progress line at this time: in constant time, because no command is served
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

    /// The same in fewer words.
    pub fn brief(&self, now: Instant) -> String {
        let Self { name, transfers, bytes, failed, .. } = self;
        let per_second = 1e9 / now.since(self.start).as_ns().max(1) as f64;
        let [iops, rate] = [*transfers, *bytes].map(|count| count as f64 * per_second);
        format!("{name}: {iops:.0} IOPS, {:.0} MB/s, errors {failed}", rate / 1e6)
    }

    /// A transfer of this kind succeeded.
    pub fn succeed(&mut self, job: usize, kind: usize, latency: Duration, bytes: u64) {
        let row = self.row(job, kind);
        row.latency.record(latency);
        row.bytes += bytes;
        self.ended += 1;
        self.transfers += 1;
        self.bytes += bytes;
    }

    fn row(&mut self, job: usize, kind: usize) -> &mut Row {
        let at = job * KINDS.len() + kind;
        if self.rows.len() <= at {
            self.rows.resize(at + 1, None);
        }
        let new = || Box::new(Row { job, op: KINDS[kind], ..Row::default() });
        self.rows[at].get_or_insert_with(new)
    }

    /// The drive is lost. Transfers that are lost from now on count as those of this outage.
    pub fn lose(&mut self, now: Instant) {
        if self.outages.last().is_none_or(|outage| outage.end.is_some()) {
            self.outages.push(Outage { start: now, end: None, lost: 0 });
        }
    }

    /// The drive is back, or the work ends without it.
    pub fn resume(&mut self, now: Instant) {
        if let Some(outage) = self.outages.last_mut() {
            outage.end.get_or_insert(now);
        }
    }

    /// Something failed.
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
            let mut samples = samples.borrow_mut();
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

/// Transfers that ended in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// How many.
    pub transfers: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of their latencies in nanoseconds.
    pub sum_ns: u64,
    /// The longest.
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

/// Throughput and latency along time, in bounded memory.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The length of an interval: 100 ms, and twice as long each time that the bins are used up.
    pub interval: Duration,
    /// The intervals.
    pub bins: Vec<Bin>,
}

/// Intervals at most.
const MOST_BINS: usize = 4096;

impl Default for Timeline {
    fn default() -> Self {
        Self { interval: Duration::from_ms(100), bins: Vec::new() }
    }
}

impl Timeline {
    /// The intervals of work that took so long, each with its length. The last one goes on to the
    /// end of the work: rates of a short rest would mean nothing.
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

    /// A transfer ended at this time.
    fn add(&mut self, at: Duration, latency: Duration, bytes: u64) {
        let mut bin = (at.as_ps() / self.interval.as_ps()) as usize;
        while bin >= MOST_BINS {
            let merge = |pair: &[Bin]| pair.iter().copied().fold(Bin::default(), Bin::and);
            self.bins = self.bins.chunks(2).map(merge).collect();
            self.interval = Duration::from_ps(self.interval.as_ps() * 2);
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
        // 4096 × 100 ms is one interval too late.
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
