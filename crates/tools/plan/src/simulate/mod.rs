//! The outputs of a simulation: trace files, captures, reports, and limits of real systems.
//!
//! [`Outputs`] contains all outputs. The parts can be used alone.

pub mod capture;
pub mod clocks;
pub mod contention;
pub mod copies;
pub mod flows;
pub mod handled;
pub mod limits;
mod outputs;
pub mod page;
pub mod places;
pub mod report_data;
pub mod requirements;
pub mod stream_hops;
#[cfg(test)]
mod tests;
pub mod timeline;
pub mod trace;
mod watch;

pub use outputs::{OutputFiles, Outputs};
pub use page::{PageLabels, PagePhases};
pub use trace::node_name;
pub use watch::{Observers, Shared};
