//! Sequence diagrams of single commands, which are found in the trace.

use super::gates;
use crate::simulate::places;
use analysis::commands::{Command, Event};
use analysis::trace::chart::{ClosedGate, chart_with_gates};
use analysis::trace::{Finding, Run};
use report::Failure;
use sim::Config;
use sim::measure::CommandRecord;
use std::path::PathBuf;
use wire::Duration;

/// Returns a sequence diagram for each of these commands of one host; `None` for a command that is
/// not in the host's trace.
///
/// # Errors
/// If the files are not traces of one run, or cannot be read.
pub(super) fn diagrams(
    config: &Config,
    files: &[PathBuf],
    records: &[CommandRecord],
) -> Result<Vec<Option<String>>, Failure> {
    let run = Run::open(files)?;
    let mut found: Vec<Option<Command>> = vec![None; records.len()];
    run.analyse(|event, _| {
        let Finding::Event(Event::Command(command)) = event else { return };
        for (record, place) in records.iter().zip(&mut found) {
            if is(record, &command) {
                *place = Some((*command).clone());
            }
        }
    })?;
    let draw = |(record, command): (&CommandRecord, &Option<Command>)| {
        let command = command.as_ref()?;
        Some(chart_with_gates(&run, command, shades(config, record)))
    };
    Ok(records.iter().zip(&found).map(draw).collect())
}

/// Returns whether a command of the trace is the one that the simulation recorded.
pub(in crate::simulate) fn is(record: &CommandRecord, command: &Command) -> bool {
    let block = u64::from(command.block_size.unwrap_or(512));
    let names = (record.queue, record.id) == (command.queue, command.entry.cid);
    let place = command.slba().is_none_or(|slba| slba * block == record.offset);
    let times = record.since.as_ns()..=record.until.as_ns();
    names && place && times.contains(&command.start.as_ns())
}

/// Returns the closed gates during the command and shortly after.
fn shades(config: &Config, record: &CommandRecord) -> Vec<ClosedGate> {
    let until = record.until + Duration::from_ms(1);
    let mut shades = Vec::new();
    for link in places::path(&config.hosts[usize::from(record.host)], record.drive.into()) {
        let [down, up] = places::routes(&config.network.wiring(), link.transport);
        shades.extend(gates::closed(&down, record.since, until, false));
        shades.extend(gates::closed(&up, record.since, until, true));
    }
    shades
}
