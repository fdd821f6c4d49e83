//! What comes out of a simulation: trace files, captures, reports, and what
//! its waits mean for real systems.

pub mod capture;
pub mod limits;
pub mod places;
#[cfg(test)]
mod tests;
pub mod trace;
mod watch;

pub use watch::{All, Shared};
