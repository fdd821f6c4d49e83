//! Tests of pages and pictures: tags are closed, and the values are shown.

use super::*;
use crate::latency::Latency;
use proptest::prelude::*;
use wire::Duration;

fn samples() -> Latency {
    (1..=1000).map(|n| Duration::from_ns(n * 100)).collect()
}

/// Checks that every opened tag is closed, in order.
pub fn nests(html: &str) {
    const VOID: [&str; 2] = ["meta", "!doctype"];
    let mut open = Vec::new();
    for part in html.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("a closed tag");
        let name = tag.split([' ', '\n']).next().unwrap();
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "in {}", &html[..html.len().min(200)]);
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn page_closes_all_tags_and_has_no_external_references() {
    let mut page = Page::new("A & B");
    page.section("<one>");
    page.text("1 < 2");
    page.note("\"soft\"");
    page.tiles(&[Tile { value: "5".into(), name: "things".into(), bad: true }]);
    let mut table = Table::new(&[("name", Align::Left), ("value", Align::Right)]);
    table.row(vec!["<script>".into(), "1".into()]);
    page.table(&table);
    page.more("2 more", &table);
    let samples = samples();
    let plot = distribution("all", &[("x".into(), &samples), ("y".into(), &samples)]);
    page.figures(&[("caption".into(), String::new(), plot.html())]);
    page.wide("wide", "small", &histogram("h", &samples).html());
    page.details("more", "{\"a\": 1 < 2}");
    let html = page.finish("the end");
    nests(&html);
    assert!(html.contains("<title>A &amp; B</title>") && html.contains("&lt;script&gt;"));
    for outside in ["http:", "https:", "<script", "src=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn times_have_three_digits() {
    for (ns, text) in [
        (0.0, "0 ns"),
        (999.0, "999 ns"),
        (1000.0, "1 us"),
        (61_049.0, "61 us"),
        (61_550.0, "61.5 us"),
        (1_234_567.0, "1.23 ms"),
        (2e9, "2 s"),
    ] {
        assert_eq!(time(ns), text);
    }
}

#[test]
fn round_times_far_from_zero_differ() {
    let texts = [201_500_000.0, 202_000_000.0, 0.0, 1e9, 1_250_000.0].map(round_time);
    assert_eq!(texts, ["201.5 ms", "202 ms", "0 ns", "1 s", "1.25 ms"]);
}

/// Axes of few samples have only whole numbers, and text is readable on every colour.
#[test]
fn few_samples_have_no_fractions_and_colours_have_ink() {
    let few: Latency = (1..=2).map(Duration::from_us).collect();
    let ticks = histogram("h", &few).y.ticks(6.0);
    assert_eq!(ticks, [0.0, 1.0]);
    assert_eq!((ink("#0072b2"), ink("#e69f00"), ink("#ffffff")), ("#fff", "#1c2733", "#1c2733"));
}

#[test]
fn a_histogram_counts_every_sample() {
    let plot = histogram("h", &samples());
    assert_eq!(plot.bars.iter().map(|(.., count)| count).sum::<f64>(), 1000.0);
    assert!(plot.bars.windows(2).all(|pair| pair[0].1 <= pair[1].0 * 1.000_001));
    let names: Vec<&str> = plot.marks.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["median 50 us", "p99 99 us"]);
    nests(&plot.html());
    let empty = histogram("nothing", &Latency::default());
    assert!(empty.bars.is_empty() && !empty.html().contains("NaN"));
}

#[test]
fn a_distribution_rises_from_its_least_to_its_last() {
    let samples = samples();
    let plot = distribution("d", &[("one".into(), &samples), ("none".into(), &Latency::default())]);
    let [one] = &plot.series[..] else { panic!("what has no samples has no line") };
    assert_eq!(one.points[0], (100.0, 0.0));
    assert!(one.points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 < pair[1].1));
    let (x, _) = one.points[100];
    assert!((49_000.0..51_000.0).contains(&x), "the median is in the middle: {x}");
}

#[test]
fn axes_have_round_ticks() {
    let axis = Axis::times("t", 20_000.0, 90_000.0);
    assert_eq!(axis.ticks(6.0), [20_000.0, 50_000.0]);
    let axis = Axis::times("t", 900.0, 5_000_000.0);
    assert_eq!(axis.ticks(6.0), [1e3, 1e4, 1e5, 1e6]);
    assert_eq!(Axis::shares("s").ticks(6.0).len(), 6);
    assert_eq!((axis.place(900.0), axis.place(5e6), axis.place(0.0)), (0.0, 1.0, 0.0));
}

#[test]
fn whole_numbers_have_whole_ticks() {
    let axis = |scale, range| Axis::new("SSDs", scale, |value| format!("{value:.0}"), range);
    let texts = |axis: Axis| axis.labels().into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert_eq!(texts(axis(Scale::Whole, (1.0, 4.0))), ["1", "2", "3", "4"]);
    assert_eq!(texts(axis(Scale::Linear, (1.0, 4.0))), ["1", "2", "3", "4"]);
    let trace = Axis { format: round_time, ..axis(Scale::Linear, (5.001e9, 5.003e9)) };
    assert_eq!(texts(trace), ["5.001 s", "5.0015 s", "5.002 s", "5.0025 s", "5.003 s"]);
    let times = Axis::times("t", 101_000.0, 118_000.0);
    assert_eq!(texts(times), ["105 us", "110 us", "115 us", "120 us"]);
}

const FORMATS: [fn(f64) -> String; 5] = [
    round_time,
    time,
    |value| format!("{value:.0}"),
    |value| format!("{value:.2}"),
    |share| format!("{:.0} %", share * 100.0),
];

proptest! {
    #[test]
    fn axis_labels_ascend_and_differ(
        low in 0.0f64..1e10,
        share in 1e-4f64..10.0,
        scale in prop::sample::select(&[Scale::Linear, Scale::Whole, Scale::Log][..]),
        format in prop::sample::select(&FORMATS[..]),
    ) {
        let low = if scale == Scale::Log { low + 1.0 } else { low };
        let range = (low, low + (low * share).max(1.0));
        let axis = Axis::new("a", scale, format, range);
        let labels = axis.labels();
        for pair in labels.windows(2) {
            prop_assert!(pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1, "{labels:?}");
        }
        for (at, _) in &labels {
            prop_assert!((range.0..=range.1 * 1.000_001).contains(at), "{labels:?}");
            prop_assert!(scale != Scale::Whole || at.fract() == 0.0, "{labels:?}");
        }
        prop_assert!(labels.len() <= 13, "{labels:?}");
    }

    /// Every axis of times has at least two labels.
    #[test]
    fn every_axis_of_times_has_labels(low in 1.0f64..1e12, ratio in 1.0f64..1e6) {
        let labels = Axis::times("t", low, low * ratio).labels();
        prop_assert!(labels.len() >= 2, "{labels:?}");
    }
}

/// Returns anchor and text of the labels at the left and below.
fn labels(html: &str) -> Vec<(f64, &str, &str)> {
    let attribute = |tag: &'_ str, name: &str| -> String {
        let from = tag.find(name).map_or("", |at| &tag[at + name.len()..]);
        from.split('"').next().unwrap_or("").to_owned()
    };
    let texts = html.split("<text ").skip(1).map(|text| text.split_once('>').unwrap());
    let placed = texts.filter(|(tag, _)| tag.starts_with("x="));
    placed
        .map(|(tag, rest)| {
            let anchor = if attribute(tag, "text-anchor=\"") == "end" { "end" } else { "middle" };
            (attribute(tag, "x=\"").parse().unwrap(), anchor, rest.split('<').next().unwrap())
        })
        .collect()
}

/// Characters are about 6 pixels wide at this size.
#[test]
fn long_labels_fit_into_the_plot() {
    let axis = |format, range| Axis { label: "a".into(), scale: Scale::Linear, format, range };
    let x = axis(|_| String::new(), (0.0, 3.0));
    let y = axis(|value| format!("{value:.0} MB/s in a year"), (0.0, 6_000.0));
    let mut plot = Plot::new("p", x, y);
    let words = ["one", "another", "a name that takes all the room there is", "last of all"];
    plot.names = words.iter().enumerate().map(|(at, name)| (at as f64, (*name).into())).collect();
    let html = plot.html();
    let found = labels(&html);
    let below: Vec<&str> =
        found.iter().map(|label| label.2).filter(|l| words.contains(l)).collect();
    assert_eq!(below, ["one", "another", "last of all"], "what would touch is left out");
    assert!(found.iter().any(|(_, _, text)| *text == "4000 MB/s in a year"));
    for (x, anchor, text) in found {
        let width = text.chars().count() as f64 * 6.0;
        let (left, right) =
            if anchor == "end" { (x - width, x) } else { (x - width / 2.0, x + width / 2.0) };
        assert!(left >= 0.0 && right <= 441.0, "{text}: {left} to {right}");
    }
}

/// Two cases; the second has a value beyond the limit.
#[test]
fn dot_plot_has_one_row_per_case_without_lines() {
    let row = |name: &str, bad, values: [f64; 2]| DotRow {
        name: name.into(),
        note: "<note>".into(),
        bad,
        values: values.map(|value| vec![value]).to_vec(),
        interval: bad.then_some([25.0, 35.0]),
    };
    let dots = Dots {
        title: "t".into(),
        axis: Axis::new("latency", Scale::Linear, |ns| format!("{ns} ns"), (0.0, 100.0)),
        series: vec!["mean".into(), "max".into()],
        rows: vec![row("rate=1G", false, [10.0, 20.0]), row("rate=10G", true, [30.0, 90.0])],
        limit: Some(50.0),
    };
    let html = dots.html();
    nests(&html);
    assert!(!html.contains("polyline") && html.contains("viewBox=\"0 0 440 102\""), "{html}");
    assert!(html.contains("rate=10G") && html.contains("&lt;note&gt;"));
    let marks = |words: &str| html.matches(&format!("<title>{words}</title>")).count();
    assert_eq!(marks("95 % interval: 25 ns to 35 ns"), 1, "{html}");
    assert_eq!(["mean: 10 ns", "max: 20 ns", "mean: 30 ns", "max: 90 ns"].map(marks), [1; 4]);
    // The line, the note, and the mark.
    assert_eq!(html.matches("#b00020").count(), 3, "{html}");
}

#[test]
fn a_stack_shows_each_part() {
    let bar = |name: &str, parts| Bar { name: name.into(), total: "all".into(), parts };
    let stack = Stack {
        title: "t".into(),
        note: String::new(),
        parts: vec!["first".into(), "second & last".into()],
        bars: vec![bar("median", vec![25, 75]), bar("p99", vec![0, 0])],
        format: |ns| format!("{ns} ns"),
    };
    let html = stack.html();
    nests(&html);
    assert!(html.contains("width=\"110.00\"") && html.contains("width=\"330.00\""));
    assert!(html.contains("second &amp; last: 75 ns") && html.contains("25 %"));
    assert!(!html.contains("NaN"));
}
