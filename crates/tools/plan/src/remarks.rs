//! Remarks on a plan before it runs. This file finds periods on a network that do not divide one
//! another. Their phases change from cycle to cycle, and only a run as long as the hyperperiod
//! covers all phases.

mod clocks;
mod history;
mod ports;
mod streams;

use super::Planned;
use sim::ethernet::traffic::Pattern;
use sim::network::{CableEnd, NetworkConfig};
use sim::workload::Workload;
use sim::world::{Attached, HostConfig};
use std::collections::BTreeMap;
use tsn::{Gates, QUEUES, hyperperiod};
use wire::{Duration, Instant};

/// A property of a plan that standards permit, but that may make results misleading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// Periods that do not divide one another.
    Periods(Periods),
    /// A part of the plan behaves differently from what its table suggests: one sentence.
    Part(String),
}

impl Remark {
    /// Returns the remark as a sentence before a run.
    pub fn sentence(&self) -> String {
        match self {
            Self::Periods(periods) => periods.sentence(),
            Self::Part(sentence) => sentence.clone(),
        }
    }

    /// Returns the remark about a run that ended at `end`.
    pub fn after(&self, end: Instant) -> String {
        match self {
            Self::Periods(periods) => periods.after(end),
            Self::Part(sentence) => sentence.clone(),
        }
    }
}

/// Periods that do not divide one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Periods {
    /// Two or more periods, the shortest first, each with the names of the hosts, streams and gates
    /// that have the period.
    pub periods: Vec<(Duration, Vec<String>)>,
    /// Least common multiple of the periods; `None` above 2^64 - 1 ps.
    pub hyperperiod: Option<Duration>,
}

impl Periods {
    /// Selects every period that neither divides nor is a multiple of some other period; `None` if
    /// there is no such period.
    fn new(all: BTreeMap<Duration, Vec<String>>) -> Option<Self> {
        let divides = |a: Duration, b: Duration| {
            let (short, long) = (a.min(b), a.max(b));
            long.as_ps().is_multiple_of(short.as_ps())
        };
        let keys: Vec<Duration> = all.keys().copied().collect();
        let odd = |period: &Duration| keys.iter().any(|other| !divides(*period, *other));
        let periods: Vec<_> = all.into_iter().filter(|(period, _)| odd(period)).collect();
        let hyperperiod = hyperperiod(periods.iter().map(|(period, _)| *period));
        (!periods.is_empty()).then_some(Self { periods, hyperperiod })
    }

    /// Returns the remark as a sentence before a run.
    pub fn sentence(&self) -> String {
        let period = |(period, names): &(Duration, Vec<String>)| {
            /// Maximum number of names; further ones are only counted.
            const NAMED: usize = 4;
            let named = names[..names.len().min(NAMED)].join(", ");
            let more = match names.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("{} ({named}{more})", period.exact())
        };
        let periods: Vec<_> = self.periods.iter().map(period).collect();
        let repeat = self.hyperperiod.map_or_else(
            || "together they do not repeat in 200 days".to_owned(),
            |all| format!("together they repeat every {}", all.exact()),
        );
        format!("periods that do not divide one another: {}; {repeat}", periods.join(", "))
    }

    /// Returns the remark about a run that ended at `end`.
    pub fn after(&self, end: Instant) -> String {
        let run = end.since(Instant::ZERO);
        let covers = match self.hyperperiod {
            Some(all) if run >= all => "covers that",
            _ => "does not cover that: it has not seen all of their phases",
        };
        format!("{}; the run of {run} {covers}", self.sentence())
    }
}

/// Returns the hosts whose reads are not compared, because another host writes the same blocks.
fn uncompared(planned: &Planned) -> impl Iterator<Item = Remark> {
    let name = |host: usize| &planned.hosts[host];
    planned.config.uncompared().into_iter().map(move |(host, other)| {
        let (host, other) = (name(host), name(other));
        Remark::Part(format!(
            "no read of host {host} is compared: host {other} writes the same blocks"
        ))
    })
}

/// Returns the remarks on a plan.
pub(super) fn find(planned: &Planned) -> Vec<Remark> {
    let network = &planned.config.network;
    let mut all: BTreeMap<Duration, Vec<String>> = BTreeMap::new();
    let mut add = |period: Duration, name: String| {
        // The ports of one bridge are consecutive.
        let names: &mut Vec<String> = all.entry(period).or_default();
        if names.last() != Some(&name) {
            names.push(name);
        }
    };
    for (name, cycle) in cycles(planned) {
        add(cycle, format!("gates of {name}"));
    }
    for (name, stream) in planned.identified.iter().zip(&network.streams) {
        for gate in stream.filters.iter().filter_map(|(_, filter)| filter.gate.as_ref()) {
            add(gate.cycle, format!("stream gate of {name}"));
        }
    }
    for (name, period) in periodic(planned, network) {
        add(period, format!("stream {name}"));
    }
    for (name, host) in planned.hosts.iter().zip(&planned.config.hosts) {
        if let Some(period) = pace(host) {
            add(period, format!("host {name}"));
        }
    }
    let periods = Periods::new(all).map(Remark::Periods);
    let periods = periods.into_iter().chain(ports::find(planned)).chain(uncompared(planned));
    periods.chain(self::streams::find(planned)).chain(clocks::find(planned)).collect()
}

/// Returns the cycles of all gates, with the name of the station or bridge. If the ports of a
/// bridge have different cycles, with the name of the port.
fn cycles(planned: &Planned) -> Vec<(String, Duration)> {
    let network = &planned.config.network;
    // Cyclic queues have gate control lists of their own.
    let cycle = |gates: &Gates| {
        let cycle_time = |class| gates.list_at(class, Instant::ZERO).cycle_time();
        (0..QUEUES).map(cycle_time).max().unwrap_or_default()
    };
    let stations = planned.stations.iter().zip(&network.stations);
    let stations = stations.filter_map(|(name, station)| {
        Some((name.clone(), station.ports[0].gates.as_ref().map(cycle)?))
    });
    let bridges = planned.bridges.iter().zip(&network.bridges).enumerate();
    let bridges = bridges.flat_map(|(number, (name, bridge))| {
        let ports = bridge.ports.iter().enumerate();
        let all: Vec<_> =
            ports.filter_map(|(at, port)| Some((at, port.gates.as_ref().map(cycle)?))).collect();
        let same = all.windows(2).all(|pair| pair[0].1 == pair[1].1);
        let way = |port| planned.port_name(CableEnd::Bridge(number, port));
        let named = move |(port, cycle)| (if same { name.clone() } else { way(port) }, cycle);
        all.into_iter().map(named).collect::<Vec<_>>()
    });
    stations.chain(bridges).collect()
}

fn periodic<'a>(planned: &'a Planned, network: &NetworkConfig) -> Vec<(&'a String, Duration)> {
    let period = |(name, id): &'a (String, sim::ethernet::traffic::StreamId)| match network
        .stream(*id)
        .pattern
    {
        Pattern::Periodic(interval) => Some((name, interval)),
        _ => None,
    };
    planned.streams.iter().filter_map(period).collect()
}

/// Returns the time between two transfers of a job, for a host with a limited rate and a network.
fn pace(host: &HostConfig) -> Option<Duration> {
    let Attached::Switch(_) = &host.attached else { return None };
    match &host.workload {
        Workload::Fio(fio) => fio.interval(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::built;
    use wire::Instant;

    fn remarks(interval: &str, rate: &str) -> Vec<super::Remark> {
        built(&format!(
            "transport = \"tsn\"\n[nodes.device]\n[nodes.n]\n[drive]\nnode = \"device\"\n\
             [bridges.b]\nschedule = \"s\"\n[schedules.s]\nentries = [\"S ff 500us\"]\n\
             [traffic.t]\nfrom = \"n\"\nto = \"host\"\ninterval = \"{interval}\"\n[workload]\n\
             rw = \"read\"\nbs = \"4KiB\"\n{rate}\n"
        ))
        .remarks
    }

    #[test]
    fn periods_that_divide_one_another_are_no_remark() {
        assert_eq!(remarks("100us", ""), []);
        assert_eq!(remarks("1ms", ""), []);
        // 4096 bytes at 40.96 MB/s take 100 us.
        assert_eq!(remarks("1ms", "rate = \"40.96MB/s\""), []);
    }

    /// If the ports of a bridge have different gates, each port is named.
    #[test]
    fn ports_with_cycles_of_their_own_are_named() {
        let text = "transport = \"tsn\"\n[nodes.n]\n[bridges.b]\nschedule = \"s\"\n\
                    [bridges.b.ports.n]\nschedule = \"t\"\n[schedules.s]\n\
                    entries = [\"S ff 3us\"]\n[schedules.t]\nentries = [\"S ff 2us\"]\n\
                    [workload]\nconfigreads = 1\n";
        let sentence = built(text).remarks[0].sentence();
        let expected = "2us (gates of b port 1 to n), 3us (gates of b port 0 to host); together";
        assert!(sentence.contains(expected), "{sentence}");
    }

    #[test]
    fn unrelated_periods_are_named_with_their_common_period() {
        let found = remarks("300us", "");
        let sentence = "periods that do not divide one another: 300us (stream t), 500us (gates of \
                        b); together they repeat every 1500us";
        assert_eq!(found[0].sentence(), sentence);
        let after = |us: u64| found[0].after(Instant::from_ns(us * 1_000));
        assert_eq!(after(1_500), format!("{sentence}; the run of 1500.000us covers that"));
        assert!(after(1_499).ends_with(
            "; the run of 1499.000us does not cover that: it has not seen all of their phases"
        ));
        // 4096 bytes at 16.384 MB/s take 250 us, which divides the cycle and not the interval.
        let found = remarks("300us", "rate = \"16.384MB/s\"");
        assert!(found[0].sentence().contains("250us (host host), 300us (stream t), 500us (gates"));
        // Two primes and the cycle: the hyperperiod exceeds 2^64 - 1 ps.
        let found = remarks("999999937ps", "rate = \"3.999999MB/s\"");
        assert!(found[0].sentence().ends_with("; together they do not repeat in 200 days"));
    }
}
