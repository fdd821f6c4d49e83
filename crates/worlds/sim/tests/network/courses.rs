//! Compares the points of a class's credit over time with the credit of the port.

use super::*;
use proptest::prelude::*;
use sim::ethernet::port::{Algorithm, Config, Counted, CreditBased, Output};

const CLASS: usize = 5;

/// Class 5 has a credit-based shaper. With `gated` its gate is open for 60 of every 100 us.
fn shaped(gated: bool, counted: Counted, rises_in_guard_band: bool) -> Config {
    let mut config = Config::new(Rate::M100);
    let shaper = CreditBased { idle_slope: 30_000_000, counted, rises_in_guard_band };
    config.classes[CLASS].algorithm = Algorithm::CreditBased(shaper);
    let [open, closed] = [60, 40].map(Duration::from_us);
    config.gates = gated.then(|| gates_of(&[(0xff, open), (0x0f, closed)]));
    config
}

/// The credit at `at`, by linear interpolation between the points.
fn at(points: &[(Instant, i128)], at: Instant) -> i128 {
    let behind = points.partition_point(|point| point.0 <= at);
    let before = points[behind - 1];
    let Some(next) = points.get(behind) else { return before.1 };
    let (span, part) = (next.0 - before.0, at - before.0);
    before.1 + (next.1 - before.1) * i128::from(part.as_ps()) / i128::from(span.as_ps())
}

/// Frames in the order of their times. Each offer has a time in ns, a priority and a length.
fn frames(offers: &[(u64, u8, usize)]) -> Vec<(Instant, Frame)> {
    let mut offers = offers.to_vec();
    offers.sort_unstable();
    let frame = |(id, (ns, pcp, length)): (u64, (u64, u8, usize))| {
        let at = Instant::from_ns(ns);
        (at, tagged(id, pcp, length, at))
    };
    (0..).zip(offers).map(frame).collect()
}

/// Runs a port to `end`. At each of the `probes`, in the order of time, compares its credit with
/// the points since the last change.
fn compare(config: Config, frames: Vec<(Instant, Frame)>, probes: &[Instant], end: Instant) {
    let mut port = Port::new(config);
    let gates = port.config().gates.clone();
    let (mut now, mut frames) = (Instant::ZERO, frames.into_iter().peekable());
    while now < end {
        while let Some((_, frame)) = frames.next_if(|frame| frame.0 <= now) {
            offer(&mut port, now, frame);
        }
        let wake = loop {
            if let Output::Timeout(wake) = port.poll(now) {
                break wake;
            }
        };
        let next =
            wake.into_iter().chain(frames.peek().map(|frame| frame.0)).fold(end, Instant::min);
        let course = port.credit_course(CLASS).expect("it has credit");
        let mut points = vec![(now, course.clone().at(now, gates.as_ref()))];
        course.points(now, next, gates.as_ref(), &mut points);
        assert!(points.is_sorted_by_key(|point| point.0), "{points:?}");
        for probe in probes.iter().filter(|probe| (now..=next).contains(probe)) {
            let expected = port.credit(CLASS, *probe).expect("it has credit") * 1e12;
            let found = at(&points, *probe) as f64;
            // Allows for one picosecond, because a change of slope may be between two picoseconds.
            assert!((expected - found).abs() <= 1e8, "{found} at {probe}, not {expected}");
        }
        now = next;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The points between two changes include every change of slope, so that interpolation gives
    /// the credit of the port at any time.
    #[test]
    fn credit_course_matches_credit_of_port(
        gated in any::<bool>(),
        frame_only in any::<bool>(),
        rises in any::<bool>(),
        offers in prop::collection::vec((0u64..600_000, 0u8..8, 64usize..1522), 1..40),
        mut probes in prop::collection::vec(0u64..900_000_000, 1..60),
    ) {
        let counted = if frame_only { Counted::FrameOnly } else { Counted::WithGap };
        probes.sort_unstable();
        let probes: Vec<_> = probes.into_iter().map(Instant::from_ps).collect();
        let config = shaped(gated, counted, rises);
        compare(config, frames(&offers), &probes, Instant::from_ns(900_000));
    }
}
