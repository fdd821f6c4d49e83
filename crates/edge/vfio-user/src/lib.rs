//! A vfio-user server for one endpoint: a VMM's accesses become [`Action`]s for the host node,
//! and the device's DMA and interrupts go to the VMM's guest.
//!
//! # Modules
//!
//! In the order of data flow:
//!
//! - `server`: [`Server`], the interface for an event loop
//! - `listener`: the socket to which a VMM connects
//! - `connection`: converts bytes and descriptors to messages, and back
//! - `session`: [`Session`], the state machine that answers messages
//! - `action`: inputs and outputs of a session
//! - `config`, `msix`: configuration space and MSI-X table as the VMM sees them
//! - `doorbell`: doorbells in a page that the client shares
//! - `transfer`: DMA of the device, and interrupts ordered behind DMA
//! - `guest`: the guest's memory
//! - `dma`: DMA by message, for memory that is not mapped
//! - `irq`: eventfds and their masks
//! - `signals`: signals eventfds without waiting
//! - [`mapping`]: shared memory, its faults, signals; the unsafe code of this crate
//! - [`client`]: a client for the function of any server
//!
//! Requirements of known clients, each with a test:
//!
//! - QEMU gives up on a reply after 5 s and then loses its position in the stream: an access
//!   without an answer within `ACCESS_DEADLINE` reads all ones.
//! - QEMU holds its big lock while it waits for a region access, and answers DMA messages under
//!   the same lock: an access never waits for a DMA message.
//! - An eventfd is signalled only after the client has answered every earlier
//!   DMA_WRITE message, as an MSI-X write may not pass data.
//! - QEMU reuses its request as the buffer for the reply to VERSION; it treats errno 0 in an error
//!   reply as success.
//! - SPDK sends VERSION without JSON, always uses message ID 0, pads requests, adds a descriptor to
//!   DMA_UNMAP, expects each reply in one piece, and rings doorbells in a mapped page.
//!
//! Not implemented: migration, dirty-page tracking, twin sockets, ioeventfds, MSI.

#![deny(unsafe_code)]

mod action;
pub mod client;
mod config;
mod connection;
mod dma;
mod doorbell;
mod guest;
mod irq;
mod listener;
#[allow(unsafe_code)]
pub mod mapping;
mod msix;
mod server;
mod session;
mod signals;
#[cfg(test)]
mod tests;
mod transfer;

pub use action::{Action, Input, Token};
pub use config::EndpointInfo;
pub use connection::{Incoming, MAX_PAYLOAD};
pub use dma::{Access, DmaError, DmaId};
pub use listener::BindError;
pub use pcie::Presence;
pub use server::Server;
pub use session::Session;

/// Bytes of data in one region access; offered to the client as `max_data_xfer_size`.
pub const MAX_DATA_XFER: usize = 64 << 10;

/// Descriptors in one message; offered as `max_msg_fds`. QEMU treats a larger number as malformed.
pub const MAX_MSG_FDS: usize = 16;
