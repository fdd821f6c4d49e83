//! Runs of a plan: one simulation or several with other seeds, the worst of several phases, and
//! every combination of a sweep. Each fills one document; text and page come from it.

pub mod document;
pub mod phases;
mod pool;
mod rows;
mod simulate;
pub mod sweep;
pub mod text;

use crate::{KeyError, Plan, Planned};
use document::{FailedRun, SimReport};
pub use simulate::{Failed, RunOptions};

/// What a run looks at and shows.
pub struct Watch<'a> {
    /// Whether it is to stop. What was finished is in the document then.
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
    /// Shows how far the simulations are, several times a second; `None` when they have ended.
    pub progress: &'a dyn Fn(Option<&str>),
}

/// Seeds of runs, in place of the plan's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seeds {
    /// That of the first run.
    pub first: Option<u64>,
    /// How many runs there are, each with the next seed.
    pub runs: Option<u64>,
}

impl Seeds {
    /// The simulation with the first seed.
    pub fn built(&self, plan: &Plan) -> Result<Planned, KeyError> {
        let planned = plan.build()?;
        Ok(match self.first {
            Some(seed) => planned.with_seed(seed),
            None => planned,
        })
    }

    /// All runs of a simulation.
    fn all(&self, planned: &Planned) -> Vec<Planned> {
        let run = |number| planned.clone().with_seed(planned.config.seed.wrapping_add(number));
        (0..self.runs.unwrap_or(planned.runs)).map(run).collect()
    }
}

/// The phases to try.
#[derive(Clone, Debug)]
pub struct Shifts {
    /// Trials, the plan as it is written among them.
    pub trials: u64,
    /// Keys that they shift, of [`Plan::SHIFTED`].
    pub keys: Vec<String>,
}

/// Why there is no document.
#[derive(Debug)]
pub enum RunError {
    /// A mistake in the plan.
    Plan(KeyError),
    /// A mistake in what was requested.
    Usage(String),
    /// A simulation failed; the second is its document.
    Failed(Failed, Box<FailedRun>),
}

impl From<KeyError> for RunError {
    fn from(error: KeyError) -> Self {
        Self::Plan(error)
    }
}

/// Runs a plan with each seed; the document of the first run has the others as rows.
pub fn run(
    planned: &Planned,
    seeds: &Seeds,
    options: &RunOptions,
    watch: &Watch<'_>,
) -> Result<SimReport, RunError> {
    let plans = seeds.all(planned);
    let documents = pool::run_all(&options.name, &plans, Some(options), watch);
    let documents = documents.map_err(|(at, failed)| {
        let document = FailedRun::new(&options.name, &plans[at], &options.assumed, &failed);
        RunError::Failed(failed, Box::new(document))
    })?;
    let mut finished = documents.into_iter().flatten();
    let mut document = finished.next().expect("the first one always runs");
    let whole = finished.filter(|document| !document.interrupted);
    document.runs = whole.map(|document| document.as_run()).collect();
    document.interrupted |= document.runs.len() + 1 < plans.len();
    Ok(document)
}
