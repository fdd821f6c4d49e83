//! Host, switch, device and drive nodes without I/O; `live` and `sim` both run them.
//!
//! Each node is a state machine. The owner of a node (`live`, `sim`, tests, fuzz targets) owns the
//! clock, connections, memory and media. The owner passes in each event with its time, then polls
//! until the node has nothing more to do. The owner passes in received bytes before it polls at a
//! later time. Otherwise a node that was not scheduled would declare its links lost although their
//! bytes have arrived.
//!
//! There are four kinds of methods: *queries* take `&self`; `handle` takes an event; *mutators*
//! change settings; `poll` returns the next action and finally what the node waits for.
//!
//! # Modules
//!
//! - [`host`]: the host node: a root complex, the function below it, the buses of host software
//! - [`slot`]: one endpoint below one port, and the results of accesses while the link is lost
//! - [`switch`]: the switch node: an upstream port and the paths of its links
//! - [`link_state`]: the state of a switch's links: timers and events
//! - [`device`]: the device node: the link to one host, moves, pending connections and probes
//! - [`drive`]: a subsystem, the contents of its namespaces, and its changes to store
//! - [`faults`]: faults at planned times: their text form, and what each acts on
//! - [`path`]: the inputs of a path, which is one connection of a link
//! - [`rights`]: what a peer may do at a device node
//! - [`push`]: the sender of pushed bytes: follows NVMe controllers, sends bytes in front of
//!   doorbells

pub mod device;
pub mod drive;
pub mod faults;
pub mod host;
pub mod link_state;
pub mod path;
pub mod push;
pub mod rights;
pub mod slot;
pub mod switch;

pub use device::DeviceNode;
pub use drive::DriveNode;
pub use host::HostNode;
pub use link_state::LinkEvent;
pub use path::PathId;
pub use rights::{Groups, Rights};
pub use slot::Slot;
pub use switch::SwitchNode;
