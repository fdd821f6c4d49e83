//! Gate charts: open and closed times of each queue over one cycle, and the frames sent.

use super::Subject;
use crate::simulate::places::{self, Egress};
use crate::simulate::report_data::{Cycle, PARTS};
use analysis::trace::chart::ClosedGate;
use report::{Page, time};
use sim::measure::QueueStats;
use std::cmp::Reverse;
use std::fmt::Write;
use tsn::QUEUES;
use wire::{Duration, Instant};

const WIDTH: f64 = 440.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 10.0;
const ROW: f64 = 19.0;
const BAR: f64 = 15.0;

/// Maximum number of charts.
const MOST_CHARTS: usize = 8;

type Port<'a> = (&'a Cycle, QueueStats);

/// Adds the ports with gates where frames were dropped or waited, worst first.
pub(super) fn section(page: &mut Page, subject: &Subject<'_>) {
    let cycles = &subject.data.cycles;
    if cycles.is_empty() {
        return;
    }
    page.section("Gates");
    page.text(
        "One cycle of each port's gates: green where a queue may send, grey where it may not. Blue \
         are the frames of the whole run, laid over one cycle; higher where there were more. Ports \
         that dropped frames come first, then those where frames waited longest in all.",
    );
    let queues = |wire: usize| subject.report.queues.get(wire).copied().unwrap_or_default();
    let ports = cycles.iter().map(|(wire, cycle)| (cycle, queues(*wire)));
    let (mut busy, idle): (Vec<Port<'_>>, Vec<_>) = ports.partition(|(_, q)| q.offered > 0);
    busy.sort_by_key(|(_, queue)| Reverse((queue.dropped, queue.frame_ps, queue.offered)));
    let name = |cycle: &Cycle| (subject.words.named)(&places::name(cycle.place));
    let (shown, rest) = busy.split_at(busy.len().min(MOST_CHARTS));
    let chart = |(cycle, queue): &Port<'_>| (name(cycle), words(cycle, queue), svg(cycle));
    page.figures(&shown.iter().map(chart).collect::<Vec<_>>());
    for (kind, ports) in [
        ("Not shown, for less waited there", rest),
        ("Not shown, for no frame came there", &idle[..]),
    ] {
        let names: Vec<String> = ports.iter().map(|(cycle, _)| name(cycle)).collect();
        if !names.is_empty() {
            page.note(&format!("{kind}: {}.", names.join(", ")));
        }
    }
}

/// Describes the number of frames and their waits.
fn words(cycle: &Cycle, queue: &QueueStats) -> String {
    let ns = |span: Duration| time(span.as_ns() as f64);
    let (length, wait) = (ns(cycle.gates.list().cycle_time()), ns(queue.mean_wait()));
    let mut words = format!("cycle {length}, {} frames, waiting {wait} at the mean", cycle.frames);
    for (count, fate) in [(queue.left, "still waiting at the end"), (queue.dropped, "dropped")] {
        if count > 0 {
            words += &format!(", {count} {fate}");
        }
    }
    words
}

fn svg(cycle: &Cycle) -> String {
    let list = cycle.gates.list();
    let length = list.cycle_time().as_ps().max(1) as f64;
    let x = |ps: f64| LEFT + ps / length * (WIDTH - LEFT - RIGHT);
    let height = ROW * QUEUES as f64 + 22.0;
    let mut out = format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"gates\">"
    );
    for queue in (0..QUEUES).rev() {
        let top = ROW * (QUEUES - 1 - queue) as f64;
        let width = WIDTH - LEFT - RIGHT;
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">queue {queue}</text>\
             <rect x=\"{LEFT}\" y=\"{top}\" width=\"{width}\" height=\"{BAR}\" fill=\"#b3bcc5\"/>",
            LEFT - 5.0,
            top + 11.5
        );
        let mut start = 0.0;
        let entries = list.entries();
        for (number, entry) in entries.iter().enumerate() {
            let last = number + 1 == entries.len();
            let end = if last { length } else { start + entry.interval.as_ps() as f64 };
            if entry.states.is_open(queue) {
                let _ = write!(
                    out,
                    "<rect x=\"{:.2}\" y=\"{top}\" width=\"{:.2}\" height=\"{BAR}\" \
                     fill=\"#d3efe4\"/>",
                    x(start),
                    x(end) - x(start)
                );
            }
            start = end;
        }
        frames(&mut out, &cycle.busy[queue], top);
    }
    axis(&mut out, list.cycle_time(), ROW * QUEUES as f64);
    out + "</svg>"
}

/// Draws the times at which frames were on the wire. The height is the share of cycles.
fn frames(out: &mut String, busy: &[Duration; PARTS], top: f64) {
    let most = busy.iter().map(|part| part.as_ps()).max().unwrap_or(0);
    let step = (WIDTH - LEFT - RIGHT) / PARTS as f64;
    for (part, span) in busy.iter().enumerate().filter(|(_, span)| **span > Duration::ZERO) {
        let height = (span.as_ps() as f64 / most as f64 * BAR).max(1.5);
        let _ = write!(
            out,
            "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{step:.2}\" height=\"{height:.2}\" \
             fill=\"#0072b2\"/>",
            LEFT + step * part as f64,
            top + BAR - height
        );
    }
}

fn axis(out: &mut String, cycle: Duration, top: f64) {
    for fifth in 0..=4u32 {
        let share = f64::from(fifth) / 4.0;
        let x = LEFT + share * (WIDTH - LEFT - RIGHT);
        let anchor = if fifth == 4 { "end" } else { "middle" };
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            top + 13.0,
            time(cycle.as_ns() as f64 * share)
        );
    }
}

/// Returns the times in an interval at which a gate on the path is closed.
pub(super) fn closed(
    route: &[Egress<'_>],
    from: Instant,
    to: Instant,
    up: bool,
) -> Vec<ClosedGate> {
    let mut spans: Vec<(Instant, Instant)> = Vec::new();
    for egress in route {
        let Some(gates) = egress.gates else { continue };
        let mut at = from;
        while at < to {
            let next = gates.next_change(egress.queue, at).unwrap_or(to).min(to);
            if !gates.is_open(egress.queue, at) {
                spans.push((at, next));
            }
            at = next;
        }
    }
    spans.sort_unstable();
    let mut merged: Vec<(Instant, Instant)> = Vec::new();
    for (start, end) in spans {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    let shade = |(from, to): (Instant, Instant)| ClosedGate {
        from: from.as_ns() as i64,
        to: to.as_ns() as i64,
        up,
    };
    merged.into_iter().map(shade).collect()
}
