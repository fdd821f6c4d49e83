//! Streams that nodes on their paths handle specially (IEEE 802.1CB-2017; IEEE 802.1Q-2022, 8.6.5).

use std::collections::{BTreeMap, BTreeSet};

use tsn::frer::{Algorithm, rtag};
use tsn::psfp;

use super::config::CableEnd;
use super::routes::Path;
use super::tree::Place;
use super::wiring::Wiring;
use crate::ensure;
use crate::ethernet::bridge::Mode;
use crate::ethernet::streams::{Handling, Identification, OWN, Recover, StreamTable};

/// A stream with its own paths, filters or elimination.
#[derive(Clone, Debug)]
pub struct StreamConfig {
    /// How nodes identify frames of the stream.
    pub identification: Identification,
    /// The sending station.
    pub from: usize,
    /// The destination stations. Empty, only without paths: any station.
    pub to: Vec<usize>,
    /// Paths from the sender to destinations. A node where paths separate replicates frames. Empty:
    /// frames are forwarded by address.
    pub paths: Vec<Path>,
    /// Where copies are discarded: bridges, or destination stations.
    pub eliminate: Vec<(Place, Recover)>,
    /// The node that numbers the frames: the sending station, or a bridge on all paths. Not used if
    /// `eliminate` is empty.
    pub numbers: Place,
    /// Bridges that filter and police frames of the stream, with their configuration.
    pub filters: Vec<(usize, psfp::Config)>,
}

/// The handling of a stream in a node.
#[derive(Clone, Debug)]
struct Part {
    /// The output ports for each reception port; for [`OWN`], of frames that the node sends.
    routes: BTreeMap<usize, BTreeSet<usize>>,
}

/// The handling of each stream in every node.
#[derive(Clone, Debug, Default)]
pub(super) struct Handlings {
    pub stations: BTreeMap<usize, Vec<Handling>>,
    pub bridges: BTreeMap<usize, Vec<Handling>>,
}

impl Handlings {
    /// The handling of all streams of a network.
    ///
    /// # Errors
    /// An invalid stream, with its number.
    pub(super) fn from_wiring(wiring: &Wiring<'_>) -> Result<Self, String> {
        let mut all = Self::default();
        for (number, stream) in wiring.network.streams.iter().enumerate() {
            let handlings = stream.handlings(wiring, number);
            for (place, handling) in
                handlings.map_err(|reason| format!("stream {number}: {reason}"))?
            {
                match place {
                    Place::Station(station) => all.stations.entry(station),
                    Place::Bridge(bridge) => all.bridges.entry(bridge),
                }
                .or_default()
                .push(handling);
            }
        }
        Ok(all)
    }
}

impl StreamConfig {
    /// Checks a stream against its network.
    ///
    /// # Errors
    /// The fault: a missing cable or bridge, a loop in which copies would circulate for ever, or a
    /// value out of range.
    pub fn check(&self, wiring: &Wiring<'_>) -> Result<(), String> {
        self.handlings(wiring, 0).map(drop)
    }

    /// Bytes that the R-TAG adds to each frame; 0 without elimination.
    pub fn tag_length(&self) -> usize {
        if self.eliminate.is_empty() { 0 } else { rtag::LENGTH }
    }

    fn recover(&self, place: Place) -> Option<Recover> {
        self.eliminate.iter().find(|(at, _)| *at == place).map(|(_, recover)| *recover)
    }

    fn handlings(
        &self,
        wiring: &Wiring<'_>,
        stream: usize,
    ) -> Result<Vec<(Place, Handling)>, String> {
        let mut parts = self.parts(wiring)?;
        self.check_places(wiring, &parts)?;
        // A station uses its first port without a stream, too.
        let from = Place::Station(self.from);
        parts.retain(|place, part| *place != from || part.routes[&OWN] != BTreeSet::from([0]));
        let numbers = (!self.eliminate.is_empty()).then_some(self.numbers);
        let mut places: BTreeSet<Place> = parts.keys().copied().collect();
        places.extend(self.filters.iter().map(|(at, _)| Place::Bridge(*at)));
        places.extend(self.eliminate.iter().map(|(at, _)| *at).chain(numbers));
        let handling = |place: Place| {
            let part = parts.get(&place);
            let here = |(at, _): &&(usize, psfp::Config)| place == Place::Bridge(*at);
            let filter = self.filters.iter().find(here).map(|(_, filter)| filter.clone());
            let recover = self.recover(place);
            let last = part.is_some_and(|part| part.leads_to(wiring, place, &self.to));
            let tells = self.to.iter().any(|at| self.recover(Place::Station(*at)).is_some());
            let routes = part.map_or_else(Vec::new, |part| part.routes(recover.is_some()));
            let handling = Handling {
                stream,
                identification: self.identification,
                routes,
                filter,
                recover,
                numbers: numbers == Some(place),
                untags: recover.is_some() && last && !tells,
            };
            StreamTable::new(std::slice::from_ref(&handling)).map(|_| (place, handling))
        };
        places.into_iter().map(handling).collect()
    }

    /// The reception and output ports of the sender and of each bridge on the paths.
    fn parts(&self, wiring: &Wiring<'_>) -> Result<BTreeMap<Place, Part>, String> {
        let mut parts: BTreeMap<Place, Part> = BTreeMap::new();
        let mut add = |place, received, sent| {
            let part = parts.entry(place).or_insert(Part { routes: BTreeMap::new() });
            part.routes.entry(received).or_default().insert(sent);
        };
        for path in &self.paths {
            let hops = wiring.hops(self.from, path)?;
            let nodes: BTreeSet<Place> = hops.iter().map(|[_, end]| end.node()).collect();
            ensure(nodes.len() == hops.len(), "a path passes a bridge twice".to_owned())?;
            let end = hops.last().map(|[_, end]| end.node());
            let arrives = self.to.iter().any(|to| end == Some(Place::Station(*to)));
            ensure(arrives, "a path does not lead to a destination".to_owned())?;
            if let Some([CableEnd::Station(station, sent), _]) = hops.first() {
                add(Place::Station(*station), OWN, *sent);
            }
            for pair in hops.windows(2) {
                if let ([_, CableEnd::Bridge(at, received)], [CableEnd::Bridge(_, sent), _]) =
                    (pair[0], pair[1])
                {
                    add(Place::Bridge(at), received, sent);
                }
            }
        }
        Ok(parts)
    }

    fn check_places(
        &self,
        wiring: &Wiring<'_>,
        parts: &BTreeMap<Place, Part>,
    ) -> Result<(), String> {
        let network = wiring.network;
        let known = |station: usize| station < network.stations.len();
        ensure(
            known(self.from) && self.to.iter().all(|to| known(*to)),
            "its station does not exist".to_owned(),
        )?;
        let leads = !self.to.is_empty() || self.paths.is_empty();
        ensure(leads, "a stream with paths needs a destination station".to_owned())?;
        for (place, _) in &self.eliminate {
            let on = match place {
                Place::Bridge(_) => parts.contains_key(place),
                Place::Station(at) => self.to.contains(at),
            };
            ensure(on, format!("{place} eliminates duplicates, but is on no path of the stream"))?;
        }
        let numbers = match self.numbers {
            Place::Station(at) => at == self.from,
            Place::Bridge(_) => self.paths.iter().all(|path| {
                let hops = wiring.hops(self.from, path).unwrap_or_default();
                hops.iter().any(|[_, end]| end.node() == self.numbers)
            }),
        };
        let first = format!("{} numbers the frames, but is not on every path", self.numbers);
        ensure(numbers || self.eliminate.is_empty(), first)?;
        let bridges = self.filters.iter().map(|(at, _)| *at);
        let deciding = bridges.chain(self.eliminate.iter().filter_map(|(at, _)| match at {
            Place::Bridge(at) => Some(*at),
            Place::Station(_) => None,
        }));
        for at in deciding {
            let bridge =
                network.bridges.get(at).ok_or_else(|| format!("bridge {at} does not exist"))?;
            ensure(
                bridge.mode == Mode::StoreAndForward,
                format!(
                    "{} is cut-through; filtering and elimination need store-and-forward",
                    Place::Bridge(at)
                ),
            )?;
        }
        self.check_ends(wiring, parts)
    }

    /// Checks that no copy circulates for ever: each loop needs a bridge with vector recovery.
    fn check_ends(&self, wiring: &Wiring<'_>, parts: &BTreeMap<Place, Part>) -> Result<(), String> {
        let ends = |at: Place| {
            let recover = self.recover(at);
            recover.is_some_and(|recover| {
                matches!(recover.recovery.algorithm, Algorithm::Vector { .. })
            })
        };
        let next = |(at, received): (Place, usize)| {
            let routes = parts[&at].routes(self.recover(at).is_some());
            let sent = routes.into_iter().find(|(port, _)| *port == received);
            let to = sent.map_or_else(Vec::new, |(_, sent)| sent).into_iter();
            to.filter_map(|port| match wiring.across(at.port(port))?.1 {
                CableEnd::Bridge(to, port) => Some((Place::Bridge(to), port)),
                CableEnd::Station(..) => None,
            })
            .filter(|(to, _)| parts.contains_key(to))
            .collect::<Vec<_>>()
        };
        let mut open: BTreeSet<(Place, usize)> = BTreeSet::new();
        for (at, part) in parts {
            open.extend(part.routes.keys().map(|port| (*at, *port)));
        }
        // Removes bridges that end copies, then repeatedly those that lead only to removed ones.
        open.retain(|(at, _)| !ends(*at));
        loop {
            let leads: Vec<_> =
                open.iter().filter(|at| next(**at).iter().any(|to| open.contains(to))).collect();
            if leads.len() == open.len() {
                break;
            }
            open = leads.into_iter().copied().collect();
        }
        let reason = "its paths together are a circle in which no bridge eliminates by vector";
        ensure(open.is_empty(), reason.to_owned())
    }
}

impl Part {
    /// The routes of a bridge. A bridge that eliminates copies sends the first copy to every output
    /// port of the stream.
    fn routes(&self, eliminates: bool) -> Vec<(usize, Vec<usize>)> {
        let all: BTreeSet<usize> = self.routes.values().flatten().copied().collect();
        let route = |(received, sent): (&usize, &BTreeSet<usize>)| {
            let sent = if eliminates { &all } else { sent };
            (*received, sent.iter().copied().filter(|port| port != received).collect())
        };
        self.routes.iter().map(route).collect()
    }

    /// Whether the cables at all output ports lead to these stations.
    fn leads_to(&self, wiring: &Wiring<'_>, from: Place, to: &[usize]) -> bool {
        let mut sent = self.routes.values().flatten();
        sent.all(|port| {
            let other = wiring.across(from.port(*port)).map(|(_, other)| other.node());
            matches!(other, Some(Place::Station(station)) if to.contains(&station))
        })
    }
}
