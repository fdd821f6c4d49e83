//! The parameters of jobs, in fio's words (fio 3, HOWTO, "Job file parameters").

use nvme::initiator::{Driver, NamespaceInfo};
use std::ops::Range;
use wire::Duration;

/// Entries of the largest queue.
pub const MOST_ENTRIES: usize = 4096;

/// The kind of I/O, as fio's `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rw {
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Random reads.
    RandRead,
    /// Random writes.
    RandWrite,
    /// Random reads and writes.
    RandRw,
    /// Sequential reads and writes.
    Rw,
}

impl Rw {
    /// Whether blocks are chosen at random.
    pub fn is_random(self) -> bool {
        matches!(self, Self::RandRead | Self::RandWrite | Self::RandRw)
    }

    /// Whether the workload contains writes.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::RandRead)
    }

    /// fio's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::RandRead => "randread",
            Self::RandWrite => "randwrite",
            Self::RandRw => "randrw",
            Self::Rw => "rw",
        }
    }
}

/// The parameters of a fio job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fio {
    /// Kind of I/O.
    pub rw: Rw,
    /// Percentage of reads in a mixed workload.
    pub rwmixread: u8,
    /// Bytes per transfer: a multiple of the drive's block size. A transfer above the drive's
    /// largest transfer is several commands, and ends with the last one.
    pub bs: usize,
    /// Transfers in flight per job.
    pub iodepth: usize,
    /// Number of jobs. Each job has its own queue pair, CPU and part of the drive.
    pub numjobs: usize,
    /// First byte of the first job's part; a multiple of the drive's blocks.
    pub offset: u64,
    /// Bytes of the part of the drive that a job works in, and bytes that it transfers. Bytes after
    /// the last whole block of `bs` are not used.
    pub size: u64,
    /// Bytes that a job transfers instead of `size`, in whole blocks of `bs`.
    pub io_size: Option<u64>,
    /// The most transfers of a job.
    pub number_ios: Option<u64>,
    /// How many times a job does its transfers, at least 1.
    pub loops: u64,
    /// No transfer begins after this time, even if the job is not complete.
    pub runtime: Option<Duration>,
    /// A job continues until `runtime` ends, even if it has transferred all bytes.
    pub time_based: bool,
    /// The most bytes per second and job.
    pub rate: Option<u64>,
    /// A job pauses for this long after each `thinktime_blocks` transfers, after the transfers in
    /// flight have ended; zero: never.
    pub thinktime: Duration,
    /// Completed transfers of a job between two pauses, at least 1.
    pub thinktime_blocks: u64,
    /// Stripe size in bytes over the drives of the host (RAID0); a multiple of 512. With 0, job n
    /// uses only drive n modulo the number of drives.
    pub stripe: usize,
    /// The namespace that the jobs use on each drive.
    pub nsid: u32,
}

/// An error unless a condition holds.
fn ensure<E>(holds: bool, error: E) -> Result<(), E> {
    if holds { Ok(()) } else { Err(error) }
}

impl Fio {
    /// `rw` with blocks of `bs` bytes, `iodepth`, one job, 1 MiB.
    pub fn new(rw: Rw, bs: usize, iodepth: usize) -> Self {
        Self {
            rw,
            rwmixread: 50,
            bs,
            iodepth,
            numjobs: 1,
            offset: 0,
            size: 1 << 20,
            io_size: None,
            number_ios: None,
            loops: 1,
            runtime: None,
            time_based: false,
            rate: None,
            thinktime: Duration::ZERO,
            thinktime_blocks: 1,
            stripe: 0,
            nsid: 1,
        }
    }

    /// Blocks in order, one at a time, as `dd bs=BS count=COUNT iflag=direct` does.
    pub fn dd(write: bool, bs: usize, count: u64) -> Self {
        let rw = if write { Rw::Write } else { Rw::Read };
        Self { size: bs as u64 * count, ..Self::new(rw, bs, 1) }
    }

    /// The most commands in flight of a job, on drives whose largest transfer is `max_transfer`
    /// bytes. A striped or large transfer is several commands.
    pub fn commands(&self, max_transfer: usize) -> usize {
        let parts = match self.stripe {
            0 => self.bs.div_ceil(max_transfer),
            stripe => (self.bs / stripe + 2) * stripe.div_ceil(max_transfer),
        };
        self.iodepth * parts.max(1)
    }

    /// Time between two transfers of a job, if its rate is limited.
    pub fn interval(&self) -> Option<Duration> {
        let ps = |rate: u64| self.bs as u128 * 1_000_000_000_000 / u128::from(rate.max(1));
        self.rate.map(|rate| Duration::from_ps(ps(rate) as u64))
    }

    /// Number of transfers of a job, if limited: fio's `keep_running` and `io_bytes_exceeded`.
    pub fn transfers(&self) -> Option<u64> {
        let once = self.io_size.unwrap_or(self.size) / self.bs as u64;
        let once = once.min(self.number_ios.unwrap_or(u64::MAX));
        (!self.time_based).then(|| once.saturating_mul(self.loops))
    }

    /// Bytes of a job's part in whole blocks of `bs`.
    pub fn part(&self) -> u64 {
        self.size / self.bs as u64 * self.bs as u64
    }

    /// Bytes of the parts of all jobs.
    pub fn range(&self) -> Range<u64> {
        let length = self.part().saturating_mul(self.numjobs as u64);
        self.offset..self.offset.saturating_add(length)
    }

    /// The namespace that the jobs use on one of the drives.
    pub fn namespace<'a>(&self, drive: &'a Driver) -> Option<&'a NamespaceInfo> {
        drive.namespaces().iter().find(|namespace| namespace.nsid == self.nsid)
    }

    /// Checks that `drives` can run this workload.
    ///
    /// # Errors
    /// The first parameter that does not fit, with the reason.
    pub fn check<'a>(
        &self,
        drives: impl IntoIterator<Item = &'a Driver> + Clone,
    ) -> Result<(), &'static str> {
        ensure(self.bs > 0, "bs is 0; the minimum is one block")?;
        ensure(self.iodepth > 0 && self.numjobs > 0, "iodepth or numjobs is 0; the minimum is 1")?;
        ensure(!self.time_based || self.runtime.is_some(), "time_based needs runtime")?;
        ensure(
            self.transfers() != Some(0),
            "the workload transfers nothing: io_size is below bs, or number_ios or loops is 0",
        )?;
        ensure(self.thinktime_blocks > 0, "thinktime_blocks is 0; the minimum is 1")?;
        let chunks = self.size / self.bs as u64;
        ensure(chunks >= self.iodepth as u64, "size is smaller than iodepth times bs")?;
        let used = chunks.checked_mul(self.bs as u64 * self.numjobs as u64);
        let used = used.and_then(|used| used.checked_add(self.offset)).unwrap_or(u64::MAX);
        let share = match self.stripe {
            0 => used,
            stripe => {
                let count = drives.clone().into_iter().count() as u64;
                used.div_ceil(stripe as u64 * count).saturating_mul(stripe as u64)
            }
        };
        drives.into_iter().try_for_each(|drive| self.check_drive(drive, share))
    }

    /// Checks that a drive can hold its share of `share` bytes.
    fn check_drive(&self, drive: &Driver, share: u64) -> Result<(), &'static str> {
        let namespace =
            self.namespace(drive).ok_or("a drive has no namespace with the given nsid")?;
        let block = 1u64 << namespace.block_shift;
        let whole = |bytes: u64| bytes.is_multiple_of(block);
        ensure(whole(self.bs as u64), "bs is not a multiple of a drive's block size")?;
        ensure(whole(self.offset), "offset is not a multiple of a drive's block size")?;
        ensure(whole(self.stripe as u64), "stripe is not a multiple of a drive's block size")?;
        ensure(drive.queues() >= self.numjobs, "numjobs is more than a drive's queue pairs")?;
        let most = (0..drive.queues()).map(|queue| drive.queue_memory(queue).entries).min();
        let fits = self.commands(drive.max_transfer()) < usize::from(most.unwrap_or(0));
        ensure(fits, "iodepth times bs needs more commands than a queue holds")?;
        let room = namespace.blocks << namespace.block_shift;
        ensure(room >= share, "size times numjobs is more than a drive's capacity")?;
        let protected = namespace.read_only && self.rw.writes();
        ensure(!protected, "rw includes writes, but the namespace is write-protected")
    }
}
