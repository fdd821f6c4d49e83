//! The keys of a job in fio's terms: the keys of `[workload]` in plans, of sections in job files,
//! and of options of the command line.

use crate::allowed::Allowed::{self, *};
use crate::allowed::{check, names};
use crate::units::{self, LONG, MOST_BYTES, MOST_RATE, SPAN};
use crate::{Entry, Key, KeyError, Kind, Origin, Section, Table, Value, set_fields};
use wire::Duration;
use workload::{Fio, JobSpec, Rw};

/// Maximum number of namespaces of a drive.
pub const MOST_NAMESPACES: u64 = 32;
const SIZE: Allowed = Form(|text| units::size(text).map(drop));

/// Start of a job.
pub const START: &[Key] = &[Key::new("startdelay", TimeIn(LONG, "s"))];
/// The kind of I/O.
pub const RW: &[Key] = &[
    Key::new("rw", Word(&["read", "write", "randread", "randwrite", "randrw", "rw"])),
    Key::new("rwmixread", Number(0, 100)),
];
/// Bytes per transfer.
pub const BS: &[Key] = &[Key::new(
    "bs",
    Size(
        |bs| (512..=1 << 30).contains(&bs) && bs.is_multiple_of(512),
        "a multiple of 512B, at most 1GiB",
    ),
)];
/// Number of transfers in flight.
pub const DEPTH: &[Key] = &[Key::new("iodepth", Number(1, 1023))];
/// The other parameters of jobs with `rw`.
pub const JOBS: &[Key] = &[
    Key::new("numjobs", Number(1, 64)),
    Key::new("size", SIZE),
    Key::new("offset", Bytes(0, MOST_BYTES)),
    Key::new("io_size", SIZE),
    Key::new("number_ios", Number(1, 1 << 48)),
    Key::new("loops", Number(1, 1 << 32)),
    Key::new("runtime", TimeIn(SPAN, "s")),
    Key::new("time_based", Word(&["off", "on"])),
    Key::new("rate", FioRate(1, MOST_RATE)),
    Key::new("thinktime", TimeIn(LONG, "us")),
    Key::new("thinktime_blocks", Number(1, 1 << 32)),
    Key::new("stripe", Bytes(0, 1 << 30)),
    Key::new("nsid", Number(1, MOST_NAMESPACES)),
];
/// Consecutive blocks, one at a time.
pub const DD: &[Key] = &[Key::new("dd", Word(&["read", "write"]))];
/// Number of blocks of `dd`.
pub const COUNT: &[Key] = &[Key::new("count", Number(1, 1 << 32))];
/// Configuration reads.
pub const READS: &[Key] =
    &[Key::new("configreads", Number(1, 1 << 32)), Key::new("gap", TimeIn(LONG, "us"))];

/// The kinds of jobs by the key that selects one, each with its further keys.
pub const KINDS: [(&str, Table); 3] = [
    ("rw", &[RW, BS, DEPTH, JOBS, START]),
    ("dd", &[DD, BS, COUNT, START]),
    ("configreads", &[READS, START]),
];

const ROOT: Table = &[&[Key::new("workload", Table(JOB))]];
const JOB: Table = &[START, RW, BS, DEPTH, JOBS, DD, COUNT, READS];

/// Returns the kind of a section's job, one of `kinds`.
///
/// # Errors
/// If no kind or several kinds are selected, or if the selected one does not have a key.
pub fn kind(section: &Section, kinds: &[(&'static str, Table)]) -> Result<&'static str, KeyError> {
    let given: Vec<_> =
        kinds.iter().copied().filter(|(key, _)| section.find(key).is_some()).collect();
    let [(kind, table)] = given[..] else {
        let list = |all: &[(&'static str, _)]| all.iter().map(|(key, _)| *key).collect::<Vec<_>>();
        let message = match given[..] {
            [] => format!("[{}] needs one of {}", section.name, list(kinds).join(", ")),
            _ => format!(
                "[{}] has {} together: it takes one",
                section.name,
                list(&given).join(" and ")
            ),
        };
        let origin = given.last().map_or(section.origin.clone(), |(key, _)| section.place(key));
        return Err(origin.fail(message));
    };
    let only = names(table);
    let every = kinds.iter().flat_map(|(_, table)| names(table));
    for key in every.filter(|key| !only.contains(key)) {
        if let Some(entry) = section.find(key) {
            let message = format!("'{key}' does not apply to {kind}; allowed: {}", only.join(", "));
            return Err(entry.origin.fail(message));
        }
    }
    Ok(kind)
}

/// Reads a job of this kind, one of [`KINDS`].
///
/// # Errors
/// The first key that contradicts others.
pub fn read(section: &Section, kind: &str) -> Result<JobSpec, KeyError> {
    let bs = section.get("bs").unwrap_or(4096);
    Ok(match kind {
        "dd" => JobSpec::Dd {
            write: section.text("dd") == Some("write"),
            bs,
            count: section.get("count").unwrap_or(100),
        },
        "configreads" => JobSpec::ConfigReads {
            count: section.get("configreads").unwrap_or(1),
            gap: section.get("gap").unwrap_or(Duration::from_us(10)),
        },
        _ => JobSpec::Fio(fio(section, bs)?),
    })
}

/// Parses a job from keys of `[workload]`, each with its value without quotes and its place.
/// `origin` is the place of the whole job.
///
/// # Errors
/// The first key or value that is not allowed.
pub fn parse(settings: &[(&str, String, Origin)], origin: &Origin) -> Result<JobSpec, KeyError> {
    let entry = |(key, text, origin): &(&str, String, Origin)| {
        let kind = text.parse().map_or_else(|_| Kind::Text(text.clone()), Kind::Integer);
        let value = Value { origin: origin.clone(), kind };
        Entry { key: (*key).to_owned(), origin: origin.clone(), value }
    };
    let table = |entries| Value { origin: origin.clone(), kind: Kind::Table(entries) };
    let own = table(settings.iter().map(entry).collect());
    let whole = Entry { key: "workload".to_owned(), origin: origin.clone(), value: own };
    let root = table(vec![whole]);
    check(ROOT, &root)?;
    let section = Section::root(ROOT, &root).table("workload");
    read(&section, kind(&section, &KINDS)?)
}

fn fio(section: &Section, bs: usize) -> Result<Fio, KeyError> {
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
        let message = format!("size: {} bytes are less than iodepth × bs", fio.size);
        return section.fail("size", message);
    }
    if fio.io_size.is_some_and(|size| size < bs as u64) {
        return section.fail("io_size", "io_size is less than bs");
    }
    if fio.time_based && fio.runtime.is_none() {
        return section.fail("time_based", "'time_based' requires 'runtime'");
    }
    if !matches!(rw, Rw::Rw | Rw::RandRw) && section.find("rwmixread").is_some() {
        let message = "'rwmixread' applies only to rw and randrw";
        return section.fail("rwmixread", message);
    }
    if fio.thinktime == Duration::ZERO && section.find("thinktime_blocks").is_some() {
        return section.fail("thinktime_blocks", "'thinktime_blocks' requires 'thinktime'");
    }
    if !fio.offset.is_multiple_of(512) {
        let offset = fio.offset;
        let message =
            format!("offset: expected a multiple of 512B, up to 65536GiB; found {offset}B");
        return section.fail("offset", message);
    }
    if !fio.stripe.is_multiple_of(512) {
        let stripe = fio.stripe;
        let message = format!("stripe: expected a multiple of 512B, up to 1GiB; found {stripe}B");
        return section.fail("stripe", message);
    }
    Ok(fio)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job_spec(settings: &[(&str, &str)]) -> Result<JobSpec, String> {
        let place = |key: &str| Origin::Option(format!("--{key}"));
        let settings: Vec<_> =
            settings.iter().map(|(key, text)| (*key, (*text).to_owned(), place(key))).collect();
        let origin = Origin::Option("the options".to_owned());
        parse(&settings, &origin).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_read_as_a_plans_keys() {
        let fio = Fio { size: 64 << 10, numjobs: 2, ..Fio::new(Rw::RandRead, 8192, 4) };
        let given = [("rw", "randread"), ("bs", "8KiB"), ("iodepth", "4"), ("numjobs", "2")];
        assert_eq!(job_spec(&[&given[..], &[("size", "64KiB")]].concat()), Ok(JobSpec::Fio(fio)));
        for (settings, wanted) in [
            (&[("rw", "reed")][..], "--rw: unknown rw 'reed'; did you mean 'read'?"),
            (&[("rw", "read"), ("bs", "100B")], "--bs: bs: a multiple of 512B"),
            (&[("rw", "read"), ("iodepth", "0")], "--iodepth: iodepth: expected a whole number, 1"),
            (&[("bs", "4KiB")], "the options: [workload] needs one of rw, dd, configreads"),
            (&[("rw", "read"), ("time_based", "on")], "--time_based: 'time_based' requires"),
            (&[("rw", "read"), ("io_size", "512B")], "--io_size: io_size is less than bs"),
            (&[("rw", "read"), ("loops", "0")], "--loops: loops: expected a whole number, 1"),
            (&[("dd", "read"), ("iodepth", "2")], "--iodepth: 'iodepth' does not apply to dd"),
        ] {
            let found = job_spec(settings).unwrap_err();
            assert!(found.starts_with(wanted), "{found}");
        }
    }
}
