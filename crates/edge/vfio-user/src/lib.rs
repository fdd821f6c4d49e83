//! A vfio-user server for one endpoint: accesses of a VMM become [`Action`]s for the host node; DMA
//! and interrupts of the device go to the guest of the VMM.
//!
//! # Modules
//!
//! In the order of data flow:
//!
//! - `server`: [`Server`], the interface for an event loop
//! - `listener`: Unix sockets, such as the one to which a VMM connects
//! - `connection`: converts bytes and descriptors to messages, and back
//! - `session`: [`Session`], the state machine that answers messages
//! - `action`: inputs and outputs of a session
//! - `config`, `msix`: configuration space and MSI-X table as the VMM sees them
//! - `doorbell`: doorbells in a page that the client shares
//! - `transfer`: DMA of the device, and interrupts, which follow earlier DMA writes
//! - `guest`: the guest's memory
//! - `dma`: DMA by message, for memory that is not mapped
//! - `irq`: eventfds and masks of interrupts
//! - `signals`: signals eventfds without blocking
//! - [`mapping`]: shared memory, faults of shared memory, signals; all unsafe code of this crate
//! - [`client`]: a client for the function of any server
//!
//! Requirements of known clients, each with a test:
//!
//! - QEMU waits 5 s for a reply; after a longer time it can no longer assign replies to requests.
//!   Therefore an access without an answer within `ACCESS_DEADLINE` reads all ones.
//! - QEMU holds its global lock while it waits for the reply to a region access, and needs the same
//!   lock to answer DMA messages. Therefore a region access never waits for a DMA message.
//! - An eventfd is signalled only after the client has answered all earlier DMA_WRITE messages,
//!   because an MSI-X write may not pass earlier writes.
//! - QEMU receives the reply to VERSION in the buffer of the request. It treats an error reply with
//!   errno 0 as success.
//! - SPDK sends VERSION without JSON, uses message ID 0 for all messages, pads requests, adds a
//!   descriptor to DMA_UNMAP, expects that one call receives a whole reply, and rings doorbells in
//!   a mapped page.
//!
//! Not implemented: migration, dirty-page tracking, twin sockets, ioeventfds, MSI.
//!
//! # Example
//!
//! A server offers a function with one BAR. The client, a thread in place of QEMU, reads the vendor
//! ID and a register.
//!
//! ```
//! # use {pcie as farlane_pcie, wire as farlane_wire};
//! use farlane_pcie::enumerate::Bar;
//! use farlane_vfio_user::client::{Device, Doorbells, HostMemory};
//! use farlane_vfio_user::{Action, EndpointInfo, Server};
//! use farlane_wire::{Instant, vfio_user::region_index};
//! use std::{rc::Rc, thread};
//!
//! let mut config = Box::new([0; 4096]);
//! config[..4].copy_from_slice(&[0x34, 0x12, 0x78, 0x56]);
//! let bar = Bar { index: 0, size: 4096, is_64bit: false, prefetchable: false, address: 0 };
//! let bars = [Some(bar), None, None, None, None, None];
//! let folder = std::env::temp_dir().join(format!("vfio-user-{}", std::process::id()));
//! let info = EndpointInfo { config: config.clone(), bars, doorbells: false };
//! let mut server = Server::bind(&folder, 0, info)?;
//!
//! let path = server.path().to_owned();
//! let client = thread::spawn(move || {
//!     let memory = HostMemory::new(0, 1 << 20).expect("memory");
//!     let now = Rc::new(|| Instant::ZERO);
//!     let mut device = Device::connect(&path, now, memory, Doorbells::Message).expect("a server");
//!     let id = device.read(region_index::CONFIG, 0, 4).expect("an ID");
//!     (id, device.read(0, 0x10, 4).expect("a register"))
//! });
//! while !client.is_finished() {
//!     let now = Instant::ZERO;
//!     server.service(now);
//!     while let Some(action) = server.poll(now, true) {
//!         match action {
//!             Action::ConfigRead { token, offset, size } => {
//!                 let at = usize::from(offset);
//!                 server.reply(now, token, Ok(&config[at..at + usize::from(size)]));
//!             }
//!             Action::BarRead { token, length, .. } => server.reply(now, token, Ok(&[7; 8][..length])),
//!             Action::Reset { token } | Action::ClientGone { token } => server.reply(now, token, Ok(&[])),
//!             other => panic!("{other:?}"),
//!         }
//!     }
//! }
//! assert_eq!(client.join().unwrap(), (0x5678_1234, 0x0707_0707));
//! drop(server);
//! std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
pub use connection::{Closed, Incoming, MAX_PAYLOAD, Outgoing};
pub use dma::{Access, DMA_DEADLINE, DmaError, DmaId, MAX_DMA};
pub use guest::ClientFile;
pub use listener::{BindError, Listener, SocketFolder};
pub use pcie::Presence;
pub use server::Server;
pub use session::Session;

/// The maximum number of data bytes in one region access; offered to the client as
/// `max_data_xfer_size`.
pub const MAX_DATA_XFER: usize = 64 << 10;

/// The maximum number of descriptors in one message; offered to the client as `max_msg_fds`. QEMU
/// treats a larger offer as malformed.
pub const MAX_MSG_FDS: usize = 16;
