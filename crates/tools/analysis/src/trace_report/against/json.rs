//! The document of `--against --json`.

use super::{Comparison, Traced};
use crate::trace::Kind;
use crate::trace::compare::{Alone, Difference, LEVEL, Pair, sentence};
use crate::trace::measures::What;
use report::document::rounded;
use serde::Serialize;
use stats::medians::Estimate;

/// Version of the document.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    sentence: String,
    a: RunEntry,
    b: RunEntry,
    level: f64,
    comparisons: usize,
    places: bool,
    unlike: &'a [String],
    types: Vec<Type<'a>>,
    only_a: &'a [Alone],
    only_b: &'a [Alone],
}

#[derive(Serialize)]
struct RunEntry {
    files: Vec<String>,
    selected: u64,
    total: u64,
}

#[derive(Serialize)]
struct Type<'a> {
    kind: &'a str,
    stats_a: &'a Kind,
    stats_b: &'a Kind,
    measures: Vec<Measure>,
}

#[derive(Serialize)]
struct Measure {
    measure: What,
    name: &'static str,
    n_a: usize,
    n_b: usize,
    /// To one decimal.
    independent_a: f64,
    independent_b: f64,
    p50_a: u64,
    p50_b: u64,
    difference: i64,
    difference_interval: Option<[i64; 2]>,
    /// To four decimals.
    ratio: Option<f64>,
    ratio_interval: Option<[f64; 2]>,
    /// To six decimals.
    p: Option<f64>,
    significant: bool,
}

fn measure(one: &Difference) -> Measure {
    let medians = &one.medians;
    let interval = |estimate: Estimate| estimate.interval.map(|(low, high)| [low, high]);
    let [n_a, n_b] = one.n;
    let [independent_b, independent_a] = medians.independent.map(|n| rounded(n, 1));
    let [p50_b, p50_a] = medians.medians;
    Measure {
        measure: one.measure.what,
        name: one.measure.name,
        n_a,
        n_b,
        independent_a,
        independent_b,
        p50_a,
        p50_b,
        difference: medians.difference.value as i64,
        difference_interval: interval(medians.difference)
            .map(|ends| ends.map(|ns| ns.round() as i64)),
        ratio: medians.ratio.map(|ratio| rounded(ratio.value, 4)),
        ratio_interval: medians.ratio.and_then(interval).map(|ends| ends.map(|r| rounded(r, 4))),
        p: one.p.map(|p| rounded(p, 6)),
        significant: one.is_significant(),
    }
}

fn run(traced: &Traced) -> RunEntry {
    let files = traced.run.nodes.iter().map(|node| node.file.path.display().to_string());
    RunEntry { files: files.collect(), selected: traced.selected, total: traced.all }
}

fn entry(pair: &Pair) -> Type<'_> {
    let [stats_a, stats_b] = &pair.kinds;
    let measures = pair.differences.iter().map(measure).collect();
    Type { kind: &stats_a.kind, stats_a, stats_b, measures }
}

/// The document of a comparison.
pub fn document(report: &Comparison) -> impl Serialize + '_ {
    let compared = &report.compared;
    let [a, b] = report.runs.each_ref().map(run);
    Document {
        schema: SCHEMA,
        sentence: sentence(compared),
        a,
        b,
        level: LEVEL,
        comparisons: compared.tests,
        places: report.places,
        unlike: &report.unlike,
        types: compared.pairs.iter().map(entry).collect(),
        only_a: &compared.alone[0],
        only_b: &compared.alone[1],
    }
}
