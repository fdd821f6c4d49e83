//! Stations, bridges, cables and what else is on them.

use super::mistake::unknown;
use super::owners::Owners;
use super::schedule::Schedules;
use super::section::{Defaults, Section, set_fields};
use super::value::{Kind, Origin, PlanError};
use sim::Config;
use sim::ethernet::cable::Faults;
use sim::ethernet::nic::Tagging;
use sim::ethernet::traffic::Pattern;
use sim::ethernet::{Rate, bridge, port};
use sim::network::{BridgeConfig, CableConfig, NetworkConfig, Place, StationConfig, TrafficConfig};
use sim::workload::Workload;
use sim::world::Outage;
use wire::{Duration, Instant};

/// The network, with what its parts are called.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    pub config: NetworkConfig,
    pub stations: Vec<String>,
    pub bridges: Vec<String>,
    /// Where each station and each bridge got its schedule.
    pub station_places: Vec<Origin>,
    pub bridge_places: Vec<Origin>,
    /// Station of each host.
    hosts: Vec<usize>,
    /// The first station that is a device node.
    first_node: usize,
    /// The node of the plan that each station from there on is, or a copy of.
    nodes: Vec<String>,
    /// Whether frames have tags, by station.
    pub tagged: Vec<bool>,
    /// When nodes are without power.
    pub outages: Vec<Outage>,
}

/// A cable as it is written, its ends not yet places.
struct Drawn {
    ends: [End; 2],
    rate: Rate,
    propagation: Duration,
    faults: [Faults; 2],
    rate_steps: Vec<port::RateStep>,
    origin: Origin,
}

#[derive(Clone, Copy)]
enum End {
    Station(usize),
    Bridge(usize),
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
        if owners.hosts.iter().all(|host| host.is_direct()) {
            let tables = ["nodes", "cables", "bridges", "schedules", "traffic"];
            if let Some(entry) = tables.iter().find_map(|table| root.find(table)) {
                let what = format!("[{}] means nothing with transport direct", entry.key);
                return Err(entry.origin.fail(what));
            }
            // It may stay where only the transport changes, but not be wrong.
            drawn(&defaults.link, [End::Station(0); 2])?;
            station(&defaults.link, false, Rate::G1, &Schedules::default())?;
            layout.hosts = vec![0; owners.hosts.len()];
            return Ok(layout);
        }
        let schedules = Schedules::read(root)?;
        let sections = layout.name_stations(root, defaults, owners)?;
        let bridges = root.named("bridges");
        for (name, section) in &bridges {
            if layout.stations.contains(name) {
                let what = format!("'{name}' is a station and cannot be a bridge too");
                return Err(section.origin.fail(what));
            }
            layout.bridges.push(name.clone());
        }
        let drawn = layout.cables(root, defaults)?;
        for (number, (section, tsn)) in sections.iter().enumerate() {
            let of = |cable: &&Drawn| {
                cable.ends.iter().any(|end| matches!(end, End::Station(at) if *at == number))
            };
            let mut here = drawn.iter().filter(of);
            let Some(cable) = here.next() else {
                let what = format!("no cable leads to '{}'", layout.stations[number]);
                return Err(section.origin.fail(what));
            };
            if let Some(more) = here.next() {
                let what = format!("'{}' has a cable already", layout.stations[number]);
                return Err(more.origin.fail(what));
            }
            section.used(&owners.transports(), |_| true)?;
            let station = station(section, *tsn, cable.rate, &schedules)?;
            layout.tagged.push(station.tagging.is_some());
            let spans = section.list::<(Instant, Option<Instant>)>("outages").into_iter();
            let outage = |((from, until), _)| Outage { station: number, from, until };
            layout.outages.extend(spans.map(outage));
            layout.station_places.push(section.place("schedule"));
            layout.config.stations.push(station);
        }
        for (_, section) in &bridges {
            layout.bridge_places.push(section.place("schedule"));
            layout.config.bridges.push(bridge(section));
        }
        layout.connect(drawn, &bridges, &schedules)?;
        layout.traffic(root)?;
        Ok(layout)
    }

    fn name_stations<'a>(
        &mut self,
        root: &Section<'a>,
        defaults: &Defaults<'a>,
        owners: &Owners<'a>,
    ) -> Result<Vec<(Section<'a>, bool)>, PlanError> {
        let mut sections = Vec::new();
        for host in &owners.hosts {
            self.hosts.push(self.stations.len());
            if !host.is_direct() {
                let own = host.section.table("link");
                self.stations.push(host.name.clone());
                sections.push((own.over(&defaults.link), host.transport == "tsn"));
            }
        }
        self.first_node = self.stations.len();
        let tsn = owners.hosts.iter().any(|host| host.transport == "tsn");
        for (name, section) in root.named_or("nodes", "device", &defaults.link) {
            let count: usize = section.get("count").unwrap_or(1);
            for copy in 0..count {
                let copied = format!("{name}.{copy}");
                let station = if count == 1 { name.clone() } else { copied };
                if self.stations.contains(&station) {
                    let what = format!("'{station}' is a host and cannot be a node too");
                    return Err(section.origin.fail(what));
                }
                self.nodes.push(name.clone());
                self.stations.push(station);
                sections.push((section.clone(), tsn));
            }
        }
        Ok(sections)
    }

    fn cables(&self, root: &Section, defaults: &Defaults) -> Result<Vec<Drawn>, PlanError> {
        let named = root.named("cables");
        if named.is_empty() && self.stations.len() == 2 && self.bridges.is_empty() {
            let ends = [End::Station(0), End::Station(1)];
            return Ok(vec![drawn(&defaults.link, ends)?]);
        }
        if named.is_empty() && self.bridges.len() == 1 {
            let to_bridge = |at| drawn(&defaults.link, [End::Station(at), End::Bridge(0)]);
            return (0..self.stations.len()).map(to_bridge).collect();
        }
        if named.is_empty() {
            let what = format!(
                "{} stations ({}) and no cables: [cables.NAME] with a and b joins two of them",
                self.stations.len(),
                self.stations.join(", ")
            );
            return Err(root.origin.fail(what));
        }
        let cable = |(_, section): (String, Section)| {
            let ends = [self.end(&section, "a")?, self.end(&section, "b")?];
            drawn(&section.over(&defaults.link), ends)
        };
        named.into_iter().map(cable).collect()
    }

    fn end(&self, section: &Section, key: &str) -> Result<End, PlanError> {
        let Some(name) = section.text(key) else {
            return Err(section.origin.fail(format!("[{}] needs a and b", section.name)));
        };
        if let Some(at) = place_of(&self.stations, name) {
            return Ok(End::Station(at));
        }
        if let Some(at) = place_of(&self.bridges, name) {
            return Ok(End::Bridge(at));
        }
        let all: Vec<&str> =
            self.stations.iter().chain(&self.bridges).map(|n| n.as_str()).collect();
        section.fail(key, unknown("host, node or bridge", name, &all))
    }

    /// Gives every end of a cable at a bridge a port of its own.
    fn connect(
        &mut self,
        drawn: Vec<Drawn>,
        bridges: &[(String, Section)],
        schedules: &Schedules,
    ) -> Result<(), PlanError> {
        let mut group: Vec<usize> = (0..self.stations.len() + bridges.len()).collect();
        for cable in drawn {
            let node = |end: &End| match end {
                End::Station(at) => *at,
                End::Bridge(at) => self.stations.len() + at,
            };
            let [a, b] = [group[node(&cable.ends[0])], group[node(&cable.ends[1])]];
            if a == b {
                return Err(cable.origin.fail("this cable closes a loop: a network has none"));
            }
            group.iter_mut().filter(|of| **of == b).for_each(|of| *of = a);
            let mut places = Vec::new();
            for end in cable.ends {
                places.push(match end {
                    End::Station(at) => Place::Station(at),
                    End::Bridge(at) => {
                        let ports = &mut self.config.bridges[at].ports;
                        let gates = schedules.gates(&bridges[at].1)?;
                        ports.push(port::Config { gates, ..port::Config::new(cable.rate) });
                        Place::Bridge(at, ports.len() - 1)
                    }
                });
            }
            self.config.cables.push(CableConfig {
                a: places[0],
                b: places[1],
                propagation: cable.propagation,
                faults: cable.faults,
                rate_steps: cable.rate_steps,
            });
        }
        if let Some(apart) = group.iter().position(|of| *of != group[0]) {
            let names: Vec<&String> = self.stations.iter().chain(&self.bridges).collect();
            let what = format!("no way leads from '{}' to '{}'", names[0], names[apart]);
            let origin = self.station_places.first().expect("there are stations");
            return Err(origin.fail(what));
        }
        Ok(())
    }

    fn traffic(&mut self, root: &Section) -> Result<(), PlanError> {
        for (_, section) in root.named("traffic") {
            let (from, to) = (self.station(&section, "from")?, self.station(&section, "to")?);
            if from == to {
                return section.fail("to", "traffic goes from one station to another");
            }
            section.needed("interval", ", such as \"100us\"")?;
            let interval = section.get("interval").unwrap_or_default();
            let traffic = TrafficConfig {
                to,
                length: section.get("length").unwrap_or(1518),
                priority: section.get("priority").unwrap_or(0),
                pattern: match section.text("pattern") {
                    Some("poisson") => Pattern::Poisson(interval),
                    _ => Pattern::Periodic(interval),
                },
                // Set with all others.
                seed: 0,
            };
            self.config.stations[from].traffic.push(traffic);
        }
        Ok(())
    }

    fn station(&self, section: &Section, key: &str) -> Result<usize, PlanError> {
        let names: Vec<&str> = self.stations.iter().map(String::as_str).collect();
        let name = section.needed(key, &format!(": {}", names.join(", ")))?;
        let unknown = || section.fail(key, unknown("host or node", name, &names));
        place_of(&self.stations, name).map_or_else(unknown, Ok)
    }

    /// The station of the drive that is `number` among those behind tunnels:
    /// drives of a node that has copies are dealt out to them in turn.
    pub fn node_of(&self, section: &Section, number: usize) -> Result<usize, PlanError> {
        let mut nodes: Vec<&str> = self.nodes.iter().map(String::as_str).collect();
        nodes.dedup();
        let name = match (section.text("node"), &nodes[..]) {
            (None, [alone]) => alone,
            (None, _) => {
                let what = format!("this drive needs node, one of: {}", nodes.join(", "));
                return Err(section.origin.fail(what));
            }
            (Some(name), _) if !nodes.contains(&name) => {
                return section.fail("node", unknown("node", name, &nodes));
            }
            (Some(name), _) => name,
        };
        let same = self.nodes.iter().enumerate().filter(|(_, node)| *node == name);
        let copies: Vec<usize> = same.map(|(at, _)| self.first_node + at).collect();
        Ok(copies[number % copies.len()])
    }

    /// The station of a host.
    pub fn station_of_host(&self, host: usize) -> usize {
        self.hosts[host]
    }
}

fn place_of(names: &[String], name: &str) -> Option<usize> {
    names.iter().position(|known| known == name)
}

fn drawn(section: &Section, ends: [End; 2]) -> Result<Drawn, PlanError> {
    let cuts = section.list("cuts").into_iter().map(|(span, _)| span).collect();
    let mut faults = Faults { cuts, ..Faults::default() };
    // Seeds are set with all others.
    set_fields!(faults, section, loss corruption delay delay_up_to);
    let steps = section.list::<port::RateStep>("rate_steps");
    if let Some(pair) = steps.windows(2).find(|pair| pair[0].0.at >= pair[1].0.at) {
        return Err(pair[1].1.fail("rate_steps: each later than the one before"));
    }
    Ok(Drawn {
        ends,
        rate: section.get("rate").unwrap_or(Rate::G1),
        propagation: section.get("propagation").unwrap_or(Duration::from_ns(10)),
        faults: [faults.clone(), faults],
        rate_steps: steps.into_iter().map(|(step, _)| step).collect(),
        origin: section.origin.clone(),
    })
}

/// Any workload: for tables that are taken from the brief's configuration.
pub fn any() -> Workload {
    Workload::ConfigReads { count: 1, gap: Duration::ZERO }
}

/// What is not said is as with a node of the brief.
fn station(
    section: &Section,
    tsn: bool,
    rate: Rate,
    schedules: &Schedules,
) -> Result<StationConfig, PlanError> {
    let brief = if tsn { Config::brief_tsn } else { Config::brief_tcp };
    let mut station = brief(any(), rate).network.stations.swap_remove(0);
    station.rate = rate;
    set_fields!(station, section, tx_delay rx_delay tx_ring);
    match section.find("vlan").map(|entry| &entry.value.kind) {
        None => {}
        Some(Kind::Text(_)) => station.tagging = None,
        Some(_) => station.tagging = section.get("vlan").map(Tagging::vlan),
    }
    station.gates = schedules.gates(section)?;
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
