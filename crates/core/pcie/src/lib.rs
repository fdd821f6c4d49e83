//! PCI Express above the data link layer.
//!
//! Configuration space and capabilities, routing, splitting, tags, ordering, the endpoint core,
//! bridges, the root complex, and the host software that enumerates a hierarchy. Nothing here
//! depends on a device type: a device is any implementation of [`Function`].
//!
//! # Modules
//!
//! - [`function`]: the trait [`Function`] of everything below a downstream port
//! - [`config`]: configuration space: registers with access rules, capabilities
//! - [`bridge`]: the type 1 function of root ports and switch ports
//! - [`endpoint`]: the PCIe part of a type 0 function: registers, DMA, MSI-X
//! - [`root`]: the root complex with one root port
//! - [`enumerate`]: discovery and set-up of a hierarchy, identity of functions
//! - [`software`]: host software as coroutines
//! - [`memory`]: host memory of the initiator and of tests
//! - [`ordering`]: a queue with PCIe ordering
//! - [`port_queues`]: one queue per downstream port
//! - [`split`]: splitting of transfers into packets
//! - [`errors`]: error counters of a port or function
//! - [`dma_test`]: an endpoint that copies and fills memory by DMA
//!
//! # Example
//!
//! Host software enumerates an endpoint below a root complex. Time is an argument; the caller carries
//! packets and answers.
//!
//! ```
//! # use wire as farlane_wire;
//! use farlane_pcie::root::{self, HostOutput, RootComplex};
//! use farlane_pcie::software::Task;
//! use farlane_pcie::{Bus, Function, Output, Ready, dma_test, enumerate};
//! use farlane_wire::Instant;
//!
//! let now = Instant::ZERO;
//! let mut root = RootComplex::new(root::Settings::default());
//! let mut device = dma_test::DmaTest::new(dma_test::Settings::default());
//! let bus = Bus::new();
//! let software = enumerate::enumerate(bus.clone(), enumerate::Settings::default());
//! let mut task = Task::new(&bus, software);
//! let found = loop {
//!     if let Some(found) = task.poll(now) {
//!         break found?;
//!     }
//!     while let Some((id, request)) = bus.next_request() {
//!         root.handle(now, root::Input::Request(id, request), &device);
//!     }
//!     loop {
//!         match root.poll(now, &device) {
//!             root::Output::Downstream(packet) => device.handle(now, packet),
//!             root::Output::Host(HostOutput::Answer(id, value)) => {
//!                 bus.answer(id, value.unwrap_or(u64::MAX));
//!             }
//!             root::Output::Host(_) => {}
//!             root::Output::Wait(_) => match device.poll(now, Ready::ALL) {
//!                 Output::Tlp(tlp) => root.handle(now, root::Input::Tlp(tlp), &device),
//!                 Output::Wait(_) => break,
//!             },
//!         }
//!     }
//! };
//! let endpoint = found.endpoints()[0];
//! assert_eq!(endpoint.id, (dma_test::VENDOR, dma_test::DEVICE));
//! assert_eq!(endpoint.bar(0).map(|bar| bar.size), Some(dma_test::BAR0_SIZE));
//! # Ok::<(), enumerate::Error>(())
//! ```

pub mod bridge;
pub mod config;
pub mod dma_test;
pub mod endpoint;
pub mod enumerate;
pub mod errors;
pub mod function;
pub mod memory;
pub mod ordering;
pub mod port_queues;
pub mod root;
pub mod software;
pub mod split;
#[cfg(test)]
mod testing;

pub use bridge::Bridge;
pub use endpoint::{Endpoint, EndpointConfig};
pub use errors::Errors;
pub use function::{Function, Input, Output, Ports, Presence, PushRoom, Ready, Reset, Wait};
pub use memory::{Backing, Ram};
pub use ordering::OrderedQueue;
pub use port_queues::{Receiver, Target};
pub use root::RootComplex;
pub use software::Bus;
