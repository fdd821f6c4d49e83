//! The workload of a host, in fio's terms.

use super::allowed::names;
use super::keys::WORKLOADS;
use super::recording::{self, Recording};
use super::section::{Section, set_fields};
use super::value::{Kind, PlanError};
use sim::workload::{Fio, IssueTiming, Replay, Rw, Workload};
use std::path::PathBuf;
use std::sync::Arc;
use wire::Duration;

/// Entries of a replayed queue by default:
/// those of Linux have 1023, and more memory than hosts have by default.
const DEFAULT_ENTRIES: u16 = 255;

/// A workload, and its recording if it is a replay.
type ParsedWorkload = (Workload, Option<Arc<Recording>>);

/// Any workload: for tables that are taken from the NVMe/TSN paper's configuration.
pub fn any() -> Workload {
    Workload::ConfigReads { count: 1, gap: Duration::ZERO }
}

/// The workload's table of a host: its own one, which replaces that of the plan unless it says
/// only how the host does what that one says.
pub fn of_host<'a>(host: &Section<'a>, root: &Section<'a>) -> Section<'a> {
    let (own, shared) = (host.table("workload"), root.table("workload"));
    let whole = WORKLOADS.iter().any(|(key, _)| own.find(key).is_some());
    match (own.is_present(), whole) {
        (false, _) => shared,
        (true, true) => own,
        (true, false) => own.with_defaults(&shared),
    }
}

/// Reads `[workload]`; recordings are taken from `known` if they are there.
pub fn read(section: &Section, known: &recording::Read) -> Result<ParsedWorkload, PlanError> {
    let given: Vec<_> =
        WORKLOADS.into_iter().filter(|(key, _)| section.find(key).is_some()).collect();
    let [(kind, table)] = given[..] else {
        let list = |all: &[(&'static str, _)]| all.iter().map(|(key, _)| *key).collect::<Vec<_>>();
        let what = match given[..] {
            [] => format!("[{}] needs one of {}", section.name, list(&WORKLOADS).join(", ")),
            _ => format!(
                "[{}] has {} together: it takes one",
                section.name,
                list(&given).join(" and ")
            ),
        };
        let origin = given.last().map_or(section.origin.clone(), |(key, _)| section.place(key));
        return Err(origin.fail(what));
    };
    let only = names(table);
    let every = WORKLOADS.iter().flat_map(|(_, table)| names(table));
    for key in every.filter(|key| !only.contains(key)) {
        if let Some(entry) = section.find(key) {
            let what = format!("{key} means nothing with {kind}, which takes {}", only.join(", "));
            return Err(entry.origin.fail(what));
        }
    }
    let bs = section.get("bs").unwrap_or(4096);
    let workload = match kind {
        "replay" => {
            return replay(section, known).map(|(workload, used)| (workload, Some(used)));
        }
        "dd" => Workload::Dd {
            write: section.text("dd") == Some("write"),
            bs,
            count: section.get("count").unwrap_or(100),
        },
        "configreads" => Workload::ConfigReads {
            count: section.get("configreads").unwrap_or(1),
            gap: section.get("gap").unwrap_or(Duration::from_us(10)),
        },
        _ => fio(section, bs)?,
    };
    Ok((workload, None))
}

fn replay(
    section: &Section,
    known: &recording::Read,
) -> Result<(Workload, Arc<Recording>), PlanError> {
    let fail = |what: &str| section.fail("replay", format!("replay: {what}"));
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
    let of = |most: &u16| depth.unwrap_or((*most).min(DEFAULT_ENTRIES));
    let depths = most.iter().map(|queues| queues.iter().map(of).collect()).collect();
    let operations = recording.operations.clone();
    Ok((Workload::Replay(Replay { operations, timing, depths }), recording))
}

fn fio(section: &Section, bs: usize) -> Result<Workload, PlanError> {
    let rw = match section.text("rw") {
        Some("write") => Rw::Write,
        Some("randread") => Rw::RandRead,
        Some("randwrite") => Rw::RandWrite,
        Some("randrw") => Rw::RandRw,
        Some("rw") => Rw::Rw,
        _ => Rw::Read,
    };
    let depth = section.get("iodepth").unwrap_or(1);
    let mut fio = Fio::new(rw, bs, depth);
    fio.size = (1 << 20).max((bs * depth) as u64);
    fio.io_size = section.get("io_size");
    fio.number_ios = section.get("number_ios");
    fio.runtime = section.get("runtime");
    fio.time_based = section.text("time_based") == Some("on");
    fio.rate = section.get("rate");
    set_fields!(
        fio, section,
        rwmixread numjobs size offset stripe nsid loops thinktime thinktime_blocks
    );
    if fio.size / (bs as u64) < depth as u64 {
        let what = format!("size: {} bytes are less than iodepth × bs", fio.size);
        return section.fail("size", what);
    }
    if fio.io_size.is_some_and(|size| size < bs as u64) {
        return section.fail("io_size", "io_size is less than bs");
    }
    if fio.time_based && fio.runtime.is_none() {
        return section.fail("time_based", "time_based means nothing without runtime");
    }
    if !matches!(rw, Rw::Rw | Rw::RandRw) && section.find("rwmixread").is_some() {
        let what = "rwmixread means nothing with an rw that does not mix: it takes rw or randrw";
        return section.fail("rwmixread", what);
    }
    if fio.thinktime == Duration::ZERO && section.find("thinktime_blocks").is_some() {
        return section
            .fail("thinktime_blocks", "thinktime_blocks means nothing without thinktime");
    }
    if !fio.offset.is_multiple_of(512) {
        return section.fail("offset", "offset: a multiple of 512B, up to 65536GiB");
    }
    if !fio.stripe.is_multiple_of(512) {
        return section.fail("stripe", "stripe: a multiple of 512B, up to 1GiB");
    }
    Ok(Workload::Fio(fio))
}
