//! The document and the page of a live run, the same as of a simulation.

use super::document::{SimReport, World};
use super::simulate::{Commands, Failed, Results, RunOptions};
use crate::Planned;
use crate::simulate::requirements::{self, Deadlines};
use crate::simulate::{Outputs, PageLabels};
use sim::measure::{CommandRecord, Observer};
use sim::world::Report;
use std::path::PathBuf;

/// The results of a live run of a plan.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The results; without digest, links and queues.
    pub report: Report,
    /// Every command, without times by stage.
    pub commands: Vec<CommandRecord>,
    /// What the run omitted of the plan.
    pub remarks: Vec<String>,
    /// The trace files of each host's nodes, the host's first; empty if nothing was recorded.
    pub traces: Vec<Vec<PathBuf>>,
    /// Whether a signal ended the run.
    pub interrupted: bool,
}

/// Returns the document of a live run, and writes the requested page.
///
/// # Errors
/// If the page cannot be written.
pub fn measured(
    planned: &Planned,
    options: &RunOptions,
    run: &Measured,
) -> Result<SimReport, Failed> {
    let mut deadlines = Deadlines::new(&planned.requirements);
    run.commands.iter().for_each(|command| deadlines.command(command));
    let requirements = requirements::rows(&deadlines, &run.report);
    if let Some(target) = &options.requested.report {
        let named = |text: &str| planned.link_name(text);
        let words = PageLabels {
            world: World::Live,
            title: options.name.rsplit('/').next().unwrap_or(&options.name),
            plan: &options.text,
            named: &named,
            recorded: &planned.recorded(),
            streams: &planned.streams,
            identified: &planned.identified,
            overloads: &[],
            remarks: &run.remarks,
            phases: None,
        };
        let page = Outputs::page(&planned.config, run, &requirements, &words)?;
        target.write(&page)?;
    }
    let results = Results {
        report: run.report.clone(),
        commands: Commands::default(),
        limits: Vec::new(),
        requirements,
        interrupted: run.interrupted,
    };
    let mut document = SimReport::new(&options.name, planned, &results);
    document.world = World::Live;
    document.remarks.clone_from(&run.remarks);
    document.overloads.clear();
    Ok(document)
}
