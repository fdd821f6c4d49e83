//! Stations, bridges, cables, background traffic and outages.

use super::clocks;
use super::error_text::unknown;
use super::filters::Filters;
use super::owners::{Owners, copies};
use super::port::{self, Parts};
use super::section::{Defaults, Section, set_fields};
use super::shapers;
use super::streams::{self, Named};
use super::value::{Kind, Origin, PlanError};
use super::workload::any;
use sim::Config;
use sim::ethernet::cable::Faults;
use sim::ethernet::nic::Tagging;
use sim::ethernet::port::RateStep;
use sim::ethernet::traffic::{Pattern, StreamId};
use sim::ethernet::{Rate, bridge};
use sim::network::{
    BridgeConfig, BridgeOutage, CableConfig, CableEnd, MAX_STREAMS, NetworkConfig, StationConfig,
    TrafficConfig,
};
use sim::world::Outage;
use stats::random::Probability;
use wire::{Duration, Instant};

/// The network, with the names of its parts.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    pub config: NetworkConfig,
    /// Of the stations, and then of the bridges.
    pub names: Vec<String>,
    /// By name: where it got its schedule.
    pub places: Vec<Origin>,
    /// The same by bridge and port.
    pub port_places: Vec<Vec<Origin>>,
    /// By station: the node of the plan that it is, or a copy of; none of hosts.
    nodes: Vec<Option<String>>,
    /// When nodes are without power.
    pub outages: Vec<Outage>,
    /// In the order of the plan.
    pub streams: Vec<Stream>,
    /// Names of the streams that nodes identify.
    pub identified: Vec<String>,
}

/// A stream with its name and requirements.
#[derive(Clone, Debug)]
pub struct Stream {
    pub name: String,
    pub id: StreamId,
    pub deadline: Option<Duration>,
    /// The share of its frames that may be lost.
    pub loss: Option<Probability>,
}

/// A cable between two names, before its ports are assigned.
struct NamedCable {
    ends: [usize; 2],
    rate: Rate,
    config: CableConfig,
    origin: Origin,
}

impl Layout {
    /// Reads everything between hosts and drives; nothing if all of them are
    /// attached directly.
    pub fn read<'a>(
        root: &Section<'a>,
        defaults: &Defaults<'a>,
        owners: &Owners<'a>,
    ) -> Result<Self, PlanError> {
        let mut layout = Self::default();
        if !owners.hosts.is_empty() && owners.hosts.iter().all(|host| host.is_direct()) {
            let tables = [
                "nodes",
                "cables",
                "bridges",
                "schedules",
                "traffic",
                "streams",
                "filters",
                "clocks",
            ];
            if let Some(entry) = tables.iter().find_map(|table| root.find(table)) {
                let what = format!("[{}] means nothing with transport direct", entry.key);
                return Err(entry.origin.fail(what));
            }
            // It may stay where only the transport changes, but not be wrong.
            named_cable(&defaults.link, [0; 2])?;
            station(&defaults.link, false, Rate::G1, &Parts::default())?;
            return Ok(layout);
        }
        let parts = Parts::read(root)?;
        let sections = layout.name_stations(root, defaults, owners)?;
        let bridges = root.named("bridges");
        for (name, section) in &bridges {
            if layout.names.contains(name) {
                let what = format!("'{name}' is a station and cannot be a bridge too");
                return Err(section.origin.fail(what));
            }
            layout.names.push(name.clone());
        }
        let named_cable = layout.cables(root, defaults, bridges.len())?;
        for (number, (section, tsn)) in sections.iter().enumerate() {
            let mut here = named_cable.iter().filter(|cable| cable.ends.contains(&number));
            let Some(cable) = here.next() else {
                let what = format!("no cable leads to '{}'", layout.names[number]);
                return Err(section.origin.fail(what));
            };
            if let Some(more) = here.next() {
                let what = format!("'{}' has a cable already", layout.names[number]);
                return Err(more.origin.fail(what));
            }
            section.check_used(&owners.transports(), |_| true)?;
            let station = station(section, *tsn, cable.rate, &parts)?;
            let spans = section.list::<(Instant, Option<Instant>)>("outages").into_iter();
            let outage = |((from, until), _)| Outage { station: number, from, until };
            layout.outages.extend(spans.map(outage));
            layout.places.push(section.place("schedule"));
            layout.config.stations.push(station);
        }
        for (_, section) in &bridges {
            layout.places.push(section.place("schedule"));
            let at = layout.config.bridges.len();
            let spans = section.list::<(Instant, Option<Instant>)>("outages").into_iter();
            let outage = |((from, until), _)| BridgeOutage { bridge: at, from, until };
            layout.config.bridge_outages.extend(spans.map(outage));
            layout.config.bridges.push(bridge(section));
        }
        layout.connect(named_cable, &sections, &bridges, &parts)?;
        let stations: Vec<_> = sections.iter().map(|(section, _)| section).collect();
        let switching: Vec<_> = bridges.iter().map(|(_, section)| section).collect();
        layout.config.time = clocks::read(root, &stations, &switching)?;
        layout.traffic(root)?;
        layout.identify(root, &bridges)?;
        Ok(layout)
    }

    /// The stations with their tables, and whether they are TSN cores.
    fn name_stations<'a>(
        &mut self,
        root: &Section<'a>,
        defaults: &Defaults<'a>,
        owners: &Owners<'a>,
    ) -> Result<Vec<(Section<'a>, bool)>, PlanError> {
        let mut sections = Vec::new();
        for host in owners.hosts.iter().filter(|host| !host.is_direct()) {
            self.names.push(host.name.clone());
            self.nodes.push(None);
            let own = host.section.table("link").with_defaults(&defaults.link);
            sections.push((own, host.transport == "tsn"));
        }
        let alone = owners.hosts.is_empty();
        // Streams alone are between stations of TSN, whose frames have tags.
        let tsn = alone || sections.iter().any(|(_, tsn)| *tsn);
        let nodes = root.named_or("nodes", "device", &defaults.link);
        if alone && root.named("nodes").is_empty() {
            let what = "a plan without hosts needs [nodes.NAME]: stations that send and receive";
            return root.fail("runtime", what);
        }
        for (name, section) in nodes {
            for station in copies(&name, section.get("count").unwrap_or(1)) {
                if self.names.contains(&station) {
                    let what = format!("'{station}' is a host and cannot be a node too");
                    return Err(section.origin.fail(what));
                }
                self.nodes.push(Some(name.clone()));
                self.names.push(station);
                sections.push((section.clone(), tsn));
            }
        }
        Ok(sections)
    }

    fn cables(
        &self,
        root: &Section,
        defaults: &Defaults,
        bridges: usize,
    ) -> Result<Vec<NamedCable>, PlanError> {
        let named = root.named("cables").into_iter();
        let stations = self.names.len() - bridges;
        match (named.len(), stations, bridges) {
            (0, 2, 0) => Ok(vec![named_cable(&defaults.link, [0, 1])?]),
            // A star.
            (0, _, 1) => {
                (0..stations).map(|at| named_cable(&defaults.link, [at, stations])).collect()
            }
            (0, ..) => {
                let what = format!(
                    "{stations} stations ({}) and no cables: [cables.NAME] with a and b joins two \
                     of them",
                    self.names[..stations].join(", ")
                );
                Err(root.origin.fail(what))
            }
            _ => named
                .map(|(_, section)| {
                    let ends = [self.end(&section, "a")?, self.end(&section, "b")?];
                    named_cable(&section.with_defaults(&defaults.link), ends)
                })
                .collect(),
        }
    }

    fn end(&self, section: &Section, key: &str) -> Result<usize, PlanError> {
        let Some(name) = section.text(key) else {
            return Err(section.origin.fail(format!("[{}] needs a and b", section.name)));
        };
        one_of(section, key, "host, node or bridge", name, &self.names)
    }

    /// Gives every end of a cable at a bridge a port of its own.
    fn connect(
        &mut self,
        named_cable: Vec<NamedCable>,
        sections: &[(Section, bool)],
        bridges: &[(String, Section)],
        parts: &Parts,
    ) -> Result<(), PlanError> {
        let mut group: Vec<usize> = (0..self.names.len()).collect();
        let NetworkConfig { stations, bridges: made, cables, .. } = &mut self.config;
        let mut neighbours: Vec<Vec<&str>> = vec![Vec::new(); bridges.len()];
        self.port_places = vec![Vec::new(); bridges.len()];
        for cable in named_cable {
            let [a, b] = cable.ends.map(|end| group[end]);
            if cable.ends[0] == cable.ends[1] {
                return Err(cable.origin.fail("this cable leads from a bridge to itself"));
            }
            group.iter_mut().filter(|of| **of == b).for_each(|of| *of = a);
            let mut place = |end: usize, other: usize| {
                let Some(at) = end.checked_sub(stations.len()) else {
                    return Ok(CableEnd::Station(end));
                };
                let section = port::table(&bridges[at].1, &self.names[other]);
                made[at].ports.push(port::config(&section, cable.rate, parts)?);
                neighbours[at].push(&self.names[other]);
                self.port_places[at].push(section.place("schedule"));
                Ok(CableEnd::Bridge(at, made[at].ports.len() - 1))
            };
            let [a, b] = cable.ends;
            let ends = [place(a, b)?, place(b, a)?];
            let section = |end: usize, other: usize| match end.checked_sub(stations.len()) {
                Some(at) => port::table(&bridges[at].1, &self.names[other]),
                None => sections[end].0.clone(),
            };
            let ports = [(a, b), (b, a)].map(|(end, other)| section(end, other));
            check_verified(&ports, [&self.names[a], &self.names[b]])?;
            cables.push(CableConfig { a: ends[0], b: ends[1], ..cable.config });
        }
        for ((_, bridge), neighbours) in bridges.iter().zip(&neighbours) {
            port::check(bridge, neighbours)?;
        }
        if let Some(apart) = group.iter().position(|of| *of != group[0]) {
            let what = format!("no way leads from '{}' to '{}'", self.names[0], self.names[apart]);
            return Err(self.places[0].fail(what));
        }
        Ok(())
    }

    /// Reads `[filters]` and `[streams]`.
    fn identify(&mut self, root: &Section, bridges: &[(String, Section)]) -> Result<(), PlanError> {
        let filters = Filters::read(root)?;
        let (names, network) = (&self.names, &self.config);
        let named = Named { names, network, filters: &filters, bridges };
        let (names, streams) = streams::read(root, &named)?.into_iter().unzip();
        (self.identified, self.config.streams) = (names, streams);
        Ok(())
    }

    fn traffic(&mut self, root: &Section) -> Result<(), PlanError> {
        for (name, section) in root.named("traffic") {
            let (from, to) = (self.station(&section, "from")?, self.station(&section, "to")?);
            if from == to {
                return section.fail("to", "traffic goes from one station to another");
            }
            section.required("interval", ", such as \"100us\"")?;
            let interval = section.get("interval").unwrap_or_default();
            let pattern = match section.text("pattern") {
                Some("poisson") => Pattern::Poisson(interval),
                _ => Pattern::Periodic(interval),
            };
            let time = |key| section.get(key).map(|time: Duration| Instant::ZERO + time);
            let start = time("start").unwrap_or_default();
            if time("stop").is_some_and(|stop| stop <= start) {
                return section.fail("stop", "stop: a time later than start");
            }
            let length = section.get("length").unwrap_or(1518);
            let priority = section.get("priority").unwrap_or(0);
            let deadline = section.get("deadline");
            let traffic = &mut self.config.stations[from].traffic;
            let (station, number) = (from as u16, traffic.len() as u8);
            if traffic.len() == MAX_STREAMS {
                let what = format!("a station sends {MAX_STREAMS} streams at most");
                return section.fail("from", what);
            }
            // Its seed is set with all others.
            traffic.push(TrafficConfig {
                burst: section.get("burst").unwrap_or(1),
                start,
                stop: time("stop"),
                own_clock: section.text("clock") != Some("true"),
                deadline,
                ..TrafficConfig::new(to, length, priority, pattern)
            });
            let id = StreamId { station, number };
            shapers::commit_everywhere(&section, id, &mut self.config)?;
            self.streams.push(Stream { name, id, deadline, loss: section.get("loss") });
        }
        Ok(())
    }

    fn station(&self, section: &Section, key: &str) -> Result<usize, PlanError> {
        let names = &self.names[..self.nodes.len()];
        let name = section.required(key, &format!(": {}", names.join(", ")))?;
        one_of(section, key, "host or node", name, names)
    }

    /// The station of the drive that is `number` among those behind tunnels:
    /// drives of a node that has copies are dealt out to them in turn.
    pub fn node_of(&self, section: &Section, number: usize) -> Result<usize, PlanError> {
        let mut nodes: Vec<String> = self.nodes.iter().flatten().cloned().collect();
        nodes.dedup();
        let at = match (section.text("node"), nodes.len()) {
            (None, 1) => 0,
            (None, _) => {
                let what = format!("this drive needs node, one of: {}", nodes.join(", "));
                return Err(section.origin.fail(what));
            }
            (Some(name), _) => one_of(section, "node", "node", name, &nodes)?,
        };
        let same = |(_, node): &(usize, &Option<String>)| node.as_ref() == Some(&nodes[at]);
        let copies: Vec<usize> =
            self.nodes.iter().enumerate().filter(same).map(|(station, _)| station).collect();
        Ok(copies[number % copies.len()])
    }
}

/// Checks the ports at both ends of a cable: without verification each of them may send fragments
/// at once, and its partner has to take them.
fn check_verified(ports: &[Section; 2], names: [&str; 2]) -> Result<(), PlanError> {
    let preempts = |port: &Section| !port.list::<u8>("express").is_empty();
    for (port, partner, name) in
        [(&ports[0], &ports[1], names[1]), (&ports[1], &ports[0], names[0])]
    {
        if preempts(port) && port.text("verify") == Some("off") && !preempts(partner) {
            let what = format!(
                "verify: \"on\", or express at the partner '{name}', which else takes no fragments"
            );
            return port.fail("verify", what);
        }
    }
    Ok(())
}

/// Where `name`, the value of a key, is among `names`.
///
/// # Errors
/// If it is none of them.
fn one_of(
    section: &Section,
    key: &str,
    what: &str,
    name: &str,
    names: &[String],
) -> Result<usize, PlanError> {
    let found = names.iter().position(|known| known == name);
    let known = || names.iter().map(String::as_str).collect::<Vec<_>>();
    found.map_or_else(|| section.fail(key, unknown(what, name, &known())), Ok)
}

fn named_cable(section: &Section, ends: [usize; 2]) -> Result<NamedCable, PlanError> {
    let cuts = section.list("cuts").into_iter().map(|(span, _)| span).collect();
    let mut faults = Faults { cuts, ..Faults::default() };
    // Seeds are set with all others.
    set_fields!(faults, section, loss corruption delay delay_up_to);
    let steps = section.list::<RateStep>("rate_steps");
    if let Some(pair) = steps.windows(2).find(|pair| pair[0].0.at >= pair[1].0.at) {
        return Err(pair[1].1.fail("rate_steps: each later than the one before"));
    }
    let [a, b] = ends.map(CableEnd::Station);
    let propagation = section.get("propagation").unwrap_or(Duration::from_ns(10));
    let mut config = CableConfig::new(a, b, propagation);
    config.faults = [faults.clone(), faults];
    config.rate_steps = steps.into_iter().map(|(step, _)| step).collect();
    let rate = section.get("rate").unwrap_or(Rate::G1);
    Ok(NamedCable { ends, rate, config, origin: section.origin.clone() })
}

/// Defaults are those of a node of the NVMe/TSN paper.
fn station(
    section: &Section,
    tsn: bool,
    rate: Rate,
    parts: &Parts,
) -> Result<StationConfig, PlanError> {
    let preset = if tsn { Config::nvme_tsn_tsn } else { Config::nvme_tsn_tcp };
    let mut station = preset(any(), rate).network.stations.swap_remove(0);
    set_fields!(station, section, tx_delay rx_delay tx_ring);
    match section.find("vlan").map(|entry| &entry.value.kind) {
        None => {}
        Some(Kind::Text(_)) => station.tagging = None,
        Some(_) => station.tagging = section.get("vlan").map(Tagging::vlan),
    }
    station.port = port::config(section, rate, parts)?;
    station.ack_delay = section.get("ack_delay").filter(|delay| *delay > Duration::ZERO);
    Ok(station)
}

/// A bridge without ports yet.
fn bridge(section: &Section) -> BridgeConfig {
    BridgeConfig {
        ports: Vec::new(),
        mode: match section.text("mode") {
            Some("cut-through") => bridge::Mode::CutThrough,
            _ => bridge::Mode::StoreAndForward,
        },
        delay: section.get("delay").unwrap_or(Duration::from_us(2)),
        jitter: section.get("jitter").unwrap_or(Duration::ZERO),
    }
}
