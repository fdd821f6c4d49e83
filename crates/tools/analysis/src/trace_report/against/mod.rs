//! `farlane trace A... --against B...`: the differences between two runs.

mod json;
mod page;
mod text;

pub use json::ComparisonDocument;

use crate::commands::Event;
use crate::trace::compare::{Compared, Side, compare};
use crate::trace::{Finding, Run, Selection, path};
use report::{Failure, Outcome};
use serde::Serialize;
use std::path::PathBuf;
use wire::trace::{NodeRole, VIRTUAL_CLOCK};

struct Traced {
    run: Run,
    side: Side,
    selected: u64,
    all: u64,
    /// Selected commands whose submission queue entries were pushed.
    pushed: u64,
    /// Selected commands with times in the drive.
    in_drive: u64,
}

/// Two runs and their comparison.
pub struct Comparison {
    runs: [Traced; 2],
    compared: Compared,
    /// Whether both runs have traces of the same nodes, so that times in stages can be compared.
    places: bool,
    /// Differences between the runs by construction, one sentence each.
    unlike: Vec<String>,
}

/// Explanation of the statistical method, for text and page.
const METHOD: &str = "A difference is the median of A less that of B. Its 95 % interval comes from \
    order statistics of both runs, with as many independent commands as their autocorrelation \
    leaves. It is significant (*) if its p-value, corrected for all comparisons by Holm's method, \
    is below 0.05. Two runs may also differ by what changes from run to run on one machine: repeat \
    them before you blame a cause.";

/// Explanation that places are left out because the runs have traces of different nodes.
const NO_PLACES: &str =
    "A and B have traces of different nodes, so times by stage and part are not compared.";

fn trace(files: &[PathBuf], selection: &Selection) -> Result<Traced, Failure> {
    let run = Run::open(files)?;
    let (mut side, mut selected, mut all) = (Side::default(), 0, 0);
    let (mut pushed, mut in_drive) = (0, 0);
    run.analyse(|found, _| {
        let Finding::Event(Event::Command(command)) = found else { return };
        all += 1;
        if selection.has(all, &command) {
            let path = path(&run, &command);
            selected += 1;
            pushed += u64::from(command.push.pushed.entry > 0);
            in_drive += u64::from(path.iter().any(|leg| leg.part.is_some()));
            side.add(&command, &path);
        }
    })?;
    Ok(Traced { run, side, selected, all, pushed, in_drive })
}

/// Returns the differences between two runs that do not depend on their networks and drives.
fn unlike([a, b]: &[Traced; 2]) -> Vec<String> {
    // The run that alone has the property, and the other run.
    let only = |has: fn(&Traced) -> bool| match (has(a), has(b)) {
        (true, false) => Some(["A", "B"]),
        (false, true) => Some(["B", "A"]),
        _ => None,
    };
    let simulated = only(|run| run.run.root().file.header.clock == VIRTUAL_CLOCK).map(|[one, other]| {
        format!(
            "{one} is a simulation and {other} a recording of live nodes: a TLP has the time at \
             which its first bit is on the PCIe link in {one}, and at which the node takes it in \
             {other}, whose times contain the nodes' software."
        )
    });
    let pushes = only(|run| run.pushed > 0).map(|[one, other]| {
        format!(
            "Only {one} pushes: its commands need fewer round trips than commands of {other}. \
             Compare runs with the same --push or host.push."
        )
    });
    let in_drive = only(|run| run.in_drive > 0).map(|[one, _]| {
        format!("Only {one} has times of the controller and the media: they are not compared.")
    });
    [simulated, pushes, in_drive].into_iter().flatten().collect()
}

/// Fails if the times of the runs were measured at different points.
fn same_point(runs: &[Traced; 2]) -> Outcome {
    let [a, b] = runs.each_ref().map(|traced| traced.run.root().file.header.role);
    if a == b {
        return Ok(());
    }
    Err(Failure(format!(
        "the first traces are of a {a} node and those after --against of a {b} node: their times \
         have different ends; give traces of the same nodes"
    )))
}

impl Comparison {
    /// Compares the selected commands of the first run with the selected commands of the second
    /// run, the base. The error is a file that cannot be read, or runs whose times were measured at
    /// different points.
    pub fn new(files: [&[PathBuf]; 2], selection: &Selection) -> Result<Self, Failure> {
        let [a, b] = files.map(|files| trace(files, selection));
        let runs = [a?, b?];
        same_point(&runs)?;
        let roles = |traced: &Traced| -> Vec<NodeRole> {
            traced.run.nodes.iter().map(|node| node.file.header.role).collect()
        };
        let places = roles(&runs[0]) == roles(&runs[1]);
        let compared = compare(&runs[0].side, &runs[1].side, places);
        let unlike = unlike(&runs);
        Ok(Self { runs, compared, places, unlike })
    }

    /// Returns the compared types and measures.
    pub fn into_compared(self) -> Compared {
        self.compared
    }

    /// Formats the comparison as text.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// Formats the comparison as an HTML page.
    pub fn page(&self) -> String {
        page::page(self)
    }

    /// Returns the comparison as a JSON document.
    pub fn document(&self) -> impl Serialize + '_ {
        json::document(self)
    }
}

fn names(traced: &Traced) -> String {
    let names = traced.run.nodes.iter().map(|node| node.file.path.display().to_string());
    names.collect::<Vec<_>>().join(", ")
}
