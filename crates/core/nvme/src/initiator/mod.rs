//! A small host driver: it initialises a drive, reads and writes blocks, and shuts the drive down
//! (NVMe 1.4, section 7.6).
//!
//! [`attach`] and [`Driver::shutdown`] are coroutines over a [`pcie::Bus`]. Between them, the
//! [`Driver`] is a state machine: [`Driver::submit`] puts a command in host memory and rings the
//! doorbell, and [`Driver::reap`] takes completions, after an interrupt or by polling.

mod admin;
mod attach;
mod driver;
mod further;
mod prp_list;
mod queue;
mod reservation;

pub use admin::entry_sizes;
pub use attach::{attach, attach_with, create_commands};
pub use driver::{Driver, NamespaceInfo, QueueMemory};
pub use further::{DriveInfo, FurtherQueues};
pub use queue::{CommandId, CompletedCommand, QueueFull};

use wire::Duration;
use wire::nvme::{ReservationType, Status};

/// An operation on blocks. A read fills the buffer, a write sends the buffer; a flush ignores
/// blocks and buffer.
pub use wire::trace::MediaOperation as Op;

/// Settings of the driver.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Requested I/O queue pairs; the drive may grant fewer.
    pub io_queues: u16,
    /// Entries of each I/O queue, at least 2; limited by the drive.
    pub entries: u16,
    /// Whether I/O queue `n` interrupts with MSI-X vector `n + 1`. The caller must program and
    /// enable the MSI-X table first. Without interrupts, the caller must poll.
    pub interrupts: bool,
    /// Interval of polling for admin completions and CSTS.
    pub poll: Duration,
    /// Time limit of a command.
    pub timeout: Duration,
    /// The registration of the host, if it has one.
    pub registration: Option<Registration>,
}

/// The registration of a host in a namespace, and the reservation that the host acquires (NVMe 1.4,
/// section 8.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Namespace.
    pub nsid: u32,
    /// Reservation key of the host, not 0.
    pub key: u64,
    /// Type of the reservation; `None`: the host only registers.
    pub kind: Option<ReservationType>,
}

impl Default for Settings {
    /// One queue of 128 entries with an interrupt, polling every 10 us, a time limit of 5 s, and no
    /// registration.
    fn default() -> Self {
        Self {
            io_queues: 1,
            entries: 128,
            interrupts: true,
            poll: Duration::from_us(10),
            timeout: Duration::from_ms(5_000),
            registration: None,
        }
    }
}

/// Why a drive cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Registers read as all ones.
    #[error("the drive does not answer: its registers read as all ones")]
    Gone,
    /// The drive lacks a property that this driver requires.
    #[error("the drive does not support {0}")]
    Unsupported(&'static str),
    /// CSTS.RDY is clear, although the controller was enabled (NVMe 1.4, section 3.1.6).
    #[error("the controller was reset, but not by this driver (CSTS.RDY is 0)")]
    Reset,
    /// CSTS.CFS is set.
    #[error("the controller reports a fatal error (CSTS.CFS is 1)")]
    Fatal,
    /// A time limit was exceeded.
    #[error("timeout while waiting for {0}")]
    Timeout(&'static str),
    /// An admin command failed.
    #[error("{0} failed: {code}", code = .1.code)]
    Command(&'static str, Status),
    /// Host memory is exhausted.
    #[error("host memory is too small for the queues")]
    OutOfMemory,
}

/// An I/O command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The operation.
    pub op: Op,
    /// Namespace.
    pub nsid: u32,
    /// First block.
    pub slba: u64,
    /// Blocks, 1 to 65536.
    pub blocks: u32,
    /// Bus address of the data in the memory of the driver, a multiple of 4.
    pub buffer: u64,
}
