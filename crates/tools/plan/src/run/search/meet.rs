//! Moves after which streams, hosts and gates meet the worst frame of a subject.

use crate::simulate::contention::{Burst, Contention, Hop};
use crate::simulate::places;
use crate::{Planned, Shift};
use sim::ethernet::traffic::StreamId;
use sim::network::Place;
use stats::random::Random;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use tsn::Gates;
use wire::Instant;

/// The indices of the shifts that move a host, stream or clock.
#[derive(Debug)]
pub(super) struct Places {
    /// Starts of the hosts, then of the streams.
    starts: Vec<Option<usize>>,
    clocks: BTreeMap<Place, usize>,
    /// The shifts.
    pub shifts: Vec<Shift>,
}

/// What moves, and where it meets the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// All sources and clocks, at the first port that they have in common with the subject.
    First {
        /// Whether new waits are added to the times at later ports.
        predicted: bool,
    },
    /// All, each at any common port.
    Any,
    /// A single one at any common port, or the subject itself.
    One,
}

/// A subject in a trial: what it met, the trial, and the shift of its own start.
pub(super) type Target<'a> = (&'a Contention, &'a Planned, Option<usize>);

/// Moves of shifts in picoseconds.
type Moves = BTreeMap<usize, i128>;

/// A hop with the shift of the clock, and the gates, of its port.
struct Port<'a> {
    hop: &'a Hop,
    bursts: &'a [Burst],
    clock: Option<usize>,
    gates: Option<&'a Gates>,
}

impl Places {
    pub fn new(shifts: &[Shift], planned: &Planned) -> Self {
        let index: BTreeMap<&str, usize> =
            shifts.iter().enumerate().map(|(at, shift)| (shift.key.as_str(), at)).collect();
        let find = |key: String| index.get(key.as_str()).copied();
        // Copies NAME.0, NAME.1 … have the shift of NAME.
        let find_copy = |table: &str, name: &str, key: &str| {
            let common = name.rsplit_once('.').map(|(name, _)| format!("{table}.{name}.{key}"));
            find(format!("{table}.{name}.{key}")).or_else(|| find(common?))
        };
        let host = |name: &String| {
            let own = find_copy("hosts", name, "workload.startdelay");
            own.or_else(|| find("workload.startdelay".to_owned()))
        };
        let stream = |(name, _): &(String, StreamId)| find(format!("traffic.{name}.start"));
        let station = |(at, name): (usize, &String)| {
            let own = find_copy("hosts", name, "link.clock_offset");
            let own = own.or_else(|| find_copy("nodes", name, "clock_offset"));
            Some((Place::Station(at), own.or_else(|| find("link.clock_offset".to_owned()))?))
        };
        let bridge = |(at, name): (usize, &String)| {
            Some((Place::Bridge(at), find(format!("bridges.{name}.clock_offset"))?))
        };
        let stations = planned.stations.iter().enumerate().filter_map(station);
        let bridges = planned.bridges.iter().enumerate().filter_map(bridge);
        let hosts = planned.hosts.iter().map(host);
        Self {
            starts: hosts.chain(planned.streams.iter().map(stream)).collect(),
            clocks: stations.chain(bridges).collect(),
            shifts: shifts.to_vec(),
        }
    }

    /// Returns for each host, and each listener of each stream, the shift of its own start.
    pub fn subjects(&self, planned: &Planned) -> impl Iterator<Item = Option<usize>> {
        let network = &planned.config.network;
        let listeners = planned.streams.iter().map(|(_, id)| network.stream(*id).listeners.len());
        let counts: Vec<usize> = planned.hosts.iter().map(|_| 1).chain(listeners).collect();
        self.starts.iter().zip(counts).flat_map(|(own, count)| std::iter::repeat_n(*own, count))
    }

    /// Returns the shifts of the subject, of the sources that it met, and of the clocks on its way.
    pub fn near(&self, (met, planned, own): Target<'_>) -> BTreeSet<usize> {
        let network = &planned.config.network;
        let sources = met.bursts.values().flatten();
        let sources = sources.filter_map(|burst| self.starts[burst.source]);
        let clock = |wire: &usize| {
            let (from, _) = places::wire(network, *wire)?;
            let port = network.port(from);
            let is_cyclic = port.gates.is_some() || !port.cqf.is_empty();
            self.clocks.get(&from.node()).copied().filter(|_| is_cyclic)
        };
        sources.chain(met.bursts.keys().filter_map(clock)).chain(own).collect()
    }

    /// Returns moves after which sources and gates meet the worst frame of a subject.
    pub fn meet<'a>(&self, target: Target<'a>, meeting: Meeting, random: &mut Random) -> Moves {
        let (met, planned, own) = target;
        let network = &planned.config.network;
        let port = |hop: &'a Hop| {
            let (from, _) = places::wire(network, hop.wire)?;
            let clock = self.clocks.get(&from.node()).copied();
            let gates = network.port(from).gates.as_ref();
            Some(Port { hop, bursts: met.bursts.get(&hop.wire)?, clock, gates })
        };
        let ports: Vec<Port<'_>> = met.hops.iter().filter_map(port).collect();
        let chosen = self.choose(&ports, own, (meeting, random));
        let (mut moves, mut later) = (Moves::new(), 0);
        if let Some(own) = own {
            if meeting != Meeting::One || chosen.is_empty() {
                let by = move_own(&ports, (meeting, random));
                later = by.map_or(0, |by| by + self.grain(own));
            }
            moves.insert(own, later);
        }
        for (at, port) in ports.iter().enumerate() {
            let acts = |shift: usize, is_lower: bool| match chosen.get(&shift) {
                // Only one frame of a lower class acts at a port; others may act at later ports.
                Some(first) if is_lower && meeting.is_first() => *first <= at,
                hop => hop == Some(&at),
            };
            let wait = self.meet_at(port, &acts, later, &mut moves);
            later += if meeting == (Meeting::First { predicted: false }) { 0 } else { wait };
        }
        moves
    }

    /// Returns the index of the port at which each shift acts.
    fn choose(
        &self,
        ports: &[Port<'_>],
        own: Option<usize>,
        (meeting, random): (Meeting, &mut Random),
    ) -> BTreeMap<usize, usize> {
        let mut chosen: BTreeMap<usize, (usize, u64)> = BTreeMap::new();
        for (at, port) in ports.iter().enumerate() {
            let sources = port.bursts.iter().filter_map(|burst| self.starts[burst.source]);
            let clock = port.clock.filter(|_| port.gates.is_some());
            for shift in sources.chain(clock).filter(|shift| Some(*shift) != own) {
                let (place, seen) = chosen.entry(shift).or_insert((at, 0));
                *seen += 1;
                // Each port with the same probability.
                if !meeting.is_first() && random.below(*seen) == 0 {
                    *place = at;
                }
            }
        }
        let all = chosen.into_iter().map(|(shift, (at, _))| (shift, at));
        if meeting != Meeting::One {
            return all.collect();
        }
        let count = all.len() as u64 + u64::from(own.is_some());
        all.skip(random.below(count) as usize).take(1).collect()
    }

    /// Adds the moves of the shifts that act at a port, which the subject reaches `later` than it
    /// did. Returns how much longer it waits there.
    fn meet_at(
        &self,
        port: &Port<'_>,
        acts: &dyn Fn(usize, bool) -> bool,
        later: i128,
        moves: &mut Moves,
    ) -> i128 {
        let Hop { arrival, start, end, free, gate, class, .. } = *port.hop;
        let own = |burst: &'_ Burst| {
            let shift = self.starts[burst.source]?;
            let is_free = !moves.contains_key(&shift) && acts(shift, burst.class < class);
            is_free.then_some(shift)
        };
        let sources = port.bursts.iter().filter_map(|burst| Some((own(burst)?, burst)));
        let sources: Vec<(usize, &Burst)> = sources.collect();
        let mut wait = 0;
        let mut add = |(shift, burst): (usize, &Burst), from: u64, to: i128| {
            let ps = to + later - 1 - i128::from(from);
            wait += self.gain((shift, ps), port.hop, burst);
            moves.insert(shift, ps);
        };
        // Frames that come on one line come one after the other.
        let mut lines: BTreeMap<(Option<usize>, Ordering), i128> = BTreeMap::new();
        for source in sources.iter().copied() {
            let (_, burst) = source;
            let order = burst.class.cmp(&class);
            let line = lines.entry((burst.from, order)).or_insert(0);
            match order {
                // The last frame comes just before the subject.
                Ordering::Equal => add(source, burst.last, i128::from(arrival) - *line),
                // All frames from the first one on overtake the subject.
                Ordering::Greater => {
                    add(source, burst.first, i128::from(arrival.max(free)) + *line);
                }
                Ordering::Less => {}
            }
            *line += i128::from(burst.frames * burst.time_before);
        }
        // The longest frame of a lower class is on the line when the others come.
        let lower = sources.into_iter().filter(|(_, burst)| burst.class < class);
        if let Some(source) = lower.max_by_key(|(_, burst)| burst.time) {
            add(source, source.1.first, free.into());
        }
        if let (Some(shift), Some(gates)) = (port.clock, port.gates)
            && !moves.contains_key(&shift)
            && acts(shift, false)
            && let Some((closes, closed)) = closing(gates, port.hop)
        {
            // A clock that is set forward closes its gates earlier.
            moves.insert(shift, closes - (ready(port.hop) + later + wait) + self.grain(shift));
            wait += closed + i128::from(end - start) - i128::from(gate);
        }
        wait
    }

    fn grain(&self, shift: usize) -> i128 {
        self.shifts[shift].grain().into()
    }

    /// Returns for how much longer the subject waits for a burst that moves.
    fn gain(&self, (shift, ps): (usize, i128), hop: &Hop, burst: &Burst) -> i128 {
        let within = i128::from(self.shifts[shift].within.as_ps());
        let distance = (ps + within / 2).rem_euclid(within) - within / 2;
        let has_met = distance.abs() <= i128::from(hop.start.saturating_sub(hop.busy));
        let frames = if burst.class < hop.class { 1 } else { burst.frames };
        if has_met { 0 } else { i128::from(frames * burst.time) }
    }
}

impl Meeting {
    const fn is_first(self) -> bool {
        matches!(self, Self::First { .. })
    }
}

/// Returns by how much the subject moves so that a gate closes when its transmission would end: the
/// first gate whose clock does not move, or any gate if only the subject moves.
fn move_own(ports: &[Port<'_>], (meeting, random): (Meeting, &mut Random)) -> Option<i128> {
    let gates = |port: &Port<'_>| {
        let is_fixed = port.clock.is_none() || meeting == Meeting::One;
        let (closes, _) = closing(port.gates.filter(|_| is_fixed)?, port.hop)?;
        Some(closes - ready(port.hop))
    };
    let all: Vec<i128> = ports.iter().filter_map(gates).collect();
    let at = if meeting.is_first() { 0 } else { random.below(all.len() as u64) as usize };
    all.get(at).copied()
}

/// Returns when the transmission at a hop would have ended without gates.
fn ready(hop: &Hop) -> i128 {
    i128::from(hop.end - hop.gate)
}

/// Returns when the gate closes for the longest time after the arrival at a hop, and this time, in
/// picoseconds.
fn closing(gates: &Gates, hop: &Hop) -> Option<(i128, i128)> {
    /// Changes after which every window of a usual cycle was seen.
    const CHANGES: usize = 64;
    let class = usize::from(hop.class);
    let next = |at: &Instant| gates.next_change(class, *at);
    let first = next(&Instant::from_ps(hop.arrival));
    let changes: Vec<Instant> = std::iter::successors(first, next).take(CHANGES).collect();
    let closed = changes.windows(2).filter(|pair| !gates.is_open(class, pair[0]));
    let closed = closed.map(|pair| (pair[0].as_ps().into(), pair[1].since(pair[0]).as_ps().into()));
    closed.rev().max_by_key(|(_, closed)| *closed)
}
