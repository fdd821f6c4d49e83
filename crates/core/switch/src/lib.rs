//! The distributed PCIe switch.
//!
//! The switch does not depend on the kind of endpoint, with one exception: [`push_store`] reads
//! completion entries of NVMe to invalidate pushed bytes.
//!
//! # Modules
//!
//! In the order of downstream traffic; upstream traffic takes the same path back.
//!
//! - [`upstream`]: the upstream port, mirrors of the downstream ports, routing
//! - [`aggregate`]: the aggregation queue, which decides when a TLP leaves
//! - [`egress`]: the link that sends next, and the rate limit
//! - [`tunnel`]: one end of a link: frames, sequence, credits, resets, keepalive
//! - [`raw`]: raw Ethernet, a reliable stream in Ethernet frames
//! - [`congestion`]: congestion control: a rate limit, or control by delay and loss
//! - [`downstream`]: the device node's end of a link, with the function below it
//! - [`push_store`]: pushed bytes that are kept in front of a function
//!
//! Not implemented: traffic classes beyond TC0 share the one connection;
//! replay after a lost connection (frames already have sequence numbers).

pub mod aggregate;
pub mod congestion;
pub mod downstream;
pub mod egress;
pub mod push_store;
pub mod raw;
pub mod tunnel;
pub mod upstream;

pub use downstream::Downstream;
pub use tunnel::Tunnel;
pub use upstream::Upstream;
