//! The report of a simulation: one page for people.

mod gates;
mod latency;
pub(super) mod sequences;
mod topology;

use super::gather::Gathered;
use super::limits::{Row, Verdict, Waits};
use super::places;
use crate::commands::Failure;
use crate::report::{Align, Page, Table, Tile, shares, time};
use sim::Config;
use sim::measure::Summary;
use sim::world::Report;
use std::path::PathBuf;

/// Gate charts at most.
const MOST_CHARTS: usize = 8;

/// What people call things.
pub struct Words<'a> {
    /// The plan's name.
    pub title: &'a str,
    /// The plan as it was written; empty if there is none.
    pub plan: &'a str,
    /// Puts the plan's names for `host 0`, `link 0`, `station 0` and
    /// `bridge 0` into a text.
    pub named: &'a dyn Fn(&str) -> String,
    /// By host: what the recording says that it replayed.
    pub recorded: &'a [Option<Summary>],
}

/// What a page is about.
pub struct Subject<'a> {
    /// What people call things.
    pub words: &'a Words<'a>,
    /// What was simulated.
    pub config: &'a Config,
    /// What it came to.
    pub report: &'a Report,
    /// What the observers saw.
    pub gathered: &'a Gathered,
    /// See `gathered`.
    pub waits: &'a Waits,
    /// Every limit.
    pub limits: &'a [Row],
    /// By host: the traces of its nodes, for sequence diagrams.
    pub traces: &'a [Vec<PathBuf>],
}

/// The whole page.
///
/// # Errors
/// If the traces cannot be read.
pub fn page(subject: &Subject<'_>) -> Result<String, Failure> {
    let mut page = Page::new(&format!("Simulation of {}", subject.words.title));
    overview(&mut page, subject);
    page.section("Topology");
    let (svg, width) = topology::svg(subject.config, subject.words.named);
    if width > 560.0 {
        page.wide("", "", &svg.replace("class=\"plot\"", ""));
    } else {
        page.figures(&[(String::new(), String::new(), svg)]);
    }
    latency::sections(&mut page, subject);
    links(&mut page, subject);
    gate_charts(&mut page, subject);
    sequence_diagrams(&mut page, subject)?;
    limits(&mut page, subject);
    if !subject.words.plan.is_empty() {
        page.section("The plan");
        page.preformatted(subject.words.plan);
    }
    let version = env!("CARGO_PKG_VERSION");
    Ok(page.finish(&format!(
        "Simulated by farlane {version}, seed {}: {} events, digest {:016x}. The same plan gives \
         the same digest on every machine.",
        subject.config.seed, subject.report.events, subject.report.digest
    )))
}

/// Bytes per second, readable.
fn rate(bytes: f64) -> String {
    match bytes {
        b if b < 1e6 => format!("{:.0} kB/s", b / 1e3),
        b if b < 1e9 => format!("{:.1} MB/s", b / 1e6),
        b => format!("{:.2} GB/s", b / 1e9),
    }
}

fn overview(page: &mut Page, subject: &Subject<'_>) {
    let Subject { report, gathered, limits, .. } = subject;
    let tile = |value: String, name: &str| Tile { value, name: name.to_owned(), bad: false };
    let commands: u64 = report.hosts.iter().map(|host| host.commands).sum();
    let mut tiles = vec![tile(time(report.time.as_ns() as f64), "simulated")];
    if commands > 0 {
        tiles.push(tile(commands.to_string(), "NVMe commands"));
    }
    if let Some(((host, op), kind)) = gathered.main() {
        let name = latency::name(subject, host, op);
        let summary = kind.latency.summary();
        tiles.push(tile(time(summary.p50_ns as f64), &format!("median {name}")));
        tiles.push(tile(time(summary.max_ns as f64), &format!("worst {name}")));
        let bytes: u64 = report.hosts.iter().map(|host| host.throughput()).sum();
        tiles.push(tile(rate(bytes as f64), "throughput"));
    }
    let bad = report.hosts.iter().map(|host| host.mismatches + host.failures).sum::<u64>();
    let verified: u64 = report.hosts.iter().map(|host| host.verified).sum();
    if bad > 0 {
        let name = "failed commands and wrong blocks".to_owned();
        tiles.push(Tile { value: bad.to_string(), name, bad: true });
    } else if verified > 0 {
        tiles.push(tile(verified.to_string(), "blocks compared, all right"));
    }
    let flagged = limits.iter().filter(|row| row.verdict() != Verdict::Holds).count();
    let value = format!("{} of {}", limits.len() - flagged, limits.len());
    tiles.push(Tile { value, name: "limits hold, see below".into(), bad: flagged > 0 });
    page.tiles(&tiles);
    page.note(&format!("Seed {}, digest {:016x}.", subject.config.seed, report.digest));
}

fn links(page: &mut Page, subject: &Subject<'_>) {
    let Subject { report, words, .. } = subject;
    page.section("Links");
    page.text("How much of the time each direction was busy while the workloads ran.");
    let busy = report.links.iter().filter(|link| link.load.packets > 0);
    let bars: Vec<(String, String, f64)> = busy
        .map(|link| {
            let share = link.utilisation_ppm as f64 / 1e6;
            let text = format!("{:.1} %", share * 100.0);
            let packets = link.load.packets;
            ((words.named)(&link.name), format!("{text} · {packets} packets"), share)
        })
        .collect();
    page.figures(&[(String::new(), String::new(), shares("utilisation", &bars))]);
    if report.tunnels.is_empty() {
        return;
    }
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("tunnel", Left),
        ("frames", Right),
        ("TLPs", Right),
        ("TLPs a frame", Right),
    ]);
    for tunnel in &report.tunnels {
        let each = tunnel.tlps as f64 / tunnel.frames.max(1) as f64;
        let numbers = [tunnel.frames.to_string(), tunnel.tlps.to_string(), format!("{each:.2}")];
        table.row(std::iter::once((words.named)(&tunnel.name)).chain(numbers).collect());
    }
    page.table(&table);
}

fn gate_charts(page: &mut Page, subject: &Subject<'_>) {
    let cycles = &subject.gathered.cycles;
    if cycles.is_empty() {
        return;
    }
    page.section("Gates");
    page.text(
        "One cycle of each port's gates: green where a queue may send, grey where it may not. Blue \
         are the frames of the whole run, laid over one cycle; higher where there were more.",
    );
    let chart = |cycle: &crate::simulate::gather::Cycle| {
        let length = time(cycle.gates.list().cycle_time().as_ns() as f64);
        let small = format!("cycle {length}, {} frames", cycle.frames);
        ((subject.words.named)(&places::name(cycle.place)), small, gates::svg(cycle))
    };
    let charts: Vec<_> = cycles.values().take(MOST_CHARTS).map(chart).collect();
    page.figures(&charts);
    if cycles.len() > MOST_CHARTS {
        page.note(&format!("{} more ports have gates.", cycles.len() - MOST_CHARTS));
    }
}

fn sequence_diagrams(page: &mut Page, subject: &Subject<'_>) -> Result<(), Failure> {
    let Some(((host, op), kind)) = subject.gathered.main() else { return Ok(()) };
    let Some(files) = subject.traces.get(usize::from(host)) else { return Ok(()) };
    let wanted = [("median", kind.at(0.5)), ("worst", kind.worst)];
    let records = wanted.map(|(_, record)| record);
    let diagrams = sequences::diagrams(subject.config, files, &records)?;
    page.section("Sequence diagrams");
    let gated = !subject.gathered.cycles.is_empty();
    page.text(&format!(
        "Time runs downwards and is to scale; a line is a TLP on its way, a band a frame of the \
         tunnel.{} From the submission doorbell to the completion head doorbell: what the \
         application waits before and after that is not in it.",
        if gated { " Grey is when a gate on the way is closed." } else { "" }
    ));
    let name = latency::name(subject, host, op);
    for ((rank, record), svg) in wanted.iter().zip(diagrams) {
        let span = time(record.until.since(record.since).as_ns() as f64);
        let small = format!("{span} for the application");
        match svg {
            Some(svg) => page.wide(&format!("The {rank} {name}"), &small, &svg),
            None => page.note(&format!("The {rank} {name} is not in the trace.")),
        }
    }
    Ok(())
}

fn limits(page: &mut Page, subject: &Subject<'_>) {
    use Align::{Left, Right, Wrap};
    page.section("Will the drive fall off the bus?");
    page.text(
        "Every wait against the limit at which real systems give up. Of a range systems may give \
         up at its lower end, and have at its upper end; the margin is to the lower end.",
    );
    let mut table = Table::new(&[
        ("limit", Wrap),
        ("at", Right),
        ("worst case", Right),
        ("margin", Right),
        ("factor", Right),
        ("", Left),
        ("first event beyond it", Wrap),
    ]);
    let mut sources = std::collections::BTreeSet::new();
    for row in subject.limits {
        let mut cells = vec![row.name.clone()];
        cells.extend(super::limits::cells(row));
        if let Some(event) = cells.last_mut() {
            *event = (subject.words.named)(event);
        }
        sources.insert(row.source);
        table.row(cells);
    }
    page.table(&table);
    let sources: Vec<&str> = sources.into_iter().collect();
    page.note(&format!("Sources: {}.", sources.join("; ")));
    let again = subject.waits.sent_again();
    page.note(&format!(
        "The simulated TCP runs on a clock a thousand times as fast as its timers were made for: \
         it sends again after 1 ms where Linux waits 200 ms. So both are compared; {again} segments \
         were sent again here."
    ));
}
