//! Latency statistics in bounded memory, and seeded random numbers.

mod latency;
pub mod random;

pub use latency::{Latency, Summary};
