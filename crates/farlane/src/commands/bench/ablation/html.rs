//! The results as one self-contained page.

use super::Ablation;
use super::print::Document;
use crate::analyse::latency::Latency;
use crate::report::{Align, Page, Table, distribution};

/// The page.
pub fn page(all: &Ablation, document: &Document) -> String {
    let mut page = Page::new("farlane bench: aggregation");
    let rounds = document.runs.first().map_or(0, |run| run.run.rounds);
    page.text(&format!(
        "Policies side by side at a payload of {} bytes: medians over {rounds} interleaved rounds, \
         both ends on one machine. Raw floor of the same run ({}): 64-byte TCP round trip, median \
         {:.2} µs; one-way TCP stream {:.0} MB/s.",
        all.mps,
        document.floor.wait,
        document.floor.tcp_pingpong_64b_p50_ns as f64 / 1e3,
        document.floor.tcp_stream_bytes_per_s as f64 / 1e6,
    ));
    page.table(&runs(document));
    page.section("Gain over per-tlp");
    page.text(
        "What aggregation gains in throughput, beside what counting bytes on the wire allows: one \
         TLP a frame against as many as fit. Only where the link is the bottleneck can that be \
         reached.",
    );
    page.table(&gains(document));
    page.section("One command at a time");
    page.text(
        "Medians of pairs of rounds, per-tlp and adaptive in turn, and quartiles of the change.",
    );
    page.table(&latencies(document));
    page.section("Latency distributions");
    page.figures(&figures(all));
    if !document.link_check.is_empty() {
        page.section("What the link lets pass");
        page.table(&check(document));
    }
    page.section("Data");
    let text = crate::commands::json(document);
    page.details("JSON, with percentiles", &text);
    page.finish(&format!("Written by farlane {}.", env!("CARGO_PKG_VERSION")))
}

const WAY: [(&str, Align); 3] =
    [("link", Align::Left), ("transport", Align::Left), ("aggregation", Align::Left)];

fn columns(more: &[(&'static str, Align)]) -> Table {
    Table::new(&[&WAY[..], more].concat())
}

fn runs(document: &Document) -> Table {
    use Align::{Left, Right};
    let mut table = columns(&[
        ("workload", Left),
        ("MB/s", Right),
        ("IOPS", Right),
        ("min", Right),
        ("max", Right),
        ("TLPs a frame", Right),
        ("p50 µs", Right),
        ("p99 µs", Right),
    ]);
    for arm in &document.runs {
        let run = &arm.run;
        table.row(vec![
            arm.link.clone(),
            arm.transport.clone(),
            arm.aggregation.clone(),
            format!("{} {} KiB QD{}", run.rw, run.bs >> 10, run.iodepth),
            format!("{:.2}", run.bytes_per_s / 1e6),
            format!("{:.0}", run.iops),
            format!("{:.0}", run.iops_min),
            format!("{:.0}", run.iops_max),
            format!("{:.1}", arm.tlps_per_frame),
            format!("{:.2}", run.p50_ns as f64 / 1e3),
            format!("{:.2}", run.p99_ns as f64 / 1e3),
        ]);
    }
    table
}

fn gains(document: &Document) -> Table {
    use Align::{Left, Right};
    let mut table = columns(&[
        ("rw", Left),
        ("gain %", Right),
        ("allowed %", Right),
        ("reached %", Right),
        ("link filled %", Right),
        ("by per-tlp %", Right),
    ]);
    let or_dash = |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.1}"));
    for gain in &document.gains {
        table.row(vec![
            gain.link.clone(),
            gain.transport.clone(),
            gain.aggregation.clone(),
            gain.rw.to_owned(),
            format!("{:+.1}", gain.gain_percent),
            or_dash(gain.most_percent),
            or_dash(gain.reached_percent),
            or_dash(gain.link_share),
            or_dash(gain.link_share_per_tlp),
        ]);
    }
    table
}

fn latencies(document: &Document) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        WAY[0],
        WAY[1],
        ("rw", Left),
        ("per-tlp µs", Right),
        ("adaptive µs", Right),
        ("change %", Right),
        ("quartiles", Right),
    ]);
    for pair in &document.latencies {
        table.row(vec![
            pair.link.clone(),
            pair.transport.clone(),
            pair.rw.to_owned(),
            format!("{:.2}", pair.p50_per_tlp_ns as f64 / 1e3),
            format!("{:.2}", pair.p50_adaptive_ns as f64 / 1e3),
            format!("{:+.1}", pair.change_percent),
            format!("{:+.1} to {:+.1}", pair.change_percent_q1, pair.change_percent_q3),
        ]);
    }
    table
}

fn check(document: &Document) -> Table {
    let mut table =
        Table::new(&[("payload of a frame", Align::Right), ("Mb/s of wire", Align::Right)]);
    for check in &document.link_check {
        let rate = format!("{:.1}", check.wire_bits_per_s / 1e6);
        table.row(vec![check.frame_payload.to_string(), rate]);
    }
    table
}

/// One figure a workload, link and transport, with a line a policy.
fn figures(all: &Ablation) -> Vec<(String, String, String)> {
    let mut ways: Vec<_> = all.arms.iter().map(|arm| (arm.link, arm.transport)).collect();
    ways.dedup();
    let mut figures = Vec::new();
    for (link, transport) in ways {
        let arms: Vec<_> =
            all.arms.iter().filter(|arm| (arm.link, arm.transport) == (link, transport)).collect();
        for (index, series) in arms[0].series.iter().enumerate() {
            let lines: Vec<(String, &Latency)> = arms
                .iter()
                .map(|arm| (arm.policy.to_string(), &arm.series[index].latency))
                .collect();
            let name = series.case.name();
            let plot = distribution(&format!("latency distribution of {name}"), &lines);
            figures.push((name, format!("{link}, {transport}"), plot.html()));
        }
    }
    figures
}
