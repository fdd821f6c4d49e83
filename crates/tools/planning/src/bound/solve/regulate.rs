//! Asynchronous shapers in front of queues.

use super::{Since, Solver};
use crate::bound::arrivals::Steps;
use crate::bound::service::LIMIT;
use sim::ethernet::frame::{GAP, PREAMBLE};
use sim::ethernet::port::{Algorithm, Ats, Counted};
use sim::network::CableEnd;
use wire::Duration;

impl Solver<'_> {
    /// The asynchronous shaper before the queue of a hop.
    pub(super) fn shape(
        &self,
        number: usize,
        at: usize,
        since: &mut Vec<Since>,
        entry: &mut (u64, Option<u64>),
    ) {
        let hop = &self.flows[number].hops[at];
        let Algorithm::Ats(ats) = &self.network.port(hop.port).classes[hop.class].algorithm else {
            return;
        };
        let steps = self.committed(ats, number, hop.port);
        let extra = self.regulated(number, at);
        *entry = (entry.0, entry.1.zip(extra).map(|(entry, extra)| entry + extra));
        for one in since.iter_mut() {
            one.delay[1] = one.delay[1].saturating_add(extra.unwrap_or(LIMIT));
        }
        since.push(Since { steps, delay: [0, 0] });
    }

    /// What the shaper of a flow lets pass.
    pub(super) fn committed(&self, ats: &Ats, number: usize, port: CableEnd) -> Steps {
        let (rate, burst, bits) = self.bucket(ats, number, port);
        let time = |bits: u128| {
            let rate = rate * u128::from(1_000_000 + self.drift) / 1_000_000;
            u64::try_from(bits * 1_000_000_000_000 / rate.max(1)).unwrap_or(u64::MAX)
        };
        Steps {
            first: u64::try_from((burst / bits).max(1)).unwrap_or(u64::MAX),
            each: 1,
            interval: time(bits).max(1),
            late: time(burst % bits) + 1,
        }
    }

    /// Rate and burst of the shaper of a flow, and the bits of its shortest frame.
    pub(super) fn bucket(&self, ats: &Ats, number: usize, port: CableEnd) -> (u128, u128, u128) {
        let flow = &self.flows[number];
        let own = ats.streams.iter().find(|(id, _)| flow.stream == Some(*id));
        let committed = own.map_or(ats.committed, |(_, committed)| *committed);
        let (bytes, frames) = match flow.command {
            Some(wire) => (wire.bytes, wire.frames),
            None => ((flow.on_line(self.network, port)[1] + GAP) as u64, 1),
        };
        let bytes = match ats.counted {
            Counted::WithGap => bytes,
            Counted::FrameOnly => bytes - frames * (PREAMBLE + GAP) as u64,
        };
        (committed.rate.into(), committed.burst.into(), u128::from(bytes) * 8)
    }

    /// How long the shaper before a hop delays a flow at most, beyond the longest delay of the
    /// previous port. `None`: unbounded.
    ///
    /// A regulator after a system that keeps the order adds nothing to the longest delay of the
    /// system, if the frames satisfied the regulator before (J.-Y. Le Boudec, "A Theory of Traffic
    /// Regulators for Deterministic Networks", 2018, theorem 5).
    pub(super) fn regulated(&self, number: usize, at: usize) -> Option<u64> {
        let hop = &self.flows[number].hops[at];
        let Algorithm::Ats(ats) = &self.network.port(hop.port).classes[hop.class].algorithm else {
            return Some(0);
        };
        let delay_before = |flow: usize, at: usize| -> Option<u64> {
            let before = &self.flows[flow].hops[at].before;
            let mut delays = before.iter().map(|before| self.states[flow][*before].delay);
            delays.try_fold(0, |longest: u64, delay| Some(longest.max(delay?)))
        };
        let group = self.scheduler_group(number, at);
        let own = delay_before(number, at)?;
        let mut longest = 0;
        for (flow, at) in &group {
            let excess = self.excess(*flow, *at);
            match excess {
                Some(0) => longest = longest.max(delay_before(*flow, *at)?.saturating_sub(own)),
                Some(excess) if group.len() == 1 => longest = excess,
                _ => return ats.max_residence.map(Duration::as_ps),
            }
        }
        Some(longest)
    }

    /// The hops whose frames share a scheduler group (IEEE 802.1Q-2022, 8.6.5.6): of one reception
    /// port and one upstream class, to any port of the bridge.
    pub(super) fn scheduler_group(&self, number: usize, at: usize) -> Vec<(usize, usize)> {
        let before = |flow: usize, at: usize| {
            let hops = &self.flows[flow].hops;
            let before = hops[at].before.iter().map(|before| &hops[*before]);
            before.map(|hop| (hop.port, hop.class)).collect::<Vec<_>>()
        };
        let own = before(number, at);
        if own.is_empty() {
            return vec![(number, at)];
        }
        let node = self.flows[number].hops[at].port.node();
        let here = self.ports.iter().filter(|(port, _)| port.node() == node);
        let same = |(flow, at): &&(usize, usize)| {
            let hop = &self.flows[*flow].hops[*at];
            let algorithm = &self.network.port(hop.port).classes[hop.class].algorithm;
            matches!(algorithm, Algorithm::Ats(_)) && before(*flow, *at) == own
        };
        here.flat_map(|(_, hops)| hops.iter().filter(same).copied()).collect()
    }

    /// How long the frames of a flow, as they entered the previous port, would wait for their
    /// shaper. `None`: unbounded.
    pub(super) fn excess(&self, number: usize, at: usize) -> Option<u64> {
        let hop = &self.flows[number].hops[at];
        let Algorithm::Ats(ats) = &self.network.port(hop.port).classes[hop.class].algorithm else {
            return Some(0);
        };
        let (rate, burst, bits) = self.bucket(ats, number, hop.port);
        let rate = rate * 1_000_000 / u128::from(1_000_000 + self.drift);
        let wait = |frames: u64, t: u64| {
            let over = (u128::from(frames) * bits).saturating_sub(burst) * 1_000_000_000_000;
            u64::try_from(over.div_ceil(rate.max(1))).unwrap_or(u64::MAX).saturating_sub(t)
        };
        let longest = |one: &Since| {
            let jitter = one.delay[1] - one.delay[0];
            let steady = u128::from(one.steps.each) * bits * 1_000_000_000_000;
            let keeps = steady <= rate * u128::from(one.steps.interval);
            let first = one.steps.rises(jitter, u64::MAX).next()?;
            let later = wait(one.steps.frames(first + jitter), first);
            keeps.then(|| wait(one.steps.frames(jitter), 0).max(later))
        };
        let since: Vec<Since> = match hop.before.as_slice() {
            [] => {
                let steps = self.flows[number].arrivals.iter().flatten();
                steps.map(|steps| Since { steps: *steps, delay: [0, 0] }).collect()
            }
            [before] => self.states[number][*before].since.clone(),
            _ => return None,
        };
        since.iter().filter_map(longest).min()
    }
}
