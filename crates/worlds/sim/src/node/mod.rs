//! Nodes: the unchanged state machines with the models around them.

mod context;
pub(crate) mod device;
mod drive;
mod host;
mod port;
pub(crate) mod switch;

pub(crate) use context::Context;
pub(crate) use device::DeviceNode;
pub(crate) use drive::DriveNode;
pub(crate) use host::HostNode;
pub use host::RootConfig;
pub(crate) use port::PushRooms;
pub(crate) use switch::SwitchNode;

use wire::Instant;

/// The earliest of several times.
pub(crate) fn earliest<const N: usize>(times: [Option<Instant>; N]) -> Option<Instant> {
    // `None` as the end of time: one comparison each, no branches.
    let ps = |at: Option<Instant>| at.map_or(u64::MAX, Instant::as_ps);
    let first = times.into_iter().map(ps).fold(u64::MAX, u64::min);
    (first != u64::MAX).then_some(Instant::from_ps(first))
}
