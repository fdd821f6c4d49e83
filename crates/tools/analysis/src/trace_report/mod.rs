//! A run as text, JSON document and HTML page: the selected commands, statistics of all commands
//! that fit the filters, and anomalies. [`against`] compares two runs.

pub mod against;
mod json;
mod page;
mod queues;
mod ranking;
mod sort;
mod table;
mod text;

pub use json::TraceDocument;
pub use sort::Key;

use crate::commands::{AnalyserCounters, Command, Event};
use crate::trace::capture::{Capture, Written};
use crate::trace::rings::Rings;
use crate::trace::{
    Anomalies, DriveTiming, Finding, Leg, Run, Selection, Statistics, chart, path, perfetto,
};
use columns::{Batch, Targets};
use ranking::Ranking;
use report::Failure;
use report::target::Target;
use serde::Serialize;
use sort::Largest;
use std::io::{self, Write};
use std::path::PathBuf;
use table::Table;

/// The traces to read, and the files to write.
pub struct Request<'a> {
    /// Traces of one run.
    pub files: &'a [PathBuf],
    /// The filters.
    pub selection: Selection,
    /// The order of the shown commands.
    pub sort: Key,
    /// Maximum number of shown commands.
    pub limit: usize,
    /// Target for Chrome trace events of the commands that fit the filters.
    pub perfetto: Option<&'a Target>,
    /// Target for a capture of the TLPs of the commands that fit the filters.
    pub pcapng: Option<&'a Target>,
    /// Targets for files with one row per command that fits the filters.
    pub rows: Targets<'a>,
    /// Whether commands are ranked, which a page needs.
    pub ranked: bool,
}

/// Options of the text.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Print one line per command instead of its TLPs.
    pub list: bool,
    /// Print statistics instead of single commands.
    pub stats: bool,
    /// Print every TLP. Otherwise only the first and the last of equal TLPs are printed.
    pub unfold: bool,
    /// The order of the commands.
    pub sort: Key,
}

struct Shown {
    /// Number of the command, from 1.
    number: u64,
    command: Command,
    path: Vec<Leg>,
    /// Times of the command in the drive, if the run has the trace of the drive.
    timing: Option<DriveTiming>,
}

/// The selected commands and the statistics of a run.
pub struct Report {
    run: Run,
    shown: Vec<Shown>,
    /// Number of selected commands.
    selected: u64,
    all: u64,
    statistics: Statistics,
    rings: Rings,
    anomalies: Anomalies,
    counters: AnalyserCounters,
    unreadable: u64,
    /// The TLPs written to the capture, if one was requested.
    captured: Option<Written>,
    /// The commands by duration, if a page was requested.
    ranking: Option<Ranking>,
}

impl Report {
    /// Reads a run and writes the requested files. The error names the file.
    pub fn new(request: &Request<'_>) -> Result<Self, Failure> {
        collect(request)
    }

    /// Writes the run as text.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn text(&self, view: View, out: &mut impl Write) -> io::Result<()> {
        text::text(self, view, out)
    }

    /// Returns the run as a JSON document.
    pub fn document(&self) -> impl Serialize + '_ {
        json::document(self)
    }

    /// Formats the run as an HTML page. The error is a trace that cannot be read a second time.
    pub fn page(&mut self) -> Result<String, Failure> {
        let ranking = self.ranking.take().unwrap_or_default();
        page::page(self, ranking)
    }

    /// Draws the sequence diagram of the first shown command as SVG. Fails if no command fits the
    /// filters.
    pub fn sequence(&self) -> Result<String, Failure> {
        let shown =
            self.shown.first().ok_or_else(|| Failure("no command matches the filters".into()))?;
        Ok(chart::chart(&self.run, &shown.command))
    }
}

/// Reads a run. Returns a row for each command, with the columns of `farlane trace --csv`.
///
/// # Errors
/// One line that names a file.
pub fn command_rows(files: &[PathBuf]) -> Result<Batch, Failure> {
    let run = Run::open(files)?;
    let (mut rows, mut number) = (table::batch(), 0);
    run.analyse(|found, _| {
        if let Finding::Event(Event::Command(command)) = found {
            number += 1;
            table::push(&mut rows, number, &command, &path(&run, &command));
        }
    })?;
    Ok(rows)
}

fn capture(run: &Run, capture: &Capture, target: &Target) -> Result<Written, Failure> {
    let (written, mut file) = capture.write(run, target.create_binary()?)?;
    file.flush().map_err(|error| target.failed(&error))?;
    Ok(written)
}

fn collect(request: &Request<'_>) -> Result<Report, Failure> {
    let run = Run::open(request.files)?;
    let (selection, limit) = (&request.selection, request.limit);
    let (mut shown, mut selected, mut all) = (Largest::new(request.sort, limit), 0, 0);
    let (mut statistics, mut anomalies) = (Statistics::default(), Anomalies::default());
    let begin = |target: &Target| -> Result<_, Failure> {
        let writer = perfetto::Writer::new(target.create()?);
        Ok((writer.map_err(|error| target.failed(&error))?, target.clone()))
    };
    let mut ranking = request.ranked.then(Ranking::default);
    let mut rings = Rings::new(selection);
    let mut table = Table::create(request.rows)?;
    let mut perfetto = request.perfetto.map(begin).transpose()?;
    let mut labels = request.pcapng.map(|_| Capture::default());
    let (counters, unreadable) = run.analyse(|found, counters| {
        anomalies.observe(&found);
        if let (Some(state), Some((writer, _))) = (rings.observe(&found), &mut perfetto) {
            writer.ring(state);
        }
        if let Finding::Tlp(_, _, tlp, _) = &found {
            anomalies.count(counters, tlp.mnemonic());
        }
        let Finding::Event(Event::Command(command)) = found else { return };
        all += 1;
        let fits = selection.has(all, &command);
        if let Some(labels) = &mut labels {
            labels.add(all, &command, fits);
        }
        if !fits {
            return;
        }
        selected += 1;
        let path = path(&run, &command);
        statistics.add(&command, &path);
        if let Some(ranking) = &mut ranking {
            ranking.add(all, &command);
        }
        if let Some(table) = &mut table {
            table.add(all, &command, &path);
        }
        if let Some((writer, _)) = &mut perfetto {
            writer.add(all, &command, &path, run.in_drive(&command));
        }
        if shown.wants(&command) {
            let timing = run.in_drive(&command);
            shown.add(Shown { number: all, command: *command, path, timing });
        }
    })?;
    let shown = shown.sorted();
    anomalies.count(&counters, "the end of the trace");
    anomalies.finish(&run);
    if let Some((writer, target)) = perfetto {
        writer.finish().map_err(|error| target.failed(&error))?;
    }
    table.map_or(Ok(()), Table::finish)?;
    let captured = labels.zip(request.pcapng);
    let captured = captured.map(|(labels, target)| capture(&run, &labels, target)).transpose()?;
    Ok(Report {
        run,
        shown,
        selected,
        all,
        statistics,
        rings,
        anomalies,
        counters,
        unreadable,
        captured,
        ranking,
    })
}
