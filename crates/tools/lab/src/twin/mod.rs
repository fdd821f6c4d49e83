//! The twin of the lab: each run in the simulator, beside its measurement. The plan of a twin comes
//! from the same [`Experiment`] as the commands of the lab.
//!
//! # Modules
//!
//! - `calibration`: the delays that the simulation takes from the idle run
//! - `plan_text`: an experiment as the text of a plan
//! - `simulate`: a plan's run, as a listener's document
//! - `show`: measured and simulated figures as tables and page

mod calibration;
mod plan_text;
pub mod show;
mod simulate;
#[cfg(test)]
mod tests;

pub use calibration::Calibration;

use crate::experiment::{Experiment, Run, file_name};
use crate::results::{BridgeReport, RunResult};
use latency_linux::Document;
use report::Failure;
use report::document::json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Segments that are measured and simulated. Simulated talkers send when a frame is due.
pub const SEGMENTS: [&str; 4] = [TALKER, NETWORK, LISTENER, "end to end"];
const TALKER: &str = "schedule to wire";
const NETWORK: &str = "wire to kernel";
const LISTENER: &str = "kernel to application";

/// A run in the simulator. Only the values of `calibration` are measured; everything else is
/// predicted.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Twin {
    /// The plan, which `farlane sim` runs (docs/plan.md).
    pub plan: String,
    /// Why there is no simulation; empty otherwise.
    pub why: String,
    /// The simulated frames as the document of a listener, with the segments that the simulation
    /// has; null if there is no simulation. Long runs are simulated in part: `counts.sent`.
    pub simulated: Option<Document>,
}

/// Simulates the runs of a bridge, and keeps plans and documents as the lab keeps its own.
///
/// # Errors
/// A file of `--keep` cannot be written. A run that cannot be simulated has the reason.
pub fn add(experiment: &Experiment, report: &mut BridgeReport) -> report::Outcome {
    if report.runs.is_empty() {
        return Ok(());
    }
    let calibration = Calibration::from_runs(experiment, &report.runs);
    let runs = experiment.runs();
    for result in &mut report.runs {
        let run = runs.iter().find(|run| run.name == result.name && run.reads.is_none());
        let Some(run) = run else { continue };
        let twin = simulated(experiment, &calibration, run, result);
        for (text, ending) in
            [(Some(twin.plan.clone()), "toml"), (twin.simulated.as_ref().map(json), "json")]
        {
            let (Some(folder), Some(text)) = (&experiment.keep, text) else { continue };
            let path = format!("{folder}/{}.{ending}", file_name(report.bridge, run, "twin"));
            std::fs::write(&path, text).map_err(|error| Failure(format!("{path}: {error}")))?;
        }
        result.twin = Some(twin);
    }
    report.calibration = Some(calibration);
    Ok(())
}

fn simulated(
    experiment: &Experiment,
    calibration: &Calibration,
    run: &Run,
    result: &RunResult,
) -> Twin {
    let sent = result.talk.counts.map_or(experiment.timing(run).count, |counts| counts.sent);
    let frames = plan_text::Frames::new(experiment, run, result.talk.size_bytes, sent);
    let plan = plan_text::text(experiment, calibration, run, frames);
    match simulate::simulate(experiment, run, frames.count, &plan) {
        Ok((analysis, counts)) => {
            let simulated = simulate::document(&result.talk, analysis, counts);
            Twin { plan, why: String::new(), simulated: Some(simulated) }
        }
        Err(Failure(why)) => Twin { plan, why, simulated: None },
    }
}
