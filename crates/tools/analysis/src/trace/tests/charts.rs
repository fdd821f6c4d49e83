//! The structure of diagrams, and one whole diagram.

use super::{commands, traces};
use crate::commands::Command;
use crate::trace::Run;
use crate::trace::chart::chart;

fn command(run: &Run, cid: u16) -> Command {
    commands(run).0.into_iter().rfind(|command| command.entry.cid == cid).unwrap()
}

fn count(svg: &str, start: &str) -> usize {
    svg.matches(start).count()
}

/// Returns the positions of the labels of one side, from the top.
fn places(svg: &str, anchor: &str) -> Vec<f64> {
    let labels = svg.lines().filter(|line| line.starts_with("<text class=\"label\""));
    let mut places: Vec<f64> = labels
        .filter(|line| line.contains(&format!("text-anchor=\"{anchor}\"")))
        .map(|line| line.split("y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
        .collect();
    places.sort_by(f64::total_cmp);
    places
}

#[test]
fn a_read_has_its_tlps_and_frames() {
    let run = traces().run();
    let svg = chart(&run, &command(&run, 18));
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    // Doorbell, fetch, entry, 16 writes, completion entry, interrupt, doorbell.
    assert_eq!(count(&svg, "<polyline"), 22);
    assert_eq!(count(&svg, "<g class=\"tlp down\""), 3);
    assert_eq!(count(&svg, "<g class=\"tlp up\""), 4);
    assert_eq!(count(&svg, "class=\"frame\"") - 1, 22, "and one in the legend");
    for text in [
        "data write: 16 × MWr32, 256 B each",
        "SQ doorbell: MWr32, 4 B",
        ">network<",
        "±5.000 us",
        "Read, 4 KiB: 420.000 us",
    ] {
        assert!(svg.contains(text), "no {text}");
    }
    assert!(!svg.contains("not observed") && !svg.contains("NaN"));
}

#[test]
fn labels_do_not_overlap() {
    let run = traces().run();
    for cid in [17, 18, 101] {
        let svg = chart(&run, &command(&run, cid));
        for anchor in ["start", "end"] {
            let places = places(&svg, anchor);
            assert!(!places.is_empty());
            assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 13.0), "{places:?}");
        }
    }
}

#[test]
fn unobserved_events_are_marked() {
    let traces = traces();
    let run = Run::open(std::slice::from_ref(&traces.host)).unwrap();
    let svg = chart(&run, &command(&run, 18));
    assert_eq!(count(&svg, "class=\"not-observed\""), 3, "network, downstream, drive");
    assert_eq!(count(&svg, ">not observed<"), 3);
    let run = Run::open(std::slice::from_ref(&traces.device)).unwrap();
    let svg = chart(&run, &command(&run, 18));
    assert_eq!(count(&svg, "class=\"not-observed\""), 3, "host, upstream, network");
}

#[test]
fn chart_of_a_read_matches_its_snapshot() {
    let run = traces().run();
    let svg = chart(&run, &command(&run, 18));
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/src/trace/tests/golden/read.svg");
    if std::env::var_os("FARLANE_BLESS").is_some() {
        std::fs::write(golden, &svg).unwrap();
    }
    assert!(svg == include_str!("golden/read.svg"), "differs from {golden}; look at it again");
}
