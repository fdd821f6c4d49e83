//! Latency, throughput and time by segment.

use super::Subject;
use crate::simulate::report_data::{Kind, TimeBin, Timeline};
use report::latency::Latency;
use report::{
    Align, Axis, Bar, Page, Plot, Scale, Series, Stack, Table, distribution, histogram, round_time,
    time,
};
use sim::measure::{Op, Stage, Summary};
use wire::Duration;

/// Maximum number of kinds with pictures of their own, and of lines in a common plot.
const MOST_PICTURES: usize = 4;
const MOST_LINES: usize = 6;
/// Quantiles whose time is divided into segments.
const RANKS: [(f64, &str); 5] =
    [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (1.0, "max")];

/// Returns the name of the commands of one host and opcode.
pub(super) fn name(subject: &Subject<'_>, host: u16, op: Op) -> String {
    let kind = op.name();
    match subject.report.hosts.len() {
        1 => kind.to_owned(),
        _ => (subject.words.named)(&format!("{kind} of host {host}")),
    }
}

type Named<'a> = (String, &'a Kind);

fn named<'a>(subject: &Subject<'a>) -> Vec<Named<'a>> {
    let all = subject.data.kinds.iter();
    all.map(|((host, op), kind)| (name(subject, *host, *op), kind)).collect()
}

pub(super) fn sections(page: &mut Page, subject: &Subject<'_>) {
    let kinds = named(subject);
    page.section("Latency");
    if subject.words.recorded.iter().any(Option::is_some) {
        page.text(
            "Recorded commands were issued again. What the recording says of them, from the \
             submission doorbell to the completion head doorbell, stands below the root port, \
             where the simulation measures the same.",
        );
    }
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
        let name = (subject.words.named)(&format!("host {number}"));
        add(format!("{name}: application"), host.latency.summary());
        add(format!("{name}: root port"), host.root_port.summary());
        if let Some(recorded) = subject.words.recorded.get(number).copied().flatten() {
            add(format!("{name}: recorded"), recorded);
        }
        add(format!("{name}: configuration reads"), host.config_reads.summary());
    }
    page.table(&table);
}

/// Adds the distribution of configuration reads, if the workload has them.
fn config_reads(page: &mut Page, subject: &Subject<'_>) {
    if !subject.data.kinds.is_empty() {
        return;
    }
    let mut figures = Vec::new();
    for (number, host) in subject.report.hosts.iter().enumerate() {
        let mut latency = Latency::default();
        for (_, largest, count) in host.config_reads.bins().used() {
            let span = Duration::from_ns(largest);
            (0..count).for_each(|_| latency.record(span));
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
    if kinds.len() > MOST_PICTURES {
        page.note(&format!(
            "Pictures here and below are of the first {MOST_PICTURES} of {} kinds, common plots of \
             the first {}; the table has all.",
            kinds.len(),
            kinds.len().min(MOST_LINES)
        ));
    }
}

fn over_time(page: &mut Page, kinds: &[Named<'_>]) {
    page.section("Over time");
    let mut figures = Vec::new();
    let lines: Vec<(&str, Timeline)> =
        kinds.iter().take(MOST_LINES).map(|(name, kind)| (&name[..], kind.timeline())).collect();
    for (name, line) in lines.iter().take(MOST_PICTURES) {
        let note = format!("mean and longest of each {}", time(line.width.as_ns() as f64));
        figures.push((format!("Latency of {name}"), note, latency_over_time(name, line).html()));
    }
    figures.push(("Throughput".to_owned(), String::new(), throughput_over_time(&lines).html()));
    page.figures(&figures);
}

fn clock<'a>(lines: impl Iterator<Item = &'a Timeline>) -> Axis {
    let (mut first, mut last) = (f64::MAX, 0f64);
    for line in lines {
        let start = line.start.as_ns() as f64;
        first = first.min(start);
        last = last.max(start + line.width.as_ns() as f64 * line.bins.len() as f64);
    }
    Axis {
        label: "simulated time".to_owned(),
        scale: Scale::Linear,
        format: round_time,
        range: (first, last.max(first + 1.0)),
    }
}

/// Returns a line through the middles of the bins that have a value.
fn line(series: &Timeline, name: &str, value: impl Fn(&TimeBin) -> Option<f64>) -> Series {
    let width = series.width.as_ns() as f64;
    let middle = |at: usize| series.start.as_ns() as f64 + width * (at as f64 + 0.5);
    let bins = series.bins.iter().enumerate();
    let points = bins.filter_map(|(at, bin)| Some((middle(at), value(bin)?))).collect();
    Series { name: name.to_owned(), points }
}

fn latency_over_time(name: &str, series: &Timeline) -> Plot {
    let mean = line(series, "mean", |bin| {
        bin.sum_ps.checked_div(u128::from(bin.count)).map(|ps| (ps / 1000) as f64)
    });
    let worst = line(series, "longest", |bin| (bin.count > 0).then(|| bin.worst.as_ns() as f64));
    let values = || mean.points.iter().chain(&worst.points).map(|(_, ns)| *ns);
    let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    let y = Axis::times("latency", least * 0.9, most * 1.1);
    let mut plot = Plot::new(name, clock(std::iter::once(series)), y);
    plot.series = vec![mean, worst];
    plot
}

fn throughput_over_time(lines: &[(&str, Timeline)]) -> Plot {
    let named = |(name, series): &(&str, Timeline)| {
        let seconds = series.width.as_ps() as f64 / 1e12;
        line(series, name, |bin| Some(bin.bytes as f64 / seconds))
    };
    let series: Vec<Series> = lines.iter().map(named).collect();
    let values = series.iter().flat_map(|series| &series.points).map(|(_, value)| *value);
    let y = Axis {
        label: "MB/s".to_owned(),
        scale: Scale::Linear,
        format: |rate| format!("{}", (rate / 1e4).round() / 100.0),
        range: (0.0, values.fold(1.0, f64::max) * 1.05),
    };
    let mut plot = Plot::new("throughput", clock(lines.iter().map(|(_, line)| line)), y);
    plot.series = series;
    plot
}

fn segments(page: &mut Page, kinds: &[Named<'_>]) {
    let shown = &kinds[..kinds.len().min(MOST_PICTURES)];
    // All bars have the same parts, so that a part has the same colour in all bars.
    let spent = |stage: &Stage| {
        let records = shown.iter().flat_map(|(_, kind)| RANKS.map(|(share, _)| kind.at(share)));
        records.into_iter().any(|record| record.breakdown.get(*stage) > Duration::ZERO)
    };
    let parts: Vec<Stage> = Stage::ALL.into_iter().filter(spent).collect();
    if parts.is_empty() {
        return;
    }
    page.section("Where the time goes");
    page.text(
        "Each bar is one command that took as long as so many of all at most, to three digits; its \
         parts add up to it to the picosecond.",
    );
    let stacks: Vec<Stack> = shown.iter().map(|kind| stack(kind, &parts)).collect();
    page.stacks(&stacks);
}

fn stack((name, kind): &Named<'_>, parts: &[Stage]) -> Stack {
    let records = RANKS.map(|(share, rank)| (rank, kind.at(share)));
    let bar = |(rank, record): &(&str, sim::measure::CommandRecord)| Bar {
        name: (*rank).to_owned(),
        total: time(record.until.since(record.since).as_ns() as f64),
        parts: parts.iter().map(|stage| record.breakdown.get(*stage).as_ps()).collect(),
    };
    Stack {
        title: name.clone(),
        note: "by what the command waits for".to_owned(),
        bars: records.iter().map(bar).collect(),
        parts: parts.iter().map(|stage| stage.name().replace('_', " ")).collect(),
        format: |ps| time(ps as f64 / 1000.0),
    }
}
