//! Drives: the timing and the contents of their media.

mod flash;
mod pace;
mod preset;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use pace::Pace;
pub(crate) use store::Store;

use flash::Flash;
use stats::random::Random;
use std::fmt::Debug;
use wire::{Duration, Instant};

/// The time of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Time of the firmware, which comes first.
    pub firmware: Duration,
    /// Time of dies, channels and the write buffer, waiting included.
    pub media: Duration,
}

/// The model of a drive's media: when its accesses complete. [`DriveConfig::media`] makes one; the
/// model of flash with the parameters of [`Timing`] is the default.
///
/// The simulator calls the model in the order of the accesses, with non-decreasing times, so a
/// model may store the time until which a resource is busy. The model draws only from its own
/// random numbers, so runs with the same seed are identical.
pub trait Media: Debug {
    /// A read of `length` bytes at byte `offset` of the media starts.
    fn read(&mut self, now: Instant, offset: u64, length: usize) -> Access;
    /// A write of `length` bytes starts.
    fn write(&mut self, now: Instant, length: usize) -> Access;
    /// A command without data starts: Flush, Write Zeroes or Dataset Management.
    fn other(&mut self, now: Instant) -> Access;
}

/// Makes the media of a drive, with their own random numbers.
pub type NewMedia = fn(&Timing, Random) -> Box<dyn Media>;

/// The timing of a drive's media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Firmware, for a read of up to 4 KiB.
    pub firmware_read: Duration,
    /// Firmware, for a longer read.
    pub firmware_read_large: Duration,
    /// Time to write to the write buffer, for each write.
    pub write_base: Duration,
    /// Time to write to the write buffer, for each 4 KiB begun.
    pub write_4k: Duration,
    /// Flash channels.
    pub channels: u16,
    /// Dies per channel.
    pub luns: u16,
    /// Bytes per second of a channel; 0 for no transfer time.
    pub channel_rate: u64,
    /// Sensing a page whose bits are the first of their cells.
    pub read_lsb: Duration,
    /// Sensing a page whose bits are the last of their cells.
    pub read_msb: Duration,
    /// Programming a page.
    pub program: Duration,
    /// Bytes of a page: consecutive pages are on different dies, and a page is programmed at once.
    pub page: usize,
    /// Bytes of the write buffer; 0 for no limit, and no programming.
    pub write_buffer: u64,
    /// The most time that is added to each sensing: uniform from zero to this, from the drive's
    /// seeded random numbers.
    pub variation: Duration,
    /// Largest bytes per second between media and PCIe, in each direction; 0 for no limit. Memory
    /// writes and memory reads of data leave one TLP at a time at this rate.
    pub stream_rate: u64,
}

impl Timing {
    /// The timing of `drives` such drives behind one striping controller: multiplies the channels
    /// and the stream rate.
    #[must_use]
    pub const fn raid0(self, drives: u16) -> Self {
        Self {
            channels: self.channels * drives,
            stream_rate: self.stream_rate * drives as u64,
            ..self
        }
    }
}

/// The time of `bytes` at `rate` bytes per second, rounded up; zero without a rate.
fn time_at(rate: u64, bytes: u64) -> Duration {
    let ps = u128::from(bytes) * 1_000_000_000_000;
    if rate == 0 { Duration::ZERO } else { Duration::from_ps(ps.div_ceil(rate.into()) as u64) }
}

/// MDTS of a drive as a power of two of 4 KiB.
pub(crate) const MAX_TRANSFER_SHIFT: u8 = 5;
/// The largest transfer of one command in bytes: a host splits larger ones.
pub const MAX_TRANSFER: usize = 4096 << MAX_TRANSFER_SHIFT;

/// A drive.
#[derive(Clone, Debug)]
pub struct DriveConfig {
    /// Serial number, unique among the drives of the host; up to 20 ASCII characters.
    pub serial: String,
    /// Bytes of namespace 1: a multiple of 4096.
    pub size: u64,
    /// Bytes of namespaces 2, 3, …, which follow on the media.
    pub more: Vec<u64>,
    /// The parameters of the media.
    pub timing: Timing,
    /// The model of the media.
    pub media: NewMedia,
    /// Whether the media lose their contents without power, as RAM does; the drive then has a new
    /// incarnation.
    pub volatile: bool,
    /// The drive's own limit for one read request in bytes, below MRRS: a
    /// power of two, 128 to 4096.
    pub read_request: usize,
    /// DMA reads in flight, 1 to 1024.
    pub reads_in_flight: usize,
    /// Max_Payload_Size supported in bytes: 128 to 4096.
    pub max_payload: usize,
}

impl DriveConfig {
    /// Bytes of each namespace.
    pub fn sizes(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.size).chain(self.more.iter().copied())
    }

    /// A drive of 64 MiB with media of this timing.
    pub fn new(serial: impl Into<String>, timing: Timing) -> Self {
        Self {
            serial: serial.into(),
            size: 64 << 20,
            more: Vec::new(),
            timing,
            media: |timing, random| Box::new(Flash::new(*timing, random)),
            volatile: false,
            read_request: 512,
            reads_in_flight: 32,
            max_payload: 512,
        }
    }

    /// Sets MPS 256 and read requests as in the NVMe/TSN paper's Samsung 970 Pro: 256 bytes per
    /// request (MLE, "Latency Analysis for NVMe/TSN", section 2.2), `reads_in_flight` at once.
    #[must_use]
    pub fn as_in_nvme_tsn(self, reads_in_flight: usize) -> Self {
        Self { read_request: 256, reads_in_flight, max_payload: 256, ..self }
    }
}
