//! Nodes: the state machines of live nodes, and the models around them.

mod context;
pub(crate) mod device;
mod drive;
mod host;
mod port;
pub(crate) mod switch;

pub(crate) use context::Context;
pub(crate) use device::DeviceNode;
pub(crate) use drive::{DriveNode, DriveState, PowerOn};
pub(crate) use host::HostNode;
pub use host::RootConfig;
pub(crate) use port::PushRooms;
pub(crate) use switch::SwitchNode;
