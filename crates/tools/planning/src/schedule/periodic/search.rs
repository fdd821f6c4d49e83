//! The search for a place for every stream: list scheduling in several orders, then large
//! neighbourhood search (P. Shaw, "Using constraint programming and local search methods to solve
//! vehicle routing problems", CP 1998).

use super::board::{Blocked, Board, Placed};
use super::problem::{Hop, Problem, Stream};
use stats::random::Random;
use std::cmp::Reverse;

/// Rounds without a better result after which the search starts again with a new order.
const PATIENCE: u64 = 400;
/// The most streams that a round removes.
const REMOVED: u64 = 12;

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    /// The placed streams.
    pub board: Board<'a>,
    /// Streams without a place, each with the port that blocks it.
    pub blocked: Vec<(usize, Blocked)>,
    /// Lists and rounds that were tried.
    pub tried: usize,
}

impl Found<'_> {
    /// The place of a stream.
    pub fn placed(&self, stream: usize) -> Option<&Placed> {
        self.board.placed[stream].as_ref()
    }
}

/// Searches for a place for every stream until all are placed or `is_over`. Without a clock in
/// `is_over`, equal seeds give equal results. At least one list is tried.
pub fn search<'a>(problem: &'a Problem, seed: u64, is_over: &dyn Fn() -> bool) -> Found<'a> {
    let mut random = Random::for_component(seed, "periodic streams");
    let mut weights = vec![0u64; problem.streams.len()];
    let mut best = Board::new(problem);
    let mut tried = 0;
    for order in orders(problem) {
        let board = list(problem, &order, &mut weights);
        tried += 1;
        best = better(best, board);
        if best.count() == problem.streams.len() || is_over() {
            break;
        }
    }
    while best.count() < problem.streams.len() && !is_over() {
        // Streams that found no place go first.
        let mut order: Vec<usize> = (0..problem.streams.len()).collect();
        order.sort_by_cached_key(|at| {
            let weight = weights[*at] + random.below(2 + weights[*at] / 2);
            (Reverse(weight), problem.streams[*at].period, random.bits())
        });
        let mut board = list(problem, &order, &mut weights);
        let mut left = PATIENCE;
        while board.count() < problem.streams.len() && left > 0 && !is_over() {
            let before = board.count();
            improve(&mut board, &mut random);
            left = if board.count() > before { PATIENCE } else { left - 1 };
            tried += 1;
        }
        best = better(best, board);
    }
    let missing: Vec<usize> =
        (0..problem.streams.len()).filter(|at| best.placed[*at].is_none()).collect();
    let blocked = missing.into_iter().filter_map(|at| Some((at, best.place(at, 0).err()?)));
    let blocked = blocked.collect();
    Found { board: best, blocked, tried }
}

fn better<'a>(one: Board<'a>, other: Board<'a>) -> Board<'a> {
    if other.count() > one.count() { other } else { one }
}

/// The orders of list scheduling: by period, slack, frame, path and load.
fn orders(problem: &Problem) -> Vec<Vec<usize>> {
    let slack = |stream: &Stream| {
        let limits = stream.hops.iter().zip(stream.earliest());
        limits.map(|(hop, start)| hop.latest - start).min().unwrap_or(u64::MAX)
    };
    let busy = |stream: &Stream| stream.hops.iter().map(|hop| hop.busy).max().unwrap_or(0);
    let load = |stream: &Stream| {
        let busy: u64 = stream.hops.iter().map(|hop| hop.busy).sum();
        (u128::from(busy) * 1_000_000_000 / u128::from(stream.period)) as u64
    };
    type Key<'a> = &'a dyn Fn(&Stream) -> [u64; 3];
    let keys: [Key<'_>; 5] = [
        &|stream| [stream.period, slack(stream), u64::MAX - busy(stream)],
        &|stream| [slack(stream), stream.period, u64::MAX - busy(stream)],
        &|stream| [u64::MAX - busy(stream), stream.period, slack(stream)],
        &|stream| [u64::MAX - stream.hops.len() as u64, stream.period, slack(stream)],
        &|stream| [u64::MAX - load(stream), stream.period, slack(stream)],
    ];
    let sorted = |key: Key<'_>| {
        let mut order: Vec<usize> = (0..problem.streams.len()).collect();
        order.sort_by_cached_key(|at| key(&problem.streams[*at]));
        order
    };
    keys.into_iter().map(sorted).collect()
}

/// Places streams in this order. The weight of a stream without a place rises.
fn list<'a>(problem: &'a Problem, order: &[usize], weights: &mut [u64]) -> Board<'a> {
    let mut board = Board::new(problem);
    for stream in order {
        if board.place(*stream, 0).is_err() {
            weights[*stream] += 1;
        }
    }
    board
}

/// Removes some streams at a port of a stream without a place, and places all again in another
/// order. Keeps the result unless fewer streams have a place.
fn improve(board: &mut Board<'_>, random: &mut Random) {
    let problem = board.problem;
    let count = board.count();
    let mut missing: Vec<usize> =
        (0..board.placed.len()).filter(|at| board.placed[*at].is_none()).collect();
    shuffle(&mut missing, random);
    let stream = missing[0];
    let Err(blocked) = board.place(stream, random.below(problem.streams[stream].period)) else {
        return;
    };
    let hops = &problem.streams[stream].hops;
    let port = match random.below(2) {
        0 => blocked,
        _ => hops[random.below(hops.len() as u64) as usize].port,
    };
    let mut others: Vec<usize> = board.at(port).collect();
    shuffle(&mut others, random);
    others.truncate(1 + random.below(REMOVED) as usize);
    let saved: Vec<_> = others.iter().filter_map(|at| Some((*at, board.remove(*at)?))).collect();
    if random.below(2) == 0 {
        others.sort_by_key(|at| problem.streams[*at].period);
    }
    let order: Vec<usize> =
        [stream].into_iter().chain(others).chain(missing.split_off(1)).collect();
    for at in &order {
        let from = match random.below(2) {
            0 => 0,
            _ => random.below(problem.streams[*at].period),
        };
        // A stream without a place is counted below.
        let _ = match random.below(4) {
            0 => board.place_waiting(*at, from, &waits(&problem.streams[*at], random)),
            _ => board.place(*at, from),
        };
    }
    if board.count() < count {
        order.iter().for_each(|at| drop(board.remove(*at)));
        saved.into_iter().for_each(|(at, placed)| board.add(at, placed));
    }
}

/// Random waits at the hops of a stream with which it meets its deadlines.
fn waits(stream: &Stream, random: &mut Random) -> Vec<u64> {
    let mut left = u64::MAX;
    let wait = |(hop, earliest): (&Hop, u64)| {
        left = left.min((hop.latest - earliest).min(stream.period));
        if hop.before.is_none() || !hop.waits || random.below(2) == 0 {
            return 0;
        }
        let wait = random.below(left + 1);
        left -= wait;
        wait
    };
    stream.hops.iter().zip(stream.earliest()).map(wait).collect()
}

fn shuffle(all: &mut [usize], random: &mut Random) {
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at as u64 + 1) as usize);
    }
}
