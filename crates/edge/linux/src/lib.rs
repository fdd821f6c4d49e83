//! Functions of Linux that several crates use.
//!
//! # Modules
//!
//! - `time`: shared clocks, sleeping until a time
//! - `group`: groups of users
//! - `interface`: network interfaces by name
//! - `packet`: packet sockets
//! - `marking`: DSCP and priority of sent packets
//! - `namespace`: network namespaces
//! - `proc_stat`: processor time of a process, from `/proc`
//! - `kernel`: system calls without a safe wrapper, and the unsafe code of this crate

#![deny(unsafe_code)]

pub mod cpu;
mod group;
mod interface;
#[allow(unsafe_code)]
mod kernel;
mod marking;
mod namespace;
mod packet;
pub mod proc_stat;
pub mod time;

pub use group::UserGroup;
pub use interface::{Interface, Mac};
pub use kernel::{map, round_trip};
pub use marking::Marking;
pub use namespace::{Namespace, SMALLEST_FRAME, WIRE};
pub use packet::{DROPPED, ETHERNET, Filter, PacketSocket};

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;

/// A random number of 64 bits, unique in practice.
pub fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// An error of the same kind, with `context` in front of its text.
pub fn about(context: impl fmt::Display, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{context}: {error}"))
}
