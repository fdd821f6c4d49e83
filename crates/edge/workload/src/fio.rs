//! The parameters of jobs, with the names of fio (fio 3, HOWTO, "Job file parameters").

use nvme::initiator::{Driver, NamespaceInfo};
use std::ops::Range;
use wire::Duration;

/// Number of entries of the largest queue.
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
    /// Whether the blocks are in random order.
    pub fn is_random(self) -> bool {
        matches!(self, Self::RandRead | Self::RandWrite | Self::RandRw)
    }

    /// Whether the workload contains writes.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::RandRead)
    }

    /// The value of fio's parameter `rw`.
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
    /// The kind of I/O.
    pub rw: Rw,
    /// Percentage of reads in a mixed workload, 0 to 100.
    pub rwmixread: u8,
    /// Bytes per transfer: a multiple of the drives' block size. A transfer that is longer than the
    /// drive's maximum data transfer size is split into several commands, and ends with the last
    /// command.
    pub bs: usize,
    /// Number of transfers in flight per job, at least 1.
    pub iodepth: usize,
    /// Number of jobs, at least 1. Each job has its own queue pair, CPU and part of the drive.
    pub numjobs: usize,
    /// Byte offset of the first job's part on the drive, a multiple of the drives' block size.
    pub offset: u64,
    /// Size in bytes of the part of the drive that a job uses. The job transfers the same number of
    /// bytes, unless `io_size` is set. Bytes after the last whole block of `bs` bytes are not used.
    pub size: u64,
    /// Number of bytes that a job transfers, instead of `size`, rounded down to blocks of `bs`
    /// bytes.
    pub io_size: Option<u64>,
    /// The maximum number of transfers of a job in one loop; `None`: no limit.
    pub number_ios: Option<u64>,
    /// How many times a job repeats the transfers, at least 1.
    pub loops: u64,
    /// No transfer begins after this time since the start, even if the job is not complete; `None`:
    /// no limit.
    pub runtime: Option<Duration>,
    /// Whether a job continues until `runtime` ends, even if it has transferred all bytes.
    pub time_based: bool,
    /// The maximum rate of a job in bytes per second; `None`: no limit.
    pub rate: Option<u64>,
    /// Length of a pause. A job pauses after every `thinktime_blocks` transfers, when the transfers
    /// in flight have ended. Zero means no pauses.
    pub thinktime: Duration,
    /// Number of completed transfers of a job between two pauses, at least 1.
    pub thinktime_blocks: u64,
    /// Stripe size in bytes over all drives of the host (RAID0), a multiple of the drives' block
    /// size. With 0 there are no stripes: job n uses only the drive n modulo the number of drives.
    pub stripe: usize,
    /// ID of the namespace that the jobs use on each drive.
    pub nsid: u32,
}

/// Returns `error` if the condition is false.
fn ensure<E>(holds: bool, error: E) -> Result<(), E> {
    if holds { Ok(()) } else { Err(error) }
}

impl Fio {
    /// One job on the first 1 MiB of namespace 1, with blocks of `bs` bytes and without limits of
    /// rate and time.
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

    /// Transfers `count` blocks of `bs` bytes in order, one at a time, as dd with direct I/O does.
    /// Writes if `write`, otherwise reads.
    pub fn dd(write: bool, bs: usize, count: u64) -> Self {
        let rw = if write { Rw::Write } else { Rw::Read };
        Self { size: bs as u64 * count, ..Self::new(rw, bs, 1) }
    }

    /// The maximum number of commands in flight of a job, on drives whose maximum data transfer
    /// size is `max_transfer` bytes. A striped or long transfer can need several commands.
    pub fn commands(&self, max_transfer: usize) -> usize {
        let parts = match self.stripe {
            0 => self.bs.div_ceil(max_transfer),
            stripe => (self.bs / stripe + 2) * stripe.div_ceil(max_transfer),
        };
        self.iodepth * parts.max(1)
    }

    /// Time between the starts of two transfers of a job; `None` if the rate is not limited.
    pub fn interval(&self) -> Option<Duration> {
        let ps = |rate: u64| self.bs as u128 * 1_000_000_000_000 / u128::from(rate.max(1));
        self.rate.map(|rate| Duration::from_ps(ps(rate) as u64))
    }

    /// Number of transfers of a job, in all loops; `None` if only `runtime` limits it. As
    /// `keep_running` and `io_bytes_exceeded` of fio.
    pub fn transfers(&self) -> Option<u64> {
        let once = self.io_size.unwrap_or(self.size) / self.bs as u64;
        let once = once.min(self.number_ios.unwrap_or(u64::MAX));
        (!self.time_based).then(|| once.saturating_mul(self.loops))
    }

    /// Size in bytes of a job's part, rounded down to blocks of `bs` bytes.
    pub fn part(&self) -> u64 {
        self.size / self.bs as u64 * self.bs as u64
    }

    /// The range of bytes that contains the parts of all jobs.
    pub fn range(&self) -> Range<u64> {
        let length = self.part().saturating_mul(self.numjobs as u64);
        self.offset..self.offset.saturating_add(length)
    }

    /// The namespace that the jobs use on `drive`; `None` if the drive does not have it.
    pub fn namespace<'a>(&self, drive: &'a Driver) -> Option<&'a NamespaceInfo> {
        drive.namespaces().iter().find(|namespace| namespace.nsid == self.nsid)
    }

    /// Checks that `drives` can run this workload.
    ///
    /// # Errors
    /// A text that names the first parameter with an unsuitable value, and the reason.
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

    /// Checks that one drive can run the workload, of which it holds `share` bytes.
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
