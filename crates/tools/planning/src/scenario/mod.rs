//! One plan, three answers: what is certain, what the simulator sees, and what was measured.
//!
//! - [`simulated`]: the distributions of a simulation, and the frames of its longest command;
//! - [`measured`]: distributions of recorded documents;
//! - [`page`]: the HTML page.

pub mod measured;
pub mod page;
pub mod simulated;

use crate::bound::Bounds;
use measured::Measured;
use plan::Planned;
use simulated::Simulated;

/// All that a page shows.
pub struct Scenario<'a> {
    /// The plan's file.
    pub file: String,
    /// The plan.
    pub planned: &'a Planned,
    /// What is certain.
    pub bounds: Bounds,
    /// What the simulator sees.
    pub simulated: Simulated,
    /// What was measured.
    pub measured: Vec<Measured>,
}
