//! The target of a node's trace.

use analysis::trace::PortFollower;
use live::trace::{Settings, Tracer};
use live::{Clock, Stop, random_number};
use report::{Failure, Outcome};
use std::path::PathBuf;
use wire::trace::{Follower, NodeRole, PayloadKey};

/// Where and what to record.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// The file, and the maximum size that is kept.
    pub settings: Settings,
    /// Whether user data are recorded too.
    pub all: bool,
}

impl TraceFile {
    /// Records into `path`, with a random key.
    pub fn new(path: PathBuf) -> Self {
        let settings = Settings { path, ring: None, snap: None, key: random_key() };
        Self { settings, all: false }
    }
}

/// Returns a random key, which is not stored.
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
    /// Returns a target that records nothing.
    fn default() -> Self {
        Self { file: None, warn: |_| {} }
    }
}

impl TraceTarget {
    /// Creates a target that records into `file`, or records nothing. `warn` receives a line if the
    /// trace is incomplete.
    pub fn new(file: Option<TraceFile>, warn: fn(&str)) -> Self {
        Self { file, warn }
    }

    /// Creates a target that records into a ring of about `size` bytes.
    pub fn ring(path: PathBuf, size: u64, warn: fn(&str)) -> Self {
        let mut file = TraceFile::new(path);
        file.settings.ring = Some(size);
        Self::new(Some(file), warn)
    }

    /// Returns the trace file; `None` if nothing is recorded.
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

    /// Stops or restarts the trace if a signal requests it. Returns a message about the change.
    pub fn switch(&self, tracer: &Tracer, stop: &Stop) -> Option<String> {
        let switch = stop.takes_trace_switch()?;
        if !tracer.is_on() {
            return Some("no trace to start: the node has no --trace".to_owned());
        }
        let path = self.path();
        Some(match tracer.switch(switch)? {
            true => format!("trace {path} started again"),
            false => format!("trace {path} stopped; SIGUSR2 starts it again"),
        })
    }

    /// Closes the file.
    ///
    /// # Errors
    /// One line that names the file, if the trace is incomplete.
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

    /// Returns the target for another node of this process, with `.name` appended to the file's
    /// name.
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
