//! What a host does, in fio's words.

use super::attached::MOST_NAMESPACES;
use super::recording::{self, Recording};
use super::section::Section;
use super::units::{ByteRate, Bytes};
use super::value::Kind;
use super::{PlanError, units};
use sim::workload::{Fio, Replay, Rw, Timing, Workload};
use std::path::PathBuf;
use std::sync::Arc;
use wire::Duration;

const RW: [&str; 6] = ["read", "write", "randread", "randwrite", "randrw", "rw"];
const KINDS: [&str; 4] = ["rw", "dd", "configreads", "replay"];

/// Commands that a replayed queue has room for at most, where nothing is said:
/// those of Linux have 1023, and more memory than hosts have by default.
const ROOM: u16 = 255;

/// A workload, and the recording that it replays.
type Given = (Workload, Option<Arc<Recording>>);

/// Reads `[workload]`; recordings are taken from `known` if they are there.
pub fn read(section: &Section, known: &recording::Read) -> Result<Given, PlanError> {
    let given: Vec<&str> = KINDS.into_iter().filter(|key| section.find(key).is_some()).collect();
    let [kind] = given[..] else {
        let what = match given[..] {
            [] => format!("[{}] needs one of {}", section.name, KINDS.join(", ")),
            _ => format!("[{}] has {} together: it takes one", section.name, given.join(" and ")),
        };
        let origin = given.last().map_or(section.origin.clone(), |key| section.place(key));
        return Err(origin.fail(what));
    };
    let only: &[&str] = match kind {
        "dd" => &["dd", "bs", "count"],
        "configreads" => &["configreads", "gap"],
        "replay" => &["replay", "timing", "iodepth"],
        _ => &[
            "rw",
            "rwmixread",
            "bs",
            "iodepth",
            "numjobs",
            "size",
            "runtime",
            "rate",
            "stripe",
            "nsid",
        ],
    };
    for key in super::keys::WORKLOAD.iter().filter(|key| !only.contains(key)) {
        if let Some(entry) = section.find(key) {
            let what = format!("{key} means nothing with {kind}, which takes {}", only.join(", "));
            return Err(entry.origin.fail(what));
        }
    }
    let workload = match kind {
        "replay" => {
            return replay(section, known).map(|(workload, used)| (workload, Some(used)));
        }
        "dd" => Ok(Workload::Dd {
            write: section.word("dd", &["read", "write"])? == Some("write"),
            bs: bs(section)?,
            count: section.number("count", 1, 1 << 32)?.unwrap_or(100),
        }),
        "configreads" => Ok(Workload::ConfigReads {
            count: section.number("configreads", 1, 1 << 32)?.unwrap_or(1),
            gap: section.within("gap", &units::LONG)?.unwrap_or(Duration::from_us(10)),
        }),
        _ => fio(section),
    };
    workload.map(|workload| (workload, None))
}

fn replay(
    section: &Section,
    known: &recording::Read,
) -> Result<(Workload, Arc<Recording>), PlanError> {
    let fail = |key: &str, what: String| Err(section.place(key).fail(what));
    let list = section.find("replay").is_some_and(|e| matches!(e.value.kind, Kind::List(_)));
    let files: Vec<PathBuf> = if list {
        let names = section.list("replay", |text| Ok(text.to_owned()))?.unwrap_or_default();
        names.into_iter().map(|(name, origin)| origin.path(&name)).collect()
    } else {
        section.path("replay")?.into_iter().collect()
    };
    if files.is_empty() {
        return fail("replay", "replay: a trace, or several of one run".into());
    }
    let timing = match section.word("timing", &["recorded", "asap"])? {
        Some("asap") => Timing::Asap,
        _ => Timing::Recorded,
    };
    let depth = section.number("iodepth", 1, 1023)?;
    let recording = match recording::recording(&files, known) {
        Ok(recording) => recording,
        Err(why) => return fail("replay", format!("replay: {why}")),
    };
    let most = match timing {
        Timing::Asap => &recording.depths,
        Timing::Recorded => &recording.rooms,
    };
    let of = |most: &u16| depth.map_or((*most).min(ROOM), |depth| depth as u16);
    let depths = most.iter().map(|queues| queues.iter().map(of).collect()).collect();
    let operations = recording.operations.clone();
    Ok((Workload::Replay(Replay { operations, timing, depths }), recording))
}

fn bs(section: &Section) -> Result<usize, PlanError> {
    let bs = section.parsed("bs", units::size)?.unwrap_or(4096);
    if bs == 0 || bs % 512 != 0 || bs > 1 << 30 {
        return Err(section.place("bs").fail("bs: a multiple of 512B, at most 1GiB"));
    }
    Ok(bs as usize)
}

fn fio(section: &Section) -> Result<Workload, PlanError> {
    let rw = match section.word("rw", &RW)?.unwrap_or("read") {
        "read" => Rw::Read,
        "write" => Rw::Write,
        "randread" => Rw::RandRead,
        "randwrite" => Rw::RandWrite,
        "randrw" => Rw::RandRw,
        _ => Rw::Rw,
    };
    let bs = bs(section)?;
    let depth = section.number("iodepth", 1, 1023)?.unwrap_or(1);
    let (rates, stripes) = (ByteRate(1)..=ByteRate::MOST, Bytes(0)..=Bytes(1 << 30));
    let fio = Fio {
        rwmixread: section.number("rwmixread", 0, 100)?.unwrap_or(50) as u8,
        numjobs: section.number("numjobs", 1, 64)?.unwrap_or(1) as usize,
        size: section.parsed("size", units::size)?.unwrap_or((1 << 20).max(bs as u64 * depth)),
        runtime: section.within("runtime", &units::SPAN)?,
        rate: section.within("rate", &rates)?.map(|rate| rate.0),
        stripe: section.within("stripe", &stripes)?.map_or(0, |stripe| stripe.0 as usize),
        nsid: section.number("nsid", 1, MOST_NAMESPACES as u64)?.unwrap_or(1) as u32,
        ..Fio::new(rw, bs, depth as usize)
    };
    let fail = |key: &str, what: String| Err(section.place(key).fail(what));
    if fio.size / (bs as u64) < depth {
        return fail("size", format!("size: {} bytes are less than iodepth × bs", fio.size));
    }
    if !matches!(rw, Rw::Rw | Rw::RandRw) && section.find("rwmixread").is_some() {
        let what = "rwmixread means nothing with an rw that does not mix: it takes rw or randrw";
        return fail("rwmixread", what.into());
    }
    if !fio.stripe.is_multiple_of(512) {
        return fail("stripe", "stripe: a multiple of 512B, up to 1GiB".into());
    }
    Ok(Workload::Fio(fio))
}
