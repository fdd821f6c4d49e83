//! Numbers: latencies in bounded memory, and random numbers from a seed.

mod latency;
pub mod random;

pub use latency::{Latency, Summary};
