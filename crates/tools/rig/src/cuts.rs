//! Cuts of cables during a live run.

use crate::network::RigNetwork;
use plan::Planned;
use report::Outcome;
use sim::network::CableEnd;
use std::collections::VecDeque;
use std::time::Duration as Pause;
use wire::{Duration, Instant};

/// The changes of cables that are still to come: since the start of the workloads, the cable, and
/// whether it is repaired.
pub struct Cuts(VecDeque<(Duration, usize, bool)>);

impl Cuts {
    /// Returns the cuts of a plan's cables, in both directions together. All cables of a bridge
    /// without power are cut.
    pub fn new(plan: &Planned) -> Self {
        let network = &plan.config.network;
        let cables = network.cables.iter().enumerate();
        let planned = cables.clone().flat_map(|(number, cable)| {
            let [down, up] = &cable.faults;
            let cuts = if down.cuts.is_empty() { &up.cuts } else { &down.cuts };
            let end = |until| Some(until).filter(|until| *until != Instant::MAX);
            cuts.iter().map(move |(from, until)| (number, *from, end(*until)))
        });
        let dark = network.bridge_outages.iter().flat_map(|outage| {
            let is_own = |end: CableEnd| {
                matches!(end, CableEnd::Bridge(bridge, _) if bridge == outage.bridge)
            };
            let own = cables.clone().filter(move |(_, cable)| is_own(cable.a) || is_own(cable.b));
            own.map(|(number, _)| (number, outage.from, outage.until))
        });
        let mut spans: Vec<_> = planned.chain(dark).collect();
        spans.sort_unstable_by_key(|(number, from, _)| (*number, *from));
        // Spans of a cable that meet are one.
        let mut merged: Vec<(usize, Instant, Option<Instant>)> = Vec::new();
        for (number, from, until) in spans {
            match merged.last_mut() {
                Some((cable, _, end)) if *cable == number && end.is_none_or(|end| from <= end) => {
                    *end = end.zip(until).map(|(one, other)| one.max(other));
                }
                _ => merged.push((number, from, until)),
            }
        }
        let since = |at: Instant| at - Instant::ZERO;
        let changes = merged.into_iter().flat_map(|(number, from, until)| {
            let repaired = until.map(|until| (since(until), number, true));
            [Some((since(from), number, false)), repaired]
        });
        let mut all: Vec<_> = changes.flatten().collect();
        all.sort_unstable();
        Self(all.into())
    }

    /// Returns no cuts.
    pub fn none() -> Self {
        Self(VecDeque::new())
    }

    /// Returns how long to wait for the next change, at most `most`.
    pub fn pause(&self, elapsed: Duration, most: Pause) -> Pause {
        let left = |at: Duration| Pause::from_nanos(at.as_ns().saturating_sub(elapsed.as_ns()));
        self.0.front().map_or(most, |(at, ..)| left(*at).min(most))
    }

    /// Carries out the changes that are due. Returns a line for each.
    ///
    /// # Errors
    /// As [`RigNetwork::set_cable`].
    pub fn carry_out(
        &mut self,
        elapsed: Duration,
        (plan, network): (&Planned, &RigNetwork),
        mut tell: impl FnMut(String),
    ) -> Outcome {
        while let Some((_, cable, repaired)) =
            self.0.front().filter(|(at, ..)| *at <= elapsed).copied()
        {
            self.0.pop_front();
            network.set_cable(plan, cable, repaired)?;
            let ends = plan.cable_name(cable);
            tell(format!("cable {ends} {}", if repaired { "repaired" } else { "cut" }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Plan;

    #[test]
    fn cuts_that_meet_or_overlap_are_one() {
        let text = "[link]\ncuts = [\"1s..2s\", \"2s..3s\", \"5s..9s\", \"6s..7s\"]\n[workload]\n\
                    configreads = 1\n";
        let plan = Plan::parse("plan.toml", text).and_then(|plan| plan.build()).unwrap();
        let cuts = Cuts::new(&plan).0;
        let times: Vec<_> =
            cuts.iter().map(|(at, _, up)| (at.as_ns() / 1_000_000_000, *up)).collect();
        assert_eq!(times, [(1, false), (3, true), (5, false), (9, true)]);
    }
}
