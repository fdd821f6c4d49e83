//! `[streams.NAME]`: frames that nodes identify, with paths of their own, elimination and policing.

use super::filters::{Filters, Policing};
use super::paths::{PathNames, Paths};
use super::traffic::Stream;
use keys::{KeyError, Names, Origin, Section, all, unknown};
use sim::ethernet::streams::{Identification, Recover};
use sim::ethernet::traffic::StreamId;
use sim::network::{Path, Place, StreamConfig, Wiring, ip};
use tsn::frer::{Algorithm, Config as Recovery, LatentTest};

/// Names to which a stream refers.
pub struct Named<'a> {
    /// Names of the stations, then of the bridges.
    pub names: &'a Names,
    pub wiring: &'a Wiring<'a>,
    pub paths: &'a Paths<'a>,
    /// Streams of `[traffic]`.
    pub traffic: &'a [Stream],
    pub filters: &'a Filters,
    /// Tables of the bridges.
    pub bridges: &'a [(String, Section<'a>)],
}

/// Reads `[streams]`, each with its name. A stream in both directions becomes two.
///
/// # Errors
/// Each invalid stream, at its key.
pub fn read(root: &Section, named: &Named<'_>) -> Result<Vec<(String, StreamConfig)>, KeyError> {
    let read = |(name, section): (String, Section<'_>)| {
        let stream = named.stream(&section)?;
        if section.text("both") != Some("on") {
            return Ok(vec![(name, stream)]);
        }
        let ([to], None) = (&stream.to[..], section.text("traffic")) else {
            return section.fail("both", "'both' requires 'to'");
        };
        if section.find("numbers").is_some() {
            return section.fail(
                "numbers",
                "'numbers' does not apply to both: the senders number the frames",
            );
        }
        let reversed = stream.paths.iter().map(|path| path.iter().copied().rev().collect());
        let paths = reversed.collect();
        let ends = Ends { from: *to, to: vec![stream.from], stream: None };
        let back = named.directed(&section, &ends, paths)?;
        let back = (format!("{name} back"), back);
        Ok(vec![(name, stream), back])
    };
    Ok(all(root.named("streams").into_iter().map(read))?.into_iter().flatten().collect())
}

impl Named<'_> {
    fn stations(&self) -> usize {
        self.wiring.network.stations.len()
    }

    fn bridge(&self, origin: &Origin, name: &str) -> Result<usize, KeyError> {
        let found = self.names.find(self.stations()..self.names.len(), "bridge", name);
        found.map(|at| at - self.stations()).map_err(|message| origin.fail(message))
    }

    fn place(&self, name: &str) -> Result<Place, String> {
        let stations = self.stations();
        let at = self.names.find(0..self.names.len(), "host, node or bridge", name)?;
        Ok(at.checked_sub(stations).map_or(Place::Station(at), Place::Bridge))
    }

    fn stream(&self, section: &Section) -> Result<StreamConfig, KeyError> {
        let ends = self.ends(section)?;
        let read = |(names, origin): (PathNames, Origin)| {
            let to = |to: &usize| self.paths.all(&origin, &names, (ends.from, *to));
            match (&names, &ends.to[..]) {
                (PathNames::Given(_), [_, _, ..]) => {
                    Err(origin.fail("paths: \"shortest\" or \"disjoint\" with several listeners"))
                }
                (_, all) => Ok(all.iter().map(to).collect::<Result<Vec<_>, _>>()?.concat()),
            }
        };
        let paths = section.list::<PathNames>("paths").into_iter().map(read);
        let paths = paths.collect::<Result<Vec<_>, _>>()?.concat();
        self.directed(section, &ends, paths)
    }

    fn ends(&self, section: &Section) -> Result<Ends, KeyError> {
        if let Some(name) = section.text("traffic") {
            if let Some(key) = ["from", "to"].into_iter().find(|key| section.find(key).is_some()) {
                return section.fail(key, format!("'{key}' and 'traffic' exclude each other"));
            }
            let found = self.traffic.iter().find(|stream| stream.name == name);
            let Some(Stream { id, .. }) = found else {
                let names: Vec<&str> = self.traffic.iter().map(|own| own.name.as_str()).collect();
                return section.fail("traffic", unknown("stream of [traffic]", name, &names));
            };
            let from = usize::from(id.station);
            let to = self
                .wiring
                .network
                .stream(*id)
                .listeners
                .iter()
                .map(|listener| listener.station)
                .collect();
            return Ok(Ends { from, to, stream: Some(*id) });
        }
        let station = |key: &str, name: &str| {
            let found = self.names.find(0..self.stations(), "host or node", name);
            found.or_else(|message| section.fail(key, message))
        };
        let from = station("from", section.required("from", ": a host or node")?)?;
        let to = section.text("to").map(|name| station("to", name)).transpose()?;
        if to == Some(from) {
            return section.fail("to", "'to' names the sender: expected another station");
        }
        Ok(Ends { from, to: to.into_iter().collect(), stream: None })
    }

    fn directed(
        &self,
        section: &Section,
        ends: &Ends,
        paths: Vec<Path>,
    ) -> Result<StreamConfig, KeyError> {
        let (from, to) = (ends.from, ends.to.clone());
        let nodes = self.nodes(section, from, &paths)?;
        let recover = recover(section, paths.len())?;
        let both = section.text("both") == Some("on");
        let mut eliminate = Vec::new();
        for (name, origin) in section.list::<String>("eliminate") {
            let place = self.place(&name).map_err(|message| origin.fail(message))?;
            let sends = place == Place::Station(from);
            let alone = matches!(place, Place::Bridge(at) if !meet(&nodes, at));
            if !(both && (sends || alone)) {
                eliminate.push((place, recover));
            }
        }
        let numbers = match section.text("numbers") {
            Some(name) => self.place(name).or_else(|message| section.fail("numbers", message))?,
            None => Place::Station(from),
        };
        if section.find("numbers").is_some() && eliminate.is_empty() {
            return section.fail("numbers", "'numbers' requires 'eliminate'");
        }
        let mut filters = Vec::new();
        for (Policing { bridge, filter }, origin) in section.list("police") {
            let at = self.bridge(&origin, &bridge)?;
            if filters.iter().any(|(other, _)| *other == at) {
                let message = format!("police: '{bridge}' has a filter for this stream already");
                return Err(origin.fail(message));
            }
            let here = |path: &Vec<Place>| path.contains(&Place::Bridge(at));
            if !nodes.is_empty() && !nodes.iter().any(here) {
                let message = format!("police: '{bridge}' is on none of the paths");
                return Err(origin.fail(message));
            }
            let found = self.filters.at(&filter, &self.bridges[at].1);
            filters.push((at, found.map_err(|message| origin.fail(message))?));
        }
        let identification = self.identification(section, ends)?;
        let stream = StreamConfig { identification, from, to, paths, eliminate, numbers, filters };
        self.check(section, &stream)?;
        Ok(stream)
    }

    /// Returns the nodes of each path.
    fn nodes(
        &self,
        section: &Section,
        from: usize,
        paths: &[Path],
    ) -> Result<Vec<Vec<Place>>, KeyError> {
        let nodes = |path: &Path| {
            let hops = self.wiring.hops(from, path).or_else(|message| {
                section.fail("paths", format!("paths: {}", self.words(&message)))
            })?;
            let ends = hops.iter().map(|[_, end]| end.node());
            Ok(std::iter::once(Place::Station(from)).chain(ends).collect())
        };
        paths.iter().map(nodes).collect()
    }

    fn check(&self, section: &Section, stream: &StreamConfig) -> Result<(), KeyError> {
        stream.check(self.wiring).map_err(|message| {
            section.origin.fail(format!("[{}]: {}", section.name, self.words(&message)))
        })
    }

    fn words(&self, text: &str) -> String {
        super::with_nodes(self.names, self.stations(), text)
    }

    fn identification(&self, section: &Section, ends: &Ends) -> Result<Identification, KeyError> {
        let from = ends.from;
        let network = self.wiring.network;
        let tag = |priority| match ends.stream {
            Some(id) => network.stream_tag(id),
            None => network.tag(from, priority),
        };
        let vlan = tag(0).map(|tag| tag.vid);
        let by = section.text("identification").unwrap_or("null");
        if by != "priority" && section.find("priority").is_some() {
            let message = "'priority' applies only to identification = \"priority\"";
            return section.fail("priority", message);
        }
        if by == "source" {
            return Ok(Identification::Source { source: network.mac(from), vlan });
        }
        let Some(&to) = ends.to.first() else {
            let message =
                format!("[{}] needs to, unless identification is \"source\"", section.name);
            return Err(section.origin.fail(message));
        };
        let destination = ends.stream.map_or_else(|| network.mac(to), |id| network.destination(id));
        match by {
            "priority" => {
                let Some(priority) = section.get::<u8>("priority") else {
                    let message =
                        format!("[{}] needs priority, 0 to 7, to identify by", section.name);
                    return Err(section.origin.fail(message));
                };
                let Some(tag) = tag(priority) else {
                    let message = format!(
                        "priority: the frames of '{}' have no tag; vlan adds one",
                        self.names[from]
                    );
                    return section.fail("priority", message);
                };
                Ok(Identification::Priority { destination, source: network.mac(from), tag })
            }
            "ip" => Ok(Identification::Ip { destination, vlan, ip: [ip(from), ip(to)] }),
            _ => Ok(Identification::Null { destination, vlan }),
        }
    }
}

/// The sender and the listeners of a stream.
struct Ends {
    from: usize,
    /// Empty: any station.
    to: Vec<usize>,
    /// The stream of `[traffic]`, if its frames are identified.
    stream: Option<StreamId>,
}

/// Returns whether paths arrive at a bridge from different nodes, so that copies meet there.
fn meet(paths: &[Vec<Place>], bridge: usize) -> bool {
    let before = paths.iter().filter_map(|path| {
        let at = path.iter().position(|node| *node == Place::Bridge(bridge))?;
        path.get(at.wrapping_sub(1))
    });
    let before: Vec<&Place> = before.collect();
    before.windows(2).any(|pair| pair[0] != pair[1])
}

/// Builds the recovery function of every place that eliminates.
fn recover(section: &Section, paths: usize) -> Result<Recover, KeyError> {
    let eliminates = !section.list::<String>("eliminate").is_empty();
    for key in ["algorithm", "history", "reset", "take_no_sequence", "latent_difference"] {
        if section.find(key).is_some() && !eliminates {
            return section.fail(key, format!("'{key}' requires 'eliminate'"));
        }
    }
    let algorithm = match section.text("algorithm") {
        Some("match") if section.find("history").is_some() => {
            return section.fail("history", "'history' does not apply to algorithm match");
        }
        Some("match") => Algorithm::Match,
        _ => Algorithm::Vector { history: section.get("history").unwrap_or(Recovery::SHORTEST) },
    };
    let recovery = Recovery {
        algorithm,
        reset: section.get("reset").unwrap_or(Recovery::RESET),
        take_no_sequence: section.text("take_no_sequence") == Some("on"),
        individual: false,
    };
    let Some(difference) = section.get("latent_difference") else {
        let keys = ["latent_paths", "latent_period", "latent_reset"];
        return match keys.iter().find(|key| section.find(key).is_some()) {
            Some(key) => section.fail(key, format!("'{key}' requires 'latent_difference'")),
            None => Ok(Recover { recovery, latent: None }),
        };
    };
    let latent = LatentTest {
        paths: section.get("latent_paths").unwrap_or(paths as u32),
        difference,
        period: section.get("latent_period").unwrap_or(LatentTest::PERIOD),
        reset_period: section.get("latent_reset").unwrap_or(LatentTest::RESET_PERIOD),
    };
    Ok(Recover { recovery, latent: Some(latent) })
}
