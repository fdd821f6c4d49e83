//! The workload of a host, in fio's terms.

use super::recording::{self, Recording};
use super::tables::WORKLOADS;
use keys::{KeyError, Kind, Section, job};
use sim::workload::{IssueTiming, Replay, Workload};
use std::path::PathBuf;
use std::sync::Arc;
use wire::Duration;

/// Default number of entries of a replayed queue. Linux uses 1023 entries, which need more memory
/// than hosts have by default.
const DEFAULT_ENTRIES: u16 = 255;

/// A workload, and its recording if it is a replay.
type ParsedWorkload = (Workload, Option<Arc<Recording>>);

/// Returns an arbitrary workload for the NVMe/TSN paper's configurations, which require one. Only
/// links or stations of these configurations are used.
pub fn any() -> Workload {
    Workload::ConfigReads { count: 1, gap: Duration::ZERO }
}

/// Returns a host's workload table. The host's table replaces the plan's table unless it has only
/// keys that modify a workload.
pub fn host_section<'a>(host: &Section<'a>, root: &Section<'a>) -> Section<'a> {
    let (own, shared) = (host.table("workload"), root.table("workload"));
    let whole = WORKLOADS.iter().any(|(key, _)| own.find(key).is_some());
    match (own.is_present(), whole) {
        (false, _) => shared,
        (true, true) => own,
        (true, false) => own.with_defaults(&shared),
    }
}

/// Reads `[workload]`. Recordings in the cache `known` are not read again.
pub fn read(section: &Section, known: &recording::Read) -> Result<ParsedWorkload, KeyError> {
    match job::kind(section, &WORKLOADS)? {
        "replay" => replay(section, known).map(|(workload, used)| (workload, Some(used))),
        kind => Ok((job::read(section, kind)?.into(), None)),
    }
}

fn replay(
    section: &Section,
    known: &recording::Read,
) -> Result<(Workload, Arc<Recording>), KeyError> {
    let fail = |message: &str| section.fail("replay", format!("replay: {message}"));
    let list = section.find("replay").is_some_and(|e| matches!(e.value.kind, Kind::List(_)));
    let files: Vec<PathBuf> = if list {
        let names = section.list::<String>("replay").into_iter();
        names.map(|(name, origin)| origin.path(&name)).collect()
    } else {
        section.path("replay").into_iter().collect()
    };
    if files.is_empty() {
        return fail("a trace, or several of one run");
    }
    let recording = match recording::recording(&files, known) {
        Ok(recording) => recording,
        Err(why) => return fail(&why),
    };
    let (timing, most) = match section.text("timing") {
        Some("asap") => (IssueTiming::Asap, &recording.depths),
        _ => (IssueTiming::Recorded, &recording.queue_entries),
    };
    let depth = section.get("iodepth");
    let entries = |most: &u16| depth.unwrap_or((*most).min(DEFAULT_ENTRIES));
    let depths = most.iter().map(|queues| queues.iter().map(entries).collect()).collect();
    let operations = recording.operations.clone();
    Ok((Workload::Replay(Replay { operations, timing, depths }), recording))
}
