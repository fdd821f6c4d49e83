//! Latency, throughput and where the time goes.

use super::{Subject, rate};
use crate::analyse::latency::Latency;
use crate::report::{
    Align, Axis, Bar, Page, Plot, Scale, Series, Stack, Table, distribution, histogram, time,
};
use crate::simulate::gather::{Gathered, Kind};
use sim::measure::{Segment, Summary};
use wire::Duration;

/// Kinds with pictures of their own, and lines in a common plot.
const MOST_PICTURES: usize = 4;
const MOST_LINES: usize = 6;
/// Ranks whose time is divided.
const RANKS: [(f64, &str); 5] =
    [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (1.0, "max")];

/// What commands are called.
pub(super) fn name(hosts: usize, host: u16, write: bool) -> String {
    let kind = if write { "write" } else { "read" };
    if hosts > 1 { format!("{kind} of host {host}") } else { kind.to_owned() }
}

type Named<'a> = (String, &'a Kind);

fn named<'a>(gathered: &'a Gathered, hosts: usize) -> Vec<Named<'a>> {
    let all = gathered.kinds.iter();
    all.map(|((host, write), kind)| (name(hosts, *host, *write), kind)).collect()
}

pub(super) fn sections(page: &mut Page, subject: &Subject<'_>) {
    let kinds = named(subject.gathered, subject.report.hosts.len());
    page.section("Latency");
    page.text(
        "Commands from the application's call to its answer; at the root port from the submission \
         doorbell to the acknowledgement of the completion head doorbell. Every one counts.",
    );
    table(page, subject);
    config_reads(page, subject);
    if kinds.is_empty() {
        return;
    }
    distributions(page, &kinds);
    over_time(page, &kinds);
    segments(page, &kinds);
}

fn table(page: &mut Page, subject: &Subject<'_>) {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("measured", Left),
        ("n", Right),
        ("min", Right),
        ("mean", Right),
        ("p50", Right),
        ("p90", Right),
        ("p99", Right),
        ("p99.9", Right),
        ("max", Right),
        ("jitter", Right),
    ]);
    let mut add = |name: String, s: Summary| {
        if s.n == 0 {
            return;
        }
        let spans =
            [s.min_ns, s.mean_ns, s.p50_ns, s.p90_ns, s.p99_ns, s.p99_9_ns, s.max_ns, s.jitter_ns];
        let mut row = vec![name, s.n.to_string()];
        row.extend(spans.map(|ns| time(ns as f64)));
        table.row(row);
    };
    for (number, host) in subject.report.hosts.iter().enumerate() {
        add(format!("host {number}: application"), host.latency.summary());
        add(format!("host {number}: root port"), host.root_port.summary());
        add(format!("host {number}: configuration reads"), host.config_reads.summary());
    }
    page.table(&table);
}

/// Their distribution, if they are what was measured.
fn config_reads(page: &mut Page, subject: &Subject<'_>) {
    if !subject.gathered.kinds.is_empty() {
        return;
    }
    let mut figures = Vec::new();
    for (number, host) in subject.report.hosts.iter().enumerate() {
        let mut latency = Latency::new();
        for value in host.config_reads.histogram().iter_recorded() {
            let span = Duration::from_ns(value.value_iterated_to());
            (0..value.count_at_value()).for_each(|_| latency.record(span));
        }
        if latency.count() > 0 {
            let plot = histogram("configuration reads", &latency);
            figures.push((
                format!("Configuration reads of host {number}"),
                String::new(),
                plot.html(),
            ));
        }
    }
    page.figures(&figures);
}

fn distributions(page: &mut Page, kinds: &[Named<'_>]) {
    let lines: Vec<(String, &Latency)> =
        kinds.iter().take(MOST_LINES).map(|(name, kind)| (name.clone(), &kind.latency)).collect();
    let all = distribution("latency distributions", &lines);
    let mut figures = vec![(
        "Share of commands that took at most so long".to_owned(),
        "the slowest one in a thousand is beyond the right end".to_owned(),
        all.html(),
    )];
    for (name, kind) in kinds.iter().take(MOST_PICTURES) {
        let note = format!("{} commands, none left out", kind.latency.count());
        figures.push((name.clone(), note, histogram(name, &kind.latency).html()));
    }
    page.figures(&figures);
}

fn over_time(page: &mut Page, kinds: &[Named<'_>]) {
    page.section("Over time");
    let mut figures = Vec::new();
    for (name, kind) in kinds.iter().take(MOST_PICTURES) {
        let width = time(kind.series.width.as_ns() as f64);
        let note = format!("mean and worst of each {width}");
        figures.push((format!("Latency of {name}"), note, latency_over_time(name, kind).html()));
    }
    let plot = throughput_over_time(&kinds[..kinds.len().min(MOST_LINES)]);
    figures.push(("Throughput".to_owned(), String::new(), plot.html()));
    page.figures(&figures);
}

fn clock(kinds: &[Named<'_>]) -> Axis {
    let of = |kind: &Kind| {
        let start = kind.series.start.as_ns() as f64;
        let width = kind.series.width.as_ns() as f64;
        (start, start + width * kind.series.pieces.len().max(1) as f64)
    };
    let spans: Vec<(f64, f64)> = kinds.iter().map(|(_, kind)| of(kind)).collect();
    let first = spans.iter().map(|(first, _)| *first).fold(f64::MAX, f64::min);
    let last = spans.iter().map(|(_, last)| *last).fold(0.0, f64::max);
    Axis {
        label: "simulated time".to_owned(),
        scale: Scale::Linear,
        format: time,
        range: (first, last.max(first + 1.0)),
    }
}

/// A line through the middles of the pieces.
fn line(kind: &Kind, name: &str, value: impl Fn(&crate::simulate::gather::Piece) -> f64) -> Series {
    let series = &kind.series;
    let width = series.width.as_ns() as f64;
    let middle = |at: usize| series.start.as_ns() as f64 + width * (at as f64 + 0.5);
    let pieces = series.pieces.iter().enumerate().filter(|(_, piece)| piece.count > 0);
    let points = pieces.map(|(at, piece)| (middle(at), value(piece))).collect();
    Series { name: name.to_owned(), points }
}

fn latency_over_time(name: &str, kind: &Kind) -> Plot {
    let mean = line(kind, "mean", |p| (p.sum_ps / u128::from(p.count) / 1000) as f64);
    let worst = line(kind, "worst", |piece| piece.worst.as_ns() as f64);
    let values = || mean.points.iter().chain(&worst.points).map(|(_, ns)| *ns);
    let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    let y = Axis::times("latency", least * 0.9, most * 1.1);
    let mut plot = Plot::new(name, clock(&[(name.to_owned(), kind)]), y);
    plot.series = vec![mean, worst];
    plot
}

fn throughput_over_time(kinds: &[Named<'_>]) -> Plot {
    let of = |(name, kind): &Named<'_>| {
        let seconds = kind.series.width.as_ps() as f64 / 1e12;
        line(kind, name, |piece| piece.bytes as f64 / seconds)
    };
    let series: Vec<Series> = kinds.iter().map(of).collect();
    let values = series.iter().flat_map(|series| &series.points).map(|(_, value)| *value);
    let y = Axis {
        label: String::new(),
        scale: Scale::Linear,
        format: rate,
        range: (0.0, values.fold(1.0, f64::max) * 1.05),
    };
    let mut plot = Plot::new("throughput", clock(kinds), y);
    plot.series = series;
    plot
}

fn segments(page: &mut Page, kinds: &[Named<'_>]) {
    page.section("Where the time goes");
    page.text(
        "Each bar is one command that took as long as so many of all at most, to three digits; its \
         parts add up to it to the picosecond.",
    );
    let stacks: Vec<Stack> = kinds.iter().take(MOST_PICTURES).map(stack).collect();
    page.stacks(&stacks);
}

fn stack((name, kind): &Named<'_>) -> Stack {
    let records = RANKS.map(|(share, rank)| (rank, kind.at(share)));
    let spent = |segment: &Segment| {
        records.iter().any(|(_, record)| record.split.get(*segment) > Duration::ZERO)
    };
    let parts: Vec<Segment> = Segment::ALL.into_iter().filter(spent).collect();
    let bar = |(rank, record): &(&str, sim::measure::CommandRecord)| Bar {
        name: (*rank).to_owned(),
        total: time(record.until.since(record.since).as_ns() as f64),
        parts: parts.iter().map(|segment| record.split.get(*segment).as_ps()).collect(),
    };
    Stack {
        title: name.clone(),
        note: "by what the command waits for".to_owned(),
        bars: records.iter().map(bar).collect(),
        parts: parts.iter().map(|segment| segment.name().replace('_', " ")).collect(),
        format: |ps| time(ps as f64 / 1000.0),
    }
}
