//! Deterministic network calculus: worst-case delays and backlogs in networks of servers.
//!
//! Arithmetic is exact: all numbers are fractions of integers of any size.
//!
//! - [`curve`]: arrival and service curves.
//! - [`network`]: servers, flows and what is refused.
//! - [`method`]: the methods, and their results.
//! - [`format`](mod@format): networks in JSON, the output-port networks of Saihu.

mod cross;
pub mod curve;
mod exact;
pub mod format;
mod linear;
pub mod method;
pub mod network;
mod separated;
mod total;

pub use curve::{ArrivalCurve, Bound, RateLatency, Rational, ServiceCurve, TokenBucket, to_f64};
pub use method::{Bounds, Method, MethodError, Outputs, PathBounds, ServerBounds, bounds};
pub use network::{Flow, Lines, Multiplexing, Network, NetworkError, Server};
