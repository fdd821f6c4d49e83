//! `[traffic.NAME]`: streams of frames.

use super::intervals;
use super::network::Layout;
use super::paths::{PathNames, Paths};
use super::recorded::{self, Known};
use super::units::{Form as _, MacText};
use keys::{KeyError, Origin, Section, all, both};
use sim::ethernet::Mac;
use sim::ethernet::frame::TAG;
use sim::ethernet::traffic::StreamId;
use sim::network::{Listener, MAX_STREAMS, TrafficConfig};
use stats::random::Probability;
use std::collections::BTreeSet;
use wire::{Duration, Instant};

/// A stream with its name and requirements.
#[derive(Clone, Debug)]
pub struct Stream {
    pub name: String,
    pub id: StreamId,
    /// Permitted share of lost frames, for each listener.
    pub loss: Option<Probability>,
    /// Seed that does not depend on the plan's.
    pub seed: Option<u64>,
}

/// The deadline of one listener: `"display 2ms"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerDeadline {
    /// The station.
    pub listener: String,
    /// The deadline.
    pub deadline: Duration,
}

/// Returns the name of a stream at a listener: that of the stream, followed by the station if the
/// stream has several listeners.
pub fn listener_name(stream: &str, listeners: usize, station: &str) -> String {
    if listeners == 1 { stream.to_owned() } else { format!("{stream} at {station}") }
}

impl Layout {
    /// Reads all streams.
    pub(super) fn traffic(&mut self, root: &Section, known: &Known) -> Result<(), KeyError> {
        let traffic = root.named("traffic");
        let read = {
            let wiring = &self.config.wiring();
            let paths = Paths::new(root, &self.names, wiring);
            let one = |(name, section): &(String, Section<'_>)| {
                Ok((name.clone(), self.stream(section, (&paths, known))?))
            };
            all(traffic.iter().map(one))?
        };
        let sections = traffic.iter().map(|(_, section)| section);
        all(read.into_iter().zip(sections).map(|((name, (from, config)), section)| {
            let streams = &mut self.config.stations[from].traffic;
            if streams.len() == MAX_STREAMS {
                let message = format!("a station sends {MAX_STREAMS} streams at most");
                return section.fail("from", message);
            }
            let id = StreamId::new(from, streams.len());
            streams.push(config);
            let (seed, loss) = (section.get("seed"), section.parsed("loss", Probability::parse));
            self.streams.push(Stream { name, id, loss, seed });
            Ok(())
        }))
        .map(drop)
    }

    /// Reads a stream. Returns the sending station and the stream.
    fn stream(
        &self,
        section: &Section,
        (paths, known): (&Paths<'_>, &Known),
    ) -> Result<(usize, TrafficConfig), KeyError> {
        let from =
            self.station(section.required("from", ": a host or node")?, &section.place("from"));
        let (from, listeners) = both(from, self.listeners(section))?;
        let names_sender = "'to' names the sender: expected another station";
        let others: Vec<usize> = match listeners {
            Some(named) => {
                if let Some((_, origin)) = named.iter().find(|(station, _)| *station == from) {
                    return Err(origin.fail(names_sender));
                }
                named.into_iter().map(|(station, _)| station).collect()
            }
            None => (0..self.config.stations.len()).filter(|station| *station != from).collect(),
        };
        let broadcast = section.text("to") == Some(ALL) && others.len() > 1;
        let address = section.get("address").map(|MacText(address)| address);
        if address.is_some_and(|address| !address.is_group()) {
            return section
                .fail("address", "address: expected a group address: its first byte odd");
        }
        let (vlan, pcp) = (section.get("vlan"), section.get("pcp"));
        let tagged =
            self.config.stations[from].tagging.is_some() || vlan.is_some() || pcp.is_some();
        let (length, pattern, burst) = match recorded::read(section, known)? {
            Some((pattern, longest)) => (longest, pattern, 1),
            None => intervals::generated(section, if tagged { TAG } else { 0 })?,
        };
        let (jitter, on_off) =
            both(intervals::jitter(section, &pattern), intervals::on_off(section))?;
        let (start, stop) = intervals::span(section)?;
        let priority = section.get("priority").unwrap_or(0);
        let babbles = section.parsed_list("babbles", <(Instant, Instant)>::parse);
        if let Some(pair) = babbles.windows(2).find(|pair| pair[0].0.1 > pair[1].0.0) {
            return Err(pair[1].1.fail("babbles: expected each span after the one before"));
        }
        // A seed that the plan does not give is set later together with all other seeds.
        let config = TrafficConfig {
            listeners: self.with_paths(section, from, &others, paths)?,
            group: address.or(broadcast.then_some(Mac::BROADCAST)),
            vlan,
            pcp,
            burst,
            jitter,
            on_off,
            start,
            stop,
            own_clock: section.text("clock") != Some("true"),
            babbles: babbles.into_iter().map(|(span, _)| span).collect(),
            ..TrafficConfig::new(others[0], length, priority, pattern)
        };
        let tree = paths.wiring.tree_of(from, &config);
        let tree = tree.map_err(|reason| self.words(&reason));
        tree.or_else(|reason| section.fail("paths", format!("[{}]: {reason}", section.name)))?;
        Ok((from, config))
    }

    /// Reads the listeners; `None` for all stations.
    fn listeners(&self, section: &Section) -> Result<Option<Vec<(usize, Origin)>>, KeyError> {
        let names = section.names("to");
        if names.is_empty() {
            let message = format!("[{}] needs to: a host or node, or several", section.name);
            return Err(section.place("to").fail(message));
        }
        if section.text("to") == Some(ALL) && !self.names.contains(&ALL.to_owned()) {
            return Ok(None);
        }
        let mut seen = BTreeSet::new();
        let listener = |(name, origin): (String, Origin)| {
            let station = self.station(&name, &origin)?;
            match seen.insert(station) {
                true => Ok((station, origin)),
                false => Err(origin.fail(format!("to: '{name}' is a listener already"))),
            }
        };
        all(names.into_iter().map(listener)).map(Some)
    }

    /// Adds paths and deadlines to listeners.
    fn with_paths(
        &self,
        section: &Section,
        from: usize,
        to: &[usize],
        paths: &Paths<'_>,
    ) -> Result<Vec<Listener>, KeyError> {
        let given = section.list::<PathNames>("paths");
        let path = |at: usize| match &given[..] {
            [] => Ok(None),
            [(names @ PathNames::Shortest, origin)] => {
                paths.one(origin, names, (from, to[at])).map(Some)
            }
            all if all.len() == to.len() => {
                let (names, origin) = &all[at];
                paths.one(origin, names, (from, to[at])).map(Some)
            }
            all => {
                let (found, listeners) = (all.len(), to.len());
                let message = format!(
                    "paths: \"shortest\", or one path for each of {listeners} listeners; found {found}"
                );
                section.fail("paths", message)
            }
        };
        let common = section.get("deadline");
        let listener = |(at, station): (usize, &usize)| {
            Ok(Listener { station: *station, path: path(at)?, deadline: common })
        };
        let mut listeners = all(to.iter().enumerate().map(listener))?;
        for (ListenerDeadline { listener, deadline }, origin) in section.list("deadlines") {
            let station = self.station(&listener, &origin)?;
            let Some(own) = listeners.iter_mut().find(|own| own.station == station) else {
                return Err(origin.fail(format!("deadlines: '{listener}' is not in 'to'")));
            };
            own.deadline = Some(deadline);
        }
        Ok(listeners)
    }

    /// Returns the station with this name.
    pub(super) fn station(&self, name: &str, origin: &Origin) -> Result<usize, KeyError> {
        let found = self.names.find(0..self.config.stations.len(), "host or node", name);
        found.map_err(|message| origin.fail(message))
    }

    pub(super) fn words(&self, text: &str) -> String {
        super::with_nodes(&self.names, self.config.stations.len(), text)
    }
}

/// All stations but the sender.
const ALL: &str = "all";
