//! The HTML report of `--html`.

use super::ranking::{Ranking, Type, commands};
use super::text::flaws_of;
use super::{Report, queues};
use crate::commands::Command;
use crate::commands::intervals;
use crate::trace::{CommandType, Node, Run, Spread, by_stage, chart, path};
use report::Failure;
use report::latency::Latency;
use report::{
    Align, Axis, Bar, Column, Page, Plot, Scale, Stack, Table, Tile, distribution, histogram,
    round_time, time,
};
use std::collections::BTreeMap;

/// Maximum number of types with pictures of their own, and of lines in the common plot.
const MOST_TYPES: usize = 4;
const MOST_LINES: usize = 6;
/// Number of rows that the table shows without a click.
const MOST_ROWS: usize = 20;
const BINS: u64 = 60;

/// Formats the whole page. Fails as [`Run::analyse`], because a second pass over the trace finds
/// single commands.
pub fn page(report: &Report, ranking: Ranking) -> Result<String, Failure> {
    let types = ranking.ranked();
    let io = types.iter().filter(|(_, kind)| kind.io).count();
    let shown = &types[..types.len().min(if io > 0 { io.min(MOST_TYPES) } else { 1 })];
    let ranked = shown.iter().flat_map(|(_, kind)| [0.5, 0.99, 1.0].map(|share| kind.at(share)));
    let numbers: Vec<u64> = ranked.flatten().map(|span| span.number).collect();
    let found = commands(&report.run, &numbers)?;

    let mut page = Page::new("farlane trace report");
    overview(&mut page, report);
    page.section("Latency by type of command");
    page.text(
        "From the submission queue doorbell to the completion queue head doorbell, both at the \
         point nearest to the host that was recorded. Every command counts.",
    );
    latencies(&mut page, report, &types);
    distributions(&mut page, report, &types, shown);
    queues::section(&mut page, report);
    breakdown(&mut page, report, shown, &found);
    if let Some((name, main)) = shown.first() {
        sequences(&mut page, report, name, main, &found);
    }
    stands_out(&mut page, report);
    nodes(&mut page, &report.run);
    let version = env!("CARGO_PKG_VERSION");
    Ok(page.finish(&format!(
        "Written by farlane {version}. Medians of parts do not add up to the \
        median of the whole; the parts shown here are those of single commands, which do."
    )))
}

fn overview(page: &mut Page, report: &Report) {
    let run = &report.run;
    let index = &run.root().index;
    let (first, last) = index.span.unwrap_or_default();
    let frames = index.frames();
    let carried: u64 = frames.iter().map(|frame| u64::from(frame.tlps)).sum();
    let anomalies: u64 = report.anomalies.unexplained.values().map(|anomaly| anomaly.count).sum();
    let tile = |value: String, name: &str| Tile { value, name: name.to_owned(), bad: false };
    let mut tiles = vec![
        tile(time((last - first) as f64), "recorded"),
        tile(report.selected.to_string(), "commands"),
        tile(index.tlps().to_string(), "TLPs"),
        tile(frames.len().to_string(), "frames of the tunnel"),
    ];
    if !frames.is_empty() {
        tiles.push(tile(format!("{:.2}", carried as f64 / frames.len() as f64), "TLPs a frame"));
    }
    let name = "to look at, see below".to_owned();
    tiles.push(Tile { value: anomalies.to_string(), name, bad: anomalies > 0 });
    page.tiles(&tiles);
    if report.selected < report.all {
        page.text(&format!(
            "A part of the trace: {} of {} commands passed the filters. TLPs, frames and what \
             stands out are those of the whole trace.",
            report.selected, report.all
        ));
    }
}

/// Plots latencies in the order of `types`. Commands that never ended come last.
fn latencies(page: &mut Page, report: &Report, types: &[(String, Type)]) {
    use Align::{Left, Right};
    let columns: [Column<CommandType>; 13] = [
        ("command", Left, |kind| kind.kind.clone()),
        ("n", Right, |kind| kind.commands.to_string()),
        ("min", Right, |kind| span(kind, kind.latency.min_ns)),
        ("median", Right, |kind| span(kind, kind.latency.p50_ns)),
        ("mean", Right, |kind| span(kind, kind.latency.mean_ns)),
        ("p99", Right, |kind| span(kind, kind.latency.p99_ns)),
        ("max", Right, |kind| span(kind, kind.latency.max_ns)),
        ("TLPs: median / p99", Right, |kind| both(kind.tlps)),
        ("bytes: median / p99", Right, |kind| both(kind.link_bytes)),
        ("answered from push", Right, |kind| kind.from_push.commands.to_string()),
        ("failed", Right, |kind| kind.failed.to_string()),
        ("lost", Right, |kind| kind.lost.to_string()),
        ("unacknowledged", Right, |kind| kind.unacknowledged.to_string()),
    ];
    fn both(spread: Spread) -> String {
        format!("{} / {}", spread.p50, spread.p99)
    }
    fn span(kind: &CommandType, ns: u64) -> String {
        if kind.latency.n == 0 { "–".to_owned() } else { time(ns as f64) }
    }
    let push = report.run.push_totals(&report.counters);
    if push.is_some() {
        page.text(&format!("Push, of the whole trace: {}.", push.lines().join("; ")));
    }
    let mut kinds = report.statistics.kinds();
    let place = |name: &str| types.iter().position(|(known, _)| known == name);
    kinds.sort_by_cached_key(|kind| place(&kind.kind).unwrap_or(types.len()));
    let (table, more) = kinds.split_at(kinds.len().min(MOST_ROWS));
    let [table, more] = [table, more].map(|kinds| Table::from_rows(&columns, kinds));
    page.table(&table);
    page.note(
        "TLPs and bytes of a command: in both directions at the recorded port, header and payload. \
         A TLP that serves several commands counts in each of them.",
    );
    if kinds.iter().any(|kind| kind.lost + kind.unacknowledged > 0) {
        page.note(
            "Lost: without a completion entry. Unacknowledged: the host never rang the head \
             doorbell for the completion entry. Both count in n and have no latency.",
        );
    }
    if kinds.len() > MOST_ROWS {
        page.more(&format!("{} more types", kinds.len() - MOST_ROWS), &more);
    }
}

fn distributions(
    page: &mut Page,
    report: &Report,
    types: &[(String, Type)],
    shown: &[(String, Type)],
) {
    let latency = |name: &str| report.statistics.latency(name).filter(|l| l.count() > 0);
    let lines = types.iter().filter(|(_, kind)| kind.io || shown.len() < 2).take(MOST_LINES);
    let lines: Vec<(String, &Latency)> =
        lines.filter_map(|(name, _)| Some((name.clone(), latency(name)?))).collect();
    if lines.is_empty() {
        return;
    }
    page.section("Distributions");
    let all = distribution("latency distributions", &lines);
    let mut figures = vec![(
        "Share of commands that took at most so long".to_owned(),
        "the slowest one in a thousand is beyond the right end".to_owned(),
        all.html(),
    )];
    for (name, kind) in shown {
        let Some(latency) = latency(name) else { continue };
        let note = format!("{} commands, none left out", latency.count());
        figures.push((name.clone(), note, histogram(name, latency).html()));
        if kind.spans.len() >= 2 * BINS as usize && figures.len() == 2 {
            let note = "each point one sixtieth of the time".to_owned();
            figures.push((format!("{name} over the run"), note, over_time(name, kind).html()));
        }
    }
    page.figures(&figures);
}

/// Plots the median and the longest duration in each interval of the run.
fn over_time(name: &str, kind: &Type) -> Plot {
    let start = |span: &super::ranking::Span| span.start_ns;
    let first = kind.spans.iter().map(start).min().unwrap_or(0);
    let last = kind.spans.iter().map(start).max().unwrap_or(1).max(first + 1);
    let mut bins: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for span in &kind.spans {
        let bin = u128::from(span.start_ns - first) * u128::from(BINS) / u128::from(last - first);
        bins.entry((bin as u64).min(BINS - 1)).or_default().push(span.ns);
    }
    bins.values_mut().for_each(|all| all.sort_unstable());
    let middle = |bin: u64| first as f64 + (bin as f64 + 0.5) * (last - first) as f64 / BINS as f64;
    let line = |pick: fn(&[u64]) -> u64| -> Vec<(f64, f64)> {
        bins.iter().map(|(bin, all)| (middle(*bin), pick(all) as f64)).collect()
    };
    let median = line(|all| all[(all.len() - 1) / 2]);
    let worst = line(|all| all[all.len() - 1]);
    let values = || median.iter().chain(&worst).map(|(_, ns)| *ns);
    let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    let range = (first as f64, last as f64);
    let x = Axis::new("time of the trace", Scale::Linear, round_time, range);
    let mut plot = Plot::new(name, x, Axis::times("latency", least * 0.9, most * 1.1));
    plot.line("median", median);
    plot.line("worst", worst);
    plot
}

/// Draws the times of the median command and of the command at the 99th percentile, by segment and
/// by stage.
fn breakdown(
    page: &mut Page,
    report: &Report,
    shown: &[(String, Type)],
    found: &BTreeMap<u64, Command>,
) {
    let mut stacks = Vec::new();
    for (name, kind) in shown {
        let picked = [(0.5, "median"), (0.99, "p99")].into_iter().filter_map(|(share, rank)| {
            let number = kind.at(share)?.number;
            Some((rank, number, found.get(&number)?))
        });
        let picked: Vec<Ranked<'_>> = picked.collect();
        let numbers: Vec<String> =
            picked.iter().map(|(rank, number, _)| format!("{rank}: command {number}")).collect();
        let note = numbers.join(", ");
        let steps = |command: &Command| {
            let all = intervals::split(command).into_iter();
            all.map(|part| (part.name.to_owned(), part.ns)).collect()
        };
        let stages = |command: &Command| {
            let all = by_stage(&path(&report.run, command)).into_iter();
            all.map(|(stage, ns)| (stage.name().to_owned(), ns)).collect()
        };
        stacks.push(stack(format!("{name}: what it waits for"), &note, &picked, steps));
        stacks.push(stack(format!("{name}: where the time passes"), &note, &picked, stages));
    }
    if stacks.is_empty() {
        return;
    }
    page.section("Where the time goes");
    page.text(
        "Each bar is one command from its doorbell to its end; its parts add up to it to the \
         nanosecond. By place the way of the TLPs that the command waits for is followed through \
         the nodes that were recorded.",
    );
    page.stacks(&stacks);
}

type Ranked<'a> = (&'static str, u64, &'a Command);

fn stack(
    title: String,
    note: &str,
    picked: &[Ranked<'_>],
    split: impl Fn(&Command) -> Vec<(String, u64)>,
) -> Stack {
    let all: Vec<Vec<(String, u64)>> = picked.iter().map(|(.., command)| split(command)).collect();
    let mut parts: Vec<String> = Vec::new();
    for (name, _) in all.iter().flatten() {
        if !parts.contains(name) {
            parts.push(name.clone());
        }
    }
    let bar = |((rank, _, command), split): (&Ranked<'_>, &Vec<(String, u64)>)| {
        let value = |part: &String| {
            split.iter().filter(|(name, _)| name == part).map(|(_, ns)| ns).sum::<u64>()
        };
        let total = command.duration_ns().unwrap_or(0);
        Bar {
            name: (*rank).to_owned(),
            total: time(total as f64),
            parts: parts.iter().map(value).collect(),
        }
    };
    let bars = picked.iter().zip(&all).map(bar).collect();
    Stack { title, note: note.to_owned(), parts, bars, format: |ns| time(ns as f64) }
}

fn sequences(
    page: &mut Page,
    report: &Report,
    name: &str,
    main: &Type,
    found: &BTreeMap<u64, Command>,
) {
    page.section("Sequence diagrams");
    page.text(
        "Time runs downwards and is to scale; a line is a TLP on its way, a band a frame of the \
         tunnel.",
    );
    let mut before = None;
    for (share, rank) in [(0.5, "median"), (1.0, "worst")] {
        let Some(span) = main.at(share).filter(|span| before != Some(span.number)) else {
            continue;
        };
        let Some(command) = found.get(&span.number) else { continue };
        before = Some(span.number);
        let small = format!("command {} of the trace, {}", span.number, time(span.ns as f64));
        let svg = chart::chart(&report.run, command);
        page.wide(&format!("The {rank} {name}"), &small, &svg);
    }
}

fn stands_out(page: &mut Page, report: &Report) {
    use Align::{Left, Right, Wrap};
    page.section("What stands out");
    if report.anomalies.unexplained.is_empty() && report.unreadable == 0 {
        page.text("Nothing: every TLP is explained, every command was answered.");
    } else {
        let mut table =
            Table::new(&[("what", Wrap), ("times", Right), ("first at", Right), ("first", Wrap)]);
        for (name, anomaly) in &report.anomalies.unexplained {
            let place = anomaly.places.first();
            let at = place.map_or_else(String::new, |(at, ..)| time(*at as f64));
            let first = place.map_or_else(String::new, |(_, number, description)| {
                format!("packet {number}: {description}")
            });
            table.row(vec![(*name).to_owned(), anomaly.count.to_string(), at, first]);
        }
        if report.unreadable > 0 {
            let count = report.unreadable.to_string();
            let description = "TLPs that cannot be read".to_owned();
            table.row(vec![description, count, String::new(), String::new()]);
        }
        page.table(&table);
    }
    if !report.anomalies.notes.is_empty() {
        page.note("Seen in every run, and no trouble:");
        let mut table = Table::new(&[("what", Left), ("times", Right)]);
        for (name, note) in &report.anomalies.notes {
            table.row(vec![(*name).to_owned(), note.count.to_string()]);
        }
        page.table(&table);
    }
}

fn nodes(page: &mut Page, run: &Run) {
    use Align::{Left, Right, Wrap};
    page.section("Nodes and clocks");
    let mut table = Table::new(&[
        ("node", Left),
        ("file", Left),
        ("TLPs", Right),
        ("frames", Right),
        ("clock against the host's", Right),
        ("uncertainty", Right),
        ("remarks", Wrap),
    ]);
    for (number, node) in run.nodes.iter().enumerate() {
        let clock = node.parent.as_ref().map(|parent| &parent.clock);
        let file = node.file.path.file_name().map(|name| name.to_string_lossy().into_owned());
        table.row(vec![
            node.file.header.role.to_string(),
            file.unwrap_or_default(),
            node.index.tlps().to_string(),
            node.index.frames().len().to_string(),
            clock.map_or("–".to_owned(), |clock| format!("{:+} ns", clock.offset_ns)),
            clock.map_or("–".to_owned(), |_| format!("± {} ns", run.uncertainty_ns(number))),
            remarks(node),
        ]);
    }
    page.table(&table);
    if run.nodes.len() > 1 {
        page.note(
            "Clocks are brought together by the frames between the nodes, none of which can \
             arrive before it was sent. Times within one node are exact; of a time between two \
             nodes the uncertainty may be on the wrong side.",
        );
    }
}

fn remarks(node: &Node) -> String {
    let mut all = flaws_of(node);
    if node.parent.as_ref().is_some_and(|parent| parent.clock.contradictory) {
        all.push("its times contradict those of the other node".to_owned());
    }
    all.join("; ")
}
