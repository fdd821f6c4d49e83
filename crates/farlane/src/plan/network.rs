//! Stations, bridges, cables and what else is on them.

use super::host::{Built, MOST_COPIES, brief_station};
use super::schedule::Schedules;
use super::section::{Section, unknown};
use super::value::Origin;
use super::{Defaults, PlanError, keys, meaning, units};
use sim::ethernet::cable::Faults;
use sim::ethernet::nic::Tagging;
use sim::ethernet::traffic::Pattern;
use sim::ethernet::{Rate, bridge, port};
use sim::network::{BridgeConfig, CableConfig, NetworkConfig, Place, StationConfig, TrafficConfig};
use sim::world::Outage;
use wire::Duration;

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
        built: &Built<'a>,
    ) -> Result<Self, PlanError> {
        let mut layout = Self::default();
        let direct = built.hosts.iter().all(|host| host.transport == "direct");
        if direct {
            let tables = ["nodes", "cables", "bridges", "schedules", "traffic"];
            if let Some(entry) = tables.iter().find_map(|table| root.find(table)) {
                let what = format!("[{}] means nothing with transport direct", entry.key);
                return Err(entry.origin.fail(what));
            }
            // It may stay where only the transport changes, but not be wrong.
            drawn(&defaults.link, [End::Station(0); 2])?;
            station(&defaults.link, false, Rate::G1, &Schedules::default())?;
            layout.hosts = vec![0; built.hosts.len()];
            return Ok(layout);
        }
        let none = Section::none();
        let schedules = Schedules::read(root, &none)?;
        let sections = layout.name_stations(root, defaults, built)?;
        let bridges = root.named("bridges", keys::BRIDGE, &none)?;
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
            meaning::of_station(section, built)?;
            let station = station(section, *tsn, cable.rate, &schedules)?;
            layout.tagged.push(station.tagging.is_some());
            let spans = section.list("outages", units::outage)?.unwrap_or_default();
            let outage = |((from, until), _)| Outage { station: number, from, until };
            layout.outages.extend(spans.into_iter().map(outage));
            layout.station_places.push(section.place("schedule"));
            layout.config.stations.push(station);
        }
        for (_, section) in &bridges {
            layout.bridge_places.push(section.place("schedule"));
            layout.config.bridges.push(bridge(section)?);
        }
        layout.connect(drawn, &bridges, &schedules)?;
        layout.traffic(root, &none)?;
        Ok(layout)
    }

    fn name_stations<'a>(
        &mut self,
        root: &Section<'a>,
        defaults: &Defaults<'a>,
        built: &Built<'a>,
    ) -> Result<Vec<(Section<'a>, bool)>, PlanError> {
        let mut sections = Vec::new();
        for host in &built.hosts {
            self.hosts.push(self.stations.len());
            if host.transport != "direct" {
                let own = host.section.table("link", keys::STATION)?;
                self.stations.push(host.name.clone());
                sections.push((own.over(&defaults.link), host.transport == "tsn"));
            }
        }
        self.first_node = self.stations.len();
        let tsn = built.hosts.iter().any(|host| host.transport == "tsn");
        let mut nodes = root.named("nodes", keys::NODE, &defaults.link)?;
        if nodes.is_empty() {
            nodes.push(("device".into(), defaults.link.clone()));
        }
        for (name, section) in nodes {
            let count = section.number("count", 1, MOST_COPIES)?.unwrap_or(1);
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
        let named = root.named("cables", keys::CABLE, &defaults.link)?;
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
        let cable = |(_, section): &(String, Section)| {
            let ends = [self.end(section, "a")?, self.end(section, "b")?];
            drawn(section, ends)
        };
        named.iter().map(cable).collect()
    }

    fn end(&self, section: &Section, key: &str) -> Result<End, PlanError> {
        let Some((name, origin)) = section.text(key)? else {
            return Err(section.origin.fail(format!("[{}] needs a and b", section.name)));
        };
        let find = |names: &[String]| names.iter().position(|known| known == name);
        if let Some(at) = find(&self.stations) {
            return Ok(End::Station(at));
        }
        find(&self.bridges).map(End::Bridge).ok_or_else(|| {
            let all = self.stations.iter().chain(&self.bridges).map(String::as_str);
            origin.fail(unknown("host, node or bridge", name, &all.collect::<Vec<_>>()))
        })
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

    fn traffic(&mut self, root: &Section, none: &Section) -> Result<(), PlanError> {
        for (_, section) in root.named("traffic", keys::TRAFFIC, none)? {
            let from = self.station(&section, "from")?;
            let to = self.station(&section, "to")?;
            if from == to {
                return Err(section.place("to").fail("traffic goes from one station to another"));
            }
            let length = section.parsed("length", units::size)?.unwrap_or(1518);
            if !(64..=1518).contains(&length) {
                return Err(section.place("length").fail("length: 64B to 1518B, header to FCS"));
            }
            let Some(interval) = section.within("interval", &units::SPAN)? else {
                let what = format!("[{}] needs interval, such as \"100us\"", section.name);
                return Err(section.origin.fail(what));
            };
            let pattern = match section.word("pattern", &["periodic", "poisson"])? {
                Some("poisson") => Pattern::Poisson(interval),
                _ => Pattern::Periodic(interval),
            };
            let priority = section.number("priority", 0, 7)?.unwrap_or(0) as u8;
            let length = length as usize;
            // The seed is set with all others.
            let traffic = TrafficConfig { to, length, priority, pattern, seed: 0 };
            self.config.stations[from].traffic.push(traffic);
        }
        Ok(())
    }

    fn station(&self, section: &Section, key: &str) -> Result<usize, PlanError> {
        let names: Vec<&str> = self.stations.iter().map(String::as_str).collect();
        let Some((name, origin)) = section.text(key)? else {
            let what = format!("[{}] needs {key}: {}", section.name, names.join(", "));
            return Err(section.origin.fail(what));
        };
        let found = names.iter().position(|known| *known == name);
        found.ok_or_else(|| origin.fail(unknown("host or node", name, &names)))
    }

    /// The station of the drive that is `number` among those behind tunnels:
    /// drives of a node that has copies are dealt out to them in turn.
    pub fn node_of(&self, section: &Section, number: usize) -> Result<usize, PlanError> {
        let mut nodes: Vec<&str> = self.nodes.iter().map(String::as_str).collect();
        nodes.dedup();
        let name = match (section.text("node")?, &nodes[..]) {
            (None, [alone]) => alone,
            (None, _) => {
                let what = format!("this drive needs node, one of: {}", nodes.join(", "));
                return Err(section.origin.fail(what));
            }
            (Some((name, origin)), _) if !nodes.contains(&name) => {
                return Err(origin.fail(unknown("node", name, &nodes)));
            }
            (Some((name, _)), _) => name,
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

fn drawn(section: &Section, ends: [End; 2]) -> Result<Drawn, PlanError> {
    let rate = section.parsed("rate", |text| {
        let name = text.strip_suffix("b/s").unwrap_or(text);
        name.parse::<Rate>().map_err(|_| "one of 100M, 1G, 2.5G, 10G, 25G, 50G, 100G")
    })?;
    let chance = |key| Ok(section.parsed(key, units::chance)?.unwrap_or_default());
    let cuts = section.list("cuts", units::span)?.unwrap_or_default();
    let faults = Faults {
        // Set with all others.
        seed: 0,
        loss: chance("loss")?,
        corruption: chance("corruption")?,
        delay: chance("delay")?,
        delay_up_to: section.time("delay_up_to", Duration::ZERO)?,
        cuts: cuts.into_iter().map(|(span, _)| span).collect(),
    };
    let steps = section.list("rate_steps", units::rate_step)?.unwrap_or_default();
    if let Some(pair) = steps.windows(2).find(|pair| pair[0].0.at >= pair[1].0.at) {
        return Err(pair[1].1.fail("rate_steps: each later than the one before"));
    }
    Ok(Drawn {
        ends,
        rate: rate.unwrap_or(Rate::G1),
        propagation: section.time("propagation", Duration::from_ns(10))?,
        faults: [faults.clone(), faults],
        rate_steps: steps.into_iter().map(|(step, _)| step).collect(),
        origin: section.origin.clone(),
    })
}

fn station(
    section: &Section,
    tsn: bool,
    rate: Rate,
    schedules: &Schedules,
) -> Result<StationConfig, PlanError> {
    let standard = brief_station(tsn, rate);
    let vlan = match section.find("vlan").map(|entry| &entry.value.kind) {
        None => standard.tagging,
        Some(super::value::Kind::Text(text)) if text == "none" => None,
        Some(super::value::Kind::Integer(_)) => {
            section.number("vlan", 0, 4094)?.map(|vid| Tagging::vlan(vid as u16))
        }
        Some(_) => return Err(section.place("vlan").fail("vlan: \"none\", or 0 to 4094")),
    };
    let ack_delay = section.within("ack_delay", &units::SHORT)?;
    Ok(StationConfig {
        rate,
        tx_delay: section.time("tx_delay", standard.tx_delay)?,
        rx_delay: section.time("rx_delay", standard.rx_delay)?,
        tx_ring: section.number("tx_ring", 1, 1024)?.map_or(standard.tx_ring, |n| n as usize),
        tagging: vlan,
        gates: schedules.gates(section)?,
        ack_delay: ack_delay.filter(|delay| *delay > Duration::ZERO),
        traffic: Vec::new(),
    })
}

/// A bridge without ports yet.
fn bridge(section: &Section) -> Result<BridgeConfig, PlanError> {
    let mode = match section.word("mode", &["store-and-forward", "cut-through"])? {
        Some("cut-through") => bridge::Mode::CutThrough,
        _ => bridge::Mode::StoreAndForward,
    };
    Ok(BridgeConfig {
        ports: Vec::new(),
        mode,
        delay: section.time("delay", Duration::from_us(2))?,
        jitter: section.time("jitter", Duration::ZERO)?,
    })
}
