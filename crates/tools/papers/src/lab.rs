//! Access to the simulations of published figures before they run.

use report::Failure;
use sim::Config;

/// A simulation from which published figures follow.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// Name, unique unless several simulations differ only in seed or phase.
    pub name: String,
    /// The figures that follow from this simulation; none if it only adds to a plot, or searches.
    pub rows: Vec<String>,
    /// Configuration.
    pub config: Config,
}

/// Receives each simulation, and returns the configuration to run.
pub type Lab<'a> = &'a dyn Fn(Simulation) -> Result<Config, Failure>;

/// The [`Lab`] that changes nothing.
///
/// # Errors
/// Never.
pub fn unchanged(simulation: Simulation) -> Result<Config, Failure> {
    Ok(simulation.config)
}
