//! The vocabulary of farlane: units, PCIe transaction-layer packets, NVMe
//! structures, the tunnel's frames, vfio-user messages, trace and capture
//! files.
//!
//! Everything here is a view over bytes or a validated value. Nothing here
//! behaves, waits, allocates a queue or knows what time it is.

pub mod frame;
pub mod id;
pub mod nvme;
pub mod pcapng;
pub mod random;
pub mod raw;
pub mod time;
pub mod tlp;
pub mod trace;
pub mod units;
pub mod vfio_user;

pub use id::{Bdf, Tag};
pub use time::{Duration, Instant};
