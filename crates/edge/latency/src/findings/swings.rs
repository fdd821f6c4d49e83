//! Swings: the medians of the parts of a run rise and fall slowly. The cause is a servo that
//! follows a drifting clock (Linaro's article, annex 1), or a machine whose load changes. The
//! series of the clock error distinguishes the two causes.

use super::{Context, Finding, Kind, Point, blocks};
use crate::statistics::median;

/// A swing must exceed the usual spread within a part of the run by this factor.
const SPREADS: i64 = 2;

/// The swing of a run, if any.
pub(super) fn find(points: &[Point], context: &Context) -> Option<Finding> {
    let parts = blocks(points);
    let (least, most) = ends(parts.iter().map(|part| part.median))?;
    let spread = median(parts.iter().map(|part| part.spread));
    let swing = most - least;
    let medians: Vec<i64> = parts.iter().map(|part| part.median).collect();
    // Ignores the two lowest and the two highest medians, because single deviating parts are no
    // swing.
    let without_one = {
        let mut sorted = medians.clone();
        sorted.sort_unstable();
        sorted[sorted.len() - 3] - sorted[2]
    };
    if without_one <= SPREADS * spread.max(1) || turns(&medians) * 2 > medians.len() {
        return None;
    }
    let rest = context.crosses().then(|| corrected(points, context)).flatten();
    let (kind, why) = match rest {
        Some(rest) if rest <= swing / 2 => (
            Kind::ClockSwing,
            format!("without the clock error {rest} ns remain: the clock causes the swing"),
        ),
        Some(rest) => (
            Kind::Swing,
            format!("without the clock error {rest} ns remain: the clock does not cause it"),
        ),
        None if context.crosses() && least < 0 => (
            Kind::ClockSwing,
            format!("the lowest median is {least} ns, and no latency is below zero"),
        ),
        None if context.crosses() && context.clock.source != crate::Source::Shared => {
            (Kind::Swing, "the clock may cause it: its error was not recorded".to_owned())
        }
        None => (Kind::Swing, "both ends share one clock, which does not cause it".to_owned()),
    };
    let evidence = format!(
        "medians of {} parts of the run go from {least} to {most} ns, and the spread within one is \
         {spread} ns; {why}",
        parts.len()
    );
    let frames = (parts[0].first, parts[parts.len() - 1].last);
    let (n, size_ns) = (points.len() as u64, swing as u64);
    Some(Finding { n, size_ns, ..context.finding(kind, frames, evidence) })
}

/// The swing that remains without the clock error; `None` without a series.
fn corrected(points: &[Point], context: &Context) -> Option<i64> {
    let correct = |point: &Point| {
        let offset = context.clock.offset_at(point.from)?;
        Some(Point { latency: point.latency.saturating_sub(offset), ..*point })
    };
    let points: Vec<Point> = points.iter().map(correct).collect::<Option<_>>()?;
    let (least, most) = ends(blocks(&points).iter().map(|part| part.median))?;
    Some(most - least)
}

/// Number of changes of the medians between rising and falling. For noise, this is two thirds of
/// the number of medians.
fn turns(medians: &[i64]) -> usize {
    let steps: Vec<i64> =
        medians.windows(2).map(|pair| (pair[1] - pair[0]).signum()).filter(|s| *s != 0).collect();
    steps.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

fn ends(values: impl Iterator<Item = i64> + Clone) -> Option<(i64, i64)> {
    Some((values.clone().min()?, values.max()?))
}
