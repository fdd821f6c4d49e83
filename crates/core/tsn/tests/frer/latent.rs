//! Latent error tests and their times.

use tsn::frer::{Counters, LatentTest, LatentTester};
use wire::{Duration, Instant};

fn tester() -> LatentTester {
    let (period, reset_period) = (Duration::from_ms(2_000), Duration::from_ms(5_000));
    let test = LatentTest { paths: 3, difference: 5, period, reset_period };
    LatentTester::new(test, Instant::ZERO)
}

fn counters(passed: u64, discarded: u64) -> Counters {
    Counters { passed, discarded, ..Counters::default() }
}

fn second(tenths: u64) -> Instant {
    Instant::from_ns(tenths * 100_000_000)
}

/// With three paths, two copies of each frame are discarded.
#[test]
fn a_broken_path_is_found_beyond_the_difference() {
    let mut tester = tester();
    assert_eq!(tester.advance(second(19), counters(100, 0)), 0, "not yet");
    // |100 * 2 - 195| = 5 is not above the allowed difference.
    assert_eq!(tester.advance(second(20), counters(100, 195)), 0);
    assert_eq!(tester.advance(second(40), counters(200, 394)), 1, "6 are missing");
    assert_eq!(tester.errors(), 1);
    // Too many discarded copies are an error too.
    let mut tester = self::tester();
    assert_eq!(tester.advance(second(20), counters(100, 206)), 1);
}

#[test]
fn latent_error_counts_restart_after_reset_period() {
    let mut tester = tester();
    // Tests at 2 s and 4 s, the reset at 5 s.
    assert_eq!(tester.advance(second(50), counters(100, 100)), 2);
    assert_eq!(tester.advance(second(60), counters(110, 120)), 0, "10 * 2 - 20 = 0 since then");
    assert_eq!(tester.advance(second(80), counters(120, 120)), 1, "20 * 2 - 20 = 20");
    // At 10 s the test comes before the reset.
    assert_eq!(tester.advance(second(100), counters(120, 120)), 1);
    assert_eq!(tester.advance(second(120), counters(120, 120)), 0);
}
