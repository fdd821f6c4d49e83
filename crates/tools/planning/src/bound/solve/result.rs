//! Results of flows.

use super::{Extra, HopBound, ListenerBound, Solver};
use crate::bound::flows;
use crate::bound::flows::Flow;
use crate::bound::ports;
use crate::bound::{Method, Used};
use crate::commands::probe::Wire;
use sim::ethernet::frame::{GAP, MINIMUM, PREAMBLE};
use sim::ethernet::port::Algorithm;
use sim::network::CableEnd;
use wire::Duration;

/// The longest time since a frame was sent, and the methods behind it.
#[derive(Clone, Copy)]
struct Longest {
    time: u64,
    used: Used,
}

impl Longest {
    fn after(self, time: u64) -> Self {
        Self { time: self.time.saturating_add(time), ..self }
    }

    fn by(self, method: Used, time: u64) -> Self {
        Self { used: self.used | method, ..self.after(time) }
    }
}

/// The later of two ends; `None`: a way without end.
fn latest(one: Option<Longest>, other: Option<Longest>) -> Option<Longest> {
    let (one, other) = (one?, other?);
    let used = one.used | other.used;
    Some(Longest { time: one.time.max(other.time), used })
}

impl Solver<'_> {
    pub(in crate::bound) fn listeners(
        &self,
        number: usize,
        settled: &Result<(), String>,
    ) -> Vec<ListenerBound> {
        let flow = &self.flows[number];
        flow.ends.iter().map(|end| self.listener(number, end, settled)).collect()
    }

    /// The hops of a flow to a listener, in order.
    pub(super) fn hops_to(&self, flow: &Flow, end: &flows::End) -> Vec<usize> {
        let mut used = vec![false; flow.hops.len()];
        end.before.iter().for_each(|at| used[*at] = true);
        for at in (0..flow.hops.len()).rev() {
            if used[at] {
                flow.hops[at].before.iter().for_each(|before| used[*before] = true);
            }
        }
        (0..flow.hops.len()).filter(|at| used[*at]).collect()
    }

    /// Why a flow has no bound.
    pub(super) fn why(&self, flow: &Flow, hops: &[usize]) -> String {
        if let Err(why) = &flow.arrivals {
            return format!("{}: {why}", flow.name);
        }
        let mut at = hops.iter().map(|at| &flow.hops[*at]);
        let found = at.find_map(|hop| Some((hop, self.why.get(&(hop.port, hop.class))?)));
        found.map_or_else(
            || {
                "streams of its scheduler group exceed their rate and burst, so that the shaper \
                 has no largest delay"
                    .to_owned()
            },
            |(hop, why)| format!("class {} at {}: {why}", hop.class, self.names[&hop.port]),
        )
    }

    /// The first port of a flow with an asynchronous shaper, if there is one.
    pub(in crate::bound) fn shaped(&self, number: usize) -> Option<&str> {
        let is_shaped = |hop: &&flows::Hop| {
            let class = &self.network.port(hop.port).classes[hop.class];
            matches!(class.algorithm, Algorithm::Ats(_))
        };
        let hop = self.flows[number].hops.iter().find(is_shaped)?;
        Some(&self.names[&hop.port])
    }

    /// How much longer the frames of a command take over a flow than through a quiet network.
    ///
    /// # Errors
    /// Why there is no bound.
    pub(in crate::bound) fn extra(&self, number: usize) -> Result<Extra, String> {
        let flow = &self.flows[number];
        let Some(wire) = flow.command else { return Err(self.why(flow, &[])) };
        let mut longest = Extra::default();
        for end in &flow.ends {
            let hops = self.hops_to(flow, end);
            let by_hop = self.sum_of_delays(number, &hops, wire)?;
            let once = self.own_work_once(number, &hops, wire);
            let sum = once.map_or(by_hop, |(others, own)| by_hop.min(others + own));
            let others = once.map_or(by_hop, |(others, _)| others);
            longest.sum = longest.sum.max(sum);
            longest.others = longest.others.max(others);
        }
        Ok(longest)
    }

    /// [`Self::extra`] as the sum of the delays of all ports.
    pub(super) fn sum_of_delays(
        &self,
        number: usize,
        hops: &[usize],
        wire: Wire,
    ) -> Result<u64, String> {
        let flow = &self.flows[number];
        let mut sum = 0;
        for (place, at) in hops.iter().enumerate() {
            let port = flow.hops[*at].port;
            let delay = self.states[number][*at].delay.ok_or_else(|| self.why(flow, hops))?;
            // The quiet network has the command's own frames at the first port, and at least the
            // shortest one at the others.
            let bytes = if place == 0 { wire.bytes } else { (PREAMBLE + MINIMUM) as u64 };
            let quiet = self.network.port(port).rate.ps_per_byte() * bytes;
            sum += delay.saturating_sub(quiet) + self.spread(port);
        }
        Ok(sum)
    }

    /// [`Self::extra`] with the work of the flow itself once, at the slowest port, because its
    /// frames keep their order: other frames and gates delay them at each port (as in "pay bursts
    /// only once"), and the longest frame is stored at each port. `None`: unbounded.
    pub(super) fn own_work_once(
        &self,
        number: usize,
        hops: &[usize],
        wire: Wire,
    ) -> Option<(u64, u64)> {
        let flow = &self.flows[number];
        let commands = flow.arrivals.as_ref().ok()?.iter().map(|steps| steps.first).min()?;
        let (mut sum, mut slowest) = (0u64, 0);
        for (place, at) in hops.iter().enumerate() {
            let port = flow.hops[*at].port;
            let per_byte = ports::per_byte(self.network.port(port), self.rate_steps(port));
            slowest = slowest.max(per_byte);
            let stored = if place == 0 { 0 } else { flow.on_line(self.network, port)[0] + GAP };
            let interference = self.states[number][*at].interference?;
            sum += interference + per_byte * stored as u64 + self.spread(port);
        }
        Some((sum, slowest * wire.bytes * (commands - 1)))
    }

    /// The time of a byte at the slowest port of a flow.
    pub(in crate::bound) fn slowest(&self, number: usize) -> Option<u64> {
        let hops = self.flows[number].hops.iter();
        hops.map(|hop| self.network.port(hop.port).rate.ps_per_byte()).max()
    }

    /// By how much a bridge may take longer than in the mean.
    pub(super) fn spread(&self, port: CableEnd) -> u64 {
        let [least, most] = self.bridge(port);
        (most - least) / 2
    }

    /// The longest time from the source to the end of the transmission at each hop of a flow.
    fn sent(&self, number: usize) -> Vec<Option<Longest>> {
        let flow = &self.flows[number];
        let (mut queued, mut sent): (Vec<Option<Longest>>, Vec<Option<Longest>>) = <_>::default();
        let travel = |at: usize| {
            let before = flow.hops[at].before[0];
            (before, self.travel(number, before, flow.hops[at].port).1)
        };
        for (at, hop) in flow.hops.iter().enumerate() {
            let state = &self.states[number][at];
            let algorithm = &self.network.port(hop.port).classes[hop.class].algorithm;
            // Regulators may delay frames that come early.
            let regulated = matches!(algorithm, Algorithm::Ats(_));
            let before = if regulated { Used::TFA } else { Used::default() };
            let entry = match hop.before.is_empty() || regulated {
                true => state.entry.1.map(|time| Longest { time, used: before }),
                false => {
                    let ways = hop.before.iter().map(|before| {
                        Some(sent[*before]?.after(self.travel(number, *before, hop.port).1))
                    });
                    ways.reduce(latest).flatten()
                }
            };
            queued.push(entry);
            let own = entry.zip(state.delay).map(|(entry, delay)| entry.by(Used::TFA, delay));
            let spans = self.spans.iter().filter_map(|(used, spans)| {
                let (first, delay) = *spans.get(&(number, at))?;
                let mut between = 0;
                let mut place = at;
                while place != first {
                    let (before, travel) = travel(place);
                    (place, between) = (before, between + travel);
                }
                Some(queued[first]?.by(*used, delay + between))
            });
            let least = spans.min_by_key(|longest| longest.time);
            sent.push(match self.method {
                Method::Best => own.into_iter().chain(least).min_by_key(|longest| longest.time),
                _ => least.or(own),
            });
        }
        sent
    }

    pub(super) fn listener(
        &self,
        number: usize,
        end: &flows::End,
        settled: &Result<(), String>,
    ) -> ListenerBound {
        let flow = &self.flows[number];
        let hops = self.hops_to(flow, end);
        let to = CableEnd::Station(end.station, 0);
        let sent = self.sent(number);
        let longest = end.before.iter().map(|at| {
            let (_, travel) = self.travel(number, *at, to);
            Some(sent[*at]?.after(travel))
        });
        let longest = longest.reduce(latest).flatten();
        let used = longest.map_or_else(Used::default, |longest| longest.used);
        let bound = match (settled, longest) {
            (Err(why), _) => Err(why.clone()),
            (Ok(()), Some(longest)) if flow.arrivals.is_ok() => {
                let refused = self.refused.get(&number);
                self.method.accepts(used, refused).map(|()| Duration::from_ps(longest.time))
            }
            _ => Err(self.why(flow, &hops)),
        };
        let hop = |at: &usize| {
            let state = &self.states[number][*at];
            HopBound {
                port: self.names[&flow.hops[*at].port].clone(),
                place: (flow.hops[*at].port, flow.hops[*at].class),
                bound: state.delay.map(Duration::from_ps),
                backlog: state.backlog,
            }
        };
        ListenerBound {
            name: self.planned.stations[end.station].clone(),
            bound,
            used,
            hops: hops.iter().map(hop).collect(),
        }
    }
}
