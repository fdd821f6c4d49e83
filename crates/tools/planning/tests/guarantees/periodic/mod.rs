//! Schedules of periodic streams.

mod brute;
mod checker;
mod plans;
mod simulated;
mod tsnkit;

use farlane_planning::schedule::periodic::problem::{self, Problem, Timing};
use farlane_planning::schedule::periodic::search::{Found, search};
use plan::{Plan, Planned};
use std::cell::Cell;
use wire::Duration;

/// Whether `rounds` calls were made.
fn bounded(rounds: u64) -> impl Fn() -> bool {
    let left = Cell::new(rounds);
    move || left.replace(left.get().saturating_sub(1)) == 0
}

fn built(text: &str) -> (Plan, Planned) {
    let plan = Plan::parse("p.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let planned = plan.build().unwrap_or_else(|error| panic!("{error}\n{text}"));
    (plan, planned)
}

fn problem(planned: &Planned, margin: Duration, grain: Duration) -> Problem {
    problem::build(planned, Timing::Line, (margin, grain)).unwrap()
}

/// Searches with a number of rounds, and checks the result.
fn checked(problem: &Problem, rounds: u64) -> Found<'_> {
    let found = search(problem, 1, &bounded(rounds));
    checker::check(problem, &found.board.placed);
    found
}
