//! Elimination of duplicates: worked examples, limits of history and sequence numbers, and a
//! comparison with a slow model.

mod latent;

use proptest::prelude::*;
use std::collections::VecDeque;
use tsn::frer::{Algorithm, Config, ConfigError, Counters, Generator, Recovery, rtag};
use wire::{Duration, Instant};

fn vector(history: u16) -> Config {
    let algorithm = Algorithm::Vector { history };
    Config { algorithm, reset: Config::RESET, take_no_sequence: false, individual: false }
}

fn ms(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

/// Which of the numbers pass, and the counters. All frames arrive at time zero.
fn passed(config: Config, numbers: &[u16]) -> (Vec<bool>, Counters) {
    let mut recovery = Recovery::new(config).unwrap();
    let pass = |number: &u16| recovery.passes(Instant::ZERO, Some(*number));
    (numbers.iter().map(pass).collect(), recovery.counters())
}

/// Checks `steps`: each one has a number and whether it passes.
fn check(config: Config, steps: &[(u16, bool)]) -> Counters {
    let (numbers, expected): (Vec<u16>, Vec<bool>) = steps.iter().copied().unzip();
    let (found, counters) = passed(config, &numbers);
    assert_eq!(found, expected, "{numbers:?}");
    counters
}

#[test]
fn numbers_are_generated_from_0_and_wrap() {
    let mut generator = Generator::default();
    let all: Vec<u16> = (0..65_537).map(|_| generator.number()).collect();
    assert_eq!((all[0], all[1], all[65_535], all[65_536]), (0, 1, 65_535, 0));
    generator.reset();
    assert_eq!(generator.number(), 0);
}

/// An implementation that uses 0x100 for "no number" would lose 256.
#[test]
fn two_copies_of_255_to_257_and_over_the_wrap_pass_once() {
    for numbers in [[255, 256, 257], [65_534, 65_535, 0]] {
        let [a, b, c] = numbers;
        for config in [vector(2), Config { algorithm: Algorithm::Match, ..vector(2) }] {
            let steps = [(a, true), (a, false), (b, true), (b, false), (c, true), (c, false)];
            let counters = check(config, &steps);
            let found = (counters.passed, counters.discarded, counters.tagless);
            assert_eq!(found, (3, 3, 0), "{config:?}");
            assert_eq!((counters.rogue, counters.out_of_order), (0, 0));
        }
    }
}

/// 7.4.3.4: |delta| >= history is rogue.
#[test]
fn numbers_at_edges_of_history_pass_once() {
    for first in [100, 2, 65_533] {
        let number = |delta: i32| (i32::from(first) + delta) as u16;
        // History 4, first number 100: 97 to 100 are in the history, 101 to 103 move it.
        let counters = check(
            vector(4),
            &[
                (first, true),
                (number(-3), true),
                (number(-3), false),
                (number(-4), false),
                (number(4), false),
            ],
        );
        assert_eq!((counters.rogue, counters.discarded, counters.out_of_order), (2, 3, 1));
        let counters = check(vector(4), &[(first, true), (number(3), true), (number(0), false)]);
        assert_eq!((counters.rogue, counters.out_of_order), (0, 1));
    }
    // The longest history: a difference of -32768 is rogue, of -32767 is not.
    let counters = check(
        vector(Config::LONGEST),
        &[(40_000, true), (40_000 - 32_768, false), (40_000 - 32_767, true), (7_231 + 1, false)],
    );
    assert_eq!(counters.rogue, 2, "twice 7232");
}

/// With history 3 and first number 10, the numbers 8 and 9 count as lost when they leave the
/// history, as the standard defines.
#[test]
fn numbers_that_leave_the_history_unseen_are_lost() {
    let (found, counters) = passed(vector(3), &[10, 12, 11, 14, 15, 16, 18]);
    assert_eq!(found, [true; 7]);
    // The number 12 removes 8 and 9 from the history, both unseen; 14 removes 10 and 11; 15 removes
    // 12; 16 removes 13, unseen; 18 removes 14 and 15.
    assert_eq!((counters.lost, counters.lost_before_first), (3, 2));
    assert_eq!(counters.out_of_order, 4, "12, 11, 14 and 18");
    assert_eq!((counters.passed, counters.discarded), (7, 0));
}

#[test]
fn the_default_history_of_2_loses_frames_under_skew() {
    // One path is 2 frames behind; the other path loses frame 3, whose copy is rogue (7.4.3.4).
    let (found, counters) = passed(vector(2), &[1, 2, 1, 4, 2, 5, 3, 6, 4]);
    assert!(!found[3], "4 is 2 ahead of 2");
    assert!(counters.rogue > 0);
    let (found, counters) = passed(vector(8), &[1, 2, 1, 4, 2, 5, 3, 6, 4]);
    assert_eq!(found, [true, true, false, true, false, true, true, true, false]);
    assert_eq!(counters.rogue, 0);
}

/// Every passed frame restarts the timer. For a member stream, discarded frames also restart it.
#[test]
fn after_silence_any_number_passes() {
    let step = |recovery: &mut Recovery, at: u64, number| recovery.passes(ms(at), Some(number));
    for (individual, passes) in [(false, true), (true, false)] {
        let config = Config { reset: Duration::from_ms(100), individual, ..vector(2) };
        let mut recovery = Recovery::new(config).unwrap();
        assert!(step(&mut recovery, 0, 1_000));
        assert!(!step(&mut recovery, 60, 7), "rogue");
        assert_eq!(step(&mut recovery, 100, 7), passes, "the timer expires at 100 ms or 160 ms");
        assert_eq!(recovery.counters().resets, u64::from(passes));
    }
    let config = Config { reset: Duration::from_ms(100), ..vector(2) };
    let mut recovery = Recovery::new(config).unwrap();
    assert!(step(&mut recovery, 0, 1));
    assert!(step(&mut recovery, 99, 2), "restarted");
    assert!(!step(&mut recovery, 198, 2));
    recovery.advance(ms(199));
    assert_eq!(recovery.counters().resets, 1);
    recovery.advance(ms(10_000));
    assert_eq!(recovery.counters().resets, 1, "it does not run before the next frame");
    assert!(step(&mut recovery, 10_000, 2));
}

#[test]
fn frames_without_a_number() {
    let mut counters = Vec::new();
    for (algorithm, take) in
        [(vector(2).algorithm, false), (vector(2).algorithm, true), (Algorithm::Match, false)]
    {
        let config = Config { algorithm, take_no_sequence: take, ..vector(2) };
        let mut recovery = Recovery::new(config).unwrap();
        counters.push((recovery.passes(ms(0), None), recovery.counters().tagless));
    }
    assert_eq!(counters, [(false, 1), (true, 1), (true, 1)]);
}

#[test]
fn match_recovery_knows_the_last_number_only() {
    let config = Config { algorithm: Algorithm::Match, ..vector(2) };
    let counters = check(config, &[(5, true), (5, false), (6, true), (5, true), (5, false)]);
    assert_eq!((counters.passed, counters.discarded, counters.out_of_order), (3, 2, 1));
    assert_eq!((counters.rogue, counters.lost), (0, 0));
}

#[test]
fn recovery_settings_out_of_range_are_refused() {
    let error = |config| Recovery::new(config).map(drop).unwrap_err();
    assert_eq!(error(vector(1)), ConfigError::History(1));
    assert_eq!(error(vector(32_769)), ConfigError::History(32_769));
    assert_eq!(error(Config { reset: Duration::ZERO, ..vector(2) }), ConfigError::Reset);
    let said = "invalid history of '1' numbers: expected 2 to 32768";
    assert_eq!(ConfigError::History(1).to_string(), said);
}

#[test]
fn the_tag_on_the_wire() {
    assert_eq!(rtag::encode(0x1234), [0xf1, 0xc1, 0, 0, 0x12, 0x34]);
    assert_eq!(rtag::decode(&[0xf1, 0xc1, 0xff, 0xff, 1, 0, 8, 0]), Ok(256));
    assert_eq!(rtag::decode(&[0xf1, 0xc1, 0, 0, 1]), Err(rtag::RTagError::Short(5)));
    assert_eq!(rtag::decode(&[8, 0, 0, 0, 1, 0]), Err(rtag::RTagError::EtherType(0x800)));
}

/// A list of the numbers seen, as integers that do not wrap.
struct Slow {
    history: i64,
    seen: VecDeque<i64>,
    highest: i64,
}

impl Slow {
    fn passes(&mut self, number: i64) -> bool {
        let delta = number - self.highest;
        if delta.abs() >= self.history || self.seen.contains(&number) {
            return false;
        }
        self.seen.push_back(number);
        self.highest = self.highest.max(number);
        true
    }
}

proptest! {
    #[test]
    fn rtag_round_trips_and_any_bytes_decode_or_fail(
        number in any::<u16>(),
        bytes in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        prop_assert_eq!(rtag::decode(&rtag::encode(number)), Ok(number));
        let is_one = bytes.len() >= rtag::LENGTH && bytes[..2] == [0xf1, 0xc1];
        prop_assert_eq!(rtag::decode(&bytes).is_ok(), is_one);
    }

    /// Compares with [`Slow`], from any sequence number and across the wrap.
    #[test]
    fn vector_recovery_matches_list_of_seen_numbers(
        start in any::<u16>(),
        history in prop_oneof![2_u16..40, Just(Config::LONGEST)],
        steps in prop::collection::vec(-60_i64..60, 1..300),
    ) {
        let mut recovery = Recovery::new(vector(history)).unwrap();
        let mut slow = Slow { history: history.into(), seen: VecDeque::new(), highest: 0 };
        let first = 1_000_000_i64;
        slow.highest = first;
        slow.seen.push_back(first);
        let wire = |number: i64| ((number - first) as u16).wrapping_add(start);
        prop_assert!(recovery.passes(Instant::ZERO, Some(wire(first))));
        let mut at = first;
        for step in steps {
            at = (at + step).max(0);
            // Numbers half of the number space away from the highest one are ambiguous.
            let number = at.clamp(slow.highest - 30_000, slow.highest + 30_000);
            prop_assert_eq!(recovery.passes(Instant::ZERO, Some(wire(number))), slow.passes(number));
        }
        prop_assert_eq!(recovery.counters().passed, slow.seen.len() as u64);
    }

    /// Each number passes once with two paths, one of which loses frames, if their skew is below
    /// the history.
    #[test]
    fn nothing_is_lost_while_one_path_works(
        skew in 0_usize..15,
        lost in prop::collection::vec(any::<bool>(), 200),
        start in any::<u16>(),
    ) {
        let mut recovery = Recovery::new(vector(16)).unwrap();
        let mut passed = 0;
        for tick in 0..lost.len() + skew {
            let number = |tick: usize| start.wrapping_add(tick as u16);
            if tick < lost.len() && (tick == 0 || !lost[tick]) {
                passed += u64::from(recovery.passes(Instant::ZERO, Some(number(tick))));
            }
            if let Some(late) = tick.checked_sub(skew) && late < lost.len() {
                passed += u64::from(recovery.passes(Instant::ZERO, Some(number(late))));
            }
            // The slow path alone cannot fall behind by more than the history.
            prop_assert!(recovery.counters().rogue == 0);
        }
        prop_assert_eq!(passed, lost.len() as u64);
    }
}
