//! Cyclic queuing and forwarding.

use proptest::prelude::*;
use tsn::{Clock, Cqf, Entry, GateControlList, GateStates, Gates};
use wire::{Duration, Instant};

fn cqf() -> Cqf {
    Cqf { classes: [2, 3], cycle: Duration::from_us(100), base: Instant::from_ns(50_000) }
}

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

/// The cycles begin at 50, 150, … us.
#[test]
fn one_class_is_filled_and_the_other_sent() {
    let gates = cqf().gates(Gates::always_open(Clock::default()));
    for (time, filled, sent) in [(49, 3, 2), (50, 2, 3), (149, 2, 3), (150, 3, 2), (250, 2, 3)] {
        assert_eq!(cqf().queue_at(&Clock::default(), at(time)), filled, "at {time} us");
        assert!(gates.is_open(sent, at(time)) && !gates.is_open(filled.into(), at(time)));
        assert!(gates.is_open(0, at(time)), "the others are not concerned");
    }
    // A clock that is 1 us ahead.
    let ahead = Clock::new(1_000_000, 0).expect("in range");
    assert_eq!(cqf().queue_at(&ahead, at(49)), 2);
}

/// The port's list controls the other classes.
#[test]
fn cqf_gates_keep_port_list_for_other_classes() {
    let entries = [(0x01, 30), (0x0e, 70)]
        .map(|(states, us)| Entry::set(GateStates(states), Duration::from_us(us)));
    let list = GateControlList::of_entries(Instant::ZERO, &entries).expect("valid");
    let gates = cqf().gates(Gates::new(list, Clock::default()));
    assert!(gates.is_open(0, at(110)) && !gates.is_open(1, at(110)));
    assert!(gates.is_open(3, at(110)) && !gates.is_open(2, at(110)));
}

#[test]
fn invalid_cqf_settings_are_refused() {
    let error = |change: fn(&mut Cqf)| {
        let mut cqf = cqf();
        change(&mut cqf);
        cqf.check().expect_err("it is wrong").to_string()
    };
    assert_eq!(cqf().check(), Ok(()));
    let same = "class 3 is given twice; cyclic queuing needs two different classes";
    assert_eq!(error(|cqf| cqf.classes = [3, 3]), same);
    assert_eq!(error(|cqf| cqf.classes = [8, 3]), "invalid class '8': expected 0 to 7");
    let zero = "invalid gates for cyclic queuing: entry 1: the interval is zero";
    assert_eq!(error(|cqf| cqf.cycle = Duration::ZERO), zero);
    let long = error(|cqf| cqf.cycle = Duration::from_ms(1_100));
    assert!(long.contains("1 ns to 2147483647 ns"), "{long}");
    let base =
        "invalid gates for cyclic queuing: base time of 7 ps is not a whole number of nanoseconds";
    assert_eq!(error(|cqf| cqf.base = Instant::from_ps(7)), base);
}

proptest! {
    /// A frame that a talker sends in a cycle leaves each bridge in the next cycle, if the bridges
    /// have the same clock, no frame is in the way, and cable delays are short.
    #[test]
    fn delays_keep_their_bounds(sent in 0u64..1_000_000, hops in 1u32..6) {
        let (cqf, clock) = (cqf(), Clock::default());
        let gates = cqf.gates(Gates::always_open(clock));
        let frame = Duration::from_us(12);
        // The talker also sends within a cycle.
        let talker = gates.earliest_start(2, Instant::from_ns(sent), frame).expect("it fits");
        let mut received = talker + frame;
        for _ in 0..hops {
            let last = Instant::from_ps(received.as_ps() - 1);
            let queue = cqf.queue_at(&clock, last).into();
            received = gates.earliest_start(queue, received, frame).expect("it fits") + frame;
        }
        // (hops - 1) T and (hops + 1) T (T.1).
        let cycles = |count: u32| Duration::from_us(100 * u64::from(count));
        let (shortest, longest) = (cycles(hops - 1), cycles(hops + 1));
        let delay = received - talker;
        prop_assert!(shortest <= delay && delay <= longest, "{:?}", delay);
    }
}
