//! The results as one self-contained page.

use super::super::print::us;
use super::print::{
    AggregationDocument, AggregationGain, AggregationLatency, AggregationRun, GAIN, RUN, or,
};
use crate::commands::{INTERRUPTED, finish_with_data};
use load::ablation::{Ablation, LinkCheck};
use report::Align::{Left, Right};
use report::latency::Latency;
use report::{Column, Page, Table, distribution};

/// Formats the page.
pub fn page(all: &Ablation, document: &AggregationDocument) -> String {
    let mut page = Page::new("farlane bench: aggregation");
    let rounds = document.runs.first().map_or(0, |run| run.run.rounds);
    page.text(&format!(
        "Policies side by side at a payload of {} bytes: medians over {rounds} interleaved rounds, \
         both ends on one machine. {}",
        all.mps,
        document.floor.sentence(),
    ));
    if document.interrupted {
        page.warning(INTERRUPTED);
    }
    page.table(&Table::from_rows(&[&RUN[..], &RUN_FIGURES].concat(), &document.runs));
    page.section("Gain over per-tlp");
    page.text(
        "Gain in throughput, and the gain that bytes on the wire allow: one TLP per frame compared \
         with full frames. The second is reached only if the link is the bottleneck.",
    );
    page.table(&Table::from_rows(&[&GAIN[..], &GAIN_SHARES].concat(), &document.gains));
    page.section("One command at a time");
    page.text(
        "Medians of pairs of rounds, per-tlp and adaptive in turn, and quartiles of the change.",
    );
    page.table(&Table::from_rows(&LATENCIES, &document.latencies));
    page.section("Latency distributions");
    page.figures(&figures(all));
    if !document.link_check.is_empty() {
        page.section("What the link lets pass");
        page.table(&Table::from_rows(&CHECK, &document.link_check));
    }
    finish_with_data(page, "JSON, with percentiles", document)
}

const RUN_FIGURES: [Column<AggregationRun>; 6] = [
    ("IOPS", Right, |setup| format!("{:.0}", setup.run.iops)),
    ("min", Right, |setup| format!("{:.0}", setup.run.iops_min)),
    ("max", Right, |setup| format!("{:.0}", setup.run.iops_max)),
    ("TLPs per frame", Right, |setup| format!("{:.1}", setup.tlps_per_frame)),
    ("p50 us", Right, |setup| us(setup.run.p50_ns)),
    ("p99 us", Right, |setup| us(setup.run.p99_ns)),
];

const GAIN_SHARES: [Column<AggregationGain>; 4] = [
    ("allowed %", Right, |gain| or(gain.most_percent, "–")),
    ("reached %", Right, |gain| or(gain.reached_percent, "–")),
    ("link filled %", Right, |gain| or(gain.link_share, "–")),
    ("by per-tlp %", Right, |gain| or(gain.link_share_per_tlp, "–")),
];

const LATENCIES: [Column<AggregationLatency>; 7] = [
    ("link", Left, |pair| pair.link.clone()),
    ("transport", Left, |pair| pair.transport.clone()),
    ("rw", Left, |pair| pair.rw.to_owned()),
    ("per-tlp us", Right, |pair| us(pair.p50_per_tlp_ns)),
    ("adaptive us", Right, |pair| us(pair.p50_adaptive_ns)),
    ("change %", Right, |pair| format!("{:+.1}", pair.change_percent)),
    ("quartiles", Right, |pair| {
        format!("{:+.1} to {:+.1}", pair.change_percent_q1, pair.change_percent_q3)
    }),
];

const CHECK: [Column<LinkCheck>; 2] = [
    ("payload of a frame", Right, |check| check.frame_payload.to_string()),
    ("Mb/s of wire", Right, |check| format!("{:.1}", check.wire_bits_per_s / 1e6)),
];

/// One figure per workload, link and transport, with one line per policy.
fn figures(all: &Ablation) -> Vec<(String, String, String)> {
    let mut ways: Vec<_> = all.setups.iter().map(|setup| (setup.link, setup.transport)).collect();
    ways.dedup();
    let mut figures = Vec::new();
    for (link, transport) in ways {
        let setups: Vec<_> = all
            .setups
            .iter()
            .filter(|setup| (setup.link, setup.transport) == (link, transport))
            .collect();
        for (index, series) in setups[0].series.iter().enumerate() {
            let lines: Vec<(String, &Latency)> = setups
                .iter()
                .map(|setup| (setup.policy.to_string(), &setup.series[index].latency))
                .collect();
            let name = series.case.name();
            let plot = distribution(&format!("latency distribution of {name}"), &lines);
            figures.push((name, format!("{link}, {transport}"), plot.html()));
        }
    }
    figures
}
