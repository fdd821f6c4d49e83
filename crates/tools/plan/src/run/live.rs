//! The document and the page of a live run, the same as of a simulation.

use super::document::{SimReport, World};
use super::simulate::{Commands, Results};
use crate::Planned;
use crate::simulate::requirements::{self, Deadlines};
use crate::simulate::{Outputs, PageLabels};
use report::Failure;
use sim::measure::{CommandRecord, Observer};
use sim::world::Report;
use std::path::PathBuf;

/// The results of a live run of a plan.
#[derive(Clone, Debug)]
pub struct LiveResults {
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

impl LiveResults {
    /// Returns the document of the run; `name` is the file of the plan.
    pub fn document(&self, planned: &Planned, name: &str) -> SimReport {
        let results = Results {
            report: self.report.clone(),
            commands: Commands::default(),
            limits: Vec::new(),
            requirements: self.requirements(planned),
            interrupted: self.interrupted,
            part_failed: None,
            contention: Vec::new(),
            hops: None,
        };
        let mut document = SimReport::new(name, planned, &results);
        document.world = World::Live;
        document.remarks.clone_from(&self.remarks);
        document.overloads.clear();
        document
    }

    /// Returns the page of the run; `text` is the text of the plan.
    ///
    /// # Errors
    /// If a trace cannot be read.
    pub fn page(&self, planned: &Planned, name: &str, text: &str) -> Result<String, Failure> {
        let words = PageLabels {
            world: World::Live,
            title: name.rsplit('/').next().unwrap_or(name),
            plan: text,
            named: &|text| planned.link_name(text),
            recorded: &planned.recorded(),
            streams: &planned.streams,
            identified: &planned.identified,
            overloads: &[],
            remarks: &self.remarks,
            phases: None,
        };
        Outputs::page(&planned.config, self, &self.requirements(planned), &words)
    }

    fn requirements(&self, planned: &Planned) -> Vec<requirements::Row> {
        let mut deadlines = Deadlines::new(&planned.requirements);
        self.commands.iter().for_each(|command| deadlines.command(command));
        requirements::rows(&deadlines, &self.report)
    }
}
