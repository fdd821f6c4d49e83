//! Slips by whole cycles. A frame that misses its slot leaves one or more cycles later. Its latency
//! is the usual latency plus a multiple of the cycle.

use super::{Context, Finding, Kind, Point};
use crate::statistics::median;

/// The least number of slips.
const LEAST: usize = 3;
/// How many of 10 late frames must be late by whole cycles, within an eighth of a cycle. By chance
/// this is true for one in four frames.
const AGREE: usize = 6;

/// The slips of a run, as one finding.
pub(super) fn find(points: &[Point], context: &Context) -> Option<Finding> {
    let cycle = i64::try_from(context.cycle).ok().filter(|cycle| *cycle > 0)?;
    let usual = median(points.iter().map(|point| point.latency));
    let late: Vec<(&Point, i64)> = points
        .iter()
        .map(|point| (point, point.latency - usual))
        .filter(|(_, by)| *by >= cycle / 2)
        .collect();
    let whole = |by: i64| {
        let cycles = (by + cycle / 2) / cycle;
        ((by - cycles * cycle).abs() * 8 <= cycle).then_some(cycles)
    };
    let slips: Vec<(&Point, i64)> =
        late.iter().filter_map(|(point, by)| Some((*point, whole(*by)?))).collect();
    if slips.len() < LEAST || slips.len() * 10 < late.len() * AGREE {
        return None;
    }
    let most = slips.iter().map(|(_, cycles)| *cycles).max()?;
    let evidence = format!(
        "{} of {} late frames are late by whole cycles of {cycle} ns, by {most} at most: they \
         missed their slots",
        slips.len(),
        late.len()
    );
    let frames = (slips[0].0.sequence, slips[slips.len() - 1].0.sequence);
    let (n, size_ns) = (slips.len() as u64, (most * cycle) as u64);
    let finding = context.finding(Kind::Slips, frames, evidence);
    Some(Finding { n, size_ns, period_ns: Some(context.cycle), ..finding })
}
