//! The JSON document of `--against --json`.

use super::{Comparison, Traced};
use crate::trace::CommandType;
use crate::trace::compare::{Difference, LEVEL, LoneType, Pair, sentence};
use crate::trace::measures::MeasureKind;
use report::document::rounded;
use schemars::JsonSchema;
use serde::Serialize;
use stats::medians::Estimate;

/// Version of the document.
const SCHEMA: u32 = 1;

/// A comparison of two runs (docs/trace.md#two-runs): A, and its base B.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Comparison")]
pub struct ComparisonDocument<'a> {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
    /// The largest difference, as one sentence.
    sentence: String,
    /// Run A.
    a: ComparedRun,
    /// Run B.
    b: ComparedRun,
    /// The probability of any false finding among all comparisons.
    level: f64,
    /// Number of comparisons for which p-values were corrected.
    comparisons: usize,
    /// Whether stages and parts were compared: both runs have traces of the same nodes.
    places: bool,
    /// Differences between the runs by construction: one is simulated, only one pushes, only one
    /// has times in the drive.
    unlike: &'a [String],
    /// The types of commands in both runs, by name.
    types: Vec<ComparedType<'a>>,
    /// Types of commands in A alone.
    only_a: &'a [LoneType],
    /// Types of commands in B alone.
    only_b: &'a [LoneType],
}

/// A run of a comparison.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "ComparedRun")]
struct ComparedRun {
    /// The traces of the run as they were given, from the host on.
    files: Vec<String>,
    /// Commands that fit the filters.
    selected: u64,
    /// Commands in the traces.
    total: u64,
}

/// A type of commands in both runs.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "ComparedType")]
struct ComparedType<'a> {
    /// The command's name and its number of bytes, such as `Read 4 KiB`.
    kind: &'a str,
    /// Statistics of the commands of A.
    stats_a: &'a CommandType,
    /// Statistics of the commands of B.
    stats_b: &'a CommandType,
    /// The compared measures.
    measures: Vec<Measure>,
}

/// A measure of the commands of both runs. Times are in ns.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "ComparedMeasure")]
struct Measure {
    /// The kind of measure.
    measure: MeasureKind,
    /// Name of the segment, stage, part or direction; empty for the whole duration.
    name: &'static str,
    /// Commands of A that have the measure.
    n_a: usize,
    /// Commands of B that have the measure.
    n_b: usize,
    /// Number of independent commands that carry as much information as the commands of A, to one
    /// decimal.
    independent_a: f64,
    /// Number of independent commands that carry as much information as the commands of B, to one
    /// decimal.
    independent_b: f64,
    /// Median of A.
    p50_a: u64,
    /// Median of B.
    p50_b: u64,
    /// Median of A less median of B.
    difference: i64,
    /// 95 % confidence interval of `difference`; null if there are too few commands.
    difference_interval: Option<[i64; 2]>,
    /// Median of A divided by median of B, to four decimals; null if one is 0.
    ratio: Option<f64>,
    /// 95 % confidence interval of `ratio`; null if there are too few commands.
    ratio_interval: Option<[f64; 2]>,
    /// p-value, corrected for all comparisons, to six decimals; null if the measure is equal in all
    /// commands of both runs, or if there are too few commands.
    p: Option<f64>,
    /// Whether `p` is below `level`.
    significant: bool,
}

fn measure(one: &Difference) -> Measure {
    let medians = &one.medians;
    let interval = |estimate: Estimate| estimate.interval.map(|(low, high)| [low, high]);
    let [n_a, n_b] = one.n;
    let [independent_b, independent_a] = medians.independent.map(|n| rounded(n, 1));
    let [p50_b, p50_a] = medians.medians;
    Measure {
        measure: one.measure.kind,
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

fn run(traced: &Traced) -> ComparedRun {
    let files = traced.run.nodes.iter().map(|node| node.file.path.display().to_string());
    ComparedRun { files: files.collect(), selected: traced.selected, total: traced.all }
}

fn entry(pair: &Pair) -> ComparedType<'_> {
    let [stats_a, stats_b] = &pair.kinds;
    let measures = pair.differences.iter().map(measure).collect();
    ComparedType { kind: &stats_a.kind, stats_a, stats_b, measures }
}

/// Returns the JSON document of a comparison.
pub fn document(report: &Comparison) -> impl Serialize + '_ {
    let compared = &report.compared;
    let [a, b] = report.runs.each_ref().map(run);
    ComparisonDocument {
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
