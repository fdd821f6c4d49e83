//! The NVM subsystem with its controllers, and a small host driver (the initiator): state machines
//! without I/O.
//!
//! A [`Subsystem`] is a drive: namespaces, counters, controllers, and their persistent state
//! ([`state`]). Each controller implements NVM Express 1.4 behind its [`Port`], a
//! [`pcie::Function`]; blocks leave as [`block::Request`]s and come back as completions, records to
//! store leave as [`Commit`]s. [`initiator`] is the other side: enough of a driver to bring a drive
//! up and to move blocks.
//!
//! `docs/nvme.md` and `docs/nvme-support.md` list the supported and unsupported functions.
//!
//! # Modules
//!
//! - `subsystem`: what the controllers of a drive share, and their ports
//! - `controller`: one controller, one file per step of a command
//! - `admin`: admin commands, one file per command family
//! - `io`: I/O commands, one file per command family
//! - `plan`: the work that a command's handler leaves to the controller
//! - [`block`]: requests to the media
//! - `namespace`: a range of blocks with a name
//! - `metadata`: metadata of blocks: their place and their transfer
//! - `protection`: end-to-end data protection
//! - [`state`]: the records that a drive keeps without power, one file per record
//! - `features`: the values of features
//! - `log`: log pages
//! - `events`: asynchronous events
//! - `failure`: the status of a failed command and the place of the error
//! - `identity`: names derived from the serial number, and the identity on PCIe
//! - `config`: the properties of a drive, and how a drive is run
//! - `registers`: the register file in BAR 0
//! - `queue`: submission and completion queues, arbitration
//! - `interrupt`: vectors, coalescing, masks
//! - `pointer`: the place of a command's data and metadata in host memory
//! - `prp`: physical region pages
//! - `sgl`: scatter gather lists
//! - `slots`: tables whose keys are never reused
//! - [`initiator`]: a small host driver

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
