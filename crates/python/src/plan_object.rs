//! Plans and their runs.

use crate::errors::{plan_error, simulation_error, value_error};
use crate::table::Table;
use crate::watch::{Control, watched, whole};
use columns::Batch;
use engines::{Engine, Launch, machine};
use plan::run::document::SweepDocument;
use plan::run::phases;
use plan::run::points::{Folder, Job};
use plan::run::sweep::{Combinations, Grid, SweepOptions};
use plan::run::{RunError, RunOptions, RunTables, Seeds, Shifts, Watch, run, text_with_settings};
use plan::simulate::OutputFiles;
use plan::simulate::limits::Assumptions;
use plan::{KeyError, Planned};
use planning::bound::document::BoundReport;
use planning::bound::{Method, bound, latency_bounds};
use planning::schedule::{Deadlines, Request};
use pyo3::prelude::*;
use report::Failure;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use wire::Duration;

/// Option of settings in messages.
const SET: &str = "--set";
/// Maximum number of seeds or trials of a run.
const MOST: u64 = 10_000;

/// JSON document, tables by name, and the exception that stopped the run.
type Ended = (String, Vec<(&'static str, Table)>, Option<Py<PyAny>>);

/// A plan without mistakes.
#[pyclass(frozen, module = "farlane._farlane")]
pub struct Plan {
    name: String,
    plan: plan::Plan,
    planned: Planned,
    settings: Vec<String>,
}

impl Plan {
    fn with(
        py: Python<'_>,
        (name, text): (String, &str),
        plan: impl FnOnce() -> Result<plan::Plan, KeyError> + Send,
        (mut settings, more): (Vec<String>, &[(String, String)]),
    ) -> PyResult<Self> {
        let set = |plan: plan::Plan, (key, value): &(String, String)| plan.with(key, value, SET);
        let built = whole(py, |_| {
            let plan = more.iter().try_fold(plan()?, set)?;
            let planned = plan.build()?;
            Ok((plan, planned))
        })?;
        let (plan, planned) = built.map_err(|error| plan_error(py, &error, (&name, text)))?;
        settings.extend(more.iter().map(|(key, value)| format!("{key}={value}")));
        Ok(Self { name, plan, planned, settings })
    }

    /// Runs a sweep in its folder. Returns its document, and the rows of all points.
    fn in_folder(
        &self,
        job: Job,
        (place, engine, timeout): (&Place, &Engine, Option<Duration>),
        control: &Control,
    ) -> Result<(SweepDocument, Batch), Failure> {
        let folder = Folder::create(&place.folder, job, &machine())?;
        let (name, worker) = (&*self.name, place.worker.clone());
        let launch = Launch { folder: &folder, name, timeout, worker };
        let document = with_watch(control, |watch| engine.run(&launch, watch))?;
        Ok((document, folder.rows()?))
    }

    /// Returns the exception of a run without results.
    fn failed(&self, py: Python<'_>, error: RunError) -> PyErr {
        match error {
            RunError::Plan(error) => plan_error(py, &error, (&self.name, &self.plan.text)),
            RunError::Usage(why) => value_error(why),
            RunError::Failed(failed, _) => simulation_error(py, &failed.why),
        }
    }
}

/// Seeds and phases of a run.
#[derive(FromPyObject)]
struct Repetition {
    #[pyo3(item)]
    seed: Option<u64>,
    #[pyo3(item)]
    runs: Option<u64>,
    #[pyo3(item)]
    phases: Option<u64>,
    #[pyo3(item)]
    search: bool,
}

impl Repetition {
    /// Checks the values as the command line does.
    fn checked(&self) -> PyResult<(Seeds, Option<Shifts>)> {
        let within = |name, value: Option<u64>, least| match value {
            Some(value) if !(least..=MOST).contains(&value) => {
                Err(value_error(format!("{name}={value}: expected {least} to {MOST}")))
            }
            _ => Ok(()),
        };
        within("runs", self.runs, 1)?;
        within("phases", self.phases, 2)?;
        if self.runs.is_some() && self.phases.is_some() {
            return Err(value_error("phases exclude runs: give one of them"));
        }
        if self.search && self.phases.is_none() {
            return Err(value_error("search requires phases"));
        }
        let shifts = self.phases.map(|trials| Shifts {
            trials,
            keys: plan::Plan::SHIFTED.map(str::to_owned).to_vec(),
            search: self.search.then_some(latency_bounds),
        });
        Ok((Seeds { first: self.seed, runs: self.runs }, shifts))
    }
}

/// Where a sweep keeps its points, and what runs them.
#[derive(FromPyObject)]
struct Place {
    #[pyo3(item)]
    folder: PathBuf,
    #[pyo3(item)]
    engine: String,
    #[pyo3(item)]
    timeout: Option<String>,
    #[pyo3(item)]
    worker: Vec<String>,
}

#[pymethods]
impl Plan {
    /// Parses the text of a plan; `name` is its name in errors.
    #[new]
    fn new(py: Python<'_>, text: &str, name: String, set: Vec<(String, String)>) -> PyResult<Self> {
        let parse = || plan::Plan::parse(&name, text);
        Self::with(py, (name.clone(), text), parse, (Vec::new(), &set))
    }

    /// Returns the plan with other values of some keys.
    fn set(&self, py: Python<'_>, set: Vec<(String, String)>) -> PyResult<Self> {
        let plan = || Ok(self.plan.clone());
        let settings = (self.settings.clone(), &set[..]);
        Self::with(py, (self.name.clone(), &self.plan.text), plan, settings)
    }

    /// The name in errors and documents.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The text of the plan, with the settings as comments.
    #[getter]
    fn text(&self) -> String {
        text_with_settings(&self.plan.text, &self.settings)
    }

    /// Simulates the plan.
    fn run(
        &self,
        py: Python<'_>,
        repetition: Repetition,
        frames: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Ended> {
        let (seeds, shifts) = repetition.checked()?;
        let planned = match seeds.first {
            Some(seed) => self.planned.clone().with_seed(seed),
            None => self.planned.clone(),
        };
        let tables = Arc::new(RunTables::in_memory(frames));
        let record = planned.record.clone();
        let options = RunOptions {
            name: self.name.clone(),
            requested: OutputFiles { timeline: None, ..record },
            assumed: Assumptions::default(),
            text: self.text(),
            phases: None,
            tables: Some(tables.clone()),
        };
        let (document, stopped) = watched(py, progress, |control| {
            with_watch(control, |watch| match &shifts {
                Some(shifts) => phases::run(&self.plan, (&seeds, shifts), options, watch)
                    .map(|(document, _)| document),
                None => run(&planned, &seeds, &options, watch),
            })
        })?;
        let document = document.map_err(|error| self.failed(py, error));
        let tables = Arc::into_inner(tables).map(RunTables::into_batches).unwrap_or_default();
        ended(py, document, tables, stopped)
    }

    /// Simulates points: other values of some keys. In memory, or in a folder.
    fn sweep(
        &self,
        py: Python<'_>,
        points: (Vec<String>, Vec<Vec<String>>),
        repetition: Repetition,
        place: Option<Place>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Ended> {
        let (seeds, shifts) = repetition.checked()?;
        let grid = Grid::new(points.0, points.1).map_err(value_error)?;
        let shifts = shifts.as_ref();
        if let Some(place) = place {
            let engine = place.engine.parse::<Engine>().map_err(value_error)?;
            let timeout = place.timeout.as_deref().map(time).transpose()?;
            let (found, stopped) = watched(py, progress, |control| {
                let source = (Path::new(&self.name), &self.plan, &self.settings[..]);
                let job = Job::new(source, grid, &seeds, shifts)?;
                Ok(self.in_folder(job, (&place, &engine, timeout), control))
            })?;
            let found = found.map_err(|error| self.failed(py, error))?;
            let (document, rows) = found.map_err(|Failure(why)| simulation_error(py, &why))?;
            return ended(py, Ok(document), vec![("results", rows)], stopped);
        }
        let (tables, text) = (RunTables::in_memory(false), self.text());
        let (document, stopped) = watched(py, progress, |control| {
            let mut all = Combinations::new(&self.plan, &grid, &seeds, shifts)?;
            let options = SweepOptions { name: &self.name, text: &text, tables: Some(&tables) };
            Ok(with_watch(control, |watch| all.run(&options, watch)))
        })?;
        let document = document.map_err(|error| self.failed(py, error));
        ended(py, document, tables.into_batches(), stopped)
    }

    /// Guarantees the latency of every stream and command.
    fn bound(&self, py: Python<'_>, method: &str) -> PyResult<String> {
        let method = match method {
            "best" => Method::Best,
            "tfa" => Method::Tfa,
            "sfa" => Method::Sfa,
            "plp" => Method::Plp,
            _ => {
                let why = format!("method '{method}': expected best, tfa, sfa or plp");
                return Err(value_error(why));
            }
        };
        let bounds = whole(py, |_| bound(&self.planned, method))?;
        json(&BoundReport::new(self.name.clone(), method, &bounds))
    }

    /// Searches for gate control lists that meet deadlines, for `time`.
    fn schedule(
        &self,
        py: Python<'_>,
        deadline: Vec<(String, String)>,
        time: &str,
    ) -> PyResult<String> {
        let mut deadlines = Deadlines::default();
        for (kind, time) in &deadline {
            let why = |why| value_error(format!("deadline {kind}={time}: {why}"));
            deadlines.set(kind, time).map_err(why)?;
        }
        let time = self::time(time)?;
        let most = std::time::Duration::from_nanos(time.as_ns());
        let found = whole(py, |control| {
            let begin = Instant::now();
            let used = || match control.is_stopped() {
                true => f64::INFINITY,
                false => begin.elapsed().as_secs_f64() / most.as_secs_f64(),
            };
            let request = Request { deadlines, ..Request::new(&used) };
            request.run(self.name.clone(), &self.plan, &self.planned)
        })?;
        let (report, _) =
            found.map_err(|why| simulation_error(py, &format!("{}: {why}", self.name)))?;
        json(&report)
    }
}

/// Parses a time with its unit.
pub fn time(text: &str) -> PyResult<Duration> {
    text.parse().map_err(|_| value_error(format!("time '{text}': expected a time such as 10s")))
}

/// Runs work with its callbacks.
pub fn with_watch<T>(control: &Control, run: impl FnOnce(&Watch<'_>) -> T) -> T {
    let show = |state: Option<&str>| {
        if let Some(state) = state {
            control.show(state);
        }
    };
    run(&Watch { is_stopped: &|| control.is_stopped(), progress: &show })
}

fn ended(
    py: Python<'_>,
    document: PyResult<impl Serialize>,
    tables: Vec<(&'static str, Batch)>,
    stopped: Option<PyErr>,
) -> PyResult<Ended> {
    let document = match (document, stopped.as_ref()) {
        (Ok(document), _) => json(&document)?,
        (Err(_), Some(stopped)) => return Err(stopped.clone_ref(py)),
        (Err(error), None) => return Err(error),
    };
    let table =
        |(name, batch): (_, Batch)| Ok((name, Table::new(batch.into()).map_err(value_error)?));
    let tables = tables.into_iter().map(table).collect::<PyResult<_>>()?;
    Ok((document, tables, stopped.map(|error| error.into_value(py).into_any())))
}

fn json(document: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(document).map_err(value_error)
}
