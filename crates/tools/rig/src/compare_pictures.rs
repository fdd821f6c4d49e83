//! The pictures of a comparison: one row per case, live and simulated values as dots.

use crate::compare_document::{CompareCase, CompareDocument, percent};
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
    let values = |case: &CompareCase| {
        case.figure(measure).map(|figure| [figure.live, figure.sim].map(|one| one as f64))
    };
    let row = |case: &CompareCase| {
        let values = values(case)?.map(|value| vec![value]).to_vec();
        let note = percent(case.figure(measure)?.error);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare_document::{ErrorEstimate, FloorSummary, WorldFigure};

    #[test]
    fn label_of_a_picture_is_the_error_of_the_table() {
        let error = Some(ErrorEstimate { percent: -3.25, interval: None });
        let figure = WorldFigure { measure: "p50_ns", live: 1000, sim: 900, error };
        let (set, stages) = (Default::default(), Vec::new());
        let case = CompareCase { set, figures: vec![figure], stages, failures: 0 };
        let document = CompareDocument {
            schema: 1,
            plan: String::new(),
            plan_text: String::new(),
            interrupted: false,
            rounds: 1,
            floor: FloorSummary::default(),
            warnings: Vec::new(),
            cases: vec![case],
        };
        let [(.., picture)] = &all(&document)[..] else { panic!("one picture") };
        assert!(picture.contains(&percent(error)), "{picture}");
    }
}
