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
use plan::run::phases::{pairs, words};
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
    /// Failed commands and wrong data in each live run.
    pub failures: Vec<u64>,
}

impl CaseRounds {
    /// Returns the failed commands and wrong data of all live runs.
    pub fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }
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
    /// Why the rounds ended early. The results are those of the complete rounds before; tables also
    /// have the complete runs of the last round.
    pub failure: Option<Failure>,
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
    /// If a run of the first round fails.
    pub fn run(
        &mut self,
        cases: &[Case],
        (console, stop): (&mut dyn Console, &Stop),
    ) -> Result<Rounds, Failure> {
        let mut all = Rounds::default();
        all.cases.resize_with(cases.len(), CaseRounds::default);
        let floor = Floor::new(&cases[0].plan)?;
        let failure = self.rounds(cases, &floor, &mut all, (console, stop)).err();
        console.done();
        all.interrupted = stop.is_set();
        if failure.is_some() {
            let runs = all.cases.iter().map(|case| case.live.len().min(case.sim.len()));
            let complete = runs.min().unwrap_or(0);
            for case in &mut all.cases {
                case.live.truncate(complete);
                case.sim.truncate(complete);
                case.failures.truncate(complete);
            }
            all.floor.truncate(complete);
        }
        // An interrupted run may fail.
        match failure.filter(|_| !all.interrupted) {
            Some(failure) if all.floor.is_empty() => Err(failure),
            failure => Ok(Rounds { failure, ..all }),
        }
    }

    /// Runs the rounds until one fails or a signal ends them.
    fn rounds(
        &mut self,
        cases: &[Case],
        floor: &Floor,
        all: &mut Rounds,
        (console, stop): (&mut dyn Console, &Stop),
    ) -> Outcome {
        let (rounds, count) = (self.rounds, cases.len());
        for round in 0..rounds {
            let failed =
                |Failure(why)| Failure(format!("round {} of {rounds} failed: {why}", round + 1));
            console.progress(&format!("round {} of {rounds}: raw TCP", round + 1));
            all.floor.push(floor.measure(self.options.waiting).map_err(failed)?);
            for (number, case) in cases.iter().enumerate() {
                if stop.is_set() {
                    return Ok(());
                }
                let (at, case_at) = (round + 1, number + 1);
                console.progress(&format!("round {at} of {rounds}, case {case_at} of {count}"));
                let into = &mut all.cases[number];
                // The order alternates, so that neither world profits from a warm machine.
                for live in [round % 2 == 0, round % 2 != 0] {
                    self.round(case, (round, live), into, stop).map_err(failed)?;
                }
            }
        }
        for (number, case) in cases.iter().enumerate().filter(|_| self.stages) {
            if stop.is_set() {
                break;
            }
            console.progress(&format!("stages of case {} of {count}", number + 1));
            let failed =
                |Failure(why)| Failure(format!("stages of case {} failed: {why}", number + 1));
            let compared = compare_stages(&case.plan, &self.options, stop).map_err(failed)?;
            all.cases[number].stages = Some(compared);
        }
        Ok(())
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
            let mut result = run(&plan, &options, (&mut Quiet, stop))?.whole()?;
            if result.interrupted {
                return Ok(());
            }
            let document = document(&plan, &result);
            let hosts = document.hosts.iter();
            into.failures.push(hosts.map(|host| host.failures + host.mismatches).sum());
            into.live.push(Figures::from(&document));
            (document, result.take_commands())
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
        words("", pairs(&self.set))
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
    run(plan, &traced, (&mut Quiet, stop))?.whole()?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use live::Waiting;
    use live::net::Namespace;
    use plan::Plan;
    use storage::media::Backing;

    /// Removes a file at the beginning of the third round.
    struct Remover(PathBuf);

    impl Console for Remover {
        fn progress(&mut self, text: &str) {
            if text.starts_with("round 3") && self.0.exists() {
                std::fs::remove_file(&self.0).unwrap();
            }
        }
    }

    #[test]
    fn round_that_fails_keeps_the_rounds_before() {
        if Namespace::new().is_err() {
            return eprintln!("rounds are not tested: no network namespaces");
        }
        let folder = tempfile::tempdir().unwrap();
        let text = "machine = \"farlane\"\n[workload]\nrw = \"read\"\nsize = \"64KiB\"\n";
        let plan = Plan::parse("plan.toml", text).and_then(|plan| plan.build()).unwrap();
        let path = folder.path().join("disk");
        std::fs::File::create(&path).unwrap().set_len(1 << 20).unwrap();
        let disk = Backing::File { path: path.clone(), options: Default::default() };
        let mut options = LiveOptions::new(Waiting::Block);
        options.backing.insert(plan.links[0].clone(), vec![disk]);
        let cases = [Case { set: Vec::new(), plan }];
        let mut comparison = Comparison { options, rounds: 4, stages: true, tables: None };
        let stop = Stop::new().unwrap();
        let mut remover = Remover(path);
        let all = comparison.run(&cases, (&mut remover, &stop)).unwrap();
        let failure = all.failure.expect("a failure").to_string();
        assert!(failure.starts_with("round 3 of 4 failed: "), "{failure}");
        assert_eq!([all.floor.len(), all.cases[0].live.len(), all.cases[0].sim.len()], [2; 3]);
        // Without a complete round, the failure is all.
        assert!(comparison.run(&cases, (&mut remover, &stop)).is_err());
    }
}
