//! PCI Express above the data link layer.
//!
//! Configuration space and capabilities, routing, splitting, tags, ordering,
//! credits, the endpoint core, the root complex, and the host software that
//! enumerates a hierarchy. Nothing here knows a device type: devices are
//! anything that implements [`Function`].

pub mod endpoint;
pub mod function;
pub mod memory;
pub mod software;

pub use endpoint::{Endpoint, EndpointConfig};
pub use function::{Function, Input, Output, Ready, Reset};
pub use memory::Ram;
pub use software::Bus;
