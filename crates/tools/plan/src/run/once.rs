//! One simulation with all its commands.

use super::document::SimReport;
use super::simulate::{CommandCounter, Commands, Failed, Results, RunProgress, simulate};
use crate::Planned;
use crate::simulate::Shared;
use sim::measure::{CommandRecord, Observer};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Collects commands.
#[derive(Default)]
struct Collector(Vec<CommandRecord>);

impl Observer for Collector {
    fn command(&mut self, record: &CommandRecord) {
        self.0.push(*record);
    }
}

/// Runs one simulation. Returns its document, without limits and requirements, and its commands.
///
/// # Errors
/// If the simulation fails.
pub fn once(
    planned: &Planned,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<(SimReport, Vec<CommandRecord>), Failed> {
    let collector = Shared::new(Collector::default());
    let pace = Arc::new(RunProgress::default());
    let commands = Rc::new(RefCell::new(Commands::default()));
    let counter = CommandCounter { commands: commands.clone(), pace: pace.clone() };
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(counter), Box::new(collector.clone())];
    let ran = simulate(&planned.config, observers, &pace, is_stopped);
    let (report, is_done) = ran.map_err(|why| Failed { why, limits: Vec::new() })?;
    let results = Results {
        report,
        commands: commands.take(),
        limits: Vec::new(),
        requirements: Vec::new(),
        interrupted: !is_done,
        part_failed: None,
        contention: Vec::new(),
        hops: None,
    };
    let document = SimReport::new("", planned, &results);
    let commands = std::mem::take(&mut collector.0.borrow_mut().0);
    Ok((document, commands))
}
