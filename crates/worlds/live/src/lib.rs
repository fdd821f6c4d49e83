//! The live nodes: clock, TCP, raw Ethernet, shells around the nodes of [`node`].
//!
//! [`mapping`] has the `unsafe` code of this crate.

#![deny(unsafe_code)]

pub mod attached;
pub mod clock;
pub mod device;
pub mod host;
pub mod latency;
pub mod limiter;
pub mod links;
#[allow(unsafe_code)]
pub mod mapping;
pub mod net;
mod netdev;
pub mod poller;
pub mod trace;
pub mod vfio_client;
pub mod xdp;

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;

pub use attached::{Attached, NvmeDrive, Report};
pub use clock::Clock;
pub use device::DeviceNode;
pub use host::Machine;
pub use poller::{Poller, Waiting};
pub use trace::Tracer;

/// A random number, unique in practice.
pub fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Adds what failed to the error's text.
pub(crate) fn about(what: impl fmt::Display, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// What the owner of a running node asks of it between two turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Serve,
    /// Go on, and report the counters.
    Report,
    /// Stop in order: finish commands, make data durable.
    Stop,
}
