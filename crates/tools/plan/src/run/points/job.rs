//! The sweep of a folder.

use super::super::sweep::{Grid, Point};
use super::super::{LatencyBounds, RunError, Seeds, Shifts, text_with_settings};
use crate::{KeyError, Plan, Planned};
use highway::{HighwayHash, HighwayHasher};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// Version of the folder.
const VERSION: u32 = 1;
/// Maximum number of points.
pub(super) const MOST: usize = 100_000;
/// Points that are checked before a sweep begins.
const CHECKED: usize = 100;
/// The end of each refusal.
const REST: &str = "; name another folder, or remove this one";

/// A sweep: all that its results depend on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Job {
    farlane_points: u32,
    /// Version of the program that began the sweep.
    version: String,
    /// Absolute path of the plan, to which files of the plan are relative.
    file: String,
    /// Text of the plan.
    plan: String,
    /// Settings KEY=VALUE of the plan.
    set: Vec<String>,
    /// The points.
    pub grid: Grid,
    seed: Option<u64>,
    runs: Option<u64>,
    phases: Option<u64>,
    shift: Vec<String>,
    search: bool,
    /// Hash of the plan and of the files that it reads.
    contents: String,
}

impl Job {
    /// Describes the sweep of a plan that has these `settings`.
    ///
    /// # Errors
    /// A mistake in the plan or in a value; too many points; a file of the plan that cannot be read.
    pub fn new(
        (file, plan, settings): (&Path, &Plan, &[String]),
        grid: Grid,
        seeds: &Seeds,
        shifts: Option<&Shifts>,
    ) -> Result<Self, RunError> {
        let usage = |why: String| RunError::Usage(why);
        let count = grid.points.len();
        if count > MOST {
            return Err(usage(format!("{count} points: at most {MOST}")));
        }
        let file = std::path::absolute(file).map_err(|error| usage(error.to_string()))?;
        for values in new_values(&grid).take(CHECKED) {
            Point::new(plan, &grid, values, (seeds, None))?;
        }
        Ok(Self {
            farlane_points: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            file: file.display().to_string(),
            plan: plan.text.to_string(),
            set: settings.to_vec(),
            grid,
            seed: seeds.first,
            runs: seeds.runs,
            phases: shifts.map(|shifts| shifts.trials),
            shift: shifts.map(|shifts| shifts.keys.clone()).unwrap_or_default(),
            search: shifts.is_some_and(|shifts| shifts.search.is_some()),
            contents: contents(plan).map_err(usage)?,
        })
    }

    /// Reads the sweep for a worker on this `machine`.
    pub(super) fn read(text: &[u8], machine: &str) -> Result<Self, String> {
        let value: serde_json::Value =
            serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let version = value["version"].as_str().unwrap_or("of an unknown version");
        let own = env!("CARGO_PKG_VERSION");
        if version != own || value["farlane_points"] != VERSION {
            return Err(format!(
                "{machine} has farlane {own}, which cannot work on a sweep of farlane {version}"
            ));
        }
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    /// Returns the plan on this `machine`.
    pub(super) fn plan(&self, machine: &str) -> Result<Plan, String> {
        let wrong = |error: KeyError| format!("{machine}: {error}");
        let plan = Plan::parse(&self.file, &self.plan).map_err(wrong)?;
        let plan = self.set.iter().try_fold(plan, |plan, text| {
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            plan.with(key, value, "--set")
        });
        let plan = plan.map_err(wrong)?;
        let found = contents(&plan).map_err(|why| format!("{machine}: {why}"))?;
        if found != self.contents {
            return Err(format!("{machine} has other contents in the files of {}", self.file));
        }
        Ok(plan)
    }

    /// Returns the text of the plan, with its settings as comments.
    pub(super) fn text(&self) -> String {
        text_with_settings(&self.plan, &self.set)
    }

    /// Builds a point.
    pub(super) fn point(
        &self,
        plan: &Plan,
        number: usize,
        bounds: fn(&Planned) -> LatencyBounds,
    ) -> Result<Point, KeyError> {
        let seeds = Seeds { first: self.seed, runs: self.runs };
        let shifts = self.phases.map(|trials| Shifts {
            trials,
            keys: self.shift.clone(),
            search: self.search.then_some(bounds),
        });
        Point::new(plan, &self.grid, &self.grid.points[number], (&seeds, shifts.as_ref()))
    }

    fn options(&self) -> Vec<String> {
        let numbers = [("seed", self.seed), ("runs", self.runs), ("phases", self.phases)];
        let numbers =
            numbers.into_iter().filter_map(|(name, number)| Some(format!("{name} {}", number?)));
        let shift = self.phases.map(|_| format!("shift {}", self.shift.join(",")));
        numbers.chain(shift).chain(self.search.then(|| "search".to_owned())).collect()
    }

    /// Compares this sweep with the sweep of a folder. The error names the difference.
    pub(super) fn compare(&self, text: &[u8]) -> Result<(), String> {
        let Ok(found) = serde_json::from_slice::<Self>(text) else {
            return Err(format!("not a sweep of this version{REST}"));
        };
        if (found.farlane_points, &found.version) != (self.farlane_points, &self.version) {
            let (theirs, ours) = (&found.version, &self.version);
            return Err(format!("a sweep of farlane {theirs}, not {ours}{REST}"));
        }
        let points = |job: &Self| {
            format!("{} points of {}", job.grid.points.len(), job.grid.keys.join(", "))
        };
        for (theirs, ours) in [
            (points(&found), points(self)),
            (found.options().join(", "), self.options().join(", ")),
            (found.set.join(", "), self.set.join(", ")),
        ] {
            if theirs != ours {
                return Err(format!("a sweep with '{theirs}', not '{ours}'{REST}"));
            }
        }
        let differs = |(theirs, ours): &(&Vec<String>, &Vec<String>)| theirs != ours;
        let points = found.grid.points.iter().zip(&self.grid.points);
        if let Some((theirs, ours)) = { points }.find(differs) {
            let (theirs, ours) = (theirs.join(", "), ours.join(", "));
            return Err(format!("a sweep with the point {theirs}, not {ours}{REST}"));
        }
        let lines = found.plan.lines().zip(self.plan.lines()).zip(1..);
        if let Some(((theirs, ours), at)) = { lines }.find(|((theirs, ours), _)| theirs != ours) {
            return Err(format!("another plan: line {at} was '{theirs}', not '{ours}'{REST}"));
        }
        if found.plan != self.plan || found.contents != self.contents {
            return Err(format!("another plan, or other files of the plan{REST}"));
        }
        Ok(())
    }
}

/// Returns the points that have a value of a key before all others.
fn new_values(grid: &Grid) -> impl Iterator<Item = &[String]> {
    let mut known = vec![BTreeSet::new(); grid.keys.len()];
    grid.points.iter().map(Vec::as_slice).filter(move |values| {
        let new = values.iter().zip(&mut known).map(|(value, known)| known.insert(value));
        new.fold(false, |any, new| any | new)
    })
}

/// Hashes the text of a plan and the files that it reads.
fn contents(plan: &Plan) -> Result<String, String> {
    let mut hasher = HighwayHasher::default();
    hasher.append(plan.text.as_bytes());
    for path in plan.files() {
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        hasher.append(&(bytes.len() as u64).to_le_bytes());
        hasher.append(&bytes);
    }
    Ok(format!("{:016x}", hasher.finalize64()))
}
