//! Instances of tsnkit, with the results of its solver-free methods.

use super::{bounded, built, checker};
use farlane_planning::schedule::periodic::problem::{self, Problem, SLOT, Timing};
use farlane_planning::schedule::periodic::{capacity, search::search};
use wire::Duration;

const RESULTS: &str = include_str!("tsnkit/results.csv");

fn problem(name: &str) -> Problem {
    let folder = format!("{}/tests/guarantees/periodic/tsnkit", env!("CARGO_MANIFEST_DIR"));
    let files = ["topo", "task"].map(|part| format!("{folder}/{name}_{part}.csv"));
    let (_, planned) = built(&format!("runtime = \"1ms\"\ninclude = {files:?}\n"));
    problem::build(&planned, Timing::Tsnkit, (Duration::ZERO, SLOT)).unwrap()
}

#[test]
fn instances_that_tsnkit_places_are_placed() {
    let (mut ours, mut theirs) = (0, [0; 4]);
    let rows = RESULTS.lines().filter(|line| !line.starts_with('#')).skip(1);
    for row in rows {
        let (name, results) = row.split_once(',').unwrap();
        let problem = problem(name);
        capacity::cycles(&problem).unwrap();
        let found = search(&problem, 1, &bounded(100));
        checker::check(&problem, &found.board.placed);
        ours += usize::from(found.blocked.is_empty());
        for (count, result) in theirs.iter_mut().zip(results.split(',')) {
            *count += usize::from(result == "placed");
            assert!(result != "placed" || found.blocked.is_empty(), "{name}");
        }
    }
    assert_eq!(ours, 2);
    assert!(theirs.iter().all(|placed| *placed < ours), "{theirs:?}");
}

/// Stream 0 of the first instance, by hand: 200 bytes take 16 slots at 1 Gb/s, each bridge 20, and
/// there are five lines. Station 11 is at bridge 3, station 14 at bridge 6.
#[test]
fn times_are_those_of_tsnkit() {
    let problem = problem("line-40-432-1");
    let stream = &problem.streams[0];
    assert!(stream.hops.iter().all(|hop| hop.busy == 16 * SLOT.as_ps() && hop.gap == 0));
    let starts: Vec<u64> = (0..5).map(|hop| hop * 36 * SLOT.as_ps()).collect();
    assert_eq!(stream.earliest(), starts);
    assert_eq!(stream.hops[4].latest, (1180 - 16) * SLOT.as_ps());
}
