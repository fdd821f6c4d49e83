//! What a simulation shall leave behind, from before its start to its end.

use super::capture::Capture;
use super::gather::Gathered;
use super::limits::{self, Assumptions, Row, Waits};
use super::page::{Subject, Words, page};
use super::trace::TraceFiles;
use super::{All, Shared};
use report::target::Target;
use report::{Failure, Outcome};
use sim::Config;
use sim::measure::Observer;
use sim::world::Report;
use std::path::PathBuf;
use tempfile::TempDir;
use wire::Instant;

/// The files that are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Trace files: this one of the first host, others beside it.
    pub trace: Option<PathBuf>,
    /// A capture of all wires.
    pub pcapng: Option<Target>,
    /// The report.
    pub report: Option<Target>,
}

/// See the module: [`begin`](Self::begin), give [`observer`](Self::observer)
/// to the world, [`close`](Self::close) when it has stopped, however it did,
/// and [`report`](Self::report) if it came to its end.
pub struct Outputs {
    assumed: Assumptions,
    waits: Shared<Waits>,
    trace: Option<Shared<TraceFiles>>,
    capture: Option<Shared<Capture>>,
    gathered: Option<Shared<Gathered>>,
    page: Option<Target>,
    /// Of traces that only the report needs.
    _folder: Option<TempDir>,
}

impl Outputs {
    /// Begins all files; `named` is as in [`Words`].
    ///
    /// # Errors
    /// One line that names a file.
    pub fn begin(
        config: &Config,
        wanted: &Wanted,
        assumed: Assumptions,
        named: &dyn Fn(&str) -> String,
    ) -> Result<Self, Failure> {
        let folder = match (&wanted.trace, &wanted.report) {
            (None, Some(_)) => Some(tempfile::tempdir()?),
            _ => None,
        };
        let hidden = folder.as_ref().map(|folder| folder.path().join("run.trace"));
        let trace = wanted.trace.clone().or(hidden);
        let trace = trace.map(|path| TraceFiles::create(config, &path)).transpose()?;
        let capture = wanted.pcapng.as_ref().map(|path| Capture::create(config, path, named));
        let gathered = wanted.report.as_ref().map(|_| Shared::new(Gathered::new(config)));
        Ok(Self {
            assumed,
            waits: Shared::new(Waits::new(config, &assumed)),
            trace: trace.map(Shared::new),
            capture: capture.transpose()?.map(Shared::new),
            gathered,
            page: wanted.report.clone(),
            _folder: folder,
        })
    }

    /// What has to watch the world.
    pub fn observer(&self) -> Box<dyn Observer> {
        let mut all: Vec<Box<dyn Observer>> = vec![Box::new(self.waits.clone())];
        all.extend(self.trace.iter().map(|one| Box::new(one.clone()) as Box<dyn Observer>));
        all.extend(self.capture.iter().map(|one| Box::new(one.clone()) as Box<dyn Observer>));
        all.extend(self.gathered.iter().map(|one| Box::new(one.clone()) as Box<dyn Observer>));
        Box::new(All(all))
    }

    /// Closes the files at the end of virtual time, with the workloads `done`
    /// or not. Yields every limit with what was seen.
    ///
    /// # Errors
    /// One line that names a file which could not be written.
    pub fn close(
        &mut self,
        config: &Config,
        now: Instant,
        done: bool,
    ) -> Result<Vec<Row>, Failure> {
        self.waits.0.borrow_mut().finish(now, done);
        if let Some(trace) = &self.trace {
            trace.0.borrow_mut().finish()?;
        }
        if let Some(capture) = &self.capture {
            capture.0.borrow_mut().finish()?;
        }
        Ok(limits::after(config, &self.assumed, &self.waits.0.borrow()))
    }

    /// Writes the report, if one is wanted.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn report(
        &self,
        config: &Config,
        report: &Report,
        limits: &[Row],
        words: &Words<'_>,
    ) -> Outcome {
        let (Some(target), Some(gathered)) = (&self.page, &self.gathered) else { return Ok(()) };
        let traces = self.trace.as_ref().map(|trace| {
            let trace = trace.0.borrow();
            (0..config.hosts.len()).map(|host| trace.paths(host)).collect()
        });
        let traces: Vec<Vec<PathBuf>> = traces.unwrap_or_default();
        let subject = Subject {
            words,
            config,
            report,
            gathered: &gathered.0.borrow(),
            waits: &self.waits.0.borrow(),
            limits,
            traces: &traces,
        };
        target.write(&page(&subject)?)
    }
}
