//! Ranks the commands of each type: the median, the 99th percentile and the longest.

use crate::commands::{Command, Event};
use crate::trace::{Finding, Run, kind};
use report::Failure;
use std::collections::BTreeMap;

/// Maximum number of ranked types; further types are only in the tables.
const MOST_KINDS: usize = 256;

/// A command that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Time from doorbell to head doorbell, in nanoseconds.
    pub ns: u64,
    /// Number of the command, from 1.
    pub number: u64,
    /// Start of the command on the timeline, in nanoseconds.
    pub start_ns: u64,
}

/// Commands of one type.
#[derive(Clone, Debug, Default)]
pub struct Type {
    /// Whether the commands are on an I/O queue.
    pub io: bool,
    /// The commands that ended, in this order until they are ranked.
    pub spans: Vec<Span>,
}

/// The commands of a run, ranked by duration within each type.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    types: BTreeMap<String, Type>,
}

impl Ranking {
    /// Adds a command.
    pub fn add(&mut self, number: u64, command: &Command) {
        let Some(ns) = command.duration_ns() else { return };
        let name = kind(command);
        if self.types.len() >= MOST_KINDS && !self.types.contains_key(&name) {
            return;
        }
        let statistics = self.types.entry(name).or_default();
        statistics.io |= !command.is_admin();
        let start_ns = command.start.as_ns();
        statistics.spans.push(Span { ns, number, start_ns });
    }

    /// Returns the types: types on I/O queues first, then by the total time of their commands. The
    /// first type dominates the run.
    pub fn ranked(self) -> Vec<(String, Type)> {
        let mut all: Vec<(String, Type)> = self.types.into_iter().collect();
        let spent = |kind: &Type| kind.spans.iter().map(|span| u128::from(span.ns)).sum::<u128>();
        all.sort_by_cached_key(|(_, kind)| (!kind.io, u128::MAX - spent(kind)));
        all
    }
}

impl Type {
    /// Returns the command at the quantile `share` (0 to 1) of the durations; `None` without
    /// commands.
    pub fn at(&self, share: f64) -> Option<Span> {
        let mut order: Vec<&Span> = self.spans.iter().collect();
        order.sort_by_key(|span| (span.ns, span.number));
        let place = (share * order.len() as f64).ceil() as usize;
        order.get(place.clamp(1, order.len().max(1)) - 1).map(|span| **span)
    }
}

/// Finds the commands with these numbers. Fails as [`Run::analyse`].
pub fn commands(run: &Run, numbers: &[u64]) -> Result<BTreeMap<u64, Command>, Failure> {
    let mut found = BTreeMap::new();
    let mut number = 0;
    run.analyse(|event, _| {
        let Finding::Event(Event::Command(command)) = event else { return };
        number += 1;
        if numbers.contains(&number) {
            found.insert(number, *command);
        }
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_equal_sorted_samples() {
        let span = |ns| Span { ns, number: ns, start_ns: 0 };
        let with_spans = |spans: Vec<Span>| Type { io: true, spans };
        let hundred = with_spans((1..=100).rev().map(span).collect());
        let ranks = [0.5, 0.99, 1.0].map(|share| hundred.at(share).unwrap().ns);
        assert_eq!(ranks, [50, 99, 100]);
        let one = with_spans(vec![span(7)]);
        assert_eq!([0.0, 0.5, 1.0].map(|share| one.at(share).unwrap().ns), [7; 3]);
        assert_eq!(with_spans(vec![]).at(0.5), None);
    }
}
