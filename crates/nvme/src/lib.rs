//! The NVM subsystem with its controllers, and a small host driver (the initiator): state machines
//! without I/O.
//!
//! A [`Subsystem`] is a drive: namespaces, counters, controllers, and what persists of them
//! ([`state`]). Each controller speaks NVM Express 1.4 through its [`Port`], a [`pcie::Function`];
//! blocks leave as [`block::Request`]s and come back as completions, records to store leave as
//! [`Commit`]s. [`initiator`] is the other side: enough of a driver to bring a drive up and to
//! move blocks.
//!
//! What a controller does: the ten mandatory admin commands, Read, Write,
//! Flush, Write Zeroes and Dataset Management; up to 64 I/O queue pairs of up
//! to 4096 entries, round robin; PRPs; MSI-X with coalescing, or INTx.
//!
//! Not implemented, and reported as absent: SGLs, metadata and protection
//! information, fused commands, namespace management by commands, firmware update, Format
//! NVM, reservations, weighted round robin, the controller
//! memory buffer, subsystem reset, queues that are not contiguous.

mod admin;
pub mod block;
mod config;
mod controller;
mod events;
mod failure;
mod features;
mod identity;
pub mod initiator;
mod interrupt;
mod io;
mod log;
mod namespace;
mod plan;
mod prp;
mod queue;
mod registers;
mod slots;
pub mod state;
mod subsystem;
#[doc(hidden)]
pub mod testing;

pub use config::{Config, NamespaceConfig, Settings};
pub use controller::Controller;
pub use subsystem::{Commit, NamespaceError, Port, Subsystem};
