//! Tiny problems: the search finds a placement wherever enumeration does.

use super::checker::{check, violation};
use super::{bounded, checker};
use farlane_planning::schedule::periodic::board::Placed;
use farlane_planning::schedule::periodic::problem::{End, Hop, Port, Problem, Stream};
use farlane_planning::schedule::periodic::search::search;
use sim::ethernet::traffic::StreamId;
use sim::network::CableEnd;
use stats::random::Random;

/// A few streams through up to three ports. Times are in units.
fn tiny(random: &mut Random) -> Problem {
    let ports = 1 + random.below(3) as usize;
    let queues = random.below(2) as u8;
    let port = |number: usize| Port {
        place: CableEnd::Bridge(number, 0),
        name: format!("port {number}"),
        classes: [0, queues, 0, 0, 0, 0, 0, 0],
        entries: 4096,
    };
    let periods = [[4, 6, 12], [4, 8, 8], [5, 10, 10], [6, 6, 12]][random.below(4) as usize];
    let streams = (0..2 + random.below(3)).map(|number| {
        let period = periods[random.below(3) as usize];
        let mut path: Vec<usize> = (0..ports).collect();
        if random.below(2) == 0 {
            path.reverse();
        }
        path.truncate(1 + random.below(ports as u64) as usize);
        let busy = 1 + random.below(2);
        let mut hops: Vec<Hop> = Vec::new();
        for (at, port) in path.into_iter().enumerate() {
            let (before, after) = (at.checked_sub(1), busy + random.below(2));
            let gap = random.below(2);
            hops.push(Hop { port, before, after, busy, gap, latest: u64::MAX, waits: true });
        }
        let sum: u64 = hops.iter().map(|hop| hop.after).sum();
        let deadline = sum + busy + random.below(4);
        let hop = hops.len() - 1;
        let mut most = deadline - busy;
        for hop in hops.iter_mut().rev() {
            hop.latest = most;
            most -= hop.after;
        }
        Stream {
            id: StreamId::new(0, number as usize),
            name: format!("stream {number}"),
            period,
            hops,
            ends: vec![End { station: 0, hop, after: busy, deadline: Some(deadline) }],
            priorities: if queues == 0 { vec![0] } else { vec![0, 1] },
        }
    });
    let streams = streams.collect();
    let ports = (0..ports).map(port).collect();
    let margin = u64::from(random.below(3) == 0);
    Problem { streams, ports, margin, grain: 1, within_period: random.below(2) == 0 }
}

/// All starts of a stream that meet its deadline.
fn all_starts(stream: &Stream) -> Vec<Placed> {
    let mut all = Vec::new();
    for release in 0..stream.period {
        let mut open = vec![Vec::new()];
        for hop in &stream.hops {
            let mut next: Vec<Vec<u64>> = Vec::new();
            for starts in open {
                let arrival = hop.before.map_or(release, |at: usize| starts[at]) + hop.after;
                let last = release + hop.latest;
                // The sender does not wait.
                let last = if hop.before.is_none() { arrival.min(last) } else { last };
                for start in arrival..=last {
                    next.push(starts.iter().copied().chain([start]).collect());
                }
            }
            open = next;
        }
        for priority in &stream.priorities {
            let placed =
                |starts: &Vec<u64>| Placed { release, starts: starts.clone(), priority: *priority };
            all.extend(open.iter().map(placed));
        }
    }
    all
}

/// Whether the streams from `at` on have starts beside those placed.
fn enumerate(problem: &Problem, all: &[Vec<Placed>], placed: &mut Vec<Option<Placed>>) -> bool {
    let at = placed.len();
    if at == all.len() {
        return true;
    }
    for one in &all[at] {
        placed.push(Some(one.clone()));
        if violation(problem, placed).is_none() && enumerate(problem, all, placed) {
            return true;
        }
        placed.pop();
    }
    false
}

#[test]
fn search_places_whatever_enumeration_places() {
    compare(300);
}

mod long {
    #[test]
    fn search_places_whatever_enumeration_places_in_thousands_of_problems() {
        super::compare(5_000);
    }
}

fn compare(problems: u64) {
    let (mut feasible, mut infeasible, mut waiting) = (0, 0, 0);
    for seed in 0..problems {
        let problem = tiny(&mut Random::for_component(seed, "tiny"));
        let all: Vec<Vec<Placed>> = problem.streams.iter().map(all_starts).collect();
        let mut known = Vec::new();
        let can = enumerate(&problem, &all, &mut known);
        let found = search(&problem, 1, &bounded(4_000));
        check(&problem, &found.board.placed);
        assert_eq!(found.blocked.is_empty(), can, "{seed}: {problem:#?}\n{known:?}");
        (feasible, infeasible) = (feasible + usize::from(can), infeasible + usize::from(!can));
        let waits = |(stream, placed): (&Stream, &Option<Placed>)| {
            let placed = placed.as_ref().unwrap();
            let earliest = stream.earliest();
            placed.starts.iter().zip(earliest).any(|(at, least)| *at > placed.release + least)
        };
        waiting += usize::from(can && problem.streams.iter().zip(&known).any(waits));
    }
    assert!(feasible > 50 && infeasible > 30 && waiting > 5, "{feasible} {infeasible} {waiting}");
}

/// The checker sees each kind of violation.
#[test]
fn checker_finds_violations() {
    let mut seen = 0;
    for seed in 0..200 {
        let mut random = Random::for_component(seed, "tiny");
        let problem = tiny(&mut random);
        let found = search(&problem, 1, &bounded(100));
        let mut placed = found.board.placed.clone();
        let Some((at, Some(one))) = placed.iter_mut().enumerate().find(|(_, one)| one.is_some())
        else {
            continue;
        };
        let last = one.starts.len() - 1;
        one.starts[last] = one.release + problem.streams[at].hops[last].latest + 1;
        seen += usize::from(checker::violation(&problem, &placed).is_some());
    }
    assert!(seen > 150, "{seen}");
}
