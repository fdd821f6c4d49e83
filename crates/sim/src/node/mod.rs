//! Nodes: the unchanged state machines with the models around them.

mod context;
pub(crate) mod device;
mod drive;
mod host;
pub(crate) mod switch;

pub(crate) use context::Context;
pub(crate) use device::DeviceNode;
pub(crate) use drive::DriveNode;
pub(crate) use host::HostNode;
pub use host::RootConfig;
pub(crate) use switch::SwitchNode;

use wire::Instant;

/// The earliest of several times.
pub(crate) fn earliest(times: impl IntoIterator<Item = Option<Instant>>) -> Option<Instant> {
    times.into_iter().flatten().min()
}
