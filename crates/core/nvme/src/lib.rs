//! The NVM subsystem with its controllers, and a small host driver (the initiator): state machines
//! without I/O.
//!
//! A [`Subsystem`] is a drive: namespaces, counters, controllers, and their persistent state
//! ([`state`]). Each controller implements NVM Express 1.4 behind a [`Port`], which is a
//! [`pcie::Function`]. The subsystem outputs [`block::Request`]s for the media and [`Commit`]s of
//! records to store. [`initiator`] is a small host driver that initialises a drive, and reads and
//! writes blocks.
//!
//! `docs/nvme.md` and `docs/nvme-support.md` list the supported and unsupported functions.
//!
//! # Modules
//!
//! - `subsystem`: the shared state of the controllers of a drive, and the ports
//! - `controller`: one controller, one file per step of a command
//! - `admin`: admin commands, one file per command family
//! - `io`: I/O commands, one file per command family
//! - `plan`: the work that a command's handler leaves to the controller
//! - [`block`]: requests to the media
//! - `namespace`: a range of blocks with a name
//! - `metadata`: metadata of blocks: place on the media and transfer
//! - `protection`: end-to-end data protection
//! - [`state`]: the records that a drive keeps without power, one file per record
//! - `features`: the values of features
//! - `log`: log pages
//! - `events`: asynchronous events
//! - `failure`: the status of a failed command and the place of the error
//! - `identity`: names derived from the serial number, and the identity on PCIe
//! - `config`: the properties of a drive without records, and the settings of any drive
//! - `registers`: the register file in BAR 0
//! - `queue`: submission and completion queues, arbitration
//! - `interrupt`: vectors, coalescing, masks
//! - `pointer`: the place of a command's data and metadata in host memory
//! - `prp`: physical region pages
//! - `sgl`: scatter gather lists
//! - `reservation`: the rules of reservations
//! - `slots`: tables whose keys are never reused
//! - [`times`]: how long commands take
//! - [`initiator`]: a small host driver
//!
//! # Example
//!
//! The initiator attaches to a drive of 1 MiB below a root complex. The caller carries packets between
//! drive, root complex and host memory.
//!
//! ```
//! # use {pcie as farlane_pcie, wire as farlane_wire};
//! use farlane_nvme::{Config, NamespaceConfig, Subsystem, initiator};
//! use farlane_pcie::root::{self, HostOutput, RootComplex};
//! use farlane_pcie::software::Task;
//! use farlane_pcie::{Bus, Function, Output, Ram, Ready, enumerate};
//! use farlane_wire::Instant;
//! use std::{cell::RefCell, rc::Rc};
//!
//! let mut now = Instant::ZERO;
//! let mut drive = Subsystem::new(now, &Config::new("S1", vec![NamespaceConfig::new(2048)]));
//! let mut root = RootComplex::new(root::Settings::default());
//! let (bus, ram) = (Bus::new(), Rc::new(RefCell::new(Ram::new(0x10_0000, 4 << 20))));
//! let (host, memory) = (bus.clone(), ram.clone());
//! let mut task = Task::new(&bus, async move {
//!     let found = enumerate::enumerate(host.clone(), enumerate::Settings::default()).await;
//!     let found = found.expect("a drive below the root port");
//!     let bar0 = found.endpoints()[0].bar(0).expect("registers").address;
//!     enumerate::enable(&host, found.endpoints()[0], [(1, 1)]).await;
//!     initiator::attach(host, memory, bar0, initiator::Settings::default()).await
//! });
//! let driver = loop {
//!     if let Some(driver) = task.poll(now) {
//!         break driver?;
//!     }
//!     while let Some((id, request)) = bus.next_request() {
//!         root.handle(now, root::Input::Request(id, request), &drive.port(1));
//!     }
//!     loop {
//!         match root.poll(now, &drive.port(1)) {
//!             root::Output::Downstream(packet) => drive.port(1).handle(now, packet),
//!             root::Output::Host(HostOutput::Answer(id, value)) => {
//!                 bus.answer(id, value.unwrap_or(u64::MAX));
//!             }
//!             root::Output::Host(HostOutput::HostRead { token, address, length, .. }) => {
//!                 let data = ram.borrow_mut().get(address, length).map(|data| data.to_vec().into());
//!                 root.handle(now, root::Input::HostData(token, data), &drive.port(1));
//!             }
//!             root::Output::Host(HostOutput::HostWrite { address, data, .. }) => {
//!                 ram.borrow_mut().write(address, &data).expect("host memory");
//!             }
//!             root::Output::Host(_) => {}
//!             root::Output::Wait(wait) => match drive.port(1).poll(now, Ready::ALL) {
//!                 Output::Tlp(tlp) => root.handle(now, root::Input::Tlp(tlp), &drive.port(1)),
//!                 // The driver sleeps between two looks at the completion queue.
//!                 Output::Wait(_) => break now = wait.until.unwrap_or(now),
//!             },
//!         }
//!     }
//! };
//! assert_eq!(driver.serial(), "S1");
//! assert_eq!(driver.namespaces()[0].blocks, 2048);
//! # Ok::<(), initiator::Error>(())
//! ```

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
mod reservation;
mod sgl;
mod slots;
pub mod state;
mod subsystem;
pub mod times;

pub use config::{Config, MAX_ENTRIES, MAX_QUEUES, MODEL, NamespaceConfig, Settings};
pub use controller::{Controller, NamespaceAccess, PartMessage, PartRequest};
pub use identity::device_serial;
pub use pointer::follow;
pub use prp::{MemoryRange, MemoryRanges};
pub use subsystem::{Commit, Contents, NamespaceError, Port, Subsystem};
