//! `--resume`: the finished simulations of a sweep in a file, for a further call.
//!
//! The file has one JSON document per line. The first line identifies the sweep, the others are
//! simulations. A line is written at once and is complete, so after a crash only the last line may
//! be cut.

use super::document::SimReport;
use super::over_seeds::Measured;
use super::parts::RunTables;
use report::Failure;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Version of the file.
const VERSION: u32 = 1;
/// The end of each refusal.
const REST: &str = "; name another file, or remove this one";
/// The beginning of a file.
const START: &[u8] = b"{\"farlane_resume\"";

/// The sweep to which a file belongs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Head {
    /// Version of the file.
    farlane_resume: u32,
    /// Version of the simulator.
    version: String,
    /// Text of the plan, with the settings.
    plan: String,
    sweep: Vec<String>,
    /// All other options that change the simulations.
    options: Vec<String>,
}

/// A finished simulation.
#[derive(Deserialize)]
struct Line {
    simulation: usize,
    document: SimReport,
    measured: Measured,
}

/// [`Line`] for writing.
#[derive(Serialize)]
struct LineRef<'a> {
    simulation: usize,
    document: &'a SimReport,
    measured: &'a Measured,
}

/// The file of a sweep that can be continued.
#[derive(Debug)]
pub struct Resume {
    path: PathBuf,
    /// `None` after an error.
    file: RefCell<Option<File>>,
    finished: RefCell<BTreeMap<usize, SimReport>>,
    warn: fn(&str),
}

impl Resume {
    /// Opens or creates the file. `plan` is the text of the plan with its settings, `sweep` has the
    /// values of `--sweep`, `options` all other options that change the simulations. `warn`
    /// receives warnings: a cut last line, and a full disk, after which the sweep goes on without
    /// the file.
    ///
    /// # Errors
    /// One line that names the file: it cannot be opened, or it belongs to another sweep.
    pub fn open(
        path: &Path,
        plan: &str,
        (sweep, options): (&[String], Vec<String>),
        warn: fn(&str),
    ) -> Result<Self, Failure> {
        let head = Head {
            farlane_resume: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            plan: plan.to_owned(),
            sweep: sweep.to_vec(),
            options,
        };
        let failed = |error: io::Error| Failure(format!("{}: {error}", path.display()));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        // A file of something else stays as it is.
        let first =
            text.iter().position(|byte| *byte == b'\n').map_or(&text[..], |at| &text[..=at]);
        let wrong = |why| Failure(format!("{}: {why}", path.display()));
        if whole > 0 {
            head.compare(first).map_err(wrong)?;
        } else if !text.starts_with(START) && !START.starts_with(&text) {
            return Err(wrong(format!("not a file of --resume{REST}")));
        }
        if whole < text.len() {
            warn(&format!("{}: the last line is cut and is ignored", path.display()));
            file.set_len(whole as u64).map_err(failed)?;
            file.seek(io::SeekFrom::End(0)).map_err(failed)?;
        }
        let mut lines = text[..whole].split_inclusive(|byte| *byte == b'\n').zip(1..);
        let finished = match lines.next() {
            None => {
                write_line(&mut file, &head).map_err(failed)?;
                BTreeMap::new()
            }
            Some(_) => {
                let simulation = |(line, number): (&[u8], usize)| {
                    let Line { simulation, document, measured } = serde_json::from_slice(line)
                        .map_err(|error| wrong(format!("line {number}: {error}")))?;
                    Ok((simulation, SimReport { measured, ..document }))
                };
                lines.map(simulation).collect::<Result<_, Failure>>()?
            }
        };
        let (file, finished) = (RefCell::new(Some(file)), RefCell::new(finished));
        Ok(Self { path: path.to_owned(), file, finished, warn })
    }

    /// Returns the finished simulations of earlier calls, of `count` simulations of the plan
    /// `name`. A simulation without its part of the `tables` is not finished.
    pub(super) fn finished(
        &self,
        name: &str,
        count: usize,
        tables: Option<&RunTables>,
    ) -> Vec<Option<SimReport>> {
        let mut finished = self.finished.take();
        let document = |at| {
            let document: SimReport = finished.remove(&at)?;
            let commands = document.measured.commands;
            let is_whole = tables.is_none_or(|tables| tables.is_complete(at, commands));
            is_whole.then(|| SimReport { plan: name.to_owned(), ..document })
        };
        (0..count).map(document).collect()
    }

    /// Adds a simulation that was not interrupted.
    pub(super) fn append(&self, simulation: usize, document: &SimReport) {
        let mut open = self.file.borrow_mut();
        let Some(file) = open.as_mut().filter(|_| !document.interrupted) else { return };
        let line = LineRef { simulation, document, measured: &document.measured };
        if let Err(error) = write_line(file, &line) {
            let path = self.path.display();
            (self.warn)(&format!("cannot write {path}: {error}; the sweep goes on without it"));
            *open = None;
        }
    }
}

/// Writes a line at once, so that no other line is cut if the process ends.
fn write_line(file: &mut File, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(line).map_err(io::Error::other)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

impl Head {
    /// Compares this sweep with the first line of a file. The error names the difference.
    fn compare(&self, line: &[u8]) -> Result<(), String> {
        let Ok(found) = serde_json::from_slice::<Self>(line) else {
            return Err(format!("not a file of --resume{REST}"));
        };
        if (found.farlane_resume, &found.version) != (self.farlane_resume, &self.version) {
            let Self { farlane_resume, version, .. } = found;
            return Err(format!(
                "written by farlane {version} with version {farlane_resume}, not by farlane {} with \
                 {VERSION}{REST}",
                self.version
            ));
        }
        for (theirs, ours) in [(&found.sweep, &self.sweep), (&found.options, &self.options)] {
            if theirs != ours {
                let (theirs, ours) = (theirs.join(" "), ours.join(" "));
                return Err(format!("of a sweep with '{theirs}', not '{ours}'{REST}"));
            }
        }
        if found.plan == self.plan {
            return Ok(());
        }
        let (mut theirs, mut ours) = (found.plan.lines(), self.plan.lines());
        let (at, theirs, ours) = (1..)
            .map(|at| (at, theirs.next(), ours.next()))
            .find(|(_, theirs, ours)| theirs != ours || theirs.is_none())
            .expect("an end");
        let [theirs, ours] = [theirs, ours].map(|line| line.unwrap_or(""));
        Err(format!("of another plan: line {at} was '{theirs}', not '{ours}'{REST}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use crate::run::Watch;
    use crate::run::pool::{Extras, run_all};

    /// Plans with clocks, gates, shapers, filters, drives and requirements.
    #[test]
    fn documents_are_read_as_they_were_written() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../plans");
        const PLANS: [&str; 5] = [
            "babbling-camera.toml",
            "clocks.toml",
            "redundant-drive.toml",
            "shapers.toml",
            "zonal-vehicle.toml",
        ];
        for name in PLANS {
            let planned = Plan::read(&folder.join(name)).unwrap().build().unwrap();
            let watch = Watch { is_stopped: &|| false, progress: &|_| {} };
            let all = run_all(name, &[planned], &Extras::default(), &watch);
            let document = all.unwrap_or_else(|(_, failed)| panic!("{}", failed.why)).remove(0);
            let document = document.expect("a document");
            let line = LineRef { simulation: 3, document: &document, measured: &document.measured };
            let text = serde_json::to_string(&line).unwrap();
            let Line { simulation, document, measured } = serde_json::from_str(&text).unwrap();
            let line = LineRef { simulation, document: &document, measured: &measured };
            assert_eq!(serde_json::to_string(&line).unwrap(), text, "{name}");
        }
    }
}
