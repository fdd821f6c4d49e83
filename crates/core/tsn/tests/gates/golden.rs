//! Worked examples.

use tsn::gates::cycles_divide;
use tsn::{
    Clock, Entry, GateControlList, GateStates, Gates, Hardware, Hold, HoldAdvance, Operation,
    hyperperiod,
};
use wire::{Duration, Instant};

fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

fn at(at_us: u64) -> Instant {
    Instant::ZERO + us(at_us)
}

fn list(base: u64, entries: &[(u8, u64)]) -> GateControlList {
    let entries: Vec<_> =
        entries.iter().map(|&(states, time)| Entry::set(GateStates(states), us(time))).collect();
    GateControlList::of_entries(at(base), &entries).expect("valid")
}

/// Queue 0 is open for the first 30 of 100 us and, from 1020 us on, for the last 30 of 50 us.
fn changed(extension: u64) -> Gates {
    Gates::new(list(0, &[(1, 30), (2, 70)]), Clock::default())
        .then(list(1_020, &[(2, 20), (1, 30)]), us(extension))
}

#[test]
fn a_short_last_cycle_is_cut_or_the_one_before_extended() {
    let cut = changed(19);
    assert!(cut.is_open(0, at(1_000)) && cut.is_open(0, at(1_019)));
    assert_eq!(cut.next_change(0, at(1_000)), Some(at(1_020)), "the change closes the gate");
    assert_eq!(cut.earliest_start(0, at(1_000), us(20)), Some(at(1_000)));
    assert_eq!(cut.earliest_start(0, at(1_000), us(21)), Some(at(1_040)));
    // The cycle ends 20 us before the change, which is within the extension: the entry of queue 1
    // lasts from 930 to 1020 us.
    let extended = changed(20);
    assert!(!extended.is_open(0, at(1_000)));
    // The new list opens queue 1 first, so there is one window to 1040 us.
    assert_eq!(extended.earliest_start(1, at(0), us(110)), Some(at(930)));
    assert_eq!(extended.earliest_start(1, at(0), us(111)), None);
    // Queue 0 is closed from 930 us, the end of its last window in the first list, to 1040 us.
    assert_eq!(extended.longest_closed(0), Some(us(110)));
    assert_eq!(cut.longest_closed(0), Some(us(70)));
    for gates in [&cut, &extended] {
        assert_eq!(gates.next_list(at(1_019)), Some(at(1_020)));
        assert_eq!(gates.next_list(at(1_020)), None);
        assert_eq!(gates.open_share_of(0, at(1_019)), (us(30), us(100)));
        assert_eq!(gates.open_share_of(0, at(1_020)), (us(30), us(50)));
        assert_eq!(gates.list_at(0, at(1_020)).base_time(), at(1_020));
    }
}

/// The base time of the second list, 20 us, is before the start of the first list at 100 us. The
/// second list takes over at 20 + 2 * 50 us.
#[test]
fn a_past_base_waits_for_a_cycle() {
    let gates = Gates::new(list(100, &[(1, 40), (0, 60)]), Clock::default())
        .then(list(20, &[(2, 50)]), Duration::ZERO);
    assert_eq!(gates.next_list(at(0)), Some(at(120)));
    assert_eq!(gates.earliest_start(0, at(100), us(20)), Some(at(100)));
    assert_eq!(gates.earliest_start(0, at(101), us(20)), None);
    assert_eq!(gates.longest_wait(0, us(20)), None);
    assert_eq!(gates.longest_closed(1), Some(us(120)), "from the beginning");
}

#[test]
fn open_time_of_hours() {
    let gates = Gates::new(list(0, &[(1, 30), (2, 70)]), Clock::default());
    let hour = Instant::ZERO + Duration::from_ms(3_600_000);
    // 36 000 000 cycles of 30 us, of which 10 us are a guard band.
    assert_eq!(gates.open_time(0, Instant::ZERO, hour, us(10)), us(36_000_000 * 20));
    assert_eq!(gates.after_open_time(0, at(5), us(36_000_000 * 20), us(10)), Some(hour + us(5)));
    assert_eq!(gates.open_time(0, at(10), at(110), us(10)), us(20), "10 to 20 and 100 to 110 us");
    assert_eq!(gates.after_open_time(0, at(0), us(1), us(30)), None, "all is guard band");
    assert_eq!(gates.after_open_time(2, at(0), us(1), us(0)), None);
    assert_eq!(gates.after_open_time(2, at(7), Duration::ZERO, us(0)), Some(at(7)));
    // A clock that is 100 ppm fast shows one hour after 1 / 1.0001 of the true time.
    let fast = Gates::new(gates.list().clone(), Clock::new(0, 100_000).expect("in range"));
    let end = Instant::from_ps(3_599_640_035_996_401);
    assert_eq!(fast.clock().local(end).as_ps(), 3_600_000_000_000_000);
    let open = fast.open_time(0, Instant::ZERO, end, Duration::ZERO).as_ps();
    // The gate is open for 0.3 of the time. Rounding adds 9999/10001 ps to a third of the windows.
    let third = end.as_ps() * 3 / 10;
    assert!(open.abs_diff(third) < 18_000_000, "{open} {third}");
}

/// By a clock that is 1000 ppm slow, a window of 10 ns lasts 10010 or 10011 ps. A frame of 10011 ps
/// waits for a window of 10011 ps, however late that window is.
#[test]
fn a_window_that_is_a_picosecond_longer() {
    let entries = [(1, 10), (0, 90)]
        .map(|(states, time)| Entry::set(GateStates(states), Duration::from_ns(time)));
    let list = GateControlList::of_entries(Instant::ZERO, &entries).expect("valid");
    let gates = Gates::new(list, Clock::new(0, -1_000_000).expect("in range"));
    let frame = Duration::from_ps(10_011);
    let start = gates.earliest_start(0, Instant::from_ps(1), frame).expect("one is longer");
    let end = start + frame;
    assert!(gates.is_open(0, start) && gates.is_open(0, Instant::from_ps(end.as_ps() - 1)));
    assert_eq!(gates.next_change(0, start), Some(end));
    assert_eq!(gates.earliest_start(0, Instant::ZERO, Duration::from_ps(10_012)), None);
}

#[test]
fn holds_begin_and_end_in_advance() {
    let entry = |operation, time| Entry { operation, ..Entry::set(GateStates(0xff), us(time)) };
    let entries = [
        entry(Operation::SetAndReleaseMac, 60),
        entry(Operation::SetAndHoldMac, 20),
        entry(Operation::SetGateStates, 20),
    ];
    let list = GateControlList::of_entries(at(0), &entries).expect("valid");
    let gates = Gates::new(list, Clock::default());
    let advance = HoldAdvance { hold: us(2), release: us(1) };
    let held = |until| Hold::Held { until: Some(at(until)) };
    let released = |until| Hold::Released { until: Some(at(until)) };
    assert_eq!(gates.hold_until(at(57), &advance), released(58));
    assert_eq!(gates.hold_until(at(58), &advance), held(99));
    assert_eq!(gates.hold_until(at(99), &advance), released(158));
    let long = HoldAdvance { hold: us(61), release: us(1) };
    assert_eq!(gates.hold_until(at(7), &long), Hold::Held { until: None }, "no pause is left");
    let short = HoldAdvance { hold: us(1), release: us(41) };
    assert_eq!(gates.hold_until(at(7), &short), Hold::Released { until: None });
    let open = Gates::always_open(Clock::default());
    assert_eq!(open.hold_until(at(7), &advance), Hold::Released { until: None });
    // Without a release, the hold lasts until the next list.
    let only = GateControlList::of_entries(at(0), &[entries[1]]).expect("valid");
    let gates = Gates::new(only, Clock::default());
    assert_eq!(gates.hold_until(at(7), &advance), Hold::Held { until: None });
    let gates = gates.then(open.list().clone(), us(0));
    assert_eq!(gates.hold_until(at(0), &advance), Hold::Released { until: None }, "a past base");
}

#[test]
fn classes_with_their_own_list() {
    let gates = Gates::new(list(0, &[(0x01, 30), (0x02, 70)]), Clock::default())
        .with_class_list(GateStates(0x82), list(0, &[(0x80, 10), (0x7f, 10)]));
    let open = |queue, time| gates.is_open(queue, at(time));
    assert!(open(0, 29) && !open(0, 30), "the port's list");
    assert!(open(7, 9) && !open(7, 10) && open(7, 20), "the classes' list");
    assert!(!open(1, 9) && open(1, 10) && open(1, 95));
    assert_eq!(gates.open_share_of(1, at(0)), (us(10), us(20)));
    assert_eq!(gates.open_share_of(0, at(0)), (us(30), us(100)));
    let open = Gates::always_open(Clock::default());
    assert_eq!(open.earliest_start(5, at(7), us(1_000_000)), Some(at(7)));
    assert_eq!(open.open_time(5, at(7), at(9), us(1)), us(2), "it never closes");
    assert_eq!(open.next_change(5, at(7)), None);
}

/// NXP SJA1105 (UM10944, schedule table; Linux, Documentation/networking/dsa/sja1105.rst).
const SJA1105: Hardware = Hardware { grain: Duration::from_ns(200), entries: 1024 };

#[test]
fn hardware_names_what_does_not_fit() {
    let error = |list: &GateControlList, entries| {
        let hardware = Hardware { entries, ..SJA1105 };
        list.fits(&hardware).expect_err("it does not fit").to_string()
    };
    let ns = Duration::from_ns;
    let fine = [Entry::set(GateStates(1), ns(400)), Entry::set(GateStates(2), ns(600))];
    let odd = [fine[0], Entry::set(GateStates(2), ns(300))];
    let new = |base, cycle, entries: &[Entry]| {
        GateControlList::new(Instant::from_ns(base), ns(cycle), entries).expect("valid")
    };
    assert_eq!(new(200, 1_000, &fine).fits(&SJA1105), Ok(()));
    assert_eq!(error(&new(0, 1_000, &fine), 1), "the list has 2 entries; the maximum is 1");
    let interval =
        "entry 2: the interval of 300000 ps is not a multiple of the clock's grain of 200000 ps";
    assert_eq!(error(&new(0, 1_000, &odd), 2), interval);
    let cycle = "cycle time of 1100000 ps is not a multiple of the clock's grain of 200000 ps";
    assert_eq!(error(&new(0, 1_100, &fine), 2), cycle);
    let base = "base time of 100000 ps is not a multiple of the clock's grain of 200000 ps";
    assert_eq!(error(&new(100, 1_000, &fine), 2), base);
}

#[test]
fn cycles_divide_and_hyperperiod_of_known_cycles() {
    assert!(cycles_divide(us(250), us(1_000)) && cycles_divide(us(1_000), us(250)));
    assert!(cycles_divide(us(3), us(3)));
    assert!(!cycles_divide(us(300), us(1_000)) && !cycles_divide(us(0), us(1_000)));
    let all = |cycles: &[u64]| hyperperiod(cycles.iter().map(|&time| us(time)));
    assert_eq!(all(&[400, 600, 1_000]), Some(us(6_000)));
    assert_eq!((all(&[]), all(&[0]), all(&[5, 0])), (None, None, None));
    let primes = [u64::MAX, u64::MAX - 1].map(Duration::from_ps);
    assert_eq!(hyperperiod(primes.into_iter()), None, "neighbours have no common divisor");
}
