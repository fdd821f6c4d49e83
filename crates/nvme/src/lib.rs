//! The NVMe controller and a small host driver (the initiator), both state machines without I/O.
//!
//! [`Controller`] speaks NVM Express 1.4 as a [`pcie::Function`]; blocks leave
//! it as [`block::Request`]s and come back as completions. [`initiator`] is
//! the other side: enough of a driver to bring a drive up and to move blocks.
//!
//! What the controller does: the ten mandatory admin commands, namespace management, Read, Write,
//! Flush, Write Zeroes and Dataset Management; up to 64 I/O queue pairs of up
//! to 4096 entries, round robin; PRPs; MSI-X with coalescing, or INTx.
//!
//! Not implemented, and reported as absent: SGLs, metadata and protection
//! information, fused commands, firmware update, Format
//! NVM, reservations, saved features, weighted round robin, the controller
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
pub use subsystem::{Commit, Contents, NamespaceError, Port, Subsystem};
