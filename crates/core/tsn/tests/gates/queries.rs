//! Compares every query with the reference, for random lists, changes and clocks.

use proptest::prelude::*;
use tsn::{Hold, HoldAdvance, LocalTime};
use wire::{Duration, Instant};

use super::model::{Port, RANGE, ports, runs};

fn ps(ps: u64) -> Duration {
    Duration::from_ps(ps)
}

/// The open time, calculated from the windows.
fn open_time(windows: &[(Instant, Instant)], from: Instant, to: Instant, margin: u64) -> Duration {
    let open = |&(start, end): &(Instant, Instant)| {
        let end = Instant::from_ps(end.as_ps().saturating_sub(margin));
        end.min(to).since(start.max(from)).as_ps()
    };
    ps(windows.iter().map(open).sum())
}

/// Whether preemptable frames are held, with the advance, at each nanosecond.
fn held(port: &Port, hold: i64, release: i64) -> Vec<bool> {
    let spans = runs(&port.held());
    let shifted = |&(from, to): &(i64, i64)| {
        // A hold until the end of the range never ends.
        (from - hold, if to == RANGE.end { to } else { to - release })
    };
    let spans: Vec<_> = spans.iter().map(shifted).collect();
    RANGE.map(|at| spans.iter().any(|&(from, to)| (from..to).contains(&at))).collect()
}

/// The longest wait of transmissions of `needed` ns that come at whole nanoseconds from `first` to
/// `last`. If a transmission one nanosecond earlier would not wait, the longest wait begins just
/// after that transmission and is one nanosecond longer.
fn longest_wait(open: &[bool], first: i64, last: i64, needed: i64) -> Option<i64> {
    let fits = |at: i64| {
        (at..at + needed.max(1)).all(|at| open.get((at - RANGE.start) as usize) == Some(&true))
    };
    let (mut start, mut longest) = (None, 0);
    for at in (first..RANGE.end).rev() {
        if fits(at) {
            start = Some(at);
        }
        if at <= last {
            let wait = start? - at;
            let just = wait > 0 && needed > 0 && at > first && fits(at - 1);
            longest = longest.max(wait + i64::from(just));
        }
    }
    Some(longest)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn open_and_changes(port in ports(), queue in 0usize..3, now in 0u64..1_200_000) {
        let (gates, windows, now) = (port.gates(), port.windows(queue), Instant::from_ps(now));
        let open = windows.iter().any(|&(start, end)| start <= now && now < end);
        prop_assert_eq!(gates.is_open(queue, now), open);
        let edges = windows.iter().flat_map(|&(start, end)| [start, end]);
        let change = edges.filter(|&at| at > now && at < port.end()).min();
        let found = gates.next_change(queue, now).filter(|&at| at < port.end());
        prop_assert_eq!(found, change);
    }

    #[test]
    fn earliest_starts(
        port in ports(),
        queue in 0usize..3,
        now in 0u64..1_200_000,
        duration in 0u64..20_000,
    ) {
        let (gates, now, duration) = (port.gates(), Instant::from_ps(now), ps(duration));
        let starts = port.windows(queue).into_iter().filter_map(|(start, end)| {
            let start = start.max(now);
            (start < end && start + duration <= end).then_some(start)
        });
        let found = gates.earliest_start(queue, now, duration);
        match starts.min() {
            Some(start) => prop_assert_eq!(found, Some(start)),
            None => prop_assert!(found.is_none_or(|at| at + duration > port.end()), "{:?}", found),
        }
    }

    #[test]
    fn open_times(
        port in ports(),
        queue in 0usize..3,
        from in 0u64..1_000_000,
        span in 0u64..800_000,
        needed in 0u64..200_000,
        margin in prop_oneof![Just(0), 0u64..12_000],
    ) {
        let (gates, from) = (port.gates(), Instant::from_ps(from));
        let windows = port.windows(queue);
        // The end of a window that the range cuts is not known, and neither is its margin.
        let known = windows.iter().rev().find(|(_, end)| *end < port.end()).map_or(from, |w| w.1);
        let to = (from + ps(span)).min(known.max(from));
        let expected = open_time(&windows, from, to, margin);
        prop_assert_eq!(gates.open_time(queue, from, to, ps(margin)), expected);

        let (needed, margin) = (ps(needed), ps(margin));
        let after = gates.after_open_time(queue, from, needed, margin);
        let by = |to| gates.open_time(queue, from, to, margin);
        match after {
            Some(after) => {
                prop_assert_eq!(by(after), needed);
                let before = Instant::from_ps(after.as_ps().saturating_sub(1));
                prop_assert!(after == from || by(before) < needed);
            }
            None => prop_assert!(by(port.end()) < needed && by(Instant::from_ps(1 << 60)) < needed),
        }
    }

    #[test]
    fn holds(port in ports(), now in 0i64..900, hold in 0i64..90, release in 0i64..90) {
        let advance = HoldAdvance {
            hold: Duration::from_ns(hold as u64),
            release: Duration::from_ns(release as u64),
        };
        let held = held(&port, hold, release);
        let global = |at: i64| port.clock.global(LocalTime::from_ps(at * 1_000));
        let is_held = |at: i64| held[(at - RANGE.start) as usize];
        // Near the end of the range, an advance may depend on entries after the range.
        let end = RANGE.end - 100;
        let start = global(now);
        // Before the beginning there is no instant.
        let now = port.clock.local(start).as_ps().div_euclid(1_000);
        let until = (now + 1..end).find(|&at| is_held(at) != is_held(now)).map(global);
        let known = |until: Option<Instant>| until.filter(|&at| at < global(end));
        match port.gates().hold_until(start, &advance) {
            Hold::Held { until: found } => {
                prop_assert!(is_held(now));
                prop_assert_eq!(known(found), until);
            }
            Hold::Released { until: found } => {
                prop_assert!(!is_held(now));
                prop_assert_eq!(known(found), until);
            }
        }
    }

    #[test]
    fn longest_waits(port in ports(), queue in 0usize..3, needed in 0i64..40) {
        let mut port = port;
        // The reference calculates in whole nanoseconds.
        let first = port.clock.local(Instant::ZERO).as_ps().div_euclid(1_000);
        port.clock = tsn::Clock::new(first * 1_000, 0).expect("no drift");
        let open = port.open(queue);
        let found = port.gates().longest_wait(queue, Duration::from_ns(needed as u64));
        let found = found.map(|wait| wait.as_ps() as i64);
        let expected = longest_wait(&open, first, RANGE.end - 200, needed);
        prop_assert_eq!(found, expected.map(|ns| ns * 1_000));
    }

    #[test]
    fn shares_and_takeovers(port in ports(), queue in 0usize..3, now in 0u64..1_200_000) {
        let (gates, now) = (port.gates(), Instant::from_ps(now));
        let takeovers = port.takeovers();
        let global = |at: i64| port.clock.global(LocalTime::from_ps(at * 1_000));
        let local = port.clock.local(now).as_ps();
        let next = takeovers.iter().find(|&&at| at * 1_000 > local).map(|&at| global(at));
        prop_assert_eq!(gates.next_list(now), next);
        let running = takeovers.iter().filter(|&&at| at * 1_000 <= local).count();
        let list = match &port.class {
            Some((classes, list)) if classes.is_open(queue) => list,
            _ => running.checked_sub(1).map_or(&port.first, |at| &port.changes[at].0),
        };
        let cycle = list.cycle_time().as_ns();
        let single = Port { first: list.clone(), changes: vec![], class: None, ..port.clone() };
        let open = &single.open(queue)[..cycle as usize];
        let open = open.iter().filter(|open| **open).count() as u64;
        let expected = (Duration::from_ns(open), Duration::from_ns(cycle));
        prop_assert_eq!(gates.open_share_of(queue, now), expected);
    }
}
