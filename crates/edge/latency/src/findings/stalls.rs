//! Stalls: frames that were sent at equal distances arrived at once, so that each latency is one
//! interval shorter than the previous one (Linaro's article, annex 1: "all the packets were
//! suddenly received almost at once").

use super::{Context, Finding, Kind, Point};
use crate::sample::Segment;
use crate::statistics::median;

/// The least number of frames in a stall. Two frames may arrive together by chance.
const LEAST: usize = 3;
/// The most findings of this kind. The last one includes all further stalls.
const MOST: usize = 100;

/// The stalls, in the order of time.
pub(super) fn find(points: &[Point], context: &Context) -> Vec<Finding> {
    let usual = median(points.iter().map(|point| point.latency));
    let interval = i128::from(context.interval);
    // The frames were sent more than half an interval apart, and arrived less than a quarter of an
    // interval apart.
    let together = |pair: &[Point]| {
        let sent = i128::from(pair[1].from) - i128::from(pair[0].from);
        sent * 2 > interval && (pair[1].to() - pair[0].to()).abs() * 4 < interval
    };
    let mut found: Vec<Finding> = Vec::new();
    let mut at = 0;
    while at < points.len() {
        let more = points[at..].windows(2).take_while(|pair| together(pair)).count();
        let run = &points[at..=at + more];
        at += more + 1;
        if run.len() < LEAST {
            continue;
        }
        let full = found.len() == MOST;
        match found.last_mut() {
            Some(last) if full => {
                (last.last, last.n) = (run[more].sequence, last.n + run.len() as u64)
            }
            _ => found.push(stall(run, usual, context)),
        }
    }
    found
}

fn stall(run: &[Point], usual: i64, context: &Context) -> Finding {
    let (first, last) = (run[0], run[run.len() - 1]);
    let size_ns = first.latency.abs_diff(usual);
    let (who, begun) = match context.segment {
        Segment::ToWire => ("the talker", "due"),
        Segment::EndToEnd => ("the listener's application", "sent"),
        _ => ("the receiving side", "sent"),
    };
    let evidence = format!(
        "{} frames {begun} within {} ns arrived within {} ns: {who} stalled for {size_ns} ns",
        run.len(),
        last.from - first.from,
        (last.to() - first.to()).abs()
    );
    let frames = (first.sequence, last.sequence);
    let finding = context.finding(Kind::Stall, frames, evidence);
    Finding { n: run.len() as u64, size_ns, ..finding }
}
