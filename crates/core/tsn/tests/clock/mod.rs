//! Clocks: exact in both directions, never backwards.

use proptest::prelude::*;
use tsn::{Clock, LocalTime};
use wire::Instant;

const DAY_PS: u64 = 86_400_000_000_000_000;

#[test]
fn golden_values() {
    let clock = Clock::new(-500, 0).unwrap();
    assert_eq!(clock.local(Instant::from_ps(200)), LocalTime::from_ps(-300));
    assert_eq!(clock.global(LocalTime::from_ps(-300)), Instant::from_ps(200));
    // A clock that is 100 ppm fast gains 100 us in a second.
    let clock = Clock::new(7, 100_000).unwrap();
    let second = 1_000_000_000_000;
    assert_eq!(clock.local(Instant::from_ps(second)).as_ps(), 1_000_100_000_007);
    assert_eq!(clock.global(LocalTime::from_ps(1_000_100_000_007)).as_ps(), second);
    // 100 ppm slow.
    let clock = Clock::new(0, -100_000).unwrap();
    assert_eq!(clock.local(Instant::from_ps(second)).as_ps(), 999_900_000_000);
    assert_eq!(Clock::new(0, Clock::MAX_DRIFT_PPB + 1), None);
    assert_eq!(Clock::new(0, i32::MIN), None);
}

fn clocks() -> impl Strategy<Value = Clock> {
    (-1_000_000_000_000i64..1_000_000_000_000, -1_000_000i32..=1_000_000)
        .prop_map(|(offset, drift)| Clock::new(offset, drift).expect("in range"))
}

proptest! {
    #[test]
    fn local_time_never_runs_backwards(clock in clocks(), at in 0..DAY_PS, step in 0u64..5) {
        let (now, later) = (Instant::from_ps(at), Instant::from_ps(at + step));
        prop_assert!(clock.local(now) <= clock.local(later));
    }

    /// `global` is the first instant that shows a local time.
    #[test]
    fn global_is_the_first_instant(clock in clocks(), local in 0..DAY_PS as i64) {
        let local = LocalTime::from_ps(local);
        let global = clock.global(local);
        prop_assert!(clock.local(global) >= local);
        if global > Instant::ZERO {
            prop_assert!(clock.local(Instant::from_ps(global.as_ps() - 1)) < local);
        }
    }

    #[test]
    fn global_and_local_times_round_trip(clock in clocks(), at in 0..DAY_PS) {
        let global = Instant::from_ps(at);
        let back = clock.global(clock.local(global));
        prop_assert!(back <= global);
        prop_assert_eq!(clock.local(back), clock.local(global));
    }
}
