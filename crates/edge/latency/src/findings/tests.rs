use super::*;
use crate::clock::{ClockPoint, Source};
use crate::stable;
use proptest::prelude::*;

/// One frame per millisecond, as in Linaro's article.
const INTERVAL: u64 = 1_000_000;
const START: u64 = 1_000_000_000_000;

/// Latencies of 50 us with noise of up to 4 us, from a fixed sequence (Knuth's MMIX generator).
fn series(n: u64, more: impl Fn(u64) -> i64) -> Vec<Point> {
    let mut state = 7u64;
    let point = |sequence: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let latency = 50_000 + (state >> 33) as i64 % 4_000 + more(sequence);
        Point { sequence, from: START + sequence * INTERVAL, latency }
    };
    (0..n).map(point).collect()
}

fn unknown() -> ClockError {
    ClockError::unknown()
}

fn found(points: &[Point], clock: &ClockError) -> Vec<Finding> {
    let segment = Segment::SentToKernel;
    find(points, &Context { interval: INTERVAL, cycle: 500_000, clock, segment })
}

fn kinds(found: &[Finding]) -> Vec<Kind> {
    found.iter().map(|finding| finding.kind).collect()
}

#[test]
fn a_quiet_run_has_no_findings_and_is_stable_as_a_whole() {
    let points = series(4000, |_| 0);
    assert_eq!(found(&points, &unknown()), []);
    let range = stable::choose(&points, &[]);
    assert!(range.is_whole && (range.first, range.last) == (0, 3999), "{range:?}");
}

/// Frames 1000 to 1005 wait until the time of frame 1006: 6 ms, then 5 ms, and so on.
#[test]
fn a_sawtooth_is_a_stall_and_is_left_out_of_the_stable_range() {
    let tooth =
        |at: u64| if (1000..1006).contains(&at) { (1006 - at) as i64 * 1_000_000 } else { 0 };
    let points = series(4000, tooth);
    let found = found(&points, &unknown());
    assert_eq!(kinds(&found), [Kind::Stall]);
    // The last frame does not wait, and arrives together with the others.
    assert_eq!((found[0].first, found[0].last, found[0].n), (1000, 1006, 7));
    assert!(found[0].size_ns.abs_diff(6_000_000) < 4_000, "{found:?}");
    let range = stable::choose(&points, &found);
    // A part has 100 frames; part 11 has the stall.
    assert!(!range.is_whole && (range.first, range.last) == (1100, 3999), "{range:?}");
    assert!(range.reason.contains("1 have a stall"), "{}", range.reason);
}

#[test]
fn spikes_by_a_timer_are_told_from_spikes_by_chance() {
    // Spikes every 250 ms, one of which is missing.
    let timer = |at: u64| if at % 250 == 17 && at != 517 { 150_000 } else { 0 };
    let found_ = found(&series(4000, timer), &unknown());
    assert_eq!(kinds(&found_), [Kind::PeriodicSpikes]);
    assert_eq!((found_[0].n, found_[0].period_ns), (15, Some(250_000_000)));
    let chance = [40, 333, 350, 1200, 1207, 1900, 3500, 3990];
    let chance = |at: u64| if chance.contains(&at) { 150_000 } else { 0 };
    assert_eq!(kinds(&found(&series(4000, chance), &unknown())), []);
}

#[test]
fn frames_that_miss_their_slots_are_late_by_whole_cycles() {
    let slip = |at: u64| match at {
        100 | 700 | 1800 | 3000 => 500_000,
        2000 => 1_000_000,
        _ => 0,
    };
    let found_ = found(&series(4000, slip), &unknown());
    assert_eq!(kinds(&found_), [Kind::Slips]);
    assert_eq!((found_[0].n, found_[0].size_ns), (5, 1_000_000));
    // Frames that are late by other times are not slips.
    let late = |at: u64| if at % 400 == 3 && at != 403 { 200_000 + at as i64 * 97 } else { 0 };
    assert!(!kinds(&found(&series(4000, late), &unknown())).contains(&Kind::Slips));
}

/// The offset of a clock under a servo: 60 us up and down again.
fn ramp(at: u64) -> i64 {
    30 * (if at < 2000 { at as i64 } else { 4000 - at as i64 })
}

fn servo(bound_ns: u64) -> ClockError {
    let point = |at: u64| {
        let offset_ns = ramp(at);
        ClockPoint { at_ns: START + at * INTERVAL, offset_ns, bound_ns }
    };
    ClockError::from_series(Source::Exchange, (0..4000).step_by(16).map(point).collect())
}

#[test]
fn a_swing_is_the_clock_only_with_a_proof() {
    let points = series(4000, ramp);
    let clock = servo(70_000);
    assert_eq!(kinds(&found(&points, &clock)), [Kind::ClockSwing]);
    assert_eq!(kinds(&found(&points, &unknown())), [Kind::Swing], "nothing is known");
    // The clock is steady, so it does not cause the swing.
    let point = ClockPoint { at_ns: START, offset_ns: 3, bound_ns: 70_000 };
    let steady = ClockError::from_series(Source::Exchange, vec![point]);
    assert_eq!(kinds(&found(&points, &steady)), [Kind::Swing]);
    // Only a clock can cause latencies below zero.
    let below = series(4000, |at| ramp(at) - 100_000);
    assert_eq!(kinds(&found(&below, &unknown())), [Kind::ClockSwing, Kind::ClockOffset]);
}

#[test]
fn clocks_that_are_apart_are_named() {
    let point = ClockPoint { at_ns: START, offset_ns: 40_000_000, bound_ns: 60_000 };
    let ahead = ClockError::from_series(Source::Shared, vec![point]);
    let found_ = found(&series(1000, |_| 40_000_000), &ahead);
    assert_eq!(kinds(&found_), [Kind::ClockOffset]);
    assert_eq!(found_[0].size_ns, 39_940_000);
}

/// An offset of 37 s in either direction means that only one end applies the TAI offset. This is
/// found without returned frames, too, and with `--clock shared`.
#[test]
fn an_offset_of_the_leap_seconds_is_named() {
    const LEAP: i64 = 37_000_000_000;
    let evidence = |offset, clock: &ClockError| {
        let found_ = found(&series(1000, |_| offset), clock);
        assert_eq!(kinds(&found_), [Kind::ClockOffset], "{offset}");
        assert!(found_[0].size_ns.abs_diff(LEAP as u64) < 1_000_000, "{}", found_[0].size_ns);
        found_[0].evidence.clone()
    };
    let shared = ClockError::from_series(Source::Shared, Vec::new());
    let point = ClockPoint { at_ns: START, offset_ns: LEAP, bound_ns: 60_000 };
    let exchange = ClockError::from_series(Source::Exchange, vec![point]);
    for (offset, clock) in
        [(LEAP, &unknown()), (-LEAP, &unknown()), (LEAP, &shared), (LEAP, &exchange)]
    {
        let says = "the ends differ by 37 s: only one has TAI's offset from UTC";
        let evidence = evidence(offset, clock);
        assert!(evidence.ends_with(says), "{evidence}");
    }
    // A latency of 2 s and an offset of 36 s are not the leap seconds.
    assert_eq!(kinds(&found(&series(1000, |_| 2_000_000_000), &shared)), []);
    let other = found(&series(1000, |_| -36_000_000_000), &unknown());
    assert!(!other[0].evidence.contains("TAI"), "{}", other[0].evidence);
}

#[test]
fn a_warm_up_is_left_out_of_the_stable_range() {
    let points = series(4000, |at| if at < 500 { 30_000 } else { 0 });
    let range = stable::choose(&points, &[]);
    assert_eq!((range.first, range.last), (500, 3999), "{range:?}");
    assert!(range.reason.starts_with("parts 6 to 40 of 40"), "{}", range.reason);
}

proptest! {
    /// For any latencies the analysis does not panic, and the stable range is within the run.
    #[test]
    fn analysis_of_any_series_does_not_panic(latencies in prop::collection::vec(any::<i32>(), 0..2000)) {
        let all = latencies.iter().enumerate();
        let points: Vec<Point> = all
            .map(|(at, ns)| Point {
                sequence: at as u64,
                from: START + at as u64 * INTERVAL,
                latency: i64::from(*ns),
            })
            .collect();
        let found = found(&points, &servo(0));
        let range = stable::choose(&points, &found);
        prop_assert!(range.last < points.len().max(1) as u64);
        for finding in found {
            prop_assert!(finding.first <= finding.last && !finding.evidence.is_empty());
        }
    }

    /// A shift of all latencies changes only findings about the clock.
    #[test]
    fn stalls_do_not_depend_on_the_clock(at in 10u64..900, frames in 3u64..8, shift in -10_000_000i64..10_000_000) {
        let tooth = |n: u64| if (at..at + frames).contains(&n) { (at + frames - n) as i64 * 1_000_000 } else { 0 };
        let points = series(1000, |n| tooth(n) + shift);
        let stalls: Vec<_> = found(&points, &unknown()).into_iter().filter(|finding| finding.kind == Kind::Stall).collect();
        prop_assert_eq!(stalls.len(), 1);
        prop_assert_eq!((stalls[0].first, stalls[0].n), (at, frames + 1));
    }
}
