//! Tests of lanes: one checked picture, and elements that a picture must never contain.

use super::*;
use crate::tests::nests;
use proptest::prelude::*;

const WORDS: Words = Words {
    bands: ["open", "closed", "held"],
    kinds: ["express frame", "preemptable frame", "the frame that waited longest"],
    overhead: "preamble and mCRC",
    joined: "interrupted",
    crosses: "dropped",
};

fn occupied(from: f64, to: f64, kind: Kind, name: &str) -> Occupied {
    Occupied {
        span: (from, to),
        overhead: (640.0, 0.0),
        kind,
        name: name.into(),
        title: format!("{name} & its times"),
        since: None,
    }
}

/// A window for control traffic, a preemptable frame that is interrupted before the window and
/// continues after it, and a class with credit. The rate is 100 Mb/s, times are in nanoseconds.
fn lanes() -> Lanes {
    let steps = |points: &[(f64, f64)]| {
        Some(Course { name: "queue", unit: "queued", points: points.to_vec() })
    };
    let control = Lane {
        name: "class 7, express".into(),
        bands: vec![
            (0.0, 50_000.0, Band::Closed),
            (50_000.0, 70_000.0, Band::Open),
            (70_000.0, 120_000.0, Band::Closed),
        ],
        boxes: vec![occupied(50_000.0, 60_000.0, Kind::Whole, "control")],
        steps: steps(&[(0.0, 0.0), (45_000.0, 1.0), (50_000.0, 0.0)]),
        ..Lane::default()
    };
    let video = Lane {
        name: "class 5, credit-based".into(),
        bands: vec![(0.0, 120_000.0, Band::Open)],
        boxes: vec![occupied(2_000.0, 20_000.0, Kind::Whole, "video")],
        steps: steps(&[(0.0, 1.0), (2_000.0, 0.0), (5_000.0, 3.0), (30_000.0, 3.0)]),
        crosses: vec![(30_000.0, "2 dropped".into())],
        line: Some(Course {
            name: "credit",
            unit: "bit",
            points: vec![
                (0.0, 12_000.0),
                (2_000.0, 12_100.0),
                (20_960.0, 500.0),
                (90_000.0, 900.0),
            ],
        }),
        ..Lane::default()
    };
    let first =
        Occupied { overhead: (640.0, 320.0), ..occupied(22_000.0, 42_000.0, Kind::Chosen, "logs") };
    let rest =
        Occupied { since: Some(42_000.0), ..occupied(71_000.0, 95_000.0, Kind::Chosen, "logs") };
    let logs = Lane {
        name: "class 0, preemptable".into(),
        bands: vec![
            (0.0, 50_000.0, Band::Open),
            (50_000.0, 70_000.0, Band::Closed),
            (70_000.0, 120_000.0, Band::Open),
            (38_000.0, 70_000.0, Band::Held),
        ],
        boxes: vec![first, rest, occupied(97_000.0, 102_760.0, Kind::Interruptible, "short")],
        wait: Some((-4_000.0, 22_000.0, "logs waited 26 us".into())),
        ..Lane::default()
    };
    let lanes = vec![control, video, logs];
    Lanes { title: "a < port".into(), length: 120_000.0, lanes, words: WORDS }
}

#[test]
fn lanes_match_their_snapshot() {
    let svg = lanes().svg();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lanes/golden.svg");
    if std::env::var_os("FARLANE_BLESS").is_some() {
        std::fs::write(golden, &svg).unwrap();
    }
    assert!(svg == include_str!("golden.svg"), "differs from {golden}; look at it again");
    nests(&svg);
    assert!(svg.contains("aria-label=\"a &lt; port\"") && svg.contains("logs &amp; its times"));
    for label in ["credit 0", "+12.1k bit", "3 queued", "logs waited 26 us", ">40 us<"] {
        assert!(svg.contains(label), "no {label}");
    }
}

#[test]
fn lane_key_lists_only_drawn_kinds() {
    let mut lanes = lanes();
    let all = lanes.key();
    nests(&all);
    for words in WORDS.bands.iter().chain(&WORDS.kinds).chain([&"interrupted", &"dropped"]) {
        assert!(all.contains(words), "no {words}");
    }
    assert!(all.contains("preamble and mCRC"), "a preamble is 5 pixels wide");
    lanes.lanes.truncate(1);
    // A millisecond: a preamble is half a pixel wide.
    lanes.length = 1e6;
    let few = lanes.key();
    assert_eq!(few.matches("<li>").count(), 3, "{few}");
}

proptest! {
    /// All elements are inside the picture for any times.
    #[test]
    fn lane_elements_are_inside_the_picture(
        length in 1.0f64..1e9,
        spans in prop::collection::vec((-1.0f64..2.0, 0.0f64..1.0), 1..30),
        values in prop::collection::vec((0.0f64..1.0, -1e9f64..1e9), 0..30),
    ) {
        let occupied = |(from, long): &(f64, f64)| {
            occupied(from * length, (from + long) * length, Kind::Whole, "x")
        };
        let points: Vec<_> = values.iter().map(|(at, value)| (at * length, *value)).collect();
        let lane = Lane {
            boxes: spans.iter().map(occupied).collect(),
            wait: Some((-length, length * 2.0, "waited".into())),
            line: Some(Course { name: "credit", unit: "bit", points }),
            ..Lane::default()
        };
        let svg = Lanes { title: "t".into(), length, lanes: vec![lane], words: WORDS }.svg();
        nests(&svg);
        prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
        for place in svg.split(" x=\"").skip(1) {
            let x: f64 = place.split('"').next().unwrap().parse().unwrap();
            prop_assert!((0.0..=960.0).contains(&x), "{x}");
        }
    }
}
