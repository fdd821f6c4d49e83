//! The HTML page of a simulation.

mod clocks;
mod copies;
mod explore;
mod gates;
mod latency;
mod overview;
pub(super) mod sequences;
mod streams;
mod timeline;
mod topology;

use super::copies::AllCopies;
use super::limits::{Row, Waits};
use super::report_data::ReportData;
use super::requirements;
use super::stream_hops::{StreamHops, urgency};
use super::timeline::PortTimeline;
use crate::run::document::World;
use crate::traffic::listener_name;
use report::Failure;
use report::{Align, Page, Table, shares, time};
use sim::Config;
use sim::ethernet::traffic::StreamId;
use sim::measure::{Op, Pushed, Summary};
use sim::network::{ListenerReport, StreamReport};
use sim::world::{HostReport, LinkReport, Report};
use std::cmp::Reverse;
use std::path::PathBuf;
use wire::Duration;

/// Maximum number of links with a bar.
const MOST_LINKS: usize = 60;

/// Title, plan and names for the page.
pub struct PageLabels<'a> {
    /// Name of the plan.
    pub title: &'a str,
    /// The world of the run.
    pub world: World,
    /// Text of the plan file; empty if there is none.
    pub plan: &'a str,
    /// Replaces `host 0`, `link 0`, `station 0` and `bridge 0` in a text by the plan's names.
    pub named: &'a dyn Fn(&str) -> String,
    /// By host: the latencies in the recording that the host replayed.
    pub recorded: &'a [Option<Summary>],
    /// Names of the streams.
    pub streams: &'a [(String, StreamId)],
    /// Names of the streams that nodes identify.
    pub identified: &'a [String],
    /// Sentences about overloaded ports.
    pub overloads: &'a [String],
    /// Other remarks, one sentence each.
    pub remarks: &'a [String],
    /// Results of other phases, if phases were tried.
    pub phases: Option<&'a PagePhases>,
}

/// A stream at one of its listeners.
struct StreamRow<'a> {
    /// Name of the stream, followed by the station if it has several listeners.
    name: String,
    stream: &'a StreamReport,
    own: &'a ListenerReport,
    /// Index of the listener.
    listener: usize,
    latency: Summary,
    /// The deadline less the longest latency.
    margin_ns: Option<i64>,
}

impl PageLabels<'_> {
    /// Returns each stream at each of its listeners, the most urgent first.
    fn stream_rows<'r>(&self, subject: &Subject<'r>) -> Vec<StreamRow<'r>> {
        let report = subject.report;
        let named = self.streams.iter().filter_map(|(name, id)| Some((name, report.stream(*id)?)));
        let rows = named.flat_map(|(name, stream)| {
            let traffic = subject.config.network.stream(stream.stream);
            stream.listeners.iter().enumerate().map(move |(listener, own)| {
                let station = (self.named)(&format!("station {}", own.station));
                let name = listener_name(name, stream.listeners.len(), &station);
                let latency = own.latency.summary();
                let margin = |deadline: Duration| deadline.as_ns() as i64 - latency.max_ns as i64;
                let deadline = traffic.listeners[listener].deadline.filter(|_| own.arrived > 0);
                let margin_ns = deadline.map(margin);
                StreamRow { name, stream, own, listener, latency, margin_ns }
            })
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_cached_key(|row| urgency(row.margin_ns, row.latency.max_ns));
        rows
    }
}

/// Results of trials with other phases.
#[derive(Clone, Debug)]
pub struct PagePhases {
    /// Sentence with the number of trials.
    pub text: String,
    /// The largest latencies.
    pub latencies: Table,
    /// The requirements, each in its worst trial.
    pub requirements: Option<Table>,
    /// One line per trial: how to repeat the trial.
    pub trials: String,
    /// Whether all requirements are met in all trials.
    pub met: bool,
}

/// The simulation that a page shows.
pub struct Subject<'a> {
    /// Title, plan and names for the page.
    pub words: &'a PageLabels<'a>,
    /// The simulated configuration.
    pub config: &'a Config,
    /// Results of the simulation.
    pub report: &'a Report,
    /// Data that the observers collected.
    pub data: &'a ReportData,
    /// Hops and causes of streams.
    pub hops: Option<&'a StreamHops>,
    /// The copies of streams on their paths.
    pub copies: &'a AllCopies,
    /// The ports over time, most important first.
    pub ports: &'a [PortTimeline],
    /// Measured waits.
    pub waits: &'a Waits,
    /// Every limit.
    pub limits: &'a [Row],
    /// Every requirement of the plan.
    pub requirements: &'a [requirements::Row],
    /// By host: the traces of its nodes, for sequence diagrams.
    pub traces: &'a [Vec<PathBuf>],
}

/// Formats the whole page.
///
/// # Errors
/// If the traces cannot be read.
pub fn page(subject: &Subject<'_>) -> Result<String, Failure> {
    let (title, is_live) = (subject.words.title, subject.words.world == World::Live);
    let run = if is_live { "Live run" } else { "Simulation" };
    let mut page = Page::new(&format!("{run} of {title}"));
    overview::tiles(&mut page, subject);
    streams::requirements(&mut page, subject);
    streams::phases(&mut page, subject);
    page.section("Topology");
    let (topology, is_map) = topology::svg(subject.config, subject.words.named);
    page.wide("", "", &topology);
    if !subject.report.hosts.is_empty() {
        latency::sections(&mut page, subject);
    }
    streams::section(&mut page, subject);
    streams::flows(&mut page, subject);
    streams::handled(&mut page, subject);
    copies::section(&mut page, subject);
    links(&mut page, subject);
    clocks::section(&mut page, subject);
    gates::section(&mut page, subject);
    timeline::section(&mut page, subject);
    sequence_diagrams(&mut page, subject)?;
    if !subject.limits.is_empty() {
        limits(&mut page, subject);
    }
    explore::script(&mut page, subject, is_map);
    if !subject.words.plan.is_empty() {
        page.section("The plan");
        page.preformatted(subject.words.plan);
    }
    let version = env!("CARGO_PKG_VERSION");
    if is_live {
        let seed = subject.config.seed;
        return Ok(page.finish(&format!("Run live by farlane {version}, seed {seed}.")));
    }
    Ok(page.finish(&format!(
        "Simulated by farlane {version}, seed {}: {} events, digest {:016x}. The same plan gives \
         the same digest on every machine.",
        subject.config.seed, subject.report.events, subject.report.digest
    )))
}

fn links(page: &mut Page, subject: &Subject<'_>) {
    let Subject { report, words, .. } = subject;
    page.section("Links");
    let when = if report.hosts.is_empty() { "" } else { " while the workloads ran" };
    if !report.links.is_empty() {
        page.text(&format!("How much of the time each direction was busy{when}."));
    }
    let busy = report.links.iter().filter(|link| link.load.packets > 0);
    let mut busy: Vec<&LinkReport> = busy.collect();
    if busy.len() > MOST_LINKS {
        busy.sort_by_key(|link| Reverse(link.utilisation_ppm));
        page.note(&format!("The busiest {MOST_LINKS} of {}.", busy.len()));
    }
    let bars: Vec<(String, String, f64)> = busy[..busy.len().min(MOST_LINKS)]
        .iter()
        .map(|link| {
            let share = link.utilisation_ppm as f64 / 1e6;
            let text = match share * 100.0 {
                little if little < 0.05 => "< 0.1 %".to_owned(),
                percent => format!("{percent:.1} %"),
            };
            let packets = link.load.packets;
            ((words.named)(&link.name), format!("{text} · {packets} packets"), share)
        })
        .collect();
    // With more than eight bars, use two columns.
    let column = if bars.len() > 8 { bars.len().div_ceil(2) } else { bars.len().max(1) };
    let picture = |bars: &[_]| (String::new(), String::new(), shares("utilisation", bars));
    page.figures(&bars.chunks(column).map(picture).collect::<Vec<_>>());
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
    pushed(page, subject);
}

fn pushed(page: &mut Page, subject: &Subject<'_>) {
    use Align::{Left, Right};
    let hosts = (0..).zip(&subject.report.hosts).filter(|(_, host)| host.pushed.messages > 0);
    let hosts: Vec<(usize, &HostReport)> = hosts.collect();
    if hosts.is_empty() {
        return;
    }
    let mut table = Table::new(&[
        ("pushed with doorbells by", Left),
        ("entries", Right),
        ("entries not pushed", Right),
        ("bytes", Right),
        ("reads answered from push", Right),
        ("reads answered by the host", Right),
        ("bytes for nothing", Right),
    ]);
    for (number, host) in hosts {
        let Pushed { entries, unpushed, bytes, hits, misses, unused_bytes, .. } = host.pushed;
        let numbers = [entries, unpushed, bytes, hits, misses, unused_bytes];
        let name = (subject.words.named)(&format!("host {number}"));
        table.row(std::iter::once(name).chain(numbers.map(|n| n.to_string())).collect());
    }
    page.table(&table);
}

/// Adds the sequence diagrams of the median command of the most frequent kind and of the longest
/// command.
fn sequence_diagrams(page: &mut Page, subject: &Subject<'_>) -> Result<(), Failure> {
    let Subject { config, data, traces, .. } = subject;
    let (Some((main, many)), Some((other, slow))) = (data.main(), overview::worst(data)) else {
        return Ok(());
    };
    let ranked = [("median", main, many.at(0.5)), ("longest observed", other, slow.worst)];
    if ranked.iter().any(|(_, (host, _), _)| usize::from(*host) >= traces.len()) {
        return Ok(());
    }
    let files = |(host, _): (u16, Op)| &traces[usize::from(host)];
    let diagrams = if main.0 == other.0 {
        sequences::diagrams(config, files(main), &[ranked[0].2, ranked[1].2])?
    } else {
        let mut both = sequences::diagrams(config, files(main), &[ranked[0].2])?;
        both.extend(sequences::diagrams(config, files(other), &[ranked[1].2])?);
        both
    };
    page.section("Sequence diagrams");
    let gated = !data.cycles.is_empty();
    page.text(&format!(
        "Time runs downwards and is to scale; a line is a TLP on its way, a band a frame of the \
         tunnel.{} From the submission doorbell to the completion head doorbell: what the \
         application waits before and after that, and reads of host memory for a push, are not \
         in it.",
        if gated { " Grey is when a gate on the way is closed." } else { "" }
    ));
    for ((rank, (host, op), record), svg) in ranked.iter().zip(diagrams) {
        let name = latency::name(subject, *host, *op);
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
        ("observed", Right),
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
    let again = subject.waits.retransmissions();
    page.note(&format!(
        "The simulated TCP runs on a clock a thousand times as fast as its timers were made for: \
         it sends again after 1 ms where Linux waits 200 ms. So both are compared; {again} segments \
         were sent again here."
    ));
}
