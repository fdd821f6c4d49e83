//! Gates whose clock steps.

use proptest::prelude::*;
use tsn::gates::BURST_ENTRY;
use tsn::{Clock, Entry, GateControlList, GateStates, Gates, StepPolicy};
use wire::{Duration, Instant};

const US: i64 = 1_000_000;

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

/// Class 0 open for 100 us, then class 1 for 400 us.
fn gates() -> Gates {
    let entries = [(1, 100), (2, 400)];
    let entries = entries.map(|(states, us)| Entry::set(GateStates(states), Duration::from_us(us)));
    Gates::new(GateControlList::of_entries(Instant::ZERO, &entries).unwrap(), Clock::default())
}

fn stepped(now: Instant, ps: i64, policy: StepPolicy) -> Gates {
    let mut gates = gates();
    gates.step_clock(now, Clock::default().stepped(ps), policy);
    gates
}

/// The clock goes back from 50 us to -150 us, where class 1 has been open since -400 us.
#[test]
fn a_step_back() {
    let gates = stepped(at(50), -200 * US, StepPolicy::Rederived);
    assert!(!gates.is_open(0, at(50)) && gates.is_open(1, at(50)));
    assert_eq!(gates.next_change(1, at(50)), Some(at(200)));
    // Frozen, class 0 stays open for the 200 us of the step and its remaining 50 us.
    for policy in [StepPolicy::Frozen, StepPolicy::Burst] {
        let gates = stepped(at(50), -200 * US, policy);
        assert!(gates.is_open(0, at(50)) && !gates.is_open(1, at(50)));
        assert_eq!(gates.next_change(0, at(50)), Some(at(300)));
        assert_eq!(gates.next_change(1, at(50)), Some(at(300)));
        let open = gates.open_time(0, at(50), at(1_000), Duration::ZERO);
        // Class 0 is open again from 700 us to 800 us.
        assert_eq!(open, Duration::from_us(250 + 100));
        let start = gates.earliest_start(1, at(60), Duration::from_us(300));
        assert_eq!(start, Some(at(300)));
        assert_eq!(gates.earliest_start(0, at(60), Duration::from_us(200)), Some(at(60)));
    }
}

/// The clock goes from 50 us to 1,150 us and skips five edges: at 100, 500, 600, 1,000 and 1,100 us
/// of its time.
#[test]
fn a_step_forward() {
    for policy in [StepPolicy::Rederived, StepPolicy::Frozen] {
        let gates = stepped(at(50), 1_100 * US, policy);
        assert!(gates.is_open(1, at(50)));
        assert_eq!(gates.next_change(1, at(50)), Some(at(400)));
    }
    let gates = stepped(at(50), 1_100 * US, StepPolicy::Burst);
    assert_eq!(BURST_ENTRY, Duration::from_us(1));
    let open: Vec<_> = (50..57).map(|us| gates.is_open(0, at(us))).collect();
    assert_eq!(open, [true, false, true, false, true, false, false]);
    assert_eq!(gates.next_change(1, at(54)), Some(at(55)));
    assert_eq!(gates.next_change(1, at(55)), Some(at(400)), "it has caught up");
}

proptest! {
    /// After any step, the gates follow the list and the clock again.
    #[test]
    fn gates_follow_clock_again_after_a_step(
        now in 0u64..5_000, step in -3_000i64..3_000, later in 0u64..3_000, which in 0usize..3,
    ) {
        let policy = [StepPolicy::Rederived, StepPolicy::Frozen, StepPolicy::Burst][which];
        let clock = Clock::default().stepped(step * US);
        let gates = stepped(at(now), step * US, policy);
        let mut plain = super::steps::gates();
        plain.set_clock(clock);
        // The reaction to a step back lasts as long as the step. A step forward skips at most 12
        // edges, each of which takes 1 us.
        let over = now + (-step).max(13) as u64 + later;
        for queue in 0..2 {
            prop_assert_eq!(gates.is_open(queue, at(over)), plain.is_open(queue, at(over)));
            prop_assert_eq!(gates.next_change(queue, at(over)), plain.next_change(queue, at(over)));
        }
    }
}
