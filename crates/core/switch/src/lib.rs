//! The distributed PCIe switch; modules in the order of downstream traffic.
//!
//! [`upstream`] routes what comes from the root complex; [`aggregate`] decides
//! when a TLP leaves; [`tunnel`] carries frames and credits; [`downstream`]
//! hands TLPs to the endpoint, and answers its reads of what [`push`] brought.
//! Upstream traffic takes the same path back. The switch does not depend on the
//! kind of endpoint, but for completion entries of NVMe, by which [`push`]
//! knows what ends.
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
