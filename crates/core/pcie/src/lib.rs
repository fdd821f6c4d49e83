//! PCI Express above the data link layer.
//!
//! Configuration space and capabilities, routing, splitting, tags, ordering, the endpoint core,
//! bridges, the root complex, and the host software that enumerates a hierarchy. Nothing here knows
//! a device type: devices are anything that implements [`Function`].

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
