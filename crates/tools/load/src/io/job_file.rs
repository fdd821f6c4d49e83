//! Job files of fio (fio 3, HOWTO, "Job file format"): `[global]` and sections. Sections between
//! two `stonewall` keys run at the same time.

use super::section::{KEYS, Request, Section, Setting, Verify, section};
use keys::{Origin, unknown};
use report::{Failure, Outcome, span};
use std::path::Path;
use wire::Duration;

/// Keys without an effect: there is one engine without a cache, `--connect` selects the drive, and
/// every job is reported.
const IGNORED: [&str; 7] =
    ["ioengine", "direct", "filename", "group_reporting", "name", "description", "thread"];
/// Keys of sections that are not keys of a workload.
const OTHER: [&str; 6] =
    ["stonewall", "wait_for_previous", "verify", "verify_only", "randseed", "ramp_time"];
/// Names of fio that have another name here.
const ALIASES: [(&str, &str); 2] = [("readwrite", "rw"), ("blocksize", "bs")];

/// A partially read section.
#[derive(Clone, Debug, Default)]
struct Draft {
    name: String,
    line: usize,
    settings: Vec<Setting>,
    stonewall: bool,
    verify: bool,
    verify_only: bool,
    ramp: Duration,
}

/// Reads a job file.
///
/// # Errors
/// One line that names file and line.
pub fn read(path: &Path) -> Result<Request, Failure> {
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure(format!("{name}: {error}")))?;
    parse(&name, &text)
}

fn at(file: &str, line: usize) -> Origin {
    Origin::File { file: file.into(), line, column: 1 }
}

/// Reads the text of a job file called `file`.
fn parse(file: &str, text: &str) -> Result<Request, Failure> {
    let mut randseed = None;
    let mut global = Draft::default();
    let mut drafts: Vec<Draft> = Vec::new();
    let mut in_global = false;
    for (line, text) in (1..).zip(text.lines()) {
        let fail = |message: String| Failure(at(file, line).fail(message).to_string());
        let text = text.trim();
        if text.is_empty() || text.starts_with([';', '#']) {
            continue;
        }
        if let Some(name) = text.strip_prefix('[') {
            let name = name.strip_suffix(']').ok_or_else(|| fail("] is missing".to_owned()))?;
            in_global = name == "global";
            if !in_global {
                drafts.push(Draft { name: name.to_owned(), line, ..global.clone() });
            }
            continue;
        }
        let draft = match drafts.last_mut() {
            Some(draft) if !in_global => draft,
            _ if in_global => &mut global,
            _ => return Err(fail(format!("'{text}' stands before the first [section]"))),
        };
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let (key, value) = (key.trim(), value.trim());
        if key == "randseed" {
            let seed = value.parse().map_err(|_| {
                let most = u64::MAX;
                fail(format!("invalid randseed '{value}': expected a whole number, 0 to {most}"))
            })?;
            randseed = Some(seed);
        } else {
            draft.set(key, value, at(file, line)).map_err(fail)?;
        }
    }
    let mut group = 0;
    let mut sections = Vec::new();
    for draft in drafts {
        group += usize::from(draft.stonewall && !sections.is_empty());
        sections.push(draft.finish(file, group)?);
    }
    if sections.is_empty() {
        return Err(Failure(format!("{file}: no [section] has a job")));
    }
    let only = sections.iter().find(|section| section.verify == Verify::Only);
    if let (Some(section), None) = (only, randseed) {
        let message = "verify_only needs the randseed with which the data were written";
        return Err(Failure(section.origin.fail(message).to_string()));
    }
    let request = Request { sections, randseed };
    request.groups().try_for_each(has_one_engine)?;
    Ok(request)
}

/// Configuration reads have no queue and wait for each answer, so no other section can run at the
/// same time.
fn has_one_engine(group: &[Section]) -> Outcome {
    let reads = group.iter().find(|section| section.workload.fio().is_none());
    match reads.filter(|_| group.len() > 1) {
        None => Ok(()),
        Some(Section { name, origin, .. }) => {
            let message = format!(
                "[{name}]: configreads runs alone: it and the section behind it need stonewall"
            );
            Err(Failure(origin.fail(message).to_string()))
        }
    }
}

impl Draft {
    /// Adds a line of the file. The error describes the mistake.
    fn set(&mut self, key: &str, value: &str, origin: Origin) -> Result<(), String> {
        let is_on = || match value {
            "" | "1" | "true" => Ok(true),
            "0" | "false" => Ok(false),
            _ => Err(format!("{key}: {value}: 0 or 1")),
        };
        let alias = ALIASES.iter().find(|(name, _)| *name == key);
        let name = alias.map_or(key, |(_, name)| name);
        if let Some(key) = KEYS.into_iter().find(|known| *known == name) {
            self.settings.retain(|(known, ..)| *known != key);
            let value = match (key, value) {
                ("time_based", _) if is_on()? => "on",
                ("time_based", _) => return Ok(()),
                (_, value) => value,
            };
            self.settings.push((key, value.to_owned(), origin));
            return Ok(());
        }
        match key {
            "stonewall" | "wait_for_previous" => self.stonewall = is_on()?,
            // In fio the value selects a checksum. Here the data contain their place and version.
            "verify" => self.verify = !matches!(value, "0" | "none"),
            "verify_only" => self.verify_only = is_on()?,
            "ramp_time" => {
                self.ramp = span::seconds(value).map_err(|why| format!("{key}: {why}"))?;
            }
            _ if IGNORED.contains(&key) => {}
            _ => {
                let names = [&KEYS[..], &OTHER, &ALIASES.map(|(name, _)| name), &IGNORED].concat();
                return Err(unknown("key", key, &names));
            }
        }
        Ok(())
    }

    fn finish(self, file: &str, group: usize) -> Result<Section, Failure> {
        let origin = at(file, self.line);
        let verify = match (self.verify, self.verify_only) {
            (_, true) => Verify::Only,
            (true, _) => Verify::Written,
            _ => Verify::No,
        };
        let read = section(Some(&self.name), &self.settings, origin, verify, self.ramp)?;
        Ok(Section { group, ..read })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::{JobSpec, Rw};

    fn error_of(text: &str) -> String {
        parse("j.fio", text).unwrap_err().to_string()
    }

    fn parsed(text: &str) -> workload::Fio {
        parse("j.fio", text).unwrap().sections[0].workload.fio().expect("jobs")
    }

    #[test]
    fn sections_have_the_globals_before_them_and_their_own() {
        let text = "; a job file\n[global]\nioengine=libaio\nbs=8k\ndirect=1\nrandseed=7\n\n\
            [fill]\nrw=write\nsize = 1m\nverify=crc32c\n[read]\nstonewall\nreadwrite=randread\n\
            iodepth=4\nruntime=2\ntime_based\nramp_time=1\nloops=3\n";
        let request = parse("j.fio", text).unwrap();
        assert_eq!(request.randseed, Some(7));
        let [fill, read] = &request.sections[..] else { panic!("two sections") };
        assert_eq!((&*fill.name, fill.verify, fill.sized), ("fill", Verify::Written, true));
        assert_eq!((&*read.name, read.verify, read.sized), ("read", Verify::No, false));
        let JobSpec::Fio(fio) = &fill.workload else { panic!("fio") };
        assert_eq!((fio.rw, fio.bs, fio.size), (Rw::Write, 8192, 1 << 20));
        let JobSpec::Fio(fio) = &read.workload else { panic!("fio") };
        let runtime = Some(wire::Duration::from_ms(2_000));
        assert_eq!((fio.rw, fio.bs, fio.iodepth, fio.runtime), (Rw::RandRead, 8192, 4, runtime));
        assert_eq!((fio.time_based, fio.loops, read.ramp), (true, 3, Duration::from_ms(1_000)));
        assert!(!parsed("[a]\nrw=read\nruntime=2\ntime_based=0\n").time_based);
        let fio = parsed("[a]\nrw=read\nsize=1m\nio_size=8m\nnumber_ios=7\n");
        assert_eq!((fio.io_size, fio.number_ios), (Some(8 << 20), Some(7)));
    }

    #[test]
    fn stonewalls_separate_groups() {
        let text = "[a]\nstonewall\nrw=read\n[b]\nrw=read\n[c]\nwait_for_previous\nrw=read\n\
            [d]\nstonewall\nconfigreads=1\n[e]\nstonewall\nrw=read\n[f]\nstonewall=0\nrw=read\n";
        let request = parse("j.fio", text).unwrap();
        let names = |group: &[Section]| -> String {
            group.iter().map(|section| section.name.as_str()).collect()
        };
        assert_eq!(request.groups().map(names).collect::<Vec<_>>(), ["ab", "c", "d", "ef"]);
    }

    #[test]
    fn job_file_errors_name_the_line() {
        for (text, wanted) in [
            ("[a]\nrw=read\nbss=4k\n", "j.fio:3:1: unknown key 'bss'; did you mean 'bs'?"),
            ("[a]\nrw=reed\n", "j.fio:2:1: unknown rw 'reed'; did you mean 'read'?"),
            ("[a]\nrw=read\nbs=5\n", "j.fio:3:1: bs: a multiple of 512B"),
            ("[a]\nbs=4k\n", "j.fio:1:1: one of rw, dd and configreads is missing"),
            ("rw=read\n", "j.fio:1:1: 'rw=read' stands before the first [section]"),
            ("[a\n", "j.fio:1:1: ] is missing"),
            ("[global]\nrw=read\n", "j.fio: no [section] has a job"),
            ("[a]\nrw=read\n[b]\nconfigreads=1\n", "j.fio:3:1: [b]: configreads runs alone"),
            ("[a]\nrw=write\nverify_only=1\n", "j.fio:1:1: verify_only needs the randseed"),
            ("[a]\nrw=read\ntime_based\n", "j.fio:3:1: 'time_based' requires 'runtime'"),
            ("[a]\nrw=read\nramp_time=x\n", "j.fio:3:1: ramp_time: "),
            ("[a]\nconfigreads=1\nramp_time=1\n", "j.fio:1:1: 'ramp_time' does not apply to"),
            ("[a]\nrw=read\niodepth_batch=2\n", "j.fio:3:1: unknown key 'iodepth_batch'"),
            ("[a]\nrw=read\nstonewall=x\n", "j.fio:3:1: stonewall: x: 0 or 1"),
            ("[a]\nrw=read\nstripe=4k\n", "j.fio:3:1: unknown key 'stripe'"),
        ] {
            assert!(error_of(text).starts_with(wanted), "{}", error_of(text));
        }
    }
}
