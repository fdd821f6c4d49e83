//! The stable range of a run, selected by a rule. Linaro's article selected it by hand.

use crate::findings::{Finding, Kind, Point, blocks};
use crate::statistics::median;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of a run.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "StableRange")]
pub struct Range {
    /// Number of the first frame.
    pub first: u64,
    /// Number of the last frame.
    pub last: u64,
    /// Whether the range is the whole run.
    pub is_whole: bool,
    /// Why this range was chosen.
    pub reason: String,
}

/// The median of a stable part differs from the usual median by at most this number of deviations
/// (median absolute deviations).
const DEVIATIONS: i64 = 5;

/// The longest run of parts without stalls whose medians are near the usual median.
pub(crate) fn choose(points: &[Point], findings: &[Finding]) -> Range {
    let ends = points.first().zip(points.last());
    let (first, last) = ends.map_or((0, 0), |(first, last)| (first.sequence, last.sequence));
    let whole = |reason: String| Range { first, last, is_whole: true, reason };
    let parts = blocks(points);
    if parts.is_empty() {
        return whole(format!(
            "all {} frames: a run of fewer than 640 is not divided into parts",
            points.len()
        ));
    }
    let usual = median(parts.iter().map(|part| part.median));
    let spread = median(parts.iter().map(|part| part.spread));
    let deviation = median(parts.iter().map(|part| (part.median - usual).abs()));
    let near = (DEVIATIONS * deviation).max(spread).max(1);
    let stalls = |first: u64, last: u64| {
        let stall = |finding: &&Finding| {
            finding.kind == Kind::Stall && finding.first <= last && finding.last >= first
        };
        findings.iter().any(|finding| stall(&finding))
    };
    let verdicts: Vec<(bool, bool)> = parts
        .iter()
        .map(|part| ((part.median - usual).abs() > near, stalls(part.first, part.last)))
        .collect();
    let far = verdicts.iter().filter(|(far, _)| *far).count();
    let stalled = verdicts.iter().filter(|(_, stalled)| *stalled).count();
    let rule = format!("a median within {near} ns of {usual} ns and no stall");
    let Some((from, to)) = longest(verdicts.iter().map(|(far, stalled)| !far && !stalled)) else {
        return whole(format!("all frames: none of the {} parts has {rule}", parts.len()));
    };
    if from == 0 && to + 1 == parts.len() {
        return whole(format!("all frames: each of the {} parts has {rule}", parts.len()));
    }
    Range {
        first: parts[from].first,
        last: parts[to].last,
        is_whole: false,
        reason: format!(
            "parts {} to {} of {}: the longest run with {rule}; {far} parts are farther away, \
             {stalled} have a stall",
            from + 1,
            to + 1,
            parts.len()
        ),
    }
}

/// Start and end of the longest run of `true`.
fn longest(good: impl Iterator<Item = bool>) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize)> = None;
    let mut since = None;
    for (at, is_good) in good.enumerate() {
        since = if is_good { since.or(Some(at)) } else { None };
        if let Some(from) = since
            && best.is_none_or(|(a, b)| at - from > b - a)
        {
            best = Some((from, at));
        }
    }
    best
}
