//! Flow meters: tokens by hand, colors, coupling, and a bound on passing bytes.

use super::us;
use proptest::prelude::*;
use tsn::psfp::{Color, Meter, MeterConfig};
use wire::Instant;

use Color::{Green, Red, Yellow};

/// 8 Mb/s, which is one byte per microsecond.
const MBYTE: u64 = 8_000_000;

fn check(config: MeterConfig, steps: &[(u64, u64, Color)]) -> Meter {
    let mut meter = Meter::new(config).unwrap();
    for (at, length, expected) in steps {
        assert_eq!(meter.color(us(*at), *length, false), *expected, "{length} B at {at} us");
    }
    meter
}

#[test]
fn tokens_by_hand() {
    // The buckets gain 1 byte per microsecond up to 1000, and 0.5 up to 400. The comments have
    // both buckets after the frame, in bytes.
    let config =
        MeterConfig { cir: MBYTE, cbs: 1_000, eir: MBYTE / 2, ebs: 400, ..MeterConfig::default() };
    let meter = check(
        config,
        &[
            (0, 1_000, Green),  // 0 and 400
            (0, 400, Yellow),   // 0 and 0
            (99, 100, Red),     // 99 and 49
            (100, 100, Green),  // 0 and 50
            (150, 60, Yellow),  // 50 < 60; 75 - 60 = 15
            (150, 50, Green),   // 0 and 15
            (10_150, 1, Green), // full again: 999 and 400
            (10_150, 1_000, Red),
        ],
    );
    assert_eq!(meter.tokens(), [999, 400]);
}

#[test]
fn coupling_passes_on_what_the_committed_bucket_has_no_room_for() {
    for (coupling, left) in [(false, 0), (true, 300)] {
        let config =
            MeterConfig { cir: MBYTE, cbs: 500, ebs: 300, coupling, ..MeterConfig::default() };
        let mut meter = check(config, &[(0, 500, Green), (0, 300, Yellow)]);
        // 500 us fill the first bucket; the bytes of the next 300 us overflow.
        meter.color(us(800), 0, false);
        assert_eq!(meter.tokens(), [500, left], "coupling {coupling}");
    }
}

#[test]
fn frames_that_are_drop_eligible_are_not_green_to_a_color_aware_meter() {
    for (color_aware, expected) in [(false, Green), (true, Yellow)] {
        let config =
            MeterConfig { cir: MBYTE, cbs: 500, ebs: 300, color_aware, ..MeterConfig::default() };
        let mut meter = Meter::new(config).unwrap();
        assert_eq!(meter.color(us(0), 200, true), expected);
        assert_eq!(meter.color(us(0), 200, false), Green);
    }
}

#[test]
fn after_a_red_frame_all_may_be_red() {
    let config = MeterConfig { cir: MBYTE, cbs: 100, mark_all_red: true, ..MeterConfig::default() };
    let meter = check(config, &[(0, 100, Green), (50, 51, Red), (10_000, 1, Red)]);
    assert!(meter.is_blocked());
}

/// At 3 bit/s a byte takes 8/3 s. Rounding loses no tokens.
#[test]
fn fractions_of_a_bit_do_not_get_lost() {
    let config = MeterConfig { cir: 3, cbs: 1, ..MeterConfig::default() };
    let mut meter = Meter::new(config).unwrap();
    assert_eq!(meter.color(Instant::ZERO, 1, false), Green);
    // Frames after each third of 8/3 s: each call updates the tokens.
    let third = Instant::from_ps(888_888_888_889);
    let two = Instant::from_ps(1_777_777_777_778);
    for at in [third, two, Instant::from_ps(2_666_666_666_666)] {
        assert_eq!(meter.color(at, 1, false), Red, "{at}");
    }
    assert_eq!(meter.color(Instant::from_ps(2_666_666_666_667), 1, false), Green);
}

proptest! {
    /// In any span, green bytes are at most burst plus rate times span (MEF 10.3, 12.2). A frame is
    /// red only if it exceeds the remaining tokens.
    #[test]
    fn green_frames_conform(
        cir in 1_u64..100_000_000,
        cbs in 64_u64..10_000,
        frames in prop::collection::vec((0_u64..2_000_000_000, 1_u64..3_000), 1..60),
    ) {
        let mut meter = Meter::new(MeterConfig { cir, cbs, ..MeterConfig::default() }).unwrap();
        let mut green: Vec<(u64, u64)> = Vec::new();
        let mut at = 0;
        for (gap, length) in frames {
            at += gap;
            if meter.color(Instant::from_ps(at), length, false) == Green {
                green.push((at, length));
            }
            for from in 0..green.len() {
                let bytes: u64 = green[from..].iter().map(|(_, bytes)| bytes).sum();
                let span = green[green.len() - 1].0 - green[from].0;
                let most = u128::from(cbs) * 8 * 1_000_000_000_000
                    + u128::from(cir) * u128::from(span);
                prop_assert!(u128::from(bytes) * 8 * 1_000_000_000_000 <= most);
            }
        }
    }

    /// Compares the meter with buckets that are filled step by step, every 10 ms.
    #[test]
    fn meter_matches_stepwise_bucket(
        cir in 1_u64..50,
        eir in 0_u64..50,
        coupling in any::<bool>(),
        frames in prop::collection::vec((0_u64..400, 1_u64..6), 1..40),
    ) {
        // Time in steps of 10 ms, tokens in hundredths of a bit.
        let config = MeterConfig { cir, cbs: 5, eir, ebs: 4, coupling, ..MeterConfig::default() };
        let mut meter = Meter::new(config).unwrap();
        let (most, more) = (5 * 800, 4 * 800);
        let (mut committed, mut excess) = (most, more);
        let mut at = 0;
        for (steps, length) in frames {
            for _ in 0..steps {
                let over = (committed + cir).saturating_sub(most);
                committed = (committed + cir).min(most);
                excess = (excess + eir + if coupling { over } else { 0 }).min(more);
            }
            at += steps * 10_000_000_000;
            let needed = length * 800;
            let expected = if needed <= committed {
                committed -= needed;
                Green
            } else if needed <= excess {
                excess -= needed;
                Yellow
            } else {
                Red
            };
            prop_assert_eq!(meter.color(Instant::from_ps(at), length, false), expected);
        }
    }
}
