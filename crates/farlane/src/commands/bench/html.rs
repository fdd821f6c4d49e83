//! The results as one self-contained page: table, distributions, data.

use super::case::Path;
use super::print::{Document, Run};
use super::{Results, Series};
use std::fmt::Write;

/// Width and height of a plot, and the margin for its labels.
const SIZE: (f64, f64) = (420.0, 240.0);
const MARGIN: (f64, f64) = (44.0, 34.0);

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:76em;\
    padding:0 1em;color:#222}table{border-collapse:collapse;font-variant-numeric:tabular-nums;\
    font-size:13px}td,th{padding:.2em .6em;text-align:right;border-bottom:1px solid #ddd}\
    td:first-child,th:first-child,td:nth-child(3),th:nth-child(3){text-align:left}\
    .plots{display:flex;flex-wrap:wrap;gap:1.5em}figure{margin:0}figcaption{font-weight:600}\
    .scroll{overflow-x:auto}svg text{font:11px system-ui,sans-serif;fill:#444}\
    @media print{body{max-width:none}.plots{display:block}figure{break-inside:avoid}}";

/// Strokes told apart without colour as well.
const STROKES: [(&str, &str); 4] =
    [("#1b6ca8", ""), ("#c8501e", ""), ("#1b6ca8", "5 3"), ("#c8501e", "5 3")];

/// The page.
pub fn page(results: &Results, document: &Document) -> String {
    let mut out = String::new();
    let floor = &document.floor;
    let _ = write!(
        out,
        "<!doctype html><html lang=en><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <title>farlane bench</title><style>{STYLE}</style><h1>farlane bench</h1>\
         <p>Raw floor of the same run ({}): 64-byte TCP round trip, median {:.2} us; one-way TCP \
         stream {:.0} MB/s. Figures are medians over {} interleaved rounds on loopback, both ends \
         on one machine.</p>",
        floor.wait,
        floor.tcp_pingpong_64b_p50_ns as f64 / 1e3,
        floor.tcp_stream_bytes_per_s as f64 / 1e6,
        document.runs.first().map_or(0, |run| run.rounds),
    );
    table(&mut out, &document.runs, results);
    out += "<h2>Latency distributions</h2><p>Share of commands that took at most so long; every \
            sample of every round counts. The time axis is logarithmic.</p><div class=plots>";
    for case in super::CASES {
        let series: Vec<&Series> = results.series.iter().filter(|s| s.case == case).collect();
        plot(&mut out, &case.name(), &series);
    }
    out += "</div><h2>Data</h2><details><summary>JSON, with percentiles</summary><pre>";
    let text = serde_json::to_string_pretty(document).expect("plain keys");
    out += &text.replace('<', "&lt;");
    out += "</pre></details></html>\n";
    out
}

fn table(out: &mut String, runs: &[Run], results: &Results) {
    *out += "<div class=scroll><table><tr><th>path<th>MPS<th>workload<th>IOPS<th>min<th>max\
             <th>MB/s<th>p50 us<th>p99 us<th>floor round trips<th>of raw stream<th>host CPU us\
             <th>device CPU us";
    for (run, series) in runs.iter().zip(&results.series) {
        let us = |ns: f64| format!("{:.2}", ns / 1e3);
        let _ = write!(
            out,
            "<tr><td>{}<td>{}<td>{}<td>{:.0}<td>{:.0}<td>{:.0}<td>{:.0}<td>{}<td>{}<td>{:.2}\
             <td>{:.0} %<td>{}<td>{}",
            run.path,
            run.mps,
            series.case.name(),
            run.iops,
            run.iops_min,
            run.iops_max,
            run.bytes_per_s / 1e6,
            us(run.p50_ns as f64),
            us(run.p99_ns as f64),
            run.floor_round_trips,
            run.floor_stream_share * 100.0,
            us(run.host_cpu_ns_per_io),
            us(run.device_cpu_ns_per_io),
        );
    }
    *out += "</table></div>";
}

/// Cumulative distributions of one workload on all paths.
fn plot(out: &mut String, name: &str, series: &[&Series]) {
    let low = series.iter().map(|s| s.latency.quantile_ns(0.0)).min().unwrap_or(1).max(100);
    let high = series.iter().map(|s| s.latency.quantile_ns(0.999)).max().unwrap_or(1);
    let (low, high) = ((low as f64).log10(), (high.max(low + 1) as f64).log10().max(2.1));
    let x = |ns: f64| MARGIN.0 + (ns.log10() - low) / (high - low) * (SIZE.0 - MARGIN.0 - 10.0);
    let y = |share: f64| 10.0 + (1.0 - share) * (SIZE.1 - MARGIN.1 - 10.0);
    let _ = write!(
        out,
        "<figure><figcaption>{name}</figcaption><svg viewBox=\"0 0 {} {}\" width={} role=img \
         aria-label=\"latency distribution of {name}\">",
        SIZE.0, SIZE.1, SIZE.0
    );
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let at = y(share);
        let _ = write!(
            out,
            "<path d=\"M{} {at:.1}H{}\" stroke=#ddd /><text x={} y={:.1} text-anchor=end>{share}</text>",
            MARGIN.0,
            SIZE.0 - 10.0,
            MARGIN.0 - 4.0,
            at + 4.0
        );
    }
    for power in low.ceil() as i32..=high.floor() as i32 {
        let ns = 10f64.powi(power);
        let _ = write!(
            out,
            "<path d=\"M{0:.1} 10V{1}\" stroke=#ddd /><text x={0:.1} y={2} text-anchor=middle>{3}</text>",
            x(ns),
            SIZE.1 - MARGIN.1,
            SIZE.1 - MARGIN.1 + 14.0,
            label(ns)
        );
    }
    for (index, one) in series.iter().enumerate() {
        let (colour, dash) = STROKES[index % STROKES.len()];
        let points: Vec<String> = (0..=200)
            .map(|step| f64::from(step) / 200.0 * 0.999)
            .map(|q| format!("{:.1},{:.1}", x(one.latency.quantile_ns(q).max(1) as f64), y(q)))
            .collect();
        let _ = write!(
            out,
            "<polyline fill=none stroke={colour} stroke-width=1.8 stroke-dasharray=\"{dash}\" \
             points=\"{}\"/>",
            points.join(" ")
        );
        let at = MARGIN.0 + index as f64 * 92.0;
        let bottom = SIZE.1 - 5.0;
        let path = if one.path == Path::Direct { "direct" } else { "tunnel" };
        let _ = write!(
            out,
            "<path d=\"M{at} {0}h16\" stroke={colour} stroke-width=2 stroke-dasharray=\"{dash}\"/>\
             <text x={1} y={bottom}>{path} {2}</text>",
            bottom - 4.0,
            at + 20.0,
            one.mps
        );
    }
    *out += "</svg></figure>";
}

fn label(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.0} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.0} ms", ns / 1e6),
        ns => format!("{:.0} s", ns / 1e9),
    }
}
