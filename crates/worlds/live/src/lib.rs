//! The live nodes: clock, TCP, raw Ethernet, and the I/O around the nodes of [`node`].
//!
//! # Modules
//!
//! - [`clock`]: the node's clock
//! - [`poller`]: epoll and timers, with an optional spin
//! - [`net`]: TCP, raw Ethernet, other carriers
//! - [`links`]: the I/O around `node::SwitchNode`
//! - [`device`]: the I/O around `node::DeviceNode`
//! - [`host`]: the I/O around `node::HostNode`, and endpoints for VMMs
//! - [`attached`]: functions with their I/O: drives and switches
//! - [`vfio_client`]: host software on the function of any vfio-user server, without TLPs
//! - [`trace`]: the recorder of `--trace`
//! - `budget`: the share of the processor for strangers
//! - [`limiter`]: limits reports of events that peers cause
//! - `node_settings`: the settings that all nodes share
//! - `link_wait`: waits until links are up
//! - [`status`]: the state of a node at one moment
//! - `stop`: requests to a running node
//! - `receive`: reads into uninitialised memory, and the unsafe code of this crate

#![deny(unsafe_code)]

pub mod attached;
mod budget;
pub mod clock;
pub mod device;
pub mod host;
pub mod limiter;
mod link_wait;
pub mod links;
pub mod net;
mod node_settings;
pub mod poller;
#[allow(unsafe_code)]
mod receive;
pub mod status;
mod stop;
pub mod trace;
pub mod vfio_client;

pub use attached::{Attached, NvmeDrive};
pub use clock::Clock;
pub use device::DeviceNode;
pub use host::HostIo;
pub use link_wait::{LinkWait, PATIENCE, wait_for_links};
pub(crate) use linux::about;
pub use linux::random_number;
pub use node_settings::{Narrowed, NodeSettings};
pub use poller::{Poller, Waiting};
pub use status::Report;
pub use stop::{Requester, Stop, TraceSwitch};
pub use trace::Tracer;

/// A request of the owner of a running node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Continue.
    Serve,
    /// Continue, and report the counters.
    Report,
    /// Continue, and report the state for the request with this number.
    Status(u64),
    /// Continue with another limit of the total output of all links.
    RateLimit(Option<switch::congestion::Rate>),
    /// Stop in order: finish commands, make data durable.
    Stop,
}
