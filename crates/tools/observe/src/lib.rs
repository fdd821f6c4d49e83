//! The state of a running node for `farlane status` and Prometheus, by HTTP on a Unix socket or on an
//! address. Threads of their own serve both; the node's threads only make the state when it is
//! requested.
//!
//! # Modules
//!
//! - `board`: where the threads of a node show its state
//! - [`document`]: the state as a JSON document, and rates between two states
//! - [`http`]: the server
//! - [`client`]: requests to the server
//! - `metrics`: OpenMetrics text
//! - `until`: sockets with a time limit

mod board;
pub mod client;
pub mod document;
pub mod http;
mod metrics;
mod until;

pub use board::Board;
