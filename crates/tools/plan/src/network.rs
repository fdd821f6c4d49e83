//! Stations, bridges, cables, background traffic and outages.

use super::cable::{NamedCable, named_cable};
use super::clocks;
use super::filters::Filters;
use super::owners::{Owners, copies};
use super::paths::Paths;
use super::port::{self, Parts, Ports};
use super::recorded::Known;
use super::section::{Defaults, check_used};
use super::shapers;
use super::streams::{self, Named};
use super::tables::PROCESSOR;
use super::traffic::Stream;
use super::units::{Form as _, MacText, OpenSpan};
use super::workload::any;
use keys::{KeyError, Kind, Mistakes, Names, Origin, Section, all, both, set_fields};
use sim::Config;
use sim::ethernet::nic::{MAX_PORTS, Tagging};
use sim::ethernet::port::Algorithm;
use sim::ethernet::{Rate, bridge};
use sim::network::{
    BridgeConfig, BridgeOutage, CableConfig, CableEnd, Groups, MAX_CABLES, MAX_STATIONS,
    NetworkConfig, StationConfig, mac,
};
use sim::processor::ProcessorConfig;
use sim::world::{Disturbance, DisturbanceKind, Outage};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Duration, Instant};

/// The network and the names of its parts.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    pub config: NetworkConfig,
    /// Names of the stations, then of the bridges.
    pub names: Names,
    /// By name: the place in the plan that set the schedule.
    pub places: Vec<Origin>,
    /// By bridge and port: the place in the plan that set the schedule.
    pub port_places: Vec<Vec<Origin>>,
    /// Nodes of the plan, each with its stations, one per copy.
    nodes: Names,
    copies: Vec<Vec<usize>>,
    /// For each station behind a switch node: the station of the switch node, and the key.
    pub switches: BTreeMap<usize, (usize, Origin)>,
    /// For each station with a second interface: the station of that interface, and the key.
    pub seconds: BTreeMap<usize, (usize, Origin)>,
    /// Times at which nodes have no power.
    pub outages: Vec<Outage>,
    pub kills: Vec<(Outage, Origin)>,
    /// Other events that disturb nodes.
    pub disturbances: Vec<Disturbance>,
    /// Streams in the order of the plan.
    pub streams: Vec<Stream>,
    /// Names of the flows over TCP.
    pub flows: Vec<String>,
    /// Names of the streams that nodes identify.
    pub identified: Vec<String>,
}

impl Layout {
    /// Reads everything between hosts and drives; returns an empty network if all drives are
    /// attached directly.
    pub fn read<'a>(
        root: &Section<'a>,
        defaults: &Defaults<'a>,
        owners: &Owners<'a>,
        parts: &Parts,
    ) -> Result<Self, KeyError> {
        let mut layout = Self::default();
        if !owners.hosts.is_empty() && owners.hosts.iter().all(|host| host.is_direct()) {
            let tables = [
                "nodes",
                "cables",
                "bridges",
                "schedules",
                "traffic",
                "flows",
                "streams",
                "filters",
                "clocks",
            ];
            if let Some(entry) = tables.iter().find_map(|table| root.find(table)) {
                let message = format!("[{}] does not apply to transport direct", entry.key);
                return Err(entry.origin.fail(message));
            }
            // A table that no host uses is permitted if only the transport changes, but must be
            // valid.
            named_cable(&defaults.link, [0; 2])?;
            station(&defaults.link, false, Rate::G1, &Parts::default())?;
            return Ok(layout);
        }
        let sections = layout.name_stations(root, defaults, owners)?;
        if let Some((section, _)) = sections.get(MAX_STATIONS) {
            let message = format!("a network has {MAX_STATIONS} stations at most");
            return Err(section.origin.fail(message));
        }
        let bridges = root.named("bridges");
        for (name, section) in &bridges {
            if !layout.names.add(name.clone()) {
                let message = format!("'{name}' is a station and cannot be a bridge too");
                return Err(section.origin.fail(message));
            }
        }
        let named_cable = layout.cables(root, defaults, bridges.len())?;
        let mut rates: Vec<Option<Rate>> = vec![None; sections.len()];
        let mut mistakes = Mistakes::default();
        for cable in &named_cable {
            for end in cable.ends.into_iter().filter(|end| *end < sections.len()) {
                rates[end].get_or_insert(cable.rate);
            }
        }
        mistakes.keep(check_processors(&sections));
        let transports = owners.transports();
        for (number, (section, tsn)) in sections.iter().enumerate() {
            let Some(rate) = rates[number] else {
                let message = format!("no cable leads to '{}'", layout.names[number]);
                mistakes.note(section.origin.fail(message));
                continue;
            };
            let used = check_used(section, &transports, |_| true);
            let station = both(used, station(section, *tsn, rate, parts));
            let Some(((), station)) = mistakes.keep(station) else { continue };
            let is_switch = layout.switches.values().any(|(switch, _)| *switch == number);
            let [outages, kills] = ["outages", "kills"].map(|key| {
                let spans = section.parsed_list(key, OpenSpan::parse);
                if is_switch && !spans.is_empty() {
                    let message = format!("'{key}' does not apply to switch nodes");
                    mistakes.note(section.place(key).fail(message));
                }
                let outage = |((from, until), at)| (Outage { station: number, from, until }, at);
                spans.into_iter().map(outage)
            });
            layout.outages.extend(outages.map(|(outage, _)| outage));
            layout.kills.extend(kills);
            layout.disturb(number, section);
            layout.places.push(section.place("schedule"));
            layout.config.stations.push(station);
        }
        mistakes.keep(check_addresses(&sections, &layout.config, &layout.names));
        mistakes.or(())?;
        for (_, section) in &bridges {
            layout.places.push(section.place("schedule"));
            let at = layout.config.bridges.len();
            let spans = section.parsed_list("outages", OpenSpan::parse).into_iter();
            let outage = |((from, until), _)| BridgeOutage { bridge: at, from, until };
            layout.config.bridge_outages.extend(spans.map(outage));
            layout.config.bridges.push(bridge(section));
        }
        let stations: Vec<_> = sections.iter().map(|(section, _)| section).collect();
        let switching: Vec<_> = bridges.iter().map(|(_, section)| section).collect();
        let time = clocks::read(root, &stations, &switching);
        let connected = layout.connect(named_cable, &sections, &bridges, parts);
        (layout.config.time, _) = both(time, connected)?;
        Ok(layout)
    }

    /// Reads the traffic of the nodes and the streams that nodes identify; none with transport
    /// direct.
    pub fn load(
        &mut self,
        root: &Section,
        filters: &Filters,
        known: &Known,
    ) -> Result<(), KeyError> {
        if self.names.is_empty() {
            return Ok(());
        }
        let flows = self.flows(root);
        both(both(flows, self.traffic(root, known)), self.identify(root, filters))?;
        self.commit(root)
    }

    /// Passes the rates of streams to the shapers on their paths.
    fn commit(&mut self, root: &Section) -> Result<(), KeyError> {
        let (wiring, traffic) = (self.config.wiring(), root.named("traffic"));
        let streams = traffic.iter().zip(&self.streams);
        let committed =
            all(streams
                .map(|((_, section), stream)| shapers::committed(section, stream.id, &wiring)))?;
        for ((place, class), own) in committed.into_iter().flatten() {
            let port = match place {
                CableEnd::Station(at, port) => &mut self.config.stations[at].ports[port],
                CableEnd::Bridge(at, port) => &mut self.config.bridges[at].ports[port],
            };
            if let Algorithm::Ats(shaper) = &mut port.classes[class].algorithm {
                shaper.streams.push(own);
            }
        }
        Ok(())
    }

    /// Reads the disturbances of a station.
    fn disturb(&mut self, station: usize, section: &Section) {
        let stalls = section.parsed_list("stalls", <(Instant, Instant)>::parse).into_iter();
        let stall = |((at, until), _)| Disturbance {
            at,
            kind: DisturbanceKind::Stall(station, until - at),
        };
        let stalls = stalls.filter(|_| has_processor(section)).map(stall);
        let resets = section.parsed_list("connection_resets", Instant::parse).into_iter();
        let reset = |(at, _)| Disturbance { at, kind: DisturbanceKind::ConnectionReset(station) };
        self.disturbances.extend(stalls.chain(resets.map(reset)));
    }

    /// The stations with their tables, and whether they are TSN cores.
    fn name_stations<'a>(
        &mut self,
        root: &Section<'a>,
        defaults: &Defaults<'a>,
        owners: &Owners<'a>,
    ) -> Result<Vec<(Section<'a>, bool)>, KeyError> {
        let mut sections = Vec::new();
        for host in owners.hosts.iter().filter(|host| !host.is_direct()) {
            self.names.add(host.name.clone());
            let own = host.section.table("link").with_defaults(&defaults.link);
            sections.push((own, host.transport == "tsn"));
        }
        let alone = owners.hosts.is_empty();
        // A plan with only streams connects TSN stations, whose frames have tags.
        let tsn = alone || sections.iter().any(|(_, tsn)| *tsn);
        let nodes = root.named_or("nodes", "device", &defaults.link);
        if alone && root.named("nodes").is_empty() {
            let message = "a plan without hosts needs [nodes.NAME]: stations that send and receive";
            return root.fail("runtime", message);
        }
        let mut mistakes = Mistakes::default();
        for (name, section) in nodes {
            let first = sections.len();
            for station in copies(&name, section.get("count").unwrap_or(1)) {
                let message = format!("'{station}' is a host and cannot be a node too");
                if !self.names.add(station) {
                    mistakes.note(section.origin.fail(message));
                }
                sections.push((section.clone(), tsn));
            }
            self.nodes.add(name);
            self.copies.push((first..sections.len()).collect());
        }
        mistakes.or(())?;
        for (station, (section, _)) in sections.iter().enumerate() {
            if let Some(switch) = self.switch_node(station, section)? {
                self.switches.insert(station, (switch, section.place("switch")));
            }
        }
        let behind = |(_, (switch, _)): &(_, &(usize, _))| self.switches.contains_key(switch);
        if let Some((_, (switch, origin))) = self.switches.iter().find(behind) {
            let message = format!(
                "switch: '{}' is behind a switch node itself; a drive can be behind only one",
                self.names[*switch]
            );
            return Err(origin.fail(message));
        }
        let hosts = owners.hosts.iter().filter(|host| !host.is_direct());
        let mut tables: Vec<_> = hosts.map(|host| &host.section).collect();
        tables.extend(sections[tables.len()..].iter().map(|(section, _)| section));
        self.second_interfaces(&tables)?;
        Ok(sections)
    }

    /// Reads the second interfaces of stations, from the tables of their hosts and nodes.
    fn second_interfaces(&mut self, tables: &[&Section]) -> Result<(), KeyError> {
        for (station, table) in tables.iter().enumerate() {
            let Some(name) = table.text("second") else { continue };
            let fail = |why: String| table.fail("second", format!("second: {why}"));
            let found = self.nodes.find(0..self.nodes.len(), "node", name);
            let at = found.or_else(|message| table.fail("second", message))?;
            let [second] = self.copies[at][..] else {
                return fail(format!("node '{name}' has copies"));
            };
            if second == station {
                return fail("expected another node".into());
            }
            if self.switches.values().any(|(switch, _)| *switch == second) {
                return fail(format!("'{name}' is a switch node"));
            }
            if let Some(owner) = self.owner_of(second) {
                return fail(format!("'{name}' is already the second interface of '{owner}'"));
            }
            let keys = ["second", "switch", "outages", "kills"];
            if let Some(key) = keys.into_iter().find(|key| tables[second].find(key).is_some()) {
                let owner = &self.names[station];
                let message =
                    format!("'{key}' does not apply to the second interface of '{owner}'");
                return tables[second].fail(key, message);
            }
            self.seconds.insert(station, (second, table.place("second")));
        }
        Ok(())
    }

    /// Returns the name of the host or node whose second interface a station is.
    fn owner_of(&self, station: usize) -> Option<&str> {
        let found = self.seconds.iter().find(|(_, (second, _))| *second == station);
        found.map(|(owner, _)| self.names[*owner].as_str())
    }

    /// Returns the station of the switch node in front of a station, if there is one.
    fn switch_node(&self, station: usize, section: &Section) -> Result<Option<usize>, KeyError> {
        let Some(name) = section.text("switch") else { return Ok(None) };
        let found = self.nodes.find(0..self.nodes.len(), "node", name);
        let at = found.or_else(|message| section.fail("switch", message))?;
        match self.copies[at][..] {
            [switch] if switch != station => Ok(Some(switch)),
            [_] => section.fail("switch", "switch: expected another node"),
            _ => section.fail("switch", format!("switch: node '{name}' has copies")),
        }
    }

    fn cables(
        &self,
        root: &Section,
        defaults: &Defaults,
        bridges: usize,
    ) -> Result<Vec<NamedCable>, KeyError> {
        let named = root.named("cables").into_iter();
        let stations = self.names.len() - bridges;
        let made = match (named.len(), stations, bridges) {
            (0, 2, 0) => Ok(vec![named_cable(&defaults.link, [0, 1])?]),
            // Without cables in the plan, one bridge and its stations are a star.
            (0, _, 1) => all((0..stations).map(|at| named_cable(&defaults.link, [at, stations]))),
            (0, ..) => {
                let message = format!(
                    "{stations} stations ({}) and no cables: [cables.NAME] with a and b joins two \
                     of them",
                    self.names[..stations].join(", ")
                );
                Err(root.origin.fail(message))
            }
            _ => all(named.map(|(_, section)| {
                let (a, b) = both(self.end(&section, "a"), self.end(&section, "b"))?;
                named_cable(&section.with_defaults(&defaults.link), [a, b])
            })),
        }?;
        match made.get(MAX_CABLES) {
            Some(cable) => {
                Err(cable.origin.fail(format!("a network has {MAX_CABLES} cables at most")))
            }
            None => Ok(made),
        }
    }

    fn end(&self, section: &Section, key: &str) -> Result<usize, KeyError> {
        let Some(name) = section.text(key) else {
            let message =
                format!("[{}]: 'a' and 'b' are required: the two ends of the cable", section.name);
            return Err(section.origin.fail(message));
        };
        let found = self.names.find(0..self.names.len(), "host, node or bridge", name);
        found.or_else(|message| section.fail(key, message))
    }

    /// Gives every end of a cable at a bridge a port of its own.
    fn connect(
        &mut self,
        named_cable: Vec<NamedCable>,
        sections: &[(Section, bool)],
        bridges: &[(String, Section)],
        parts: &Parts,
    ) -> Result<(), KeyError> {
        let tables = sections.iter().map(|(station, _)| station);
        let tables: Vec<_> =
            tables.chain(bridges.iter().map(|(_, bridge)| bridge)).map(Ports::new).collect();
        let mut groups = Groups::new(self.names.len());
        for (station, (second, _)) in &self.seconds {
            groups.join(*station, *second);
        }
        let mut mistakes = Mistakes::default();
        let NetworkConfig { stations, bridges: made, cables, .. } = &mut self.config;
        let mut neighbours: Vec<Vec<&str>> = vec![Vec::new(); tables.len()];
        self.port_places = vec![Vec::new(); bridges.len()];
        for cable in named_cable {
            let [a, b] = cable.ends;
            if a == b {
                mistakes.note(cable.origin.fail("this cable leads from a bridge to itself"));
                continue;
            }
            groups.join(a, b);
            let mut place = |end: usize, other: usize| {
                let section = tables[end].to(&self.names[other]);
                let config = port::config(&section, cable.rate, parts)?;
                let config = sim::ethernet::port::Config { security: cable.security, ..config };
                let number = neighbours[end].len();
                neighbours[end].push(&self.names[other]);
                let Some(at) = end.checked_sub(stations.len()) else {
                    if number == MAX_PORTS {
                        let message =
                            format!("'{}' has {MAX_PORTS} cables already", self.names[end]);
                        return Err(cable.origin.fail(message));
                    }
                    stations[end].ports.truncate(number);
                    stations[end].ports.push(config);
                    return Ok(CableEnd::Station(end, number));
                };
                made[at].ports.push(config);
                self.port_places[at].push(section.place("schedule"));
                Ok(CableEnd::Bridge(at, number))
            };
            let Some((first, second)) = mistakes.keep(both(place(a, b), place(b, a))) else {
                continue;
            };
            let ports = [(a, b), (b, a)].map(|(end, other)| tables[end].to(&self.names[other]));
            mistakes.keep(check_verified(&ports, [&self.names[a], &self.names[b]]));
            cables.push(CableConfig { a: first, b: second, ..cable.config });
        }
        if mistakes.is_empty() {
            for (tables, neighbours) in tables.iter().zip(&neighbours) {
                mistakes.keep(tables.check(neighbours));
            }
        }
        let first = groups.representative(0);
        if let Some(apart) =
            (0..self.names.len()).find(|node| groups.representative(*node) != first)
        {
            let message = format!("no path from '{}' to '{}'", self.names[0], self.names[apart]);
            mistakes.note(self.places[0].fail(message));
        }
        mistakes.or(())
    }

    fn identify(&mut self, root: &Section, filters: &Filters) -> Result<(), KeyError> {
        let (names, wiring, bridges) = (&self.names, &self.config.wiring(), &root.named("bridges"));
        let paths = &Paths::new(root, names, wiring);
        let traffic = &self.streams;
        let named = Named { names, wiring, paths, traffic, filters, bridges };
        let (names, streams) = streams::read(root, &named)?.into_iter().unzip();
        (self.identified, self.config.streams) = (names, streams);
        Ok(())
    }

    /// Returns the number of copies of a node.
    pub fn copies_of(&self, node: &str) -> usize {
        let found = self.nodes.find(0..self.nodes.len(), "node", node);
        found.map_or(1, |at| self.copies[at].len())
    }

    /// Returns the station of drive `number` among the drives behind tunnels. If a node has copies,
    /// its drives are distributed over the copies in turn.
    pub fn node_of(&self, section: &Section, number: usize) -> Result<usize, KeyError> {
        let at = match (section.text("node"), self.nodes.len()) {
            (None, 1) => 0,
            (None, _) => {
                let message = format!("this drive needs node, one of: {}", self.nodes.join(", "));
                return Err(section.origin.fail(message));
            }
            (Some(name), count) => {
                let found = self.nodes.find(0..count, "node", name);
                found.or_else(|message| section.fail("node", message))?
            }
        };
        let copies = &self.copies[at];
        let station = copies[number % copies.len()];
        match self.owner_of(station) {
            Some(owner) => {
                let message = format!("node: expected '{owner}', whose second interface this is");
                section.fail("node", message)
            }
            None => Ok(station),
        }
    }
}

/// Checks the ports at both ends of a cable. Without verification each port may send fragments at
/// once, so the other port must accept them.
fn check_verified(ports: &[Section; 2], names: [&str; 2]) -> Result<(), KeyError> {
    let preempts = |port: &Section| !port.list::<u8>("express").is_empty();
    for (port, partner, name) in
        [(&ports[0], &ports[1], names[1]), (&ports[1], &ports[0], names[0])]
    {
        if preempts(port) && port.text("verify") == Some("off") && !preempts(partner) {
            let message = format!(
                "verify: \"on\", or express at the partner '{name}', which else takes no fragments"
            );
            return port.fail("verify", message);
        }
    }
    Ok(())
}

/// Frames that the kernel takes from a live node.
const STREAM_RING: usize = 1024;

fn has_processor(section: &Section) -> bool {
    section.text("processor") == Some("serial")
}

fn processor(section: &Section) -> ProcessorConfig {
    let time = |key| section.get(key).unwrap_or_default();
    ProcessorConfig {
        copy: section.get("copy_rate").map_or(0, |rate: u64| 1_000_000_000_000 / rate),
        frame: time("frame_time"),
        wake: time("wake_time"),
        tlp: time("tlp_time"),
        packet: time("packet_time"),
    }
}

/// Checks that a station with a processor uses each key that requires one.
///
/// # Errors
/// Each unused key.
fn check_processors(sections: &[(Section, bool)]) -> Result<(), KeyError> {
    let mut mistakes = Mistakes::default();
    let (with, without): (Vec<_>, Vec<_>) =
        sections.iter().map(|(section, _)| section).partition(|section| has_processor(section));
    for key in PROCESSOR {
        let used: BTreeSet<_> = with.iter().map(|section| section.place(key)).collect();
        for section in without.iter().filter(|section| section.find(key).is_some()) {
            if !used.contains(&section.place(key)) {
                let message = format!("'{key}' applies only to processor = \"serial\"");
                mistakes.note(section.place(key).fail(message));
            }
        }
    }
    mistakes.or(())
}

/// Checks that the given addresses are unicast addresses and different.
fn check_addresses(
    sections: &[(Section, bool)],
    network: &NetworkConfig,
    names: &Names,
) -> Result<(), KeyError> {
    let mut used = BTreeMap::new();
    let stations = network.stations.iter().zip(sections).enumerate();
    all(stations.map(|(at, (station, (section, _)))| {
        let before = used.insert(station.mac.unwrap_or_else(|| mac(at)), at);
        match (station.mac, before) {
            (Some(given), _) if given.is_group() => {
                section.fail("mac", "mac: expected a unicast address: its first byte even")
            }
            (Some(_), Some(before)) => {
                section.fail("mac", format!("mac: '{}' has this address already", names[before]))
            }
            _ => Ok(()),
        }
    }))
    .map(drop)
}

/// Reads a station. Defaults are from a node of the NVMe/TSN paper.
fn station(
    section: &Section,
    tsn: bool,
    rate: Rate,
    parts: &Parts,
) -> Result<StationConfig, KeyError> {
    let preset = if tsn { Config::nvme_tsn_tsn } else { Config::nvme_tsn_tcp };
    let mut station = preset(any(), rate).network.stations.swap_remove(0);
    if has_processor(section) {
        station.tx_ring = STREAM_RING;
    }
    set_fields!(station, section, tx_delay rx_delay tx_ring);
    match section.find("vlan").map(|entry| &entry.value.kind) {
        None => {}
        Some(Kind::Text(_)) => station.tagging = None,
        Some(_) => station.tagging = section.get("vlan").map(Tagging::vlan),
    }
    station.ports[0] = port::config(section, rate, parts)?;
    let given = section.knows("mac").then(|| section.get("mac")).flatten();
    station.mac = given.map(|MacText(mac)| mac);
    station.ack_delay = section.get("ack_delay").filter(|delay| *delay > Duration::ZERO);
    station.processor = has_processor(section).then(|| processor(section));
    Ok(station)
}

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
