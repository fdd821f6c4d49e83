//! The pictures of a comparison: one row per case, live and simulated values as dots.

use crate::compare_document::{CompareCase, CompareDocument};
use report::{Axis, DotRow, Dots, Scale, time};

/// A measure, the title of its picture, and a function that formats a value.
type Figure = (&'static str, &'static str, fn(f64) -> String);

/// Returns caption, subtitle and SVG of each picture.
pub fn all(document: &CompareDocument) -> Vec<(String, String, String)> {
    let figures: [Figure; 2] = [
        ("p50_ns", "Median latency", time),
        ("bytes_per_s", "Throughput", |rate| format!("{:.0} MB/s", rate / 1e6)),
    ];
    figures.into_iter().filter_map(|figure| picture(document, figure)).collect()
}

fn picture(
    document: &CompareDocument,
    (measure, title, format): Figure,
) -> Option<(String, String, String)> {
    let values = |case: &CompareCase| -> Option<[f64; 2]> {
        let figure = case.figures.iter().find(|figure| figure.measure == measure)?;
        Some([figure.live as f64, figure.sim as f64])
    };
    let row = |case: &CompareCase| {
        let [live, sim] = values(case)?;
        let note = format!("{:+.1} %", (sim / live - 1.0) * 100.0);
        let values = vec![vec![live], vec![sim]];
        Some(DotRow { name: case.heading(), note, bad: false, values, interval: None })
    };
    let rows: Vec<_> = document.cases.iter().filter_map(row).collect();
    let all = document.cases.iter().filter_map(values).flatten();
    let (least, most) =
        all.fold((f64::MAX, 0.0f64), |(least, most), value| (least.min(value), most.max(value)));
    if rows.is_empty() || most <= 0.0 {
        return None;
    }
    let axis = Axis::new(&title.to_lowercase(), Scale::Log, format, (least * 0.8, most * 1.25));
    let series = vec!["live".to_owned(), "simulated".to_owned()];
    let dots = Dots { title: title.to_owned(), axis, series, rows, limit: None };
    Some((title.to_owned(), "at the right: error of the simulation".into(), dots.html()))
}
