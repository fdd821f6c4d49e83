//! Guaranteed latencies: total flow analysis with line shaping and packetisers, with staircases as
//! arrival curves.
//!
//! - [`arrivals`]: how many frames a source sends;
//! - [`flows`]: the ports of every stream;
//! - [`ports`]: gates, shapers, preemption: what delays a class at a port;
//! - [`service`]: the longest delay of a class;
//! - [`solve`]: delays of all ports, repeated until no arrival curve changes;
//! - [`document`]: the results; `latencies`: the results for a search of phases.
//!
//! The method is total flow analysis as in L. Thomas, J.-Y. Le Boudec and A. Mifdaoui, "On Cyclic
//! Dependencies and Regulators in Time-Sensitive Networks" (RTSS 2019): delays of ports add up, and
//! a flow enters a port as its source sends, with a jitter of all earlier delays. The repetition
//! begins without delays, so that it ends at a valid bound also if paths form circles.

pub mod arrivals;
pub mod document;
pub mod flows;
mod latencies;
mod method;
pub mod ports;
mod premises;
pub mod service;
mod solve;
mod tunnels;

pub use latencies::latency_bounds;
pub use method::{Method, Used};
pub use solve::{Bounds, HopBound, ListenerBound, StreamBound, bound, bound_with, known_commands};
pub use tunnels::CommandBound;
