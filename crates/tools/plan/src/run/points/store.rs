//! The files of points.

use super::super::document::{SimReport, SweepDocument};
use super::super::tables::{RESULTS, RowOrigin, results};
use super::job::Job;
use columns::{Batch, Parquet};
use report::Failure;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use wire::Duration;

/// Name of the sweep's file.
const SWEEP: &str = "sweep.json";
/// Folder of the points.
const POINTS: &str = "points";
/// Keys of a file's metadata.
const DOCUMENT: &str = "farlane.document";
const MACHINE: &str = "farlane.machine";
const SECONDS: &str = "farlane.seconds";

/// A folder with a sweep.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    job: Job,
    /// Name of this machine.
    machine: String,
}

/// The state of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// It failed.
    Failed,
    /// It has results.
    Done,
}

/// The points of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Points with results.
    pub done: usize,
    /// Points that failed.
    pub failed: usize,
}

impl Folder {
    /// Begins a sweep in an empty or new folder, or continues it. Points that failed run again.
    ///
    /// # Errors
    /// One line that names the folder: it has another sweep or other files, or cannot be written.
    pub fn create(path: &Path, job: Job, machine: &str) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure(format!("{}: {error}", path.display()));
        let refused = |why: String| Failure(format!("{}: {why}", path.display()));
        fs::create_dir_all(path).map_err(failed)?;
        let path = &path.canonicalize().map_err(failed)?;
        match fs::read(path.join(SWEEP)) {
            Ok(text) => job.compare(&text).map_err(refused)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A call that was killed may have left the folder of the points, without points.
                let _ = fs::remove_dir(path.join(POINTS));
                if fs::read_dir(path).map_err(failed)?.next().is_some() {
                    return Err(refused("the folder has other files; name another one".into()));
                }
                // Workers find it as soon as they find the sweep.
                fs::create_dir(path.join(POINTS)).map_err(failed)?;
                let text = serde_json::to_vec_pretty(&job).map_err(io::Error::other);
                replace(&path.join(SWEEP), &text.map_err(failed)?).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        fs::create_dir_all(path.join(POINTS)).map_err(failed)?;
        let folder = Self { path: path.clone(), job, machine: machine.to_owned() };
        for (number, state) in folder.points().map_err(failed)? {
            if state == State::Failed {
                fs::remove_file(folder.failure(number)).map_err(failed)?;
            }
        }
        Ok(folder)
    }

    /// Opens a folder that another process has begun, for a worker on this `machine`.
    ///
    /// # Errors
    /// One line that names the folder: it has no sweep, or one of another version of farlane.
    pub fn open(path: &Path, machine: &str) -> Result<Self, Failure> {
        let wrong = |why: String| Failure(format!("{}: {why}", path.display()));
        let file = path.join(SWEEP);
        let text = fs::read(&file).map_err(|error| wrong(format!("{SWEEP}: {error}")))?;
        let job = Job::read(&text, machine).map_err(wrong)?;
        Ok(Self { path: path.to_owned(), job, machine: machine.to_owned() })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the sweep.
    pub fn job(&self) -> &Job {
        &self.job
    }

    pub(super) fn machine(&self) -> &str {
        &self.machine
    }

    /// Returns the number of points.
    pub fn count(&self) -> usize {
        self.job.grid.points.len()
    }

    /// Returns the file of a point's results.
    pub fn point(&self, number: usize) -> PathBuf {
        self.path.join(POINTS).join(format!("{number:05}.parquet"))
    }

    fn failure(&self, number: usize) -> PathBuf {
        self.point(number).with_extension("failed")
    }

    /// Returns whether the point has results, or failed.
    pub(super) fn is_done(&self, number: usize) -> bool {
        self.point(number).exists() || self.failure(number).exists()
    }

    /// Returns the states of the points that have one: one read of the folder, which may be remote.
    fn points(&self) -> io::Result<BTreeMap<usize, State>> {
        let mut all = BTreeMap::new();
        for entry in fs::read_dir(self.path.join(POINTS))? {
            let path = PathBuf::from(entry?.file_name());
            let part =
                |part: Option<&OsStr>| part.and_then(OsStr::to_str).unwrap_or_default().to_owned();
            let state = match &*part(path.extension()) {
                "parquet" => State::Done,
                "failed" => State::Failed,
                _ => continue,
            };
            if let Ok(number) = part(path.file_stem()).parse() {
                // Results win over an earlier failure.
                let known = all.entry(number).or_insert(state);
                *known = (*known).max(state);
            }
        }
        Ok(all)
    }

    /// Returns the points without results that have not failed.
    pub fn missing(&self) -> Vec<usize> {
        let known = self.points().unwrap_or_default();
        (0..self.count()).filter(|number| !known.contains_key(number)).collect()
    }

    /// Counts the points.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn summary(&self) -> io::Result<Summary> {
        let known = self.points()?;
        let failed = known.values().filter(|state| **state == State::Failed).count();
        Ok(Summary { done: known.len() - failed, failed })
    }

    /// Writes why a point failed.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn fail(&self, number: usize, why: &str) -> io::Result<()> {
        replace(&self.failure(number), why.as_bytes())
    }

    /// Writes the results of a point: the documents of its simulations, and its own document.
    pub(super) fn write(
        &self,
        number: usize,
        (set, documents): (&str, &[Option<SimReport>]),
        document: &SimReport,
        took: Duration,
    ) -> io::Result<()> {
        let mut batch = Batch::new(&RESULTS);
        for (run, document) in (0..).zip(documents.iter().flatten()) {
            let origin = RowOrigin { world: document.world, run, seed: document.seed, set };
            results(&origin, document, |row| batch.push(row));
        }
        let mut bytes = Vec::new();
        let mut file = Parquet::new(&mut bytes, &RESULTS)?;
        file.write(&batch)?;
        file.finish(&[
            ("farlane.version", env!("CARGO_PKG_VERSION").to_owned()),
            (DOCUMENT, serde_json::to_string(document)?),
            (MACHINE, self.machine.clone()),
            (SECONDS, format!("{:.3}", took.as_ns() as f64 / 1e9)),
        ])?;
        replace(&self.point(number), &bytes)
    }

    /// Returns the document of the sweep. `failed`: why points failed that have no file.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn document(
        &self,
        name: &str,
        failed: &BTreeMap<usize, String>,
    ) -> Result<SweepDocument, Failure> {
        let text = self.job.text();
        let mut all = SweepDocument::new((name, &text), self.job.grid.keys.clone());
        for (number, values) in self.job.grid.points.iter().enumerate() {
            let keys = self.job.grid.keys.iter().cloned();
            let set: BTreeMap<String, String> = keys.zip(values.iter().cloned()).collect();
            let path = self.point(number);
            let wrong = |error: io::Error| Failure(format!("{}: {error}", path.display()));
            let result = match File::open(&path) {
                Ok(file) => {
                    let metadata = columns::metadata(file).map_err(wrong)?;
                    let text = metadata.get(DOCUMENT).map_or("", String::as_str);
                    let document: SimReport = serde_json::from_str(text)
                        .map_err(|error| wrong(io::Error::other(error)))?;
                    Ok(Some(SimReport { plan: name.to_owned(), ..document }))
                }
                Err(_) => match fs::read_to_string(self.failure(number)) {
                    Ok(why) => Err(why),
                    Err(_) => failed.get(&number).map_or(Ok(None), |why| Err(why.clone())),
                },
            };
            all.add(&set, result);
        }
        Ok(all)
    }

    /// Returns the rows of all points that have results.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn rows(&self) -> Result<Batch, Failure> {
        let mut rows = Batch::new(&RESULTS);
        for path in (0..self.count()).map(|number| self.point(number)) {
            let Ok(file) = File::open(&path) else { continue };
            let wrong = |error: io::Error| Failure(format!("{}: {error}", path.display()));
            rows.append(&Batch::read(file, &RESULTS).map_err(wrong)?);
        }
        Ok(rows)
    }
}

/// Writes a file that appears complete, or not at all.
fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // Other users of a shared folder may read what the umask permits.
    let mode = fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().prefix(".new").permissions(mode).tempfile_in(folder)?;
    io::Write::write_all(&mut file, contents)?;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
