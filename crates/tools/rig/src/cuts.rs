//! Cuts of cables during a live run.

use crate::network::RigNetwork;
use plan::Planned;
use report::Outcome;
use std::collections::VecDeque;
use std::time::Duration as Pause;
use wire::{Duration, Instant};

/// The changes of cables that are still to come: since the start of the workloads, the cable, and
/// whether it is repaired.
pub struct Cuts(VecDeque<(Duration, usize, bool)>);

impl Cuts {
    /// Returns the cuts of a plan's cables. Both directions of a cable are cut together.
    pub fn new(plan: &Planned) -> Self {
        let cables = plan.config.network.cables.iter().enumerate();
        let all = cables.flat_map(|(number, cable)| {
            let [down, up] = &cable.faults;
            let cuts = if down.cuts.is_empty() { &up.cuts } else { &down.cuts };
            let since = |at: Instant| at - Instant::ZERO;
            cuts.iter().flat_map(move |(from, until)| {
                let repaired = (*until != Instant::MAX).then(|| (since(*until), number, true));
                [Some((since(*from), number, false)), repaired]
            })
        });
        let mut all: Vec<_> = all.flatten().collect();
        all.sort_unstable();
        Self(all.into())
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
