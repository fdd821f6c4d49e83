//! Runs of a plan: one simulation, several with different seeds, several phases, or every
//! combination of a sweep. Each fills one JSON document, from which text and page are made.

pub mod document;
pub mod hops;
mod hops_text;
mod live;
mod once;
pub mod over_seeds;
mod part_file;
mod parts;
pub mod phases;
pub mod points;
pub(crate) mod pool;
mod rows;
mod search;
mod simulate;
pub mod sweep;
pub mod tables;
pub mod text;

use crate::{KeyError, Plan, Planned};
use document::{FailedRun, SimReport};
pub use live::LiveResults;
pub use once::once;
pub use parts::RunTables;
use pool::Extras;
pub use search::LatencyBounds;
pub(crate) use simulate::in_ns;
pub use simulate::{Failed, RunOptions};

/// Callbacks for stop and progress of a run.
pub struct Watch<'a> {
    /// Returns whether to stop. The document then contains the finished results.
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
    /// Shows the progress of the simulations, several times per second; `None` when they have
    /// ended.
    pub progress: &'a dyn Fn(Option<&str>),
}

/// Seeds of runs that replace the plan's seeds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seeds {
    /// Seed of the first run.
    pub first: Option<u64>,
    /// Number of runs, each with the next seed.
    pub runs: Option<u64>,
}

impl Seeds {
    /// Builds the simulation with the first seed.
    ///
    /// # Errors
    /// The mistakes of the plan.
    pub fn built(&self, plan: &Plan) -> Result<Planned, KeyError> {
        let planned = plan.build()?;
        Ok(match self.first {
            Some(seed) => planned.with_seed(seed),
            None => planned,
        })
    }

    /// Returns the simulations of all runs.
    fn all(&self, planned: &Planned) -> Vec<Planned> {
        let run = |number| planned.clone().with_seed(planned.config.seed.wrapping_add(number));
        (0..self.runs.unwrap_or(planned.runs)).map(run).collect()
    }
}

/// The phases to try.
#[derive(Clone, Debug)]
pub struct Shifts {
    /// Number of trials, including the plan as written.
    pub trials: u64,
    /// Keys that the trials shift, of [`Plan::SHIFTED`].
    pub keys: Vec<String>,
    /// Searches the worst phases after a first third of random trials. Returns the bounds of a
    /// plan.
    pub search: Option<fn(&Planned) -> LatencyBounds>,
}

/// The reason for a missing document.
#[derive(Debug)]
pub enum RunError {
    /// A mistake in the plan.
    Plan(KeyError),
    /// A mistake in the options.
    Usage(String),
    /// A simulation failed. The second field is its document.
    Failed(Failed, Box<FailedRun>),
}

impl From<KeyError> for RunError {
    fn from(error: KeyError) -> Self {
        Self::Plan(error)
    }
}

/// Runs a plan with each seed. The document of the first run contains the other runs as rows.
///
/// # Errors
/// If a run fails, with the document of the failed run.
pub fn run(
    planned: &Planned,
    seeds: &Seeds,
    options: &RunOptions,
    watch: &Watch<'_>,
) -> Result<SimReport, RunError> {
    let plans = seeds.all(planned);
    let tables = options.tables.as_deref();
    let extras = Extras { requested: Some(options), tables, ..Extras::default() };
    let documents = pool::run_all(&options.name, &plans, &extras, watch);
    let documents = documents.map_err(|(at, failed)| {
        let document = FailedRun::new(options, &plans[at], &failed);
        RunError::Failed(failed, Box::new(document))
    })?;
    if let Some(tables) = tables {
        tables.write_runs(&plans, &documents);
    }
    let is_whole = |(at, document): &(usize, SimReport)| *at == 0 || !document.interrupted;
    let all = documents.into_iter().flatten().enumerate().filter(is_whole);
    let all: Vec<SimReport> = all.map(|(_, document)| document).collect();
    let interrupted = all.len() < plans.len() || all.iter().any(|document| document.interrupted);
    let document = SimReport::with_runs(all).expect("the first one always runs");
    Ok(SimReport { interrupted, plan_text: options.text.clone(), ..document })
}

/// Returns the text of a plan, followed by the settings of the option `--set` as comments, which
/// results contain.
pub fn text_with_settings(plan: &str, set: &[String]) -> String {
    let set = set.iter().map(|setting| format!("\n# --set {setting}"));
    set.fold(plan.to_owned(), |text, line| text + &line)
}
