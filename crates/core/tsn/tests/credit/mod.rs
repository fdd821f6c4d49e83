//! Credit: worked examples, ranges, slices.

mod ranges;

use proptest::prelude::*;
use tsn::credit::{
    CLASS_A_INTERVAL, CLASS_B_INTERVAL, Credit, FRAME_OVERHEAD, Slopes, SlopesError, idle_slope,
};
use wire::Duration;

fn slopes(idle: u64, rate: u64) -> Slopes {
    Slopes::new(idle, rate).unwrap()
}

fn ns(ns: u64) -> Duration {
    Duration::from_ns(ns)
}

/// The credit at 203.36 us of a class with idleSlope 20 Mb/s and sendSlope -80 Mb/s at 100 Mb/s. A
/// frame of another class, 1542 bytes, is sent from 0 to 123.36 us. Two frames of 1000 bytes arrive
/// at 0; the first one is sent until 203.36 us.
fn after_the_first_frame() -> Credit {
    let mut credit = Credit::new(slopes(20_000_000, 100_000_000));
    credit.gain(ns(123_360), true);
    assert_eq!(credit.bits(), 2467.2, "20 Mb/s * 123.36 us");
    credit.spend(ns(80_000));
    assert_eq!(credit.bits(), -3932.8, "2467.2 - 80 Mb/s * 80 us");
    credit
}

#[test]
fn two_frames_behind_another_class() {
    let mut credit = after_the_first_frame();
    // 3932.8 bits / 20 Mb/s = 196.64 us: the second frame begins at 400 us.
    assert_eq!(credit.until_ready(), ns(196_640));
    credit.gain(ns(196_640), true);
    assert_eq!((credit.bits(), credit.until_ready()), (0.0, Duration::ZERO));
    credit.spend(ns(80_000));
    assert_eq!(credit.bits(), -6400.0, "80 Mb/s * 80 us");
    // The credit is zero at 800 us and stays zero, because no frame waits.
    assert_eq!(credit.until_ready(), ns(320_000));
    credit.gain(ns(1_000_000), false);
    assert_eq!(credit.picobits(), 0);
    let pico = 1_000_000_000_000;
    assert_eq!((credit.lowest(), credit.highest()), (-6400 * pico, 24_672 * pico / 10));
}

#[test]
fn a_closed_gate_freezes_the_credit() {
    let mut credit = after_the_first_frame();
    // The gate is open until 220 us: 16.64 us * 20 Mb/s = 332.8 bits.
    credit.gain(ns(16_640), true);
    assert_eq!(credit.bits(), -3600.0);
    // The gate is closed from 220 to 320 us: no call. Then the class needs 3600 bits / 20 Mb/s =
    // 180 us, so the frame begins at 500 us.
    assert_eq!(credit.until_ready(), ns(180_000));
}

#[test]
fn an_empty_queue_loses_what_is_above_zero_at_once() {
    let mut credit = Credit::new(slopes(1, 3));
    credit.gain(ns(5), true);
    assert_eq!(credit.picobits(), 5_000);
    credit.gain(Duration::ZERO, false);
    assert_eq!((credit.picobits(), credit.highest()), (0, 5_000));
    credit.spend(Duration::from_ps(5));
    assert_eq!(credit.picobits(), -10);
    credit.gain(Duration::from_ps(4), false);
    assert_eq!(credit.picobits(), -6);
    credit.set_slopes(slopes(4, 4));
    assert_eq!(credit.until_ready(), Duration::from_ps(2), "6 / 4, rounded up");
    credit.spend(ns(1_000));
    assert_eq!(credit.picobits(), -6, "with the whole rate nothing is spent");
}

#[test]
fn slopes_have_a_range() {
    assert_eq!(Slopes::new(0, 10), Err(SlopesError::Zero));
    assert_eq!(Slopes::new(11, 10), Err(SlopesError::AboveRate { idle: 11, rate: 10 }));
    assert_eq!(
        SlopesError::AboveRate { idle: 11, rate: 10 }.to_string(),
        "idleSlope of 11 bit/s is above the port's 10 bit/s"
    );
    assert!(Slopes::new(10, 10).is_ok());
}

#[test]
fn a_gate_raises_the_slope() {
    // INET's showcase cbsandtas: idleSlope of 42.64 Mb/s with a gate that is open for two thirds
    // of the cycle gives 63.96 Mb/s.
    let idle = slopes(42_640_000, 100_000_000);
    assert_eq!(idle.scaled(ns(2_000), ns(3_000)), Ok(slopes(63_960_000, 100_000_000)));
    let third = idle.scaled(ns(1_000), ns(3_000));
    assert_eq!(third, Err(SlopesError::AboveRate { idle: 127_920_000, rate: 100_000_000 }));
    for (open, cycle) in [(ns(0), ns(3)), (ns(4), ns(3))] {
        assert_eq!(idle.scaled(open, cycle), Err(SlopesError::Open { open, cycle }));
    }
}

#[test]
fn streams_need_a_slope() {
    // Avnu's example: class A sends 1470 bytes of CVF with a header of 30 bytes every 125 us, class
    // B 48 bytes of AAF with a header of 24 bytes every 250 us. Each frame has 42 more bytes on the
    // line.
    assert_eq!(FRAME_OVERHEAD, 42);
    assert_eq!(idle_slope(1470 + 30 + 42, 1, CLASS_A_INTERVAL), 98_688_000);
    assert_eq!(idle_slope(48 + 24 + 42, 1, CLASS_B_INTERVAL), 3_648_000);
    // CoRE4INET's network: 322 bytes with tag and FCS, 20 of preamble and gap, and 1 spare byte.
    assert_eq!(idle_slope(322 + 20 + 1, 1, CLASS_A_INTERVAL), 21_952_000);
    assert_eq!(idle_slope(322 + 20 + 1, 1, CLASS_B_INTERVAL), 10_976_000);
    assert_eq!(idle_slope(100, 3, Duration::from_us(7)), 342_857_143, "2400 bit / 7 us, up");
    assert_eq!(idle_slope(100, 3, Duration::ZERO), u64::MAX);
}

proptest! {
    #[test]
    fn credit_is_independent_of_time_slices(
        idle in 1u64..1_000_000_000,
        steps in proptest::collection::vec((0u8..3, 0u64..1_000_000, 0u64..1_000_000), 1..20),
    ) {
        let mut whole = Credit::new(slopes(idle, 1_000_000_000));
        let mut sliced = whole.clone();
        for (kind, one, two) in steps {
            let [one, two] = [one, two].map(Duration::from_ps);
            let pass = |credit: &mut Credit, took| match kind {
                0 => credit.spend(took),
                kind => credit.gain(took, kind == 1),
            };
            pass(&mut whole, one + two);
            pass(&mut sliced, one);
            pass(&mut sliced, two);
            prop_assert_eq!(whole.picobits(), sliced.picobits());
        }
        prop_assert_eq!(whole.lowest(), sliced.lowest());
        prop_assert_eq!(whole.highest(), sliced.highest());
    }

    #[test]
    fn until_ready_is_the_least_wait(
        idle in 1u64..1_000_000_000,
        spent in 1u64..1_000_000_000,
    ) {
        let mut credit = Credit::new(slopes(idle, 1_000_000_000));
        credit.spend(Duration::from_ps(spent));
        let wait = credit.until_ready();
        let mut early = credit.clone();
        early.gain(wait - Duration::from_ps(1), true);
        prop_assert!(early.picobits() < 0);
        credit.gain(wait, true);
        prop_assert!(credit.picobits() >= 0);
    }
}
