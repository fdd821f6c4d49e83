//! The outputs of a simulation, from before its start to its end.

use super::capture::Capture;
use super::copies::AllCopies;
use super::limits::{self, Assumptions, Row, Waits};
use super::page::{PageLabels, Subject, page};
use super::report_data::ReportData;
use super::requirements;
use super::stream_hops::StreamHops;
use super::timeline::{Chosen, PortTimeline, Timelines};
use super::trace::TraceFiles;
use super::{Observers, Shared};
use crate::run::LiveResults;
use report::target::Target;
use report::{Failure, Outcome};
use sim::Config;
use sim::measure::Observer;
use sim::world::Report;
use std::path::PathBuf;
use tempfile::TempDir;
use wire::Instant;

/// The requested output files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputFiles {
    /// Trace file of the first host. The traces of other nodes are in the same folder.
    pub trace: Option<PathBuf>,
    /// A capture of all wires.
    pub pcapng: Option<Target>,
    /// The report.
    pub report: Option<Target>,
    /// Port and time that the report shows first; `None` for the longest wait.
    pub timeline: Option<Chosen>,
}

/// All outputs. Call [`begin`](Self::begin), pass [`observer`](Self::observer) to the world, call
/// [`close`](Self::close) when the world has stopped for any reason, and [`report`](Self::report)
/// if the simulation ended by itself.
pub struct Outputs {
    assumed: Assumptions,
    waits: Shared<Waits>,
    trace: Option<Shared<TraceFiles>>,
    capture: Option<Shared<Capture>>,
    data: Option<Shared<ReportData>>,
    copies: Option<Shared<AllCopies>>,
    hops: Option<Shared<StreamHops>>,
    timelines: Option<Shared<Timelines>>,
    ports: Vec<PortTimeline>,
    page: Option<Target>,
    /// Holds the traces that only the report needs.
    _folder: Option<TempDir>,
}

impl Outputs {
    /// Begins all files; `named` is as in [`PageLabels`].
    ///
    /// # Errors
    /// One line that names a file.
    pub fn begin(
        config: &Config,
        files: &OutputFiles,
        assumed: Assumptions,
        named: &dyn Fn(&str) -> String,
    ) -> Result<Self, Failure> {
        let folder = match (&files.trace, &files.report) {
            (None, Some(_)) => Some(tempfile::tempdir()?),
            _ => None,
        };
        let hidden = folder.as_ref().map(|folder| folder.path().join("run.trace"));
        let trace = files.trace.clone().or(hidden);
        let trace = trace.map(|path| TraceFiles::create(config, &path)).transpose()?;
        let capture = files.pcapng.as_ref().map(|path| Capture::create(config, path, named));
        let data = files.report.as_ref().map(|_| Shared::new(ReportData::new(config)));
        let timelines = || Shared::new(Timelines::new(config, files.timeline));
        Ok(Self {
            timelines: files.report.as_ref().map(|_| timelines()),
            ports: Vec::new(),
            assumed,
            waits: Shared::new(Waits::new(config, &assumed)),
            trace: trace.map(Shared::new),
            capture: capture.transpose()?.map(Shared::new),
            data,
            copies: files.report.as_ref().map(|_| Shared::new(AllCopies::new(config))),
            hops: StreamHops::new(config).map(Shared::new),
            page: files.report.clone(),
            _folder: folder,
        })
    }

    /// Returns the page of a live run.
    ///
    /// # Errors
    /// If a trace cannot be read.
    pub fn page(
        config: &Config,
        run: &LiveResults,
        requirements: &[requirements::Row],
        words: &PageLabels<'_>,
    ) -> Result<String, Failure> {
        let mut data = ReportData::new(config);
        run.commands.iter().for_each(|command| data.command(command));
        let subject = Subject {
            words,
            config,
            report: &run.report,
            data: &data,
            hops: None,
            copies: &AllCopies::new(config),
            ports: &[],
            waits: &Waits::new(config, &Assumptions::default()),
            limits: &[],
            requirements,
            traces: &run.traces,
        };
        page(&subject)
    }

    /// Returns the observer of all outputs.
    pub fn observer(&self) -> Box<dyn Observer> {
        let mut all: Vec<Box<dyn Observer>> = vec![Box::new(self.waits.clone())];
        all.extend(self.trace.iter().map(|one| Box::new(one.clone()) as Box<dyn Observer>));
        all.extend(self.capture.iter().map(|one| Box::new(one.clone()) as Box<dyn Observer>));
        all.extend(self.data.iter().map(|one| Box::new(one.clone()) as Box<dyn Observer>));
        all.extend(self.hops.iter().map(|one| Box::new(one.clone()) as Box<dyn Observer>));
        all.extend(self.copies.iter().map(|one| Box::new(one.clone()) as Box<dyn Observer>));
        all.extend(self.timelines.iter().map(|one| Box::new(one.clone()) as Box<dyn Observer>));
        Box::new(Observers(all))
    }

    /// Returns the hops of streams, after the simulation.
    pub fn into_hops(self) -> Option<StreamHops> {
        Some(self.hops?.0.take())
    }

    /// Closes the files at the end of virtual time. `done`: whether the workloads have ended.
    /// Returns every limit with its measured waits.
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
        if let Some(timelines) = &self.timelines {
            self.ports = timelines.0.borrow_mut().finish(now);
        }
        if let Some(trace) = &self.trace {
            trace.0.borrow_mut().finish()?;
        }
        if let Some(capture) = &self.capture {
            capture.0.borrow_mut().finish()?;
        }
        Ok(limits::all_rows(config, &self.assumed, &self.waits.0.borrow()))
    }

    /// Writes the report, if it is requested.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn report(
        &self,
        config: &Config,
        report: &Report,
        limits: &[Row],
        requirements: &[requirements::Row],
        words: &PageLabels<'_>,
    ) -> Outcome {
        let (Some(target), Some(data), Some(copies)) = (&self.page, &self.data, &self.copies)
        else {
            return Ok(());
        };
        let traces = self.trace.as_ref().map(|trace| {
            let trace = trace.0.borrow();
            (0..config.hosts.len()).map(|host| trace.paths(host)).collect()
        });
        let traces: Vec<Vec<PathBuf>> = traces.unwrap_or_default();
        let hops = self.hops.as_ref().map(|hops| hops.0.borrow());
        let subject = Subject {
            words,
            config,
            report,
            data: &data.0.borrow(),
            hops: hops.as_deref(),
            copies: &copies.0.borrow(),
            ports: &self.ports,
            waits: &self.waits.0.borrow(),
            limits,
            requirements,
            traces: &traces,
        };
        target.write(&page(&subject)?)
    }
}
