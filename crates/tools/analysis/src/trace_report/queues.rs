//! Queue depths and ring positions as a table and as pictures.

use super::Report;
use crate::trace::rings::{Point, Queue, QueueDepth, Rings};
use report::{Align, Axis, Page, Plot, Scale, Table, round_time, time};
use wire::Bdf;

/// Maximum number of queues with a line in the plot of depths.
const MOST_LINES: usize = 5;
const ALL: &str = "all I/O";

/// Returns a table with one row per queue. Several I/O queues also have a row for their sum.
pub fn table(rings: &Rings) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("drive", Left),
        ("queue", Left),
        ("busy", Right),
        ("of", Right),
        ("depth p50", Right),
        ("p99", Right),
        ("max", Right),
        ("mean", Right),
        ("SQ entries", Right),
        ("most", Right),
        ("wraps", Right),
        ("CQ entries", Right),
        ("most", Right),
        ("wraps", Right),
    ]);
    for (drive, queue, rings_of_queue) in rings.queues() {
        let [sq, cq] = rings_of_queue.rings;
        let numbers = [sq, cq].map(|ring| [ring.entries.into(), ring.most.into(), ring.wraps]);
        let numbers = numbers.concat().into_iter().map(|number: u64| number.to_string());
        let mut cells = depth(drive.to_string(), queue.to_string(), rings_of_queue.depth());
        cells.extend(numbers);
        table.row(cells);
    }
    if io_queues(rings).count() > 1 {
        let mut cells = depth(String::new(), ALL.to_owned(), rings.all().depth());
        cells.extend(vec![String::new(); 6]);
        table.row(cells);
    }
    table
}

fn depth(drive: String, queue: String, depth: QueueDepth) -> Vec<String> {
    let QueueDepth { life_ns, busy_ns, p50, p99, max, mean } = depth;
    let [busy, life] = [busy_ns, life_ns].map(|ns| time(ns as f64));
    let [p50, p99, max] = [p50, p99, max].map(|number| number.to_string());
    vec![drive, queue, busy, life, p50, p99, max, format!("{mean:.2}")]
}

fn io_queues(rings: &Rings) -> impl Iterator<Item = (Bdf, u16, &Queue)> {
    rings.queues().filter(|(_, queue, _)| *queue != 0)
}

/// Adds the section about queues to a page; adds nothing if there are no queues.
pub fn section(page: &mut Page, report: &Report) {
    let rings = &report.rings;
    if rings.queues().next().is_none() {
        return;
    }
    page.section("Queues");
    page.text(
        "Commands outstanding: from their tail doorbell to the head doorbell of their completion \
         entry. Median, 99th percentile and mean are weighted by time, of the time in which the \
         queue was busy. Of a ring, the table has its size, the most entries in it at once, and how \
         often its tail began again at entry 0.",
    );
    page.table(&table(rings));
    let mut queues: Vec<_> = io_queues(rings).collect();
    queues.sort_by_key(|(.., queue)| u64::MAX - queue.depth().busy_ns);
    let Some((drive, number, busiest)) = queues.first() else { return };
    let mut figures = Vec::new();
    if let Some(plot) = depths(rings, &queues) {
        let drawn = queues.iter().take(MOST_LINES).map(|(.., queue)| queue.series.interval_ns);
        let note = match drawn.fold(rings.all().series.interval_ns, u64::max) {
            0 => "every change".to_owned(),
            ns => format!("the most in each {}", time(ns as f64)),
        };
        figures.push(("Commands outstanding".to_owned(), note, plot.html()));
    }
    if let Some(plot) = positions(busiest) {
        let caption = format!("Rings of queue {number} of {drive}");
        let note = "the first changes, one by one".to_owned();
        figures.push((caption, note, plot.html()));
    }
    page.figures(&figures);
}

type Value = fn(&Point) -> Option<u64>;

fn steps(points: &[Point], value_at: Value) -> Vec<(f64, f64)> {
    let known =
        points.iter().filter_map(|point| Some((point.at_ns as f64, value_at(point)? as f64)));
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for (at, value) in known {
        if let Some((_, before)) = steps.last().copied().filter(|(_, before)| *before != value) {
            steps.push((at, before));
        }
        steps.push((at, value));
    }
    steps
}

/// Returns a time axis for these points; `None` if there are fewer than two.
fn times<'a>(points: impl Iterator<Item = &'a Point> + Clone) -> Option<Axis> {
    let at = points.map(|point| point.at_ns as f64);
    let first = at.clone().fold(f64::MAX, f64::min);
    let last = at.fold(0.0, f64::max);
    let axis = |range| Axis::new("time of the trace", Scale::Linear, round_time, range);
    (first < last).then(|| axis((first, last)))
}

fn whole(label: &str, most: f64) -> Axis {
    Axis::new(label, Scale::Whole, |count| format!("{count:.0}"), (0.0, (most * 1.1).max(1.0)))
}

/// Returns the line of outstanding commands: at each point up to the peak of the interval, and
/// back.
fn levels(queue: &Queue) -> Vec<(f64, f64)> {
    let mut before = None;
    let points = queue.series.points.iter().flat_map(|point| {
        let at = point.at_ns as f64;
        let last = before.replace(point.outstanding);
        let levels = [last, Some(point.peak), Some(point.outstanding)];
        levels.into_iter().flatten().map(move |level| (at, level as f64)).collect::<Vec<_>>()
    });
    let mut levels: Vec<(f64, f64)> = points.collect();
    levels.dedup();
    levels
}

fn depths(rings: &Rings, queues: &[(Bdf, u16, &Queue)]) -> Option<Plot> {
    let all = rings.all();
    let x = times(all.series.points.iter())?;
    let most = all.series.points.iter().map(|point| point.peak).max().unwrap_or(0);
    let mut plot = Plot::new("commands outstanding", x, whole("commands", most as f64));
    if queues.len() > 1 {
        plot.line(ALL, levels(all));
    }
    for (drive, number, queue) in queues.iter().take(MOST_LINES) {
        plot.line(&format!("{drive} queue {number}"), levels(queue));
    }
    Some(plot)
}

fn positions(queue: &Queue) -> Option<Plot> {
    let x = times(queue.first.iter())?;
    let most = queue.rings.iter().map(|ring| ring.entries).max().unwrap_or(0);
    let lines: [(&str, Value); 4] = [
        ("SQ tail", |point| point.sq_tail.map(u64::from)),
        ("SQ head", |point| point.sq_head.map(u64::from)),
        ("CQ tail", |point| point.cq_tail.map(u64::from)),
        ("CQ head", |point| point.cq_head.map(u64::from)),
    ];
    let lines = lines.map(|(name, value_at)| (name, steps(&queue.first, value_at)));
    let highest = lines.iter().flat_map(|(_, steps)| steps).map(|(_, y)| *y).fold(0.0, f64::max);
    let mut plot = Plot::new("positions of rings", x, whole("entry", highest.min(f64::from(most))));
    lines.into_iter().for_each(|(name, steps)| plot.line(name, steps));
    Some(plot)
}
