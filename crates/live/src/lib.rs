//! The live world: clock, TCP, vfio-user server, media, guest memory.
//!
//! The only crate that reads clocks and does I/O (beside the program), and the
//! only one with `unsafe` code, all of it in one module.

pub mod attached;
pub mod clock;
pub mod device;
pub mod host;
pub mod links;
pub mod media;
pub mod net;
pub mod poller;

pub use attached::{Attached, NvmeDrive};
pub use clock::Clock;
pub use device::DeviceNode;
pub use host::Machine;
pub use poller::{Poller, Waiting};
