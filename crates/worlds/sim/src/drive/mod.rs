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
use node::faults::Fault;
use stats::random::Random;
use std::fmt::Debug;
use wire::{Duration, Instant};

/// How long an access takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Time of the firmware, before the media.
    pub firmware: Duration,
    /// Time of dies, channels and the write buffer, including waiting for them.
    pub media: Duration,
}

/// The model of a drive's media: how long accesses take. [`DriveConfig::media`] makes the model.
/// The default is a model of flash with the parameters of [`Timing`].
///
/// The simulator calls the model in the order of the accesses, with non-decreasing times.
/// Therefore a model may store the time until which a resource is busy. A model must use only its
/// own random numbers, so that runs with the same seed are identical.
pub trait Media: Debug {
    /// How long a read of `length` bytes at byte `offset` of the media takes, if it starts now.
    fn read(&mut self, now: Instant, offset: u64, length: usize) -> Access;
    /// How long a write of `length` bytes takes, if it starts now.
    fn write(&mut self, now: Instant, length: usize) -> Access;
    /// How long a command without data takes: Flush, Write Zeroes or Dataset Management.
    fn other(&mut self, now: Instant) -> Access;
}

/// A function that makes the media of a drive from the timing and the random numbers for it.
pub type NewMedia = fn(&Timing, Random) -> Box<dyn Media>;

/// The parameters of the flash model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Firmware time of a read of up to 4 KiB.
    pub firmware_read: Duration,
    /// Firmware time of a longer read.
    pub firmware_read_large: Duration,
    /// Firmware time of each write and of each command without data.
    pub write_base: Duration,
    /// Time to write 4 KiB to the write buffer; a part of 4 KiB takes the same time.
    pub write_4k: Duration,
    /// Number of flash channels.
    pub channels: u16,
    /// Dies per channel.
    pub luns: u16,
    /// Bytes per second of a channel; 0 for no transfer time.
    pub channel_rate: u64,
    /// Time to sense a page with the first bits of its cells (LSB page).
    pub read_lsb: Duration,
    /// Time to sense a page with the last bits of its cells (MSB page).
    pub read_msb: Duration,
    /// Time to program a page.
    pub program: Duration,
    /// Bytes of a page, a power of two of at least 4096. Consecutive pages are on different dies. A
    /// page is sensed and programmed as a whole.
    pub page: usize,
    /// Bytes of the write buffer, at least a page; 0 for no limit and no programming.
    pub write_buffer: u64,
    /// Each sensing takes longer by a random time, uniform from zero to below this limit.
    pub variation: Duration,
    /// The most bytes per second between media and PCIe, in each direction; 0 for no limit. Memory
    /// writes and memory reads of data leave TLP by TLP at this rate.
    pub stream_rate: u64,
}

impl Timing {
    /// The timing of `drives` equal drives behind one striping controller: channels and stream
    /// rate are multiplied by `drives`.
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

/// MDTS of a drive: 2^5 units of 4 KiB.
pub(crate) const MAX_TRANSFER_SHIFT: u8 = 5;
/// The most bytes that one command transfers; a host splits larger requests.
pub const MAX_TRANSFER: usize = 4096 << MAX_TRANSFER_SHIFT;

/// The configuration of a simulated drive.
#[derive(Clone, Debug)]
pub struct DriveConfig {
    /// Serial number, unique among the drives of the host; up to 20 ASCII characters.
    pub serial: String,
    /// Bytes of namespace 1: a multiple of 4096.
    pub size: u64,
    /// Bytes of namespaces 2, 3, …, each a multiple of 4096. On the media they follow namespace 1.
    pub more: Vec<u64>,
    /// The parameters of the media.
    pub timing: Timing,
    /// The model of the media.
    pub media: NewMedia,
    /// Whether the media lose their contents without power, as RAM does. After such a loss the
    /// drive has a new incarnation.
    pub volatile: bool,
    /// Faults of the drive, with times since the start of the simulation.
    pub faults: Vec<Fault>,
    /// The most bytes of a read request of the drive: a power of two, 128 to 4096. MRRS also
    /// limits requests.
    pub read_request: usize,
    /// The most DMA reads in flight, 1 to 1024.
    pub reads_in_flight: usize,
    /// Max_Payload_Size supported in bytes: 128 to 4096.
    pub max_payload: usize,
}

impl DriveConfig {
    /// Bytes of each namespace.
    pub fn sizes(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.size).chain(self.more.iter().copied())
    }

    /// A drive of 64 MiB with flash media of the given timing.
    pub fn new(serial: impl Into<String>, timing: Timing) -> Self {
        Self {
            serial: serial.into(),
            size: 64 << 20,
            more: Vec::new(),
            timing,
            media: |timing, random| Box::new(Flash::new(*timing, random)),
            volatile: false,
            faults: Vec::new(),
            read_request: 512,
            reads_in_flight: 32,
            max_payload: 512,
        }
    }

    /// Sets MPS, read requests and reads in flight to the values of farlane's own drives.
    #[must_use]
    pub fn as_in_farlane(self) -> Self {
        let nvme::Settings { max_payload, read_request, reads_in_flight, .. } = Default::default();
        Self { read_request, reads_in_flight, max_payload, ..self }
    }

    /// Sets MPS and read requests to 256 bytes, as with the Samsung 970 Pro of the NVMe/TSN paper
    /// (MLE, "Latency Analysis for NVMe/TSN", section 2.2), and the most reads in flight.
    #[must_use]
    pub fn as_in_nvme_tsn(self, reads_in_flight: usize) -> Self {
        Self { read_request: 256, reads_in_flight, max_payload: 256, ..self }
    }
}
