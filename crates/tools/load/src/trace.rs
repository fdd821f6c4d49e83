//! Where a node records TLPs and frames.

use analysis::trace::PortFollower;
use live::trace::{Settings, Tracer};
use live::{Clock, Stop, random_number};
use report::{Failure, Outcome};
use std::path::PathBuf;
use wire::trace::{Follower, NodeRole, PayloadKey};

/// Where and what to record.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// The file, and how much of it is kept.
    pub settings: Settings,
    /// Data of users too.
    pub all: bool,
}

impl TraceFile {
    /// Into `path`, with a random key.
    pub fn new(path: PathBuf) -> Self {
        let settings = Settings { path, ring: None, snap: None, key: random_key() };
        Self { settings, all: false }
    }
}

/// A key that nobody knows after this process.
fn random_key() -> PayloadKey {
    let words: [_; 4] = std::array::from_fn(|_| random_number().to_be_bytes());
    PayloadKey::new(*words.as_flattened().first_chunk().expect("32 bytes"))
}

/// The trace of a node, if it records one.
#[derive(Clone, Debug)]
pub struct TraceTarget {
    file: Option<TraceFile>,
    warn: fn(&str),
}

impl Default for TraceTarget {
    /// Records nothing.
    fn default() -> Self {
        Self { file: None, warn: |_| {} }
    }
}

impl TraceTarget {
    /// Into a file, if there is one. `warn` gets a line when the trace is not complete.
    pub fn new(file: Option<TraceFile>, warn: fn(&str)) -> Self {
        Self { file, warn }
    }

    /// Into a ring of about `size` bytes.
    pub fn ring(path: PathBuf, size: u64, warn: fn(&str)) -> Self {
        let mut file = TraceFile::new(path);
        file.settings.ring = Some(size);
        Self::new(Some(file), warn)
    }

    /// The file.
    pub fn file(&self) -> Option<&TraceFile> {
        self.file.as_ref()
    }

    /// Begins the file, if there is one.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn open(&self, role: NodeRole, instance: u64, clock: Clock) -> Result<Tracer, Failure> {
        let Some(TraceFile { settings, all }) = &self.file else { return Ok(Tracer::off()) };
        let follower = (!all).then(|| Box::new(PortFollower::recording()) as Box<dyn Follower>);
        let failed = format!("cannot write {}", settings.path.display());
        let (says, warn) = (failed.clone(), self.warn);
        let on_error =
            Box::new(move |error: &_| warn(&format!("{says}: {error}; the trace stops")));
        Tracer::create(settings, role, instance, clock, follower, on_error)
            .map_err(|error| Failure(format!("{failed}: {error}")))
    }

    /// Stops the trace or starts it again, if a signal requests it. Returns a line that says so.
    pub fn switch(&self, tracer: &Tracer, stop: &Stop) -> Option<String> {
        if !stop.takes_trace_switch() {
            return None;
        }
        let path = self.path();
        Some(match tracer.toggle() {
            Some(true) => format!("trace {path} started again"),
            Some(false) => format!("trace {path} stopped; SIGUSR2 starts it again"),
            None => "no trace to start: the node has no --trace".to_owned(),
        })
    }

    /// Closes the file.
    ///
    /// # Errors
    /// One line that names the file, if not everything is in it.
    pub fn close(&self, tracer: &Tracer) -> Outcome {
        let incomplete = |error| format!("the trace {} is not complete: {error}", self.path());
        let report = tracer.finish().map_err(|error| Failure(incomplete(error)))?;
        if report.lost > 0 {
            let lost = report.lost;
            (self.warn)(&format!("--trace: {lost} records are missing: the file was too slow"));
        }
        Ok(())
    }

    fn path(&self) -> String {
        let path = self.file.as_ref().map(|to| to.settings.path.display().to_string());
        path.unwrap_or_default()
    }

    /// The same for another node of this process: `.name` is appended to the file.
    #[must_use]
    pub fn for_node(&self, name: &str) -> Self {
        let file = self.file.clone().map(|mut file| {
            let mut path = file.settings.path.into_os_string();
            path.push(format!(".{name}"));
            file.settings.path = PathBuf::from(path);
            file
        });
        Self { file, warn: self.warn }
    }
}
