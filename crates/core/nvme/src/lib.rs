//! The NVM subsystem with its controllers, and a small host driver (the initiator): state machines
//! without I/O.
//!
//! A [`Subsystem`] is a drive: namespaces, counters, controllers, and what persists of them
//! ([`state`]). Each controller speaks NVM Express 1.4 through its [`Port`], a [`pcie::Function`];
//! blocks leave as [`block::Request`]s and come back as completions, records to store leave as
//! [`Commit`]s. [`initiator`] is the other side: enough of a driver to bring a drive up and to
//! move blocks.
//!
//! `docs/nvme.md` and `docs/nvme-support.md` say what a controller does, and what it does not.

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
mod metadata;
mod namespace;
mod plan;
mod pointer;
mod protection;
mod prp;
mod queue;
mod registers;
mod sgl;
mod slots;
pub mod state;
mod subsystem;

pub use config::{Config, MAX_ENTRIES, MAX_QUEUES, MODEL, NamespaceConfig, Settings};
pub use controller::Controller;
pub use pointer::follow;
pub use prp::{MemoryRange, MemoryRanges};
pub use subsystem::{Commit, Contents, NamespaceError, Port, Subsystem};
