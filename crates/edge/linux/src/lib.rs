//! Linux interfaces that several crates use: shared clocks and sleeping until a time ([`time`]),
//! network interfaces, packet sockets, marks of packets, network namespaces.
//!
//! # Modules
//!
//! - `time`: shared clocks, sleeping until a time
//! - `interface`: network interfaces by name
//! - `packet`: packet sockets
//! - `marking`: DSCP and priority of sent packets
//! - `namespace`: network namespaces
//! - `proc_stat`: processor time of a process, from `/proc`
//! - `kernel`: system calls without a safe wrapper, and the unsafe code of this crate

#![deny(unsafe_code)]

mod interface;
#[allow(unsafe_code)]
mod kernel;
mod marking;
mod namespace;
mod packet;
pub mod proc_stat;
pub mod time;

pub use interface::{Interface, Mac};
pub use marking::Marking;
pub use namespace::Namespace;
pub use packet::{DROPPED, ETHERNET, Filter, PacketSocket};

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;

/// A random number, unique in practice.
pub fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Adds the context to the error's text.
pub fn about(context: impl fmt::Display, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{context}: {error}"))
}
