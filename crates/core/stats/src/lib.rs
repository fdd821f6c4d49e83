//! Latency statistics in bounded memory, comparisons of medians, and seeded random numbers.
//!
//! # Modules
//!
//! - `latency`: latency distributions
//! - `bins`: counts of values to three significant digits
//! - `counts`: weighted distributions of whole numbers
//! - [`medians`]: confidence intervals of medians, comparison of two series
//! - `means`: means of few values, with confidence intervals
//! - `normal`: the normal distribution
//! - [`random`]: seeded random integers

mod bins;
mod counts;
mod latency;
mod means;
pub mod medians;
mod normal;
pub mod random;

pub use bins::Bins;
pub use counts::Counts;
pub use latency::{Latency, Summary};
pub use means::MeanEstimate;
