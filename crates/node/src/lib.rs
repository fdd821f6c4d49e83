//! Nodes without I/O: what the live and the simulated world have in common.
//!
//! Each is a state machine on one contract. A *shell* (`live`, `sim`, the
//! worlds of tests, fuzz targets) owns clock, connections, memory and media.
//! It hands in what happened with the time, and polls until there is nothing
//! more to do. What has arrived goes in before the first poll at a later time:
//! otherwise a node that did not get the processor would take its links for
//! lost although their bytes are there.
//!
//! Four kinds of methods: those that *query* take `&self`; `handle` takes what
//! happened; those that *mutate* change what the owner decides; `poll` yields
//! the next thing to do, at last what the node waits for.

pub mod device;
pub mod drive;
pub mod host;
pub mod links;
pub mod path;
pub mod switch;

pub use device::DeviceNode;
pub use host::HostNode;
pub use links::LinkEvent;
pub use path::PathId;
pub use switch::SwitchNode;
