//! What comes out of a simulation: trace files, captures, reports, and what
//! its waits mean for real systems.
//!
//! [`Outputs`] is all of it in one; the parts can be used alone.

pub mod capture;
pub mod gather;
pub mod limits;
mod outputs;
pub mod page;
pub mod places;
#[cfg(test)]
mod tests;
pub mod trace;
mod watch;

pub use outputs::{Outputs, Wanted};
pub use page::Words;
pub use watch::{All, Shared};
