//! The same plan in both worlds: rounds in turns, the error of the simulation, and its stages.

use crate::floor::{Floor, FloorRound};
use crate::run::{LiveOptions, LiveRun, run};
use analysis::trace::Selection;
use analysis::trace::compare::Compared;
use analysis::trace_report::against::Comparison as TraceComparison;
use live::Stop;
use load::{Console, TraceFile, TraceTarget};
use plan::Planned;
use plan::run::document::{SimLatency, SimReport};
use plan::run::phases::words;
use plan::run::tables::{RowOrigin, Tables};
use plan::run::{LiveResults, RunError, RunOptions, Seeds, Watch};
use plan::simulate::limits::Assumptions;
use plan::simulate::{OutputFiles, node_name};
use report::{Failure, Outcome};
use sim::measure::CommandRecord;
use std::path::{Path, PathBuf};

/// A plan to compare, with the settings that distinguish it from others.
#[derive(Clone, Debug)]
pub struct Case {
    /// Keys and values.
    pub set: Vec<(String, String)>,
    /// The plan.
    pub plan: Planned,
}

/// The results of one run.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Latencies of all hosts.
    pub latency: SimLatency,
    /// Transfers per second.
    pub iops: u64,
    /// Bytes per second.
    pub bytes_per_s: u64,
}

impl From<&SimReport> for Figures {
    fn from(report: &SimReport) -> Self {
        let SimReport { latency_ns, iops, bytes_per_s, .. } = *report;
        Self { latency: latency_ns, iops, bytes_per_s }
    }
}

/// A case with the results of all rounds.
#[derive(Debug, Default)]
pub struct CaseRounds {
    /// Of the live runs.
    pub live: Vec<Figures>,
    /// Of the simulations.
    pub sim: Vec<Figures>,
    /// The stages of the commands in one recorded run of both worlds: live, then simulated.
    pub stages: Option<Compared>,
    /// Failed commands and wrong data in live runs.
    pub failures: u64,
}

/// The results of all rounds.
#[derive(Debug, Default)]
pub struct Rounds {
    /// Raw TCP, by round.
    pub floor: Vec<FloorRound>,
    /// The cases.
    pub cases: Vec<CaseRounds>,
    /// Whether a signal ended the rounds.
    pub interrupted: bool,
}

/// What to compare.
pub struct Comparison<'a> {
    /// How live nodes run.
    pub options: LiveOptions,
    /// Number of rounds.
    pub rounds: u64,
    /// Whether to record one run of both worlds per case, and to compare its stages.
    pub stages: bool,
    /// The tables of every run.
    pub tables: Option<&'a mut Tables>,
}

impl Comparison<'_> {
    /// Runs the rounds: in each one the floor, then every case live and simulated. Each round uses
    /// the next seed.
    ///
    /// # Errors
    /// If a run fails.
    pub fn run(
        &mut self,
        cases: &[Case],
        (console, stop): (&mut dyn Console, &Stop),
    ) -> Result<Rounds, Failure> {
        let mut all = Rounds::default();
        all.cases.resize_with(cases.len(), CaseRounds::default);
        let (rounds, count) = (self.rounds, cases.len());
        for round in 0..rounds {
            console.progress(&format!("round {} of {rounds}: raw TCP", round + 1));
            all.floor.push(Floor::new(&cases[0].plan)?.measure(self.options.waiting)?);
            for (number, case) in cases.iter().enumerate() {
                if stop.is_set() {
                    all.interrupted = true;
                    return Ok(all);
                }
                let (at, case_at) = (round + 1, number + 1);
                console.progress(&format!("round {at} of {rounds}, case {case_at} of {count}"));
                let into = &mut all.cases[number];
                // The order alternates, so that neither world profits from a warm machine.
                for live in [round % 2 == 0, round % 2 != 0] {
                    self.round(case, (round, live), into, stop)?;
                }
            }
        }
        for (number, case) in cases.iter().enumerate().filter(|_| self.stages) {
            if stop.is_set() {
                break;
            }
            console.progress(&format!("stages of case {} of {count}", number + 1));
            all.cases[number].stages = Some(compare_stages(&case.plan, &self.options, stop)?);
        }
        console.done();
        all.interrupted = stop.is_set();
        Ok(all)
    }

    /// Runs one case in one world.
    fn round(
        &mut self,
        case: &Case,
        (round, live): (u64, bool),
        into: &mut CaseRounds,
        stop: &Stop,
    ) -> Outcome {
        let seed = case.plan.config.seed.wrapping_add(round);
        let plan = case.plan.clone().with_seed(seed);
        let (document, commands) = if live {
            let options = LiveOptions { list: self.tables.is_some(), ..self.options.clone() };
            let result = run(&plan, &options, (&mut Quiet, stop))?;
            if result.interrupted {
                return Ok(());
            }
            let document = document(&plan, &result);
            let hosts = document.hosts.iter();
            into.failures += hosts.map(|host| host.failures + host.mismatches).sum::<u64>();
            into.live.push(Figures::from(&document));
            (document, result.hosts.into_iter().flat_map(|host| host.list).collect())
        } else {
            let (document, commands) = simulated(&plan, stop)?;
            if document.interrupted {
                return Ok(());
            }
            into.sim.push(Figures::from(&document));
            (document, commands)
        };
        if let Some(tables) = &mut self.tables {
            let world = document.world;
            let origin = RowOrigin { world, run: round, seed, set: &case.words() };
            tables.commands(&origin, &plan, &commands);
            tables.document(&origin, &document);
        }
        Ok(())
    }
}

impl Case {
    /// Returns the settings, such as `link.rate=1G drive.mps=256`.
    pub fn words(&self) -> String {
        words("", &self.set)
    }
}

/// A receiver of nothing: the rounds have their own progress.
pub struct Quiet;
impl Console for Quiet {}

/// Returns the document of a live run.
fn document(plan: &Planned, run: &LiveRun) -> SimReport {
    let measurements = LiveResults {
        report: run.report(plan),
        commands: Vec::new(),
        remarks: Vec::new(),
        traces: Vec::new(),
        interrupted: false,
    };
    measurements.document(plan, "")
}

/// Simulates a plan. Returns its document and its commands.
pub fn simulated(plan: &Planned, stop: &Stop) -> Result<(SimReport, Vec<CommandRecord>), Failure> {
    plan::run::once(plan, &|| stop.is_set()).map_err(|failed| Failure(failed.why))
}

/// Simulates a plan, and records it into `trace`.
fn record(plan: &Planned, trace: PathBuf, stop: &Stop) -> Outcome {
    let options = RunOptions {
        name: String::new(),
        requested: OutputFiles { trace: Some(trace), ..OutputFiles::default() },
        assumed: Assumptions::default(),
        text: String::new(),
        phases: None,
        tables: None,
    };
    let watch = Watch { is_stopped: &|| stop.is_set(), progress: &|_| {} };
    let seeds = Seeds { first: Some(plan.config.seed), runs: Some(1) };
    let ran = plan::run::run(plan, &seeds, &options, &watch);
    ran.map(drop).map_err(|error| match error {
        RunError::Failed(failed, _) => Failure(failed.why),
        RunError::Plan(error) => Failure(error.to_string()),
        RunError::Usage(why) => Failure(why),
    })
}

/// Records a run of both worlds, and compares the commands of the first host by stage.
fn compare_stages(plan: &Planned, options: &LiveOptions, stop: &Stop) -> Result<Compared, Failure> {
    let folder = tempfile::tempdir()?;
    let [live, sim] = ["live", "sim"].map(|world| folder.path().join(world));
    let traced = LiveOptions {
        trace: TraceTarget::new(Some(TraceFile::new(live.clone())), |_| {}),
        ..options.clone()
    };
    run(plan, &traced, (&mut Quiet, stop))?;
    record(plan, sim.clone(), stop)?;
    let files = |first: &Path| -> Vec<PathBuf> { traces(plan, 0, first) };
    let compared = TraceComparison::new([&files(&live), &files(&sim)], &Selection::default())?;
    Ok(compared.into_compared())
}

/// Returns the existing trace files of a host's nodes, the host's first. `first` is the file of the first
/// host.
pub fn traces(plan: &Planned, host: usize, first: &Path) -> Vec<PathBuf> {
    let with = |path: &Path, name: &str| PathBuf::from(format!("{}.{name}", path.display()));
    let own = match host {
        0 => first.to_owned(),
        host => with(first, &format!("host{host}")),
    };
    let config = &plan.config.hosts[host];
    let nodes = (0..config.links().len()).map(|link| with(&own, &node_name(config, link)));
    // A drive without a tunnel records nothing.
    [own.clone()].into_iter().chain(nodes).filter(|file| file.exists()).collect()
}
