//! `--trace`: where a node records TLPs and frames.

use crate::output::{file_only, warning};
use clap::Args;
use live::Stop;
use live::{Clock, Tracer};
use load::{TraceFile, TraceTarget};
use report::{Failure, Outcome, span};
use wire::trace::{NodeRole, PayloadKey};

/// The grammar of the option.
const NAME: &str = "FILE[,ring=SIZE][,payload=hash|all][,key=FILE][,snap=BYTES]";

/// The option of every node.
#[derive(Args, Clone, Debug, Default)]
pub struct TraceArgs {
    /// Record TLPs and frames for `farlane trace`: each payload as a keyed hash, or whole with
    /// payload=all, cut to snap bytes (64 to 4096). ring: keep about the last SIZE bytes, from 128K
    #[arg(long, value_name = NAME, value_parser = parse_target)]
    trace: Option<TraceFile>,
}

/// Parses [`NAME`].
fn parse_target(text: &str) -> Result<TraceFile, String> {
    let mut parts = text.split(',');
    let path = file_only(parts.next().unwrap_or_default())?;
    let mut target = TraceFile::new(path);
    let settings = &mut target.settings;
    for part in parts {
        match part.split_once('=') {
            Some(("ring", size)) => settings.ring = Some(ring(size)?),
            Some(("snap", bytes)) => settings.snap = Some(snap(bytes)?),
            Some(("key", path)) => settings.key = key(path)?,
            Some(("payload", "hash")) => target.all = false,
            Some(("payload", "all")) => target.all = true,
            _ => {
                let known = "ring=SIZE, payload=hash, payload=all, key=FILE or snap=BYTES";
                return Err(format!("invalid key '{part}': expected {known}"));
            }
        }
    }
    Ok(target)
}

/// Reads a key of [`PayloadKey::LENGTH`] bytes from a file.
fn key(path: &str) -> Result<PayloadKey, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("key={path}: {error}"))?;
    let length = bytes.len();
    let bytes = bytes.try_into().map_err(|_| {
        format!("key={path}: the file has {length} bytes, expected {}", PayloadKey::LENGTH)
    })?;
    Ok(PayloadKey::new(bytes))
}

fn ring(size: &str) -> Result<u64, String> {
    match span::bytes(size)? {
        size if size >= 128 << 10 => Ok(size),
        _ => Err(format!("ring={size}: expected at least 128K")),
    }
}

fn snap(bytes: &str) -> Result<u16, String> {
    // A submission queue entry has 64 bytes.
    span::bytes_in(bytes, 64..=4096).map_err(|why| format!("snap={bytes}: {why}"))
}

impl TraceArgs {
    /// Whether the option is set.
    pub fn is_set(&self) -> bool {
        self.trace.is_some()
    }

    /// The target of the trace.
    pub fn target(&self) -> TraceTarget {
        TraceTarget::new(self.trace.clone(), |text| warning(text))
    }

    /// Creates the file if the option is set. The error names the file.
    pub fn open(&self, role: NodeRole, instance: u64, clock: Clock) -> Result<Tracer, Failure> {
        self.target().open(role, instance, clock)
    }

    /// Stops or restarts the trace if SIGUSR2 requests it, and prints a message about the change.
    pub fn switch(&self, tracer: &Tracer, stop: &Stop) {
        self.target().switch(tracer, stop).into_iter().for_each(|line| tracing::info!("{line}"));
    }

    /// Closes the file. Fails if the file is not complete; the error names the file.
    pub fn close(&self, tracer: &Tracer) -> Outcome {
        self.target().close(tracer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    #[test]
    fn options_are_checked() {
        let target = parse_target("a/b.trace,ring=1MiB,snap=64B,payload=all").unwrap();
        let all = target.settings;
        assert_eq!((all.ring, all.snap, target.all), (Some(1 << 20), Some(64), true));
        assert_eq!(all.path, PathBuf::from("a/b.trace"));
        assert!(!parse_target("x").unwrap().all && !parse_target("x,payload=hash").unwrap().all);
        for wrong in ["", ",ring=1M", "x,ring=1K", "x,snap=63", "x,snap=5000", "x,colour=red"] {
            assert!(parse_target(wrong).is_err(), "{wrong}");
        }
        let error = parse_target("x,payload=some").unwrap_err();
        assert!(
            error.contains("invalid key 'payload=some'") && error.contains("payload=all"),
            "{error}"
        );
    }

    #[test]
    fn keys_are_random_or_in_a_file() {
        let key = |text: &str| parse_target(text).map(|target| target.settings.key);
        assert_ne!(key("x"), key("x"), "random");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.key");
        let text = format!("x,key={}", path.display());
        assert!(key(&text).unwrap_err().contains("run.key: No such file"), "{text}");
        for length in [31, 33] {
            std::fs::write(&path, vec![3; length]).unwrap();
            let error = key(&text).unwrap_err();
            assert!(error.ends_with(&format!("{length} bytes, expected 32")), "{error}");
        }
        std::fs::write(&path, [3; 32]).unwrap();
        assert_eq!(key(&text), Ok(PayloadKey::new([3; 32])));
    }

    #[test]
    fn nodes_of_one_process_write_separate_files() {
        let target = parse_target("x.trace,ring=1M").unwrap();
        let key = target.settings.key;
        let other = TraceArgs { trace: Some(target) }.target().for_node("device0");
        let other = &other.file().unwrap().settings;
        assert_eq!(other.key, key, "their hashes can be compared");
        let found = (other.path.as_path(), other.ring);
        assert_eq!(found, (Path::new("x.trace.device0"), Some(1 << 20)));
        assert!(TraceArgs::default().target().for_node("x").file().is_none());
    }
}
