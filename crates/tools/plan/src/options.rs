//! A workload from options of the command line or the lines of a job file.

use super::keys::ROOT;
use super::recording;
use super::section::Section;
use super::value::{Entry, Kind, Origin, PlanError, Value};
use super::{allowed, workload};
use sim::workload::Workload;

/// The workload with these keys of `[workload]`, each with its value as plans write it without
/// quotes and the place where it stands. `origin` is the place of the whole.
///
/// # Errors
/// As [`Plan::build`](super::Plan::build): the first key or value that is not allowed.
pub fn workload_of(
    settings: &[(&str, String, Origin)],
    origin: &Origin,
) -> Result<Workload, PlanError> {
    let entry = |(key, text, origin): &(&str, String, Origin)| {
        let kind = text.parse().map_or_else(|_| Kind::Text(text.clone()), Kind::Integer);
        let value = Value { origin: origin.clone(), kind };
        Entry { key: (*key).to_owned(), origin: origin.clone(), value }
    };
    let table = |entries| Value { origin: origin.clone(), kind: Kind::Table(entries) };
    let own = table(settings.iter().map(entry).collect());
    let whole = Entry { key: "workload".to_owned(), origin: origin.clone(), value: own };
    let root = table(vec![whole]);
    allowed::check(ROOT, &root)?;
    let section = Section::root(&root).table("workload");
    workload::read(&section, &recording::Read::default()).map(|(workload, _)| workload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::workload::{Fio, Rw};

    fn of(settings: &[(&str, &str)]) -> Result<Workload, String> {
        let place = |key: &str| Origin::Option(format!("--{key}"));
        let settings: Vec<_> =
            settings.iter().map(|(key, text)| (*key, (*text).to_owned(), place(key))).collect();
        let origin = Origin::Option("the options".to_owned());
        workload_of(&settings, &origin).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_read_as_a_plans_keys() {
        let fio = Fio { size: 64 << 10, numjobs: 2, ..Fio::new(Rw::RandRead, 8192, 4) };
        let given = [("rw", "randread"), ("bs", "8KiB"), ("iodepth", "4"), ("numjobs", "2")];
        assert_eq!(of(&[&given[..], &[("size", "64KiB")]].concat()), Ok(Workload::Fio(fio)));
        for (settings, wanted) in [
            (&[("rw", "reed")][..], "--rw: unknown rw 'reed'; did you mean 'read'?"),
            (&[("rw", "read"), ("bs", "100B")], "--bs: bs: a multiple of 512B"),
            (&[("rw", "read"), ("iodepth", "0")], "--iodepth: iodepth: expected a whole number, 1"),
            (&[("bs", "4KiB")], "the options: [workload] needs one of rw, dd, configreads"),
            (
                &[("rw", "read"), ("time_based", "on")],
                "--time_based: time_based means nothing without",
            ),
            (&[("rw", "read"), ("io_size", "512B")], "--io_size: io_size is less than bs"),
            (&[("rw", "read"), ("loops", "0")], "--loops: loops: expected a whole number, 1"),
            (&[("dd", "read"), ("iodepth", "2")], "--iodepth: iodepth means nothing with dd"),
        ] {
            let found = of(settings).unwrap_err();
            assert!(found.starts_with(wanted), "{found}");
        }
    }
}
