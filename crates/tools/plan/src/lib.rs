//! A simulation in one file, `plan.toml`: docs/plan.md describes every key.
//!
//! # Modules
//!
//! - `tables`: every table and key of a plan
//! - `units`: parsers of values that only plans have
//! - `section`: access to the tables of a plan
//! - `host`: hosts, links and drives
//! - `owners`: which host owns which drive
//! - `attached`: drives and PCIe links
//! - `shared`: drives with several hosts, and reservations
//! - `workload`: the workload of a host
//! - `recorded`: recorded traffic
//! - `recording`: a recorded trace as a list of operations
//! - `network`: stations, bridges, cables, background traffic, outages
//! - `cable`: cables and their faults
//! - `traffic`: `[traffic.NAME]`
//! - `intervals`: when a stream sends
//! - `paths`: paths of streams
//! - `live_faults`: the faults of a plan as faults of live nodes
//! - `port`: interfaces of stations and ports of bridges
//! - `shapers`: shapers of traffic classes
//! - `schedule`: gate control lists
//! - `clocks`: clocks that drift, and 802.1AS
//! - `streams`: `[streams.NAME]`
//! - `flows`: `[flows.NAME]`
//! - `filters`: `[filters.NAME]`
//! - `hop`: `aggregation = "hop"`
//! - `distance`: the round trip between two stations
//! - `variants`: `[variants.NAME]`
//! - `expand`: parameters, patterns of names, included files, rows of CSV files
//! - `dump`: plans as TOML
//! - `dot`: networks for Graphviz
//! - `phases`: phases between hosts, streams, gate cycles and clocks
//! - `calibration`: a machine's delays as defaults of a plan
//! - `check`: finds gates and ports that never let a frame pass
//! - `overload`: finds streams that exceed their gates, shaper or line
//! - `reservations`: reserved bandwidth
//! - `requirements`: deadlines and permitted losses
//! - `remarks`: remarks on a plan before the run
//! - `writer`: plans of configurations
//! - [`campaign`]: random plans with faults, and the laws that they keep
//! - [`run`]: runs, phases, sweeps and their document
//! - [`simulate`]: observers of a simulation: traces, captures, limits, ports
//!
//! # Example
//!
//! A plan is parsed, checked and simulated. An error contains the place of the mistake:
//!
//! ```
//! use farlane_plan::Plan;
//!
//! let text = r#"
//! transport = "tcp"
//!
//! [link]
//! rate = "1G"
//!
//! [workload]
//! dd = "read"
//! bs = "4KiB"
//! count = 10
//! "#;
//! let planned = Plan::parse("plan.toml", text)?.build()?;
//! let report = sim::World::new(&planned.config).and_then(|mut world| world.run()).expect("a run");
//! assert_eq!(report.hosts[0].commands, 10);
//!
//! let wrong = text.replace("\"1G\"", "\"1Q\"");
//! let error = Plan::parse("plan.toml", &wrong)?.build().unwrap_err();
//! assert!(error.to_string().starts_with("plan.toml:5:"), "{error}");
//! # Ok::<(), farlane_plan::KeyError>(())
//! ```

mod attached;
mod cable;
mod calibration;
pub mod campaign;
mod check;
mod clocks;
mod distance;
mod dot;
mod dump;
mod expand;
mod filters;
mod flows;
mod hop;
mod host;
mod intervals;
mod live_faults;
mod network;
mod overload;
mod owners;
mod paths;
mod phases;
mod port;
#[cfg(test)]
mod ranges;
mod recorded;
mod recording;
mod remarks;
mod requirements;
mod reservations;
pub mod run;
mod schedule;
mod scheduled;
mod section;
mod shapers;
mod shared;
pub mod simulate;
mod streams;
mod tables;
#[cfg(test)]
mod tests;
mod traffic;
mod units;
mod variants;
mod workload;
mod writer;

pub use calibration::Machine;
pub use keys::{KeyError, Origin};
pub use overload::Overload;
pub use phases::{Shift, Trial};
pub use recording::Recording;
pub use remarks::Remark;
pub use requirements::{Bound, Requirement, Subject};
pub use scheduled::StreamStart;
pub use traffic::listener_name;
pub use writer::{write, write_ports};

use crate::simulate::OutputFiles;
use keys::{Section, Value, allowed, both};
use report::target::Target;
use section::Defaults;
use sim::Config;
use sim::ethernet::traffic::StreamId;
use sim::kernel::Limits;
use sim::measure::Summary;
use sim::network::CableEnd;
use sim::world::TunnelLink;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use switch::congestion::Config as Congestion;
use tables::ROOT;
use wire::{Duration, Instant};

/// A parsed plan. Its keys can still be changed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Text of the plan file. If the plan has further files, the text contains them too.
    pub text: Arc<str>,
    /// The plan with its parameters and patterns.
    source: Arc<Value>,
    value: Value,
    /// Settings of the expanded plan, each with its option, which follow a change of a parameter.
    settings: Vec<[String; 3]>,
    /// Cache of recordings that were read.
    recordings: recording::Read,
    /// Cache of recorded traffic that was checked.
    recorded: recorded::Known,
}

/// The result of reading a plan.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Configuration of the simulation.
    pub config: Config,
    /// Names of the hosts, in the order of the configuration.
    pub hosts: Vec<String>,
    /// Congestion control of each host over raw Ethernet. The configuration has a target delay for
    /// the simulated network in addition, which live nodes measure.
    pub congestion: Vec<Congestion>,
    /// Names of the tunnel links, in the order of the links: of the drive, or `NODE@HOST` of a
    /// switch node.
    pub links: Vec<String>,
    /// Names of the stations.
    pub stations: Vec<String>,
    /// Names of the bridges.
    pub bridges: Vec<String>,
    /// Names of the streams.
    pub streams: Vec<(String, StreamId)>,
    /// Names of the flows over TCP.
    pub flows: Vec<String>,
    /// Streams with a seed that does not depend on the plan's.
    seeds: Vec<(StreamId, u64)>,
    /// Names of the streams that nodes identify, in the order of the network's streams.
    pub identified: Vec<String>,
    /// Requirements of hosts, drives and streams.
    pub requirements: Vec<Requirement>,
    /// Ports to which streams offer more than gates and lines can carry.
    pub overloads: Vec<Overload>,
    /// Remarks, for example on periods that do not divide one another.
    pub remarks: Vec<Remark>,
    /// The recording that each host replays, if it replays one.
    pub recordings: Vec<Option<Arc<Recording>>>,
    /// Files to write from the first run.
    pub record: OutputFiles,
    /// Number of simulations to run, each with the next seed.
    pub runs: u64,
    /// The machine whose delays the plan uses, if it names a calibration.
    pub calibration: Option<Machine>,
}

/// A tunnel link of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlannedLink<'a> {
    /// Its number among all links.
    pub number: usize,
    /// Its name, as in [`Planned::links`].
    pub name: &'a str,
    /// The host.
    pub host: usize,
    /// The number of the link at the host.
    pub at: usize,
    /// The link.
    pub link: TunnelLink<'a>,
}

impl Plan {
    /// Parses a plan with its further files, and expands its patterns; `file` is its name in
    /// errors.
    ///
    /// # Errors
    /// The place where the text is not TOML, and each mistake in files and patterns.
    pub fn parse(file: &str, text: &str) -> Result<Self, KeyError> {
        let (source, has_files) = expand::read(keys::parse(file, text)?)?;
        let text = if has_files { dump::toml(&source).into() } else { text.into() };
        let value = expand::expand(&source)?;
        let (source, (recordings, recorded)) = (Arc::new(source), Default::default());
        Ok(Self { text, source, value, settings: Vec::new(), recordings, recorded })
    }

    /// Reads a plan from a file.
    ///
    /// # Errors
    /// One line for the user.
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        Self::parse(&name, &text).map_err(|error| error.to_string())
    }

    /// Returns the plan with the key at a dotted path changed by an option such as `--sweep`.
    /// `variant` sets all keys of a `[variants.NAME]`.
    ///
    /// # Errors
    /// If the plan has no such table, or the table can have no such key. Options cannot add hosts,
    /// nodes, drives and other named tables.
    pub fn with(&self, path: &str, text: &str, option: &str) -> Result<Self, KeyError> {
        let mut plan = self.clone();
        plan.set(path, text, option)?;
        Ok(plan)
    }

    fn set(&mut self, path: &str, text: &str, option: &str) -> Result<(), KeyError> {
        if path == variants::KEY {
            return variants::set(self, text, option);
        }
        if path == expand::INCLUDE {
            let origin = Origin::Option(format!("{option} {path}={text}"));
            return Err(origin.fail("options cannot include files"));
        }
        if path.split('.').next() != Some(expand::PARAMETERS) {
            allowed::set(ROOT, &mut self.value, path, text, option)?;
            self.settings.push([path, text, option].map(str::to_owned));
            return Ok(());
        }
        let source = Arc::make_mut(&mut self.source);
        allowed::set(ROOT, source, path, text, option)?;
        self.value = expand::expand(source)?;
        self.settings.iter().try_for_each(|[path, text, option]| {
            allowed::set(ROOT, &mut self.value, path, text, option)
        })
    }

    /// Returns the plan as TOML without parameters, patterns and further files. Paths become
    /// absolute.
    pub fn dump(&self) -> String {
        dump::toml(&self.value)
    }

    /// Returns the files that the plan reads, apart from those that its text contains.
    pub fn files(&self) -> Vec<PathBuf> {
        dump::files(&self.value)
    }

    /// Builds the simulation of the plan.
    ///
    /// # Errors
    /// All mistakes and contradictions that can be found in one pass, each with its place.
    pub fn build(&self) -> Result<Planned, KeyError> {
        allowed::check(ROOT, &self.value)?;
        variants::check(self)?;
        let mut value = self.value.clone();
        let calibration = calibration::merge(&mut value)?;
        let root = &section::root(&value);
        let defaults = &Defaults::read(root);
        let record = root.table("record");
        let owners = owners::Owners::new(root, defaults);
        let owners = owners.and_then(|owners| owners.check(root, defaults).map(|()| owners));
        let parts = both(port::Parts::read(root), filters::Filters::read(root));
        let (limits, (owners, (parts, filters))) = both(run_limits(root), both(owners, parts))?;
        let owners = &owners;
        let mut network = network::Layout::read(root, defaults, owners, &parts)?;
        let loaded = network.load(root, &filters, &self.recorded);
        let network = &network;
        let wiring = &network.config.wiring();
        let parts = host::HostBuilder { root, defaults, owners, network, wiring };
        let (hosts, ()) = both(parts.hosts(&self.recordings), loaded)?;
        let (hosts, recordings) = hosts;
        let config = Config {
            seed: root.get("seed").unwrap_or(1),
            limits,
            hosts,
            network: network.config.clone(),
            outages: network.outages.clone(),
            kills: network.kills.iter().map(|(kill, _)| *kill).collect(),
            moves: owners.moves()?,
            shared: shared::drives(owners),
            disturbances: [network.disturbances.clone(), owners.drive_resets()].concat(),
            runtime: root.get("runtime"),
        };
        let config = hop::merge(config, root, owners)?;
        if let Some((_, kill)) = network.kills.first()
            && config.drives().any(|drive| drive.volatile)
        {
            return Err(
                kill.fail("kills: drives with media = \"volatile\" do not outlive a process")
            );
        }
        if let Some(moves) = root.find("moves").filter(|_| !network.switches.is_empty()) {
            return Err(moves.origin.fail("drives cannot move in a plan with switch nodes"));
        }
        shared::check(&config, owners, network)?;
        check::ways(&config, network)?;
        let seed = config.seed;
        let workloads: Vec<_> = config.hosts.iter().map(|host| &host.workload).collect();
        let requirements = requirements::read(owners, network, &workloads)?;
        let overloads = overload::find(&config.network);
        let (stations, bridges) = network.names.split_at(network.config.stations.len());
        let planned = Planned {
            hosts: owners.hosts.iter().map(|host| host.name.clone()).collect(),
            congestion: owners.hosts.iter().map(|host| parts.congestion(host)).collect(),
            links: owners.link_names(&config.hosts, stations),
            stations: stations.to_vec(),
            bridges: bridges.to_vec(),
            streams: network
                .streams
                .iter()
                .map(|stream| (stream.name.clone(), stream.id))
                .collect(),
            seeds: network.streams.iter().filter_map(|own| Some((own.id, own.seed?))).collect(),
            flows: network.flows.clone(),
            identified: network.identified.clone(),
            requirements,
            overloads,
            remarks: Vec::new(),
            recordings,
            record: OutputFiles {
                trace: record.path("trace"),
                pcapng: record.path("pcapng").map(Target::File),
                report: record.path("report").map(Target::File),
                timeline: None,
            },
            runs: root.get("runs").unwrap_or(1),
            calibration,
            config,
        };
        reservations::admit(&planned, root, owners)?;
        let planned = Planned { remarks: remarks::find(&planned), ..planned };
        Ok(planned.with_seed(seed))
    }
}

/// Reads the limits at which a simulation is stopped. `runtime` must end earlier.
fn run_limits(root: &Section) -> Result<Limits, KeyError> {
    let (limits, mut all) = (root.table("limits"), Limits::default());
    let time = limits.get("time").map(|time: Duration| Instant::ZERO + time);
    all.time = time.unwrap_or(all.time);
    all.events = limits.get("events").unwrap_or(all.events);
    let runtime = root.get("runtime").unwrap_or(Duration::ZERO);
    if Instant::ZERO + runtime > all.time {
        let most = allowed::time(all.time.since(Instant::ZERO));
        return root.fail("runtime", format!("runtime: at most limits.time, {most} here"));
    }
    Ok(all)
}

impl Planned {
    /// Returns the same simulation with another seed for all random numbers.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        // The multiplication maps neighbouring seeds to distant ones.
        let spread = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.config.seed = seed;
        let network = &mut self.config.network;
        let cables = network.cables.iter_mut().flat_map(|cable| &mut cable.faults);
        let faults = cables.map(|faults| &mut faults.seed);
        let stations = network.stations.iter_mut().flat_map(|station| &mut station.traffic);
        let traffic = stations.map(|traffic| &mut traffic.seed);
        faults.chain(traffic).zip(1..).for_each(|(seed, number)| *seed = spread ^ number << 32);
        for (StreamId { station, number }, seed) in &self.seeds {
            network.stations[usize::from(*station)].traffic[usize::from(*number)].seed = *seed;
        }
        self
    }

    /// Returns for each host the latencies of the commands in its recording.
    pub fn recorded(&self) -> Vec<Option<Summary>> {
        let with_trace =
            |recording: &Option<Arc<Recording>>| recording.as_ref().map(|r| r.latency.summary());
        self.recordings.iter().map(with_trace).collect()
    }

    /// Returns the tunnel links, in the order of [`links`](Self::links).
    pub fn tunnel_links(&self) -> impl Iterator<Item = PlannedLink<'_>> {
        let hosts = self.config.hosts.iter().enumerate();
        let links = hosts.flat_map(|(host, config)| {
            config.links().into_iter().enumerate().map(move |(at, link)| (host, at, link))
        });
        let named = self.links.iter().zip(links).enumerate();
        named.map(|(number, (name, (host, at, link)))| PlannedLink { number, name, host, at, link })
    }

    /// Returns the names of streams.
    pub fn stream_names(&self, streams: &[StreamId]) -> Vec<String> {
        let streams: BTreeSet<_> = streams.iter().collect();
        let named = self.streams.iter().filter(|(_, id)| streams.contains(id));
        named.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the name of a port in the plan.
    pub fn port_name(&self, place: CableEnd) -> String {
        self.link_name(&simulate::places::way(&self.config.network, place))
    }

    /// Returns the name of the station or bridge at the end of a cable.
    pub fn node_name(&self, end: CableEnd) -> &str {
        match end {
            CableEnd::Station(station, _) => &self.stations[station],
            CableEnd::Bridge(bridge, _) => &self.bridges[bridge],
        }
    }

    /// Returns the ends of a cable in the plan's names: `A to B`.
    pub fn cable_name(&self, cable: usize) -> String {
        let cable = &self.config.network.cables[cable];
        format!("{} to {}", self.node_name(cable.a), self.node_name(cable.b))
    }

    /// Returns the wire onto which the port `BRIDGE:PEER` sends, or the wire of a `STATION`, which
    /// has one port. Names are those of the plan.
    ///
    /// # Errors
    /// The allowed names.
    pub fn wire(&self, port: &str) -> Result<usize, String> {
        let network = &self.config.network;
        let name = |place| self.node_name(place);
        let all = (0..2 * network.cables.len()).filter_map(|wire| {
            let (from, to) = simulate::places::wire(network, wire)?;
            let alone = matches!(from, CableEnd::Station(..)).then(|| name(from));
            Some((wire, format!("{}:{}", name(from), name(to)), alone))
        });
        let all: Vec<_> = all.collect();
        let found = all.iter().find(|(_, both, alone)| both == port || *alone == Some(port));
        found.map(|(wire, ..)| *wire).ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|(_, both, _)| both.as_str()).take(24).collect();
            let more = if all.len() > names.len() { " …" } else { "" };
            if names.is_empty() {
                return format!("no port '{port}': with transport direct there is no network");
            }
            format!("no port '{port}': expected one of {}{more}", names.join(", "))
        })
    }

    /// Finds the overloads of the present configuration, which may differ from the plan's.
    pub fn find_overloads(&mut self) {
        self.overloads = overload::find(&self.config.network);
    }

    /// Describes each overloaded class of a port in one sentence.
    pub fn overload_sentences(&self) -> Vec<String> {
        let rate = overload::megabits;
        let sentence = |overload: &Overload| {
            let others = if overload.classes.len() > 1 { " and the classes before it" } else { "" };
            format!(
                "class {} is overloaded from {}: {}{others} offer {}, gates, shaper and line let \
                 {} through",
                overload.classes[0],
                self.port_name(overload.place),
                few(&self.stream_names(&overload.streams)),
                rate(overload.offered),
                rate(overload.limit),
            )
        };
        self.overloads.iter().map(sentence).collect()
    }

    /// Replaces the names of links and wires in a report by the plan's names.
    pub fn link_name(&self, name: &str) -> String {
        with_names(name, |word, number| match word {
            "host" => pick(&self.hosts, number),
            "link" => pick(&self.links, number),
            "station" => pick(&self.stations, number),
            "bridge" => pick(&self.bridges, number),
            "flow" => pick(&self.flows, number),
            _ => None,
        })
    }
}

/// Joins the first names, and counts the others.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 8;
    match names.len().saturating_sub(SHOWN) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

fn pick(names: &[String], number: &str) -> Option<String> {
    number.parse().ok().and_then(|number: usize| names.get(number).cloned())
}

/// Replaces `station 0` and `bridge 0` in a text by the names of the stations, then of the bridges.
fn with_nodes(names: &[String], stations: usize, text: &str) -> String {
    let (stations, bridges) = names.split_at(stations);
    with_names(text, |word, number| match word {
        "station" => pick(stations, number),
        "bridge" => pick(bridges, number),
        _ => None,
    })
}

/// Replaces each word and number in a text, such as `bridge 3`, by the name from `name_of`.
fn with_names(text: &str, name_of: impl Fn(&str, &str) -> Option<String>) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let next = words.get(at + 1).copied().unwrap_or("");
        let (next, comma) = next.strip_suffix(',').map_or((next, ""), |next| (next, ","));
        let named = name_of(words[at], next);
        at += if named.is_some() { 2 } else { 1 };
        out.push(named.map_or_else(|| words[at - 1].to_owned(), |name| name + comma));
    }
    out.join(" ")
}
