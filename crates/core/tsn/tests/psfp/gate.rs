//! Stream gates: edges of intervals, internal priority, octets, permanent closing, clocks.

use super::{PASS, entry, frame, gate, us};
use proptest::prelude::*;
use tsn::Clock;
use tsn::psfp::{Config, Filter, GateConfig, GateEntry, GateError, Reason, StreamGate, Verdict};
use wire::{Duration, Instant};

fn filter(gate: GateConfig) -> Filter {
    Filter::new(&Config { gate: Some(gate), ..Config::default() }).unwrap()
}

#[test]
fn intervals_begin_at_their_edge_and_the_last_one_fills_the_cycle() {
    let with = |ipv| GateEntry { ipv: Some(ipv), ..entry(true, 10) };
    let mut filter = filter(gate(50, vec![with(5), entry(false, 10), with(6)]));
    let pass = |ipv| Verdict::Pass { ipv: Some(ipv), drop_eligible: false };
    let closed = Verdict::Drop(Reason::GateClosed);
    let ps = |us: u64, ps: u64| Instant::from_ps(us * 1_000_000 + ps);
    let steps = [
        (ps(0, 0), pass(5)),
        (ps(9, 999_999), pass(5)),
        (ps(10, 0), closed),
        (ps(20, 0), pass(6)),
        (ps(49, 999_999), pass(6)),
        (ps(50, 0), pass(5)),
    ];
    for (at, expected) in steps {
        assert_eq!(filter.take(at, frame(46)), expected, "{at}");
    }
}

#[test]
fn octets_are_of_each_interval() {
    let two = GateEntry { octets: Some(100), ..entry(true, 10) };
    let mut filter = filter(gate(20, vec![two, two]));
    let steps = [(0, 60, true), (1, 41, false), (2, 40, true), (10, 100, true), (11, 1, false)];
    for (at, sdu, passes) in steps.into_iter().chain([(20, 100, true)]) {
        let expected = if passes { PASS } else { Verdict::Drop(Reason::Octets) };
        assert_eq!(filter.take(us(at), frame(sdu)), expected, "at {at} us");
    }
    assert_eq!(filter.counters().blocked, None);
}

#[test]
fn violations_close_the_gate_for_good() {
    let octets = GateEntry { octets: Some(100), ..entry(true, 10) };
    let list = gate(20, vec![octets, entry(false, 10)]);
    let invalid = GateConfig { close_on_invalid: true, ..list.clone() };
    let excess = GateConfig { close_on_excess: true, ..list };
    let blocked = Verdict::Drop(Reason::Blocked);
    let mut one = filter(invalid);
    assert_eq!(one.take(us(0), frame(101)), Verdict::Drop(Reason::Octets));
    assert_eq!(one.take(us(0), frame(100)), PASS, "the other latch is not enabled");
    assert_eq!(one.take(us(15), frame(46)), Verdict::Drop(Reason::GateClosed));
    assert_eq!(one.take(us(20), frame(46)), blocked);
    assert_eq!(one.counters().blocked, Some((Reason::GateClosed, us(15))));
    let mut other = filter(excess);
    assert_eq!(other.take(us(15), frame(46)), Verdict::Drop(Reason::GateClosed));
    assert_eq!(other.take(us(20), frame(101)), Verdict::Drop(Reason::Octets));
    assert_eq!(other.take(us(40), frame(46)), blocked);
}

#[test]
fn stream_gate_follows_clock_of_bridge() {
    // The clock is 5 us ahead: it shows 10 us at 5 us of true time.
    let clock = Clock::new(5_000_000, 0).unwrap();
    let list = gate(20, vec![entry(true, 10), entry(false, 10)]);
    let mut filter = filter(GateConfig { clock, ..list });
    assert_eq!(filter.take(us(4), frame(46)), PASS);
    assert_eq!(filter.take(us(5), frame(46)), Verdict::Drop(Reason::GateClosed));
    assert_eq!(filter.take(us(15), frame(46)), PASS);
    // The new clock shows true time.
    filter.set_clock(Clock::default());
    assert_eq!(filter.take(us(29), frame(46)), PASS);
    assert_eq!(filter.take(us(30), frame(46)), Verdict::Drop(Reason::GateClosed));
}

#[test]
fn invalid_gate_lists_are_refused() {
    let error = |entries| StreamGate::new(gate(20, entries)).map(drop).unwrap_err();
    assert_eq!(error(vec![]), GateError::Empty);
    assert_eq!(error(vec![entry(true, 1), entry(true, 0)]), GateError::Interval(2));
    assert_eq!(error(vec![entry(true, 5_000_000)]), GateError::Interval(1), "above 2^32 - 1 ns");
    assert_eq!(error(vec![GateEntry { ipv: Some(8), ..entry(true, 1) }]), GateError::Priority(1));
    let long = GateError::Cycle { entries_ns: 21_000, cycle_ns: 20_000 };
    assert_eq!(error(vec![entry(true, 21)]), long);
}

proptest! {
    /// Compares the gate with a walk through all intervals from the base on.
    #[test]
    fn stream_gate_matches_walk_through_intervals(
        spans in prop::collection::vec((any::<bool>(), 1_u64..20, 0_u64..200), 1..6),
        rest in 0_u64..20,
        base in 0_u64..300,
        mut frames in prop::collection::vec((0_u64..2_000, 46_u64..120), 1..60),
    ) {
        frames.sort_unstable();
        let entries: Vec<GateEntry> = spans
            .iter()
            .map(|(open, ns, octets)| GateEntry {
                open: *open,
                ipv: None,
                interval: Duration::from_ns(*ns),
                octets: (*octets > 50).then_some(*octets),
            })
            .collect();
        let cycle = spans.iter().map(|(_, ns, _)| ns).sum::<u64>() + rest;
        let config = GateConfig {
            base: Instant::from_ns(base),
            cycle: Duration::from_ns(cycle),
            ..gate(1, entries.clone())
        };
        let mut filter = filter(config);
        // The walk begins with a cycle start at or before 0.
        let (mut opens, mut index) = (i128::from(base % cycle) - i128::from(cycle), 0);
        let mut used = 0;
        let last = entries.len() - 1;
        let length = |index: usize| {
            i128::from(entries[index].interval.as_ns())
                + if index == last { i128::from(rest) } else { 0 }
        };
        for (at, sdu) in frames {
            while i128::from(at) >= opens + length(index) {
                opens += length(index);
                (index, used) = ((index + 1) % entries.len(), 0);
            }
            let entry = entries[index];
            let expected = match entry.octets {
                _ if !entry.open => Verdict::Drop(Reason::GateClosed),
                Some(most) if used + sdu > most => Verdict::Drop(Reason::Octets),
                _ => {
                    used += sdu;
                    PASS
                }
            };
            prop_assert_eq!(filter.take(Instant::from_ns(at), frame(sdu)), expected);
        }
    }
}
