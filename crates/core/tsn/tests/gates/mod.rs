//! Gate control lists against a reference that steps through nanoseconds.

mod golden;
mod model;
mod queries;
mod steps;

use proptest::prelude::*;
use tsn::{
    Clock, Entry, GateControlList, GateStates, Gates, ListError, LocalTime, Operation, taprio,
};
use wire::{Duration, Instant};

fn entry(states: u8, ns: u64) -> Entry {
    Entry::set(GateStates(states), Duration::from_ns(ns))
}

fn local(ns: u64) -> LocalTime {
    LocalTime::from_ps(ns as i64 * 1_000)
}

#[test]
fn errors_name_the_entry() {
    let new = |cycle, entries: &[Entry]| {
        GateControlList::new(Instant::ZERO, Duration::from_ps(cycle), entries)
            .expect_err("it is wrong")
            .to_string()
    };
    assert_eq!(new(1_000, &[]), "a gate control list needs at least one entry");
    assert_eq!(new(9_000, &[entry(1, 5), entry(2, 0)]), "entry 2: the interval is zero");
    let fraction = Entry::set(GateStates(1), Duration::from_ps(1_500));
    assert_eq!(
        new(9_000, &[fraction]),
        "entry 1: the interval of 1500 ps is not a whole number of nanoseconds"
    );
    assert_eq!(
        new(9_000, &[entry(1, 5), entry(2, 5)]),
        "entry 2 ends at 10 ns of the cycle, after the cycle's end at 9 ns"
    );
    assert_eq!(
        new(0, &[entry(1, 5)]),
        "invalid cycle time of 0 ps: expected whole nanoseconds, 1 ns to 2147483647 ns"
    );
    assert_eq!(
        GateControlList::of_entries(Instant::from_ps(1), &[entry(1, 5)]).unwrap_err(),
        ListError::Base { ps: 1 }
    );
}

#[test]
fn a_window_over_the_end_of_the_cycle_is_one() {
    // Queue 0 is open for the last 3 us and the first 2 us of 10 us.
    let list = GateControlList::of_entries(
        Instant::from_ns(1_000),
        &[entry(1, 2_000), entry(2, 5_000), entry(1, 3_000)],
    )
    .unwrap();
    let gates = Gates::new(list.clone(), Clock::default());
    let start = |queue, now, duration| {
        gates.earliest_start(queue, Instant::from_ns(now), Duration::from_ns(duration))
    };
    let at = |ns| Some(Instant::from_ns(ns));
    assert_eq!(start(0, 8_000, 5_000), at(8_000), "all five microseconds fit");
    assert_eq!(start(0, 8_001, 5_000), at(18_000), "a nanosecond too late");
    assert_eq!(start(0, 0, 5_001), None);
    assert_eq!(start(2, 0, 0), None);
    assert_eq!(list.longest_closed(0), Some(Duration::from_ns(5_000)));
    assert_eq!(list.longest_closed(1), Some(Duration::from_ns(5_000)));
    assert_eq!(list.longest_closed(2), None);
    assert_eq!(list.longest_wait(0, Duration::from_ns(4_000)), Some(Duration::from_ns(9_000)));
    assert_eq!(list.next_change(0, local(8_000)), Some(local(13_000)));
    assert_eq!(list.next_change(2, local(8_000)), None);
}

/// The last entry holds until the cycle ends.
#[test]
fn the_last_entry_fills_the_cycle() {
    let cycle = Duration::from_ns(1_000);
    let list = GateControlList::new(Instant::ZERO, cycle, &[entry(2, 100), entry(1, 1)]).unwrap();
    assert!(!list.is_open(0, local(99)) && list.is_open(0, local(100)));
    assert!(list.is_open(0, local(999)) && !list.is_open(0, local(1_000)));
}

/// Queue 0 has windows of 100 us and 50 us in a cycle of 400 us. Frames take 12 us and gaps 1 us.
#[test]
fn open_shares_count_whole_frames() {
    let entries = [entry(0x01, 100_000), entry(0x02, 100_000), entry(0x03, 50_000)];
    let cycle = Duration::from_ns(400_000);
    let entries = [&entries[..], &[entry(0, 150_000)]].concat();
    let list = GateControlList::new(Instant::ZERO, cycle, &entries).unwrap();
    let share = |states, frame_ns| {
        let frame = Duration::from_ns(frame_ns);
        let open = list.open_share(GateStates(states), frame, Duration::from_ns(1_000));
        (open.time, open.whole_frames)
    };
    // floor(101 / 13) + floor(51 / 13) frames.
    assert_eq!(share(1, 12_000), (0.375, 10.0 * 13.0 / 400.0));
    // The windows of queue 1 are adjacent: they are one window of 150 us.
    assert_eq!(share(2, 12_000), (0.375, 11.0 * 13.0 / 400.0));
    assert_eq!(share(3, 12_000).0, 0.625);
    assert_eq!(share(4, 12_000), (0.0, 0.0));
    // A frame as long as the window fits; a frame that is a nanosecond longer does not.
    assert_eq!(share(1, 100_000).1, 101.0 / 400.0);
    assert_eq!(share(1, 100_001).1, 0.0);
    let open = GateControlList::new(Instant::ZERO, cycle, &[entry(0xff, 400_000)]).unwrap();
    let frame = Duration::from_ns(12_000);
    assert_eq!(open.open_share(GateStates(1), frame, frame).whole_frames, 1.0);
}

#[test]
fn taprio_commands() {
    let entries = [entry(0x01, 300_000), entry(0x82, 300_000), entry(0xff, 400_000)];
    let list =
        GateControlList::of_entries(Instant::from_ns(1_528_743_495_910_289), &entries).unwrap();
    let options = taprio::Options::new("eth0", false);
    assert_eq!(
        taprio::command(&list, &options),
        "tc qdisc replace dev eth0 parent root handle 100 taprio num_tc 8 \
         map 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 1@4 1@5 1@6 1@7 \
         base-time 1528743495910289 sched-entry S 01 300000 sched-entry S 82 300000 \
         sched-entry S ff 400000 cycle-time 1000000 flags 0x0 clockid CLOCK_TAI"
    );
    let command = taprio::command(&list, &taprio::Options::new("sw0p2", true));
    assert!(command.ends_with("cycle-time 1000000 flags 0x2"), "{command}");
    let operations = [Operation::SetAndHoldMac, Operation::SetAndReleaseMac];
    let entries = operations.map(|operation| Entry { operation, ..entry(0x80, 100) });
    let list = GateControlList::of_entries(Instant::ZERO, &entries).unwrap();
    let command = taprio::command(&list, &options);
    assert!(command.contains("sched-entry H 80 100 sched-entry R 80 100 "), "{command}");
}

/// A list with a cycle of up to 64 ns, which may be longer than the sum of the entries.
fn lists() -> impl Strategy<Value = GateControlList> {
    let entries = prop::collection::vec((any::<u8>(), 1u64..12), 1..6);
    (entries, 0u64..200, 0u64..10).prop_map(|(entries, base, rest)| {
        let entries: Vec<_> = entries.iter().map(|&(states, ns)| entry(states, ns)).collect();
        let sum = entries.iter().fold(Duration::ZERO, |sum, entry| sum + entry.interval);
        let cycle = sum + Duration::from_ns(rest);
        GateControlList::new(Instant::from_ns(base), cycle, &entries).expect("valid")
    })
}

/// The gate states at a local time in nanoseconds, calculated from the entries.
fn states(list: &GateControlList, at_ns: i64) -> GateStates {
    let cycle = list.cycle_time().as_ns() as i64;
    let mut phase = (at_ns - list.base_time().as_ns() as i64).rem_euclid(cycle);
    for entry in list.entries() {
        if phase < entry.interval.as_ns() as i64 {
            return entry.states;
        }
        phase -= entry.interval.as_ns() as i64;
    }
    list.entries()[list.entries().len() - 1].states
}

/// The first nanosecond from `now` on at which the gate is open for `duration` nanoseconds.
fn stepped(list: &GateControlList, queue: usize, now: i64, duration: i64) -> Option<i64> {
    let cycle = list.cycle_time().as_ns() as i64;
    // A frame of zero length still needs an open gate.
    let open = |start| (start..start + duration.max(1)).all(|at| states(list, at).is_open(queue));
    (now..now + 2 * cycle).find(|&start| open(start))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn gate_queries_match_stepping_reference(
        list in lists(),
        queue in 0usize..8,
        now in 0i64..400,
        duration in 0i64..80,
    ) {
        let at = LocalTime::from_ps(now * 1_000);
        prop_assert_eq!(list.is_open(queue, at), states(&list, now).is_open(queue));
        let gates = Gates::new(list.clone(), Clock::default());
        let (start, span) = (Instant::from_ns(now as u64), Duration::from_ns(duration as u64));
        let found = gates.earliest_start(queue, start, span);
        let expected = stepped(&list, queue, now, duration);
        prop_assert_eq!(found.map(|at| at.as_ps()), expected.map(|ns| ns as u64 * 1_000));

        let change = (now + 1..now + 1 + list.cycle_time().as_ns() as i64)
            .find(|&at| states(&list, at).is_open(queue) != states(&list, at - 1).is_open(queue));
        let found = list.next_change(queue, at);
        prop_assert_eq!(found.map(|at| at.as_ps()), change.map(|ns| ns * 1_000));
    }

    #[test]
    fn longest_closed_and_wait(list in lists(), queue in 0usize..8, duration in 0i64..40) {
        let cycle = list.cycle_time().as_ns() as i64;
        let wait = (0..cycle)
            .map(|now| stepped(&list, queue, now, duration).map(|start| start - now))
            .collect::<Option<Vec<_>>>()
            .map(|waits| waits.into_iter().max().expect("a cycle"));
        let found = list.longest_wait(queue, Duration::from_ns(duration as u64));
        // The reference tries whole nanoseconds. The longest wait begins just after the last
        // instant at which the transmission fits.
        match (found, wait) {
            (None, None) => {}
            (Some(found), Some(wait)) => {
                let found = found.as_ns() as i64;
                let expected = if duration == 0 || wait == 0 { wait } else { wait + 1 };
                prop_assert_eq!(found, expected);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    /// With a drifting clock, the transmission lies in an open window in true time, and no earlier
    /// start does.
    #[test]
    fn earliest_start_through_clock_is_open_and_earliest(
        list in lists(),
        queue in 0usize..8,
        now in 0u64..200_000,
        duration in 1u64..12_000,
        offset in -100_000i64..100_000,
        drift in -1_000_000i32..=1_000_000,
    ) {
        let clock = Clock::new(offset, drift).expect("in range");
        let gates = Gates::new(list.clone(), clock);
        let (now, duration) = (Instant::from_ps(now), Duration::from_ps(duration));
        let open_for = |start: Instant| {
            let end = clock.local(Instant::from_ps((start + duration).as_ps() - 1)).as_ps();
            (clock.local(start).as_ps()..=end)
                .step_by(250)
                .chain([end])
                .all(|ps| states(&list, ps.div_euclid(1_000)).is_open(queue))
        };
        let found = gates.earliest_start(queue, now, duration);
        let until = found.unwrap_or(now + Duration::from_ns(150));
        let mut at = now;
        while at < until {
            prop_assert!(!open_for(at), "{:?} is earlier", at);
            at += Duration::from_ps(if at + Duration::from_ps(997) < until { 997 } else { 1 }
                .min(until.since(at).as_ps()));
        }
        if let Some(start) = found {
            prop_assert!(open_for(start));
            prop_assert_eq!(gates.earliest_start(queue, start, duration), Some(start));
        }
    }
}
