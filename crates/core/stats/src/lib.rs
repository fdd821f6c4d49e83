//! Latency statistics in bounded memory, comparisons of medians, and seeded random numbers.

mod bins;
mod counts;
mod latency;
pub mod medians;
mod normal;
pub mod random;

pub use bins::Bins;
pub use counts::Counts;
pub use latency::{Latency, Summary};
