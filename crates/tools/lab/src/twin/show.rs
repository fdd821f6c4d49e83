//! Measured and simulated figures side by side.

use super::calibration::{arrivals, slots};
use super::{SEGMENTS, Twin};
use crate::results::{BridgeReport, GateVerdict, LabDocument, RunResult};
use crate::view::{self, plain, share};
use latency::{Figures, Slots};
use latency_linux::Document;
use report::Align::{Left, Right};
use report::{Page, Table};

/// Runs with their simulation.
fn twins(results: &LabDocument) -> impl Iterator<Item = (&BridgeReport, &RunResult, &Twin)> {
    let all = results.bridges.iter();
    let all = all.flat_map(|report| report.runs.iter().map(move |run| (report, run)));
    all.filter_map(|(report, run)| Some((report, run, run.twin.as_ref()?)))
}

/// Returns a table with one row per run; `None` if nothing is simulated.
pub fn runs(results: &LabDocument) -> Option<Table> {
    let head = ["bridge", "run", "simulated figures"].map(|name| (name, Left));
    let mut columns = head.to_vec();
    columns.extend(["frames", "simulated", "in window", "simulated"].map(|name| (name, Right)));
    for name in ["p50", "p99", "max"] {
        columns.extend([(name, Right), ("simulated", Right), ("error", Right)]);
    }
    let (mut table, mut is_empty) = (Table::new(&columns), true);
    for (report, run, twin) in twins(results) {
        let Some(simulated) = &twin.simulated else { continue };
        is_empty = false;
        let mut row = vec![report.bridge.name().to_owned(), run.name.clone()];
        row.push(basis(report, run).to_owned());
        let documents = [run.listen.as_ref().unwrap_or(&run.talk), simulated];
        let counts = documents.map(|document| document.counts.map_or(0, |counts| counts.received));
        row.extend(counts.map(|n| n.to_string()));
        row.extend(
            windows(run, simulated)
                .map(|slots| slots.map_or(String::new(), |slots| share(slots.in_window, slots.n))),
        );
        row.extend(compared(&run.talk, simulated, "end to end"));
        table.row(row);
    }
    (!is_empty).then_some(table)
}

/// Returns how frames met their windows, measured and simulated, by the stamp behind the gate.
fn windows<'a>(run: &'a RunResult, simulated: &'a Document) -> [Option<&'a Slots>; 2] {
    let measured = arrivals(run);
    [measured, measured.and_then(|measured| slots(simulated, &measured.stamp))]
}

/// Returns p50, p99 and max of a segment: measured, simulated, and the error of the simulation.
fn compared(measured: &Document, simulated: &Document, segment: &str) -> Vec<String> {
    let find = |document: &Document| {
        let all = &document.analysis.segments;
        all.iter().find(|part| part.segment == segment).map(|part| part.whole)
    };
    let (measured, simulated) = (find(measured), find(simulated));
    let figures: [fn(&Figures) -> i64; 3] =
        [|figures| figures.p50_ns, |figures| figures.p99_ns, |figures| figures.max_ns];
    let cells = |value: fn(&Figures) -> i64| {
        let both = [&measured, &simulated].map(|figures| figures.as_ref().map(value));
        let [text, simulated] = both.map(|ns| ns.map_or(String::new(), plain));
        let error = match both {
            [Some(measured), Some(simulated)] if measured > 0 => {
                let error = (simulated - measured) as f64 / measured as f64;
                format!("{:+.1} %", 100.0 * error)
            }
            _ => String::new(),
        };
        [text, simulated, error]
    };
    figures.into_iter().flat_map(cells).collect()
}

/// Returns the relation of a run's simulated figures to the measurement.
fn basis(report: &BridgeReport, run: &RunResult) -> &'static str {
    match &report.calibration {
        Some(found) if !found.why.is_empty() => "not calibrated",
        Some(_) if run.name == "idle" => "p50 calibrated",
        _ => "predicted",
    }
}

/// Returns a table of the segments of a run.
fn segments(report: &BridgeReport, run: &RunResult, simulated: &Document) -> Table {
    let mut columns = vec![("us", Left), ("simulated figures", Left)];
    for name in ["p50", "p99", "max"] {
        columns.extend([(name, Right), ("simulated", Right), ("error", Right)]);
    }
    let mut table = Table::new(&columns);
    for segment in SEGMENTS {
        let mut row = vec![segment.to_owned(), basis(report, run).to_owned()];
        row.extend(compared(&run.talk, simulated, segment));
        table.row(row);
    }
    table
}

/// Returns one line per bridge about its calibration, and lines about gates and failures.
pub fn notes(results: &LabDocument) -> Vec<String> {
    let mut lines = Vec::new();
    for report in &results.bridges {
        let (name, calibration) = (report.bridge.name(), &report.calibration);
        lines.extend(calibration.iter().map(|found| format!("{name}: {}", found.sentence())));
        let finding = match report.gate.as_ref().map(|gate| gate.verdict) {
            Some(GateVerdict::NotGated) => "frames go round the gate",
            Some(GateVerdict::OtherGate) => "frames use the gate of another priority",
            _ => continue,
        };
        lines.push(format!(
            "{name}: the simulation has the gates of the experiment, but over this bridge \
             {finding}: the difference is a finding about the bridge"
        ));
    }
    let failed = twins(results).filter(|(.., twin)| twin.simulated.is_none());
    lines.extend(failed.map(|(report, run, twin)| {
        format!("{}, {}: not simulated: {}", report.bridge.name(), run.name, twin.why)
    }));
    lines
}

/// Adds a section for each run.
pub fn sections(results: &LabDocument, page: &mut Page) {
    for (report, run, twin) in twins(results) {
        let name = format!("{}, {}", report.bridge.name(), run.name);
        page.section(&format!("{name}: measured and simulated"));
        if let Some(simulated) = &twin.simulated {
            page.table(&segments(report, run, simulated));
            if let [Some(measured), Some(simulated)] = windows(run, simulated) {
                let outside = |slots: &Slots| slots.n - slots.in_window;
                page.text(&format!(
                    "Frames in a window: measured {}, simulated {}. Outside: measured {}, \
                     simulated {}.",
                    measured.in_window,
                    simulated.in_window,
                    outside(measured),
                    outside(simulated)
                ));
            }
            let both = [&run.talk, simulated];
            let figures = SEGMENTS.iter().filter_map(|name| view::distribution(&both, name));
            page.figures(&figures.collect::<Vec<_>>());
        }
        page.details(&format!("The plan of {name}, for farlane sim"), &twin.plan);
    }
}
