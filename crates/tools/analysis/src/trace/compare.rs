//! Comparison of two runs by type of command and by measure.

use super::measures::{self, Measure, MeasureKind};
use super::path::Leg;
use super::stats::{CommandType, Statistics};
use crate::commands::Command;
use schemars::JsonSchema;
use serde::Serialize;
use stats::medians::{self, Comparison};
use stats::random::mix;
use std::collections::BTreeMap;

mod sentence;
#[cfg(test)]
mod tests;

pub use sentence::sentence;

/// Maximum number of commands of a type whose measures are kept, 200 bytes each. Beyond the limit a
/// hash of the commands' numbers selects a part.
const MOST_SAMPLES: usize = 1 << 16;
/// The probability of any false finding among all comparisons.
pub const LEVEL: f64 = 0.05;

/// The measures of a command; [`u64::MAX`] for a measure that the command lacks.
type Row = [u64; measures::COUNT];

/// Commands of one type in the order in which they ended, each with its number within the type.
#[derive(Clone, Debug, Default)]
struct Sample {
    seen: u64,
    /// About one of 2^`shift` commands is kept.
    shift: u32,
    rows: Vec<(u64, Row)>,
}

impl Sample {
    fn chosen(shift: u32, number: u64) -> bool {
        mix(number).trailing_zeros() >= shift
    }

    fn add(&mut self, row: Row) {
        self.seen += 1;
        if Self::chosen(self.shift, self.seen) {
            self.rows.push((self.seen, row));
        }
        while self.rows.len() > MOST_SAMPLES {
            self.shift += 1;
            let shift = self.shift;
            self.rows.retain(|(number, _)| Self::chosen(shift, *number));
        }
    }

    fn column(&self, index: usize) -> Vec<u64> {
        let values = self.rows.iter().map(|(_, row)| row[index]);
        values.filter(|value| *value != u64::MAX).collect()
    }
}

/// The commands of one run.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Statistics of the commands, by type.
    pub statistics: Statistics,
    samples: BTreeMap<String, Sample>,
}

impl Side {
    /// Adds a command and its path.
    pub fn add(&mut self, command: &Command, path: &[Leg]) {
        let name = self.statistics.add(command, path);
        if command.end.is_none() {
            return;
        }
        let row = measures::values(command, path).map(|value| value.unwrap_or(u64::MAX));
        self.samples.entry(name).or_default().add(row);
    }
}

/// One measure of one type of command in both runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The measure.
    pub measure: Measure,
    /// Number of commands that have the measure, in each run.
    pub n: [usize; 2],
    /// The medians, the base first. The difference is the first run's median less the base's
    /// median.
    pub medians: Comparison,
    /// The p-value, corrected for the number of comparisons. `None` if the measure is equal in all
    /// commands of both runs, or if too few commands have the measure.
    pub p: Option<f64>,
}

impl Difference {
    /// Returns whether the runs differ. The probability of any false finding among all comparisons
    /// is at most [`LEVEL`].
    pub fn is_significant(&self) -> bool {
        self.p.is_some_and(|p| p < LEVEL)
    }
}

/// One type of command in both runs.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The statistics of both runs.
    pub kinds: [CommandType; 2],
    /// The compared measures, in the order of [`measures::ALL`].
    pub differences: Vec<Difference>,
}

/// A type of commands that only one of the runs has.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct LoneType {
    /// The command's name and its number of bytes.
    pub kind: String,
    /// Commands of the type.
    pub commands: u64,
}

/// The result of a comparison of two runs, the base second.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The types that both runs have.
    pub pairs: Vec<Pair>,
    /// The types that only one run has, by run.
    pub alone: [Vec<LoneType>; 2],
    /// Number of comparisons for which the p-values are corrected.
    pub tests: usize,
}

/// Compares run `a` with run `b`, which is the base. If `places` is false, times in stages and
/// parts of the drive are left out: the runs have traces of different nodes.
pub fn compare(a: &Side, b: &Side, places: bool) -> Compared {
    let kinds = [a, b].map(|side| side.statistics.kinds());
    let find = |run: usize, name: &str| kinds[run].iter().find(|kind| kind.kind == name);
    let alone = [0, 1].map(|run| {
        let only = kinds[run].iter().filter(|kind| find(1 - run, &kind.kind).is_none());
        only.map(|kind| LoneType { kind: kind.kind.clone(), commands: kind.commands }).collect()
    });
    let both = kinds[0].iter().filter_map(|first| Some((first, find(1, &first.kind)?)));
    let pairs = both.map(|(first, second)| {
        let samples = [a, b].map(|side| side.samples.get(&first.kind));
        let differences = match samples {
            [Some(first), Some(second)] => differences(first, second, places),
            _ => Vec::new(),
        };
        Pair { kinds: [first.clone(), second.clone()], differences }
    });
    let mut compared = Compared { pairs: pairs.collect(), alone, tests: 0 };
    correct(&mut compared);
    compared
}

fn differences(a: &Sample, b: &Sample, places: bool) -> Vec<Difference> {
    let is_compared = |(_, measure): &(usize, &Measure)| {
        places || !matches!(measure.kind, MeasureKind::Stage | MeasureKind::Part)
    };
    let all = measures::ALL.iter().enumerate().filter(is_compared);
    let one = |(index, measure): (usize, &Measure)| {
        let (first, second) = (a.column(index), b.column(index));
        let values = || first.iter().chain(&second);
        let medians = medians::compare(&second, &first)?;
        let some = measure.kind != MeasureKind::Stage || values().any(|value| *value > 0);
        let varies = values().any(|value| *value != first[0]);
        let p = (varies && medians.difference.interval.is_some()).then_some(medians.p);
        let n = [first.len(), second.len()];
        some.then_some(Difference { measure: *measure, n, medians, p })
    };
    all.filter_map(one).collect()
}

fn correct(compared: &mut Compared) {
    let all = || compared.pairs.iter().flat_map(|pair| &pair.differences);
    let p: Vec<f64> = all().filter_map(|difference| difference.p).collect();
    compared.tests = p.len();
    let mut corrected = medians::holm(&p).into_iter();
    let all = compared.pairs.iter_mut().flat_map(|pair| &mut pair.differences);
    for difference in all.filter(|difference| difference.p.is_some()) {
        difference.p = corrected.next();
    }
}
