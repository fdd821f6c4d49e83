//! The distributed PCIe switch: files in the order in which data flows down.
//!
//! [`upstream`] routes what comes from the root complex; [`aggregate`] decides
//! when a TLP leaves; [`tunnel`] carries frames and credits; [`downstream`]
//! hands TLPs to the endpoint. What comes up takes the same way back. Nothing
//! here knows what an endpoint does.
//!
//! Not implemented: traffic classes beyond TC0 share the one connection;
//! replay over a lost connection (the frames are ready for it).

pub mod aggregate;
pub mod congestion;
pub mod downstream;
pub mod egress;
pub mod raw;
pub mod tunnel;
pub mod upstream;

pub use downstream::Downstream;
pub use tunnel::Tunnel;
pub use upstream::Upstream;
