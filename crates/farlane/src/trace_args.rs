//! `--trace`: where a node records TLPs and frames.

use crate::namespace::parse_size;
use crate::output::file_only;
use clap::Args;
use live::Clock;
use live::trace::{Settings, Tracer};
use report::{Failure, Outcome};
use std::path::PathBuf;
use wire::trace::NodeRole;

/// The option of every node.
#[derive(Args, Clone, Debug, Default)]
pub struct TraceArgs {
    /// Record every TLP and frame into FILE, for `farlane trace`; with ring only the beginning and
    /// about the last SIZE bytes; with snap only so much of each payload (without it all of the
    /// first 512 KiB, and then all but 16 bytes of what drives write)
    #[arg(long, value_name = "FILE[,ring=SIZE][,snap=BYTES]", value_parser = parse_target)]
    trace: Option<Settings>,
}

/// `FILE[,ring=SIZE][,snap=BYTES]`.
fn parse_target(text: &str) -> Result<Settings, String> {
    let mut parts = text.split(',');
    let path = file_only(parts.next().unwrap_or_default())?;
    let mut settings = Settings { path, ring: None, snap: None };
    for part in parts {
        match part.split_once('=') {
            Some(("ring", size)) => settings.ring = Some(ring(size)?),
            Some(("snap", bytes)) => settings.snap = Some(snap(bytes)?),
            _ => return Err(format!("'{part}' is not ring=SIZE or snap=BYTES")),
        }
    }
    Ok(settings)
}

fn ring(size: &str) -> Result<u64, String> {
    match parse_size(size)? {
        size if size >= 128 << 10 => Ok(size),
        _ => Err(format!("ring={size}: a ring has 128K or more")),
    }
}

fn snap(bytes: &str) -> Result<u16, String> {
    // Below 64 not even a submission queue entry would be whole.
    let bytes = bytes.parse().ok().filter(|bytes| (64..=4096).contains(bytes));
    bytes.ok_or_else(|| "snap is 64 to 4096 bytes".to_owned())
}

impl TraceArgs {
    /// Whether the option is set.
    pub fn is_set(&self) -> bool {
        self.trace.is_some()
    }

    /// Begins the file, if the option is set. The error is one line that names it.
    pub fn open(&self, role: NodeRole, instance: u64, clock: Clock) -> Result<Tracer, Failure> {
        let Some(settings) = &self.trace else { return Ok(Tracer::off()) };
        Tracer::create(settings, role, instance, clock).map_err(|error| self.failed(&error))
    }

    /// Closes the file. The error is one line that names it, if not everything is in it.
    pub fn close(&self, tracer: &Tracer) -> Outcome {
        let report = tracer.finish().map_err(|error| self.failed(&error))?;
        if report.lost > 0 {
            eprintln!("trace: {} records are missing: the file was too slow", report.lost);
        }
        Ok(())
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        let path = self.trace.as_ref().map(|to| to.path.display().to_string());
        Failure(format!("cannot write {}: {error}", path.unwrap_or_default()))
    }

    /// Into a ring of about `size` bytes.
    pub fn ring(path: PathBuf, size: u64) -> Self {
        Self { trace: Some(Settings { path, ring: Some(size), snap: None }) }
    }

    /// The same for another node of this process: `.name` is appended to the file.
    #[must_use]
    pub fn for_node(&self, name: &str) -> Self {
        let trace = self.trace.clone().map(|settings| {
            let mut path = settings.path.clone().into_os_string();
            path.push(format!(".{name}"));
            Settings { path: PathBuf::from(path), ..settings }
        });
        Self { trace }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        let all = parse_target("a/b.trace,ring=1M,snap=64").unwrap();
        assert_eq!((all.ring, all.snap), (Some(1 << 20), Some(64)));
        assert_eq!(all.path, PathBuf::from("a/b.trace"));
        for wrong in ["", ",ring=1M", "x,ring=1K", "x,snap=63", "x,snap=5000", "x,colour=red"] {
            assert!(parse_target(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nodes_of_one_process_have_files_of_their_own() {
        let args = TraceArgs { trace: Some(parse_target("x.trace,ring=1M").unwrap()) };
        let other = args.for_node("device0").trace.unwrap();
        assert_eq!((other.path, other.ring), (PathBuf::from("x.trace.device0"), Some(1 << 20)));
        assert!(TraceArgs::default().for_node("x").trace.is_none());
    }
}
