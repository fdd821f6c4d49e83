//! The outputs of a simulation: trace files, captures, reports, and what
//! its waits mean for real systems.
//!
//! [`Outputs`] is all of it in one; the parts can be used alone.

pub mod capture;
pub mod clocks;
pub mod copies;
pub mod handled;
pub mod limits;
mod outputs;
pub mod page;
pub mod places;
pub mod report_data;
pub mod requirements;
#[cfg(test)]
mod tests;
pub mod timeline;
pub mod trace;
mod watch;

pub use outputs::{OutputFiles, Outputs};
pub use page::{PageLabels, PagePhases};
pub use watch::{Observers, Shared};
