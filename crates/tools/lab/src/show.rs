//! The results of a lab as text and as an HTML page.

use super::results::{BridgeReport, GateCheck, GateVerdict, LabDocument, RunResult};
use crate::{twin, view};
use latency::Figures;
use latency_linux::{Document, Setting};
use report::Align::{Left, Right, Wrap};
use report::document::finish_with_data;
use report::{Column, Page, Table, span};

/// Formats all results as text.
pub fn text(results: &LabDocument) -> String {
    let mut text = bridges(results).text();
    for (name, table) in tables(results) {
        text += &format!("\n{name}\n{}", table.text());
    }
    let mut end = cautions(results);
    end.extend(twin::show::notes(results).iter().map(|line| format!("simulation of {line}")));
    if results.ended != "done" {
        end.extend([String::new(), results.ended.clone()]);
    }
    if end.is_empty() { text } else { text + "\n" + &end.join("\n") + "\n" }
}

/// Returns the names and tables that are not empty, except those of single bridges.
fn tables(results: &LabDocument) -> Vec<(&'static str, Table)> {
    let mut tables = Vec::new();
    if results.bridges.iter().any(|report| !report.runs.is_empty()) {
        tables
            .push(("runs, in us; the way back and the round trip are the talker's", runs(results)));
    }
    if let Some(twins) = twin::show::runs(results) {
        tables.push(("measured and simulated, end to end in us", twins));
    }
    if results.bridges.iter().flat_map(|report| &report.runs).any(|run| run.reads.is_some()) {
        tables.push(("4 KiB reads of a drive beside the frames, in us", reads(results)));
    }
    if let Some(found) = findings(results) {
        tables.push(("what the runs found", found));
    }
    tables.push(("settings", settings(results)));
    tables
}

fn bridges(results: &LabDocument) -> Table {
    let columns: [Column<BridgeReport>; 5] = [
        ("bridge", Left, |report| report.bridge.name().to_owned()),
        ("outcome", Left, |report| report.outcome.text().to_owned()),
        ("gate", Left, |report| {
            report.gate.as_ref().map_or("", |gate| gate.verdict.text()).to_owned()
        }),
        ("in a window", Right, |report| report.gate.as_ref().map_or(String::new(), in_window)),
        ("why", Wrap, why),
    ];
    Table::from_rows(&columns, &results.bridges)
}

fn in_window(gate: &GateCheck) -> String {
    format!("{} of {}", gate.in_window, gate.n)
}

fn why(report: &BridgeReport) -> String {
    match &report.gate {
        _ if !report.why.is_empty() => report.why.clone(),
        Some(gate) => match gate.verdict {
            GateVerdict::Gated => String::new(),
            GateVerdict::NotGated => "frames go round the gate".to_owned(),
            GateVerdict::OtherGate => "frames lose their priority on the way to it".to_owned(),
            GateVerdict::Late => "the gate holds, but frames come behind their window".to_owned(),
        },
        None => String::new(),
    }
}

/// Returns the figures of a segment; empty if the run does not have it.
fn figures(run: &RunResult, segment: &str) -> Vec<String> {
    let found = run.talk.analysis.segments.iter().find(|part| part.segment == segment);
    match found.map(|part| part.whole) {
        Some(Figures { p50_ns, p99_ns, max_ns, .. }) => {
            [p50_ns, p99_ns, max_ns].map(view::plain).to_vec()
        }
        None => vec![String::new(); 3],
    }
}

/// Segments whose figures the table shows.
const SHOWN: [&str; 3] = ["sent to kernel", "end to end", "round trip"];

fn runs(results: &LabDocument) -> Table {
    let mut columns = vec![
        ("bridge".to_owned(), Left),
        ("run".to_owned(), Left),
        ("sent".to_owned(), Right),
        ("came".to_owned(), Right),
        ("in window".to_owned(), Right),
        ("Mb/s".to_owned(), Right),
    ];
    for segment in SHOWN {
        columns.extend([(format!("{segment} p50"), Right), ("p99".to_owned(), Right)]);
        columns.push(("max".to_owned(), Right));
    }
    let columns: Vec<_> = columns.iter().map(|(name, side)| (name.as_str(), *side)).collect();
    let mut table = Table::new(&columns);
    for report in &results.bridges {
        for run in &report.runs {
            let counts = run.listen.as_ref().unwrap_or(&run.talk).counts;
            let count = |value: fn(&latency::Counts) -> u64| {
                counts.as_ref().map_or(String::new(), |counts| value(counts).to_string())
            };
            let slots = run.listen.iter().flat_map(|document| &document.analysis.slots);
            let mut arrivals = slots.filter(|slots| slots.stamp == "arrival");
            let share = arrivals
                .next()
                .map_or(String::new(), |slots| view::share(slots.in_window, slots.n));
            let bits = run.received_bits_per_second;
            let mut row = vec![
                report.bridge.name().to_owned(),
                run.name.clone(),
                count(|counts| counts.sent),
                count(|counts| counts.received),
                share,
                bits.map_or(String::new(), |bits| (bits / 1_000_000).to_string()),
            ];
            row.extend(SHOWN.iter().flat_map(|segment| figures(run, segment)));
            table.row(row);
        }
    }
    table
}

/// Returns warnings about figures: one line per bridge, run and shown segment.
fn cautions(results: &LabDocument) -> Vec<String> {
    let mut lines = Vec::new();
    for report in &results.bridges {
        for run in &report.runs {
            let shown = view::cautions(&run.talk);
            let shown = shown.iter().filter(|line| SHOWN.iter().any(|name| line.starts_with(name)));
            lines.extend(
                shown.map(|line| format!("{}, {}: {line}", report.bridge.name(), run.name)),
            );
        }
    }
    lines
}

fn reads(results: &LabDocument) -> Table {
    let columns = [
        ("bridge", Left),
        ("run", Left),
        ("reads", Right),
        ("p50", Right),
        ("p99", Right),
        ("max", Right),
        ("why", Wrap),
    ];
    let mut table = Table::new(&columns);
    for report in &results.bridges {
        for run in &report.runs {
            let Some(reads) = &run.reads else { continue };
            let times = [reads.p50_ns, reads.p99_ns, reads.max_ns];
            let mut row =
                vec![report.bridge.name().to_owned(), run.name.clone(), reads.n.to_string()];
            row.extend(times.map(span::micros));
            row.push(reads.why.clone());
            table.row(row);
        }
    }
    table
}

/// Returns a table of each run's findings: stalls, periodic spikes, slips, swings; `None` without
/// findings.
fn findings(results: &LabDocument) -> Option<Table> {
    let mut table = Table::new(&[("bridge", Left), ("run", Left), ("finding", Wrap)]);
    let runs =
        results.bridges.iter().flat_map(|report| report.runs.iter().map(move |run| (report, run)));
    let mut found = runs.filter(|(_, run)| !run.talk.analysis.findings.is_empty()).peekable();
    found.peek()?;
    for (report, run) in found {
        for line in view::findings(&run.talk) {
            table.row(vec![report.bridge.name().to_owned(), run.name.clone(), line]);
        }
    }
    Some(table)
}

fn settings(results: &LabDocument) -> Table {
    let columns =
        [("of", Left), ("setting", Left), ("value", Left), ("in force", Left), ("note", Wrap)];
    let mut table = Table::new(&columns);
    let mut add = |owner: String, Setting { name, value, in_force, note }: &Setting| {
        let in_force = if *in_force { "yes" } else { "no" };
        table.row(vec![owner, name.clone(), value.clone(), in_force.to_owned(), note.clone()]);
    };
    results.machine.iter().for_each(|setting| add("machine".to_owned(), setting));
    for report in &results.bridges {
        report.settings.iter().for_each(|setting| add(report.bridge.name().to_owned(), setting));
        // Only settings of the talker are shown, because the lab's own settings are equal in each
        // run.
        let last = report.runs.last().into_iter().flat_map(|run| &run.talk.settings);
        last.for_each(|setting| add(format!("{}, talker", report.bridge.name()), setting));
    }
    table
}

/// Formats all results as a page. The document of `--json` contains the series of each run, the
/// page does not.
pub fn page(results: &LabDocument) -> String {
    let mut page = Page::new("farlane latency lab");
    page.table(&bridges(results));
    for (name, table) in tables(results) {
        page.section(name);
        page.table(&table);
    }
    cautions(results).iter().for_each(|line| page.warning(&format!("{line}.")));
    twin::show::notes(results).iter().for_each(|line| page.note(&format!("Simulation of {line}.")));
    for (name, documents) in side_by_side(results) {
        page.section(&name);
        let figures = SHOWN.iter().flat_map(|segment| view::figures(&documents, segment));
        page.figures(&figures.collect::<Vec<_>>());
    }
    twin::show::sections(results, &mut page);
    finish_with_data(page, "JSON, with every figure but series", &without_series(results))
}

/// Groups runs to be compared: runs with one name over all bridges, and runs of one bridge. A
/// single run is a group of its own.
fn side_by_side(results: &LabDocument) -> Vec<(String, Vec<&Document>)> {
    let runs = || {
        results
            .bridges
            .iter()
            .flat_map(|report| report.runs.iter().map(move |run| (report.bridge, run)))
    };
    let runs = || runs().filter(|(_, run)| run.name != "gates");
    let mut names: Vec<&str> = Vec::new();
    for (_, run) in runs() {
        if !names.contains(&run.name.as_str()) {
            names.push(&run.name);
        }
    }
    let of_name = names.iter().map(|name| {
        let all = runs().filter(|(_, run)| run.name == *name).map(|(_, run)| &run.talk);
        (format!("{name}, with each bridge"), all.collect())
    });
    let of_bridge = results.bridges.iter().map(|report| {
        let all = runs().filter(|(bridge, _)| *bridge == report.bridge).map(|(_, run)| &run.talk);
        (format!("{}, its runs", report.bridge.name().to_owned()), all.collect())
    });
    let all = of_name.chain(of_bridge);
    let least = runs().count().min(2);
    let mut found: Vec<_> =
        all.filter(|(_, documents): &(_, Vec<_>)| documents.len() >= least).collect();
    if least < 2 {
        found.truncate(1);
    }
    found
}

fn without_series(results: &LabDocument) -> LabDocument {
    let mut results = results.clone();
    for run in results.bridges.iter_mut().flat_map(|report| &mut report.runs) {
        let twin = run.twin.iter_mut().filter_map(|twin| twin.simulated.as_mut());
        for document in [&mut run.talk].into_iter().chain(&mut run.listen).chain(twin) {
            document.analysis.clock.error.series.clear();
            for segment in &mut document.analysis.segments {
                segment.course.clear();
                segment.histogram.clear();
            }
        }
    }
    results
}
