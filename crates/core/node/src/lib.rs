//! Host, switch, device and drive nodes without I/O; `live` and `sim` both run them.
//!
//! Each node is a state machine. A *shell* (`live`, `sim`, the worlds of tests, fuzz targets) owns
//! the clock, connections, memory and media. The shell hands in each event with its time, then
//! polls until the node has nothing more to do. The shell hands in received bytes before it polls
//! at a later time. Otherwise a node that was not scheduled would declare its links lost although
//! their bytes have arrived.
//!
//! Methods of four kinds: *queries* take `&self`; `handle` takes an event;
//! *mutators* change what the owner decides; `poll` yields the next action, and
//! at last what the node waits for.
//!
//! # Modules
//!
//! - [`host`]: the host node: a root complex, the function below it, the buses of host software
//! - [`slot`]: one endpoint below one port, and what its host gets while the link is lost
//! - [`switch`]: the switch node: an upstream port and the paths of its links
//! - [`link_state`]: the state of a switch's links: timers and events
//! - [`device`]: the device node: the link to one host, moves, pending connections and probes
//! - [`drive`]: a subsystem, the contents of its namespaces, and what it has to store
//! - [`path`]: the inputs of a path, which is one connection of a link
//! - [`push`]: the near side of push: follows NVMe controllers, sends bytes in front of doorbells

pub mod device;
pub mod drive;
pub mod host;
pub mod link_state;
pub mod path;
pub mod push;
pub mod slot;
pub mod switch;

pub use device::DeviceNode;
pub use drive::DriveNode;
pub use host::HostNode;
pub use link_state::LinkEvent;
pub use path::PathId;
pub use slot::Slot;
pub use switch::SwitchNode;
