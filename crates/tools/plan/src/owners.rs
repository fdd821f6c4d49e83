//! Hosts and drives: which hosts have which drive, and which drives move to another host.

use super::attached;
use super::section::{Defaults, check_used};
use super::tables::{RAW, TUNNEL};
use super::units::Form as _;
use keys::allowed::Key;
use keys::{KeyError, Mistakes, Names, Origin, Section, all, both};
use sim::drive::DriveConfig;
use sim::world::{Disturbance, DisturbanceKind, HostConfig, MAX_HOSTS, MAX_LINKS, Move};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Duration, Instant};

/// A drive, or several equal drives.
#[derive(Clone)]
pub struct DrivePlan<'a> {
    pub name: String,
    pub section: Section<'a>,
    pub config: DriveConfig,
    pub count: usize,
    /// The name of the drive, if several hosts have it. Each host then has a copy of this table.
    pub shared: Option<String>,
}

/// A host.
#[derive(Clone)]
pub struct HostPlan<'a> {
    pub name: String,
    pub section: Section<'a>,
    pub transport: &'a str,
    /// Indices of the drives that the host owns.
    pub drives: Vec<usize>,
}

impl HostPlan<'_> {
    /// Returns whether the host's drive is below its root port.
    pub fn is_direct(&self) -> bool {
        self.transport == "direct"
    }
}

/// `[moves.NAME]`: a drive that moves to another host.
struct MovePlan<'a> {
    drive: &'a str,
    to: &'a str,
    at: Instant,
    section: Section<'a>,
}

impl MovePlan<'_> {
    fn name(&self) -> String {
        format!("{}@{}", self.drive, self.to)
    }
}

/// Hosts and drives, and which host owns which drive.
pub struct Owners<'a> {
    pub hosts: Vec<HostPlan<'a>>,
    pub drives: Vec<DrivePlan<'a>>,
    moves: Vec<MovePlan<'a>>,
}

/// Returns whether a plan has only streams: it has a runtime, and neither hosts nor a workload.
pub fn is_without_hosts(root: &Section) -> bool {
    root.find("runtime").is_some() && has_no_host(root)
}

fn has_no_host(root: &Section) -> bool {
    ["hosts", "host", "workload"].iter().all(|key| root.find(key).is_none())
}

/// Checks that a plan without hosts has no key that only hosts use.
///
/// # Errors
/// The first such key.
fn check_without_hosts(root: &Section) -> Result<(), KeyError> {
    for key in ["machine", "transport", "pcie", "drive", "drives", "moves"] {
        if let Some(entry) = root.find(key) {
            let message = format!("'{key}' requires hosts; add [workload] or [hosts]");
            return Err(entry.origin.fail(message));
        }
    }
    if root.named("traffic").is_empty() && root.named("flows").is_empty() {
        let message = "runtime without hosts needs [traffic.NAME]: streams that run so long";
        return root.fail("runtime", message);
    }
    Ok(())
}

impl<'a> Owners<'a> {
    /// Reads hosts and drives, and copies hosts and drives that have a count.
    pub fn new(root: &Section<'a>, defaults: &Defaults<'a>) -> Result<Self, KeyError> {
        let owners = Self::read(root, defaults)?.multiplied();
        owners.check_count().map(|()| owners)
    }

    /// Copies hosts and drives. Each copy of a host has copies of the host's drives.
    fn multiplied(self) -> Self {
        let (mut hosts, mut drives, moves) = (Vec::new(), self.drives, self.moves);
        for host in self.hosts {
            let count: usize = host.section.get("count").unwrap_or(1);
            if count == 1 {
                hosts.push(host);
                continue;
            }
            for copy in 0..count {
                let name = format!("{}.{copy}", host.name);
                let first = drives.len();
                for drive in &host.drives {
                    let drive = drives[*drive].clone();
                    drives.push(DrivePlan { name: format!("{name}.{}", drive.name), ..drive });
                }
                let own = (first..drives.len()).collect();
                hosts.push(HostPlan { name, drives: own, ..host.clone() });
            }
        }
        Self { hosts, drives, moves }
    }

    fn read(root: &Section<'a>, defaults: &Defaults<'a>) -> Result<Self, KeyError> {
        if is_without_hosts(root) {
            check_without_hosts(root)?;
            return Ok(Self { hosts: Vec::new(), drives: Vec::new(), moves: Vec::new() });
        }
        if has_no_host(root)
            && let Some(traffic) = root.find("traffic").or(root.find("flows"))
        {
            let message = "streams without hosts need runtime, such as \"1s\": for how long they \
                        run; [workload] or [hosts] makes hosts";
            return Err(traffic.origin.fail(message));
        }
        let drive = |(name, section): (String, Section<'a>)| {
            if !name.is_ascii() || name.is_empty() {
                let message =
                    format!("invalid drive name '{name}': expected ASCII characters, at least one");
                return Err(section.origin.fail(message));
            }
            let (config, count) = attached::drive(&section)?;
            Ok(DrivePlan { name, section, config, count, shared: None })
        };
        let drives = root.named_or("drives", "drive", &defaults.drive).into_iter();
        let (mut drives, moves) = both(all(drives.map(drive)), moves(root))?;
        let hosts = root.named_or("hosts", "host", &defaults.host);
        let names: Names = drives.iter().map(|drive| drive.name.clone()).collect();
        let host_names: Names = hosts.iter().map(|(name, _)| name.clone()).collect();
        let mut mistakes = Mistakes::default();
        for MovePlan { drive, to, section, .. } in &moves {
            let found = [
                ("drive", names.find(0..names.len(), "drive", drive)),
                ("to", host_names.find(0..host_names.len(), "host", to)),
            ];
            for (key, found) in found {
                mistakes.keep(found.or_else(|message| section.fail(key, message)));
            }
        }
        mistakes.or(())?;
        let behind = behind_switches(root);
        let alone = hosts.len() == 1;
        let mut free: Vec<bool> = vec![true; drives.len()];
        let shared = shared_names(&hosts);
        let mut plans = Vec::new();
        let mut mistakes = Mistakes::default();
        for (name, section) in hosts {
            let come: Vec<_> = moves.iter().filter(|planned| planned.to == name).collect();
            let none = !alone && section.find("drives").is_none() && !come.is_empty();
            let own = match none {
                true => Ok(Vec::new()),
                false => drives_of(&section, &names, alone, &mut free),
            };
            let Some(mut own) = mistakes.keep(own) else { continue };
            for drive in &mut own {
                if !shared.contains(&drives[*drive].name) {
                    continue;
                }
                let copy = drives[*drive].clone();
                let (shared, own) = (Some(copy.name.clone()), format!("{}@{name}", copy.name));
                *drive = drives.len();
                drives.push(DrivePlan { name: own, shared, ..copy });
            }
            for planned in come {
                let drive = drives.iter().find(|drive| drive.name == planned.drive);
                let moved = drive.expect("one of them").clone();
                own.push(drives.len());
                drives.push(DrivePlan { name: planned.name(), ..moved });
            }
            // Enumeration finds them in this order.
            own.sort_by_key(|drive| {
                drives[*drive].section.text("node").and_then(|node| behind.get(node))
            });
            let transport = section.text("transport").or(root.text("transport")).unwrap_or("tcp");
            let copies: usize = own.iter().map(|drive| drives[*drive].count).sum();
            let host = HostPlan { name, section, transport, drives: own };
            let most = if host.is_direct() { 1 } else { 32 };
            if !(1..=most).contains(&copies) {
                let message = format!(
                    "host '{}' has {copies} drives: with transport {transport} it has 1 to {most}",
                    host.name
                );
                mistakes.note(host.section.place("drives").fail(message));
            }
            plans.push(host);
        }
        if mistakes.is_empty() {
            for (drive, _) in drives.iter().zip(&free).filter(|(_, free)| **free) {
                let message = format!("no host has drive '{}'", drive.name);
                mistakes.note(drive.section.origin.fail(message));
            }
        }
        mistakes.or(Self { hosts: plans, drives, moves })
    }

    /// Checks that the simulation can number all hosts and links.
    fn check_count(&self) -> Result<(), KeyError> {
        if let Some(host) = self.hosts.get(MAX_HOSTS) {
            let message = format!("a plan has {MAX_HOSTS} hosts at most");
            return Err(host.section.origin.fail(message));
        }
        let mut links = 0;
        for host in self.hosts.iter().filter(|host| !host.is_direct()) {
            links += host.drives.iter().map(|drive| self.drives[*drive].count).sum::<usize>();
            if links > MAX_LINKS {
                let message = format!("a plan has {MAX_LINKS} drives behind tunnels at most");
                return host.section.fail("drives", message);
            }
        }
        Ok(())
    }

    /// Returns the transports of the hosts.
    pub fn transports(&self) -> Vec<&'a str> {
        self.hosts.iter().map(|host| host.transport).collect()
    }

    /// Checks that the transports use every key that is set.
    ///
    /// # Errors
    /// Each key that no transport uses.
    pub fn check(&self, root: &Section, defaults: &Defaults) -> Result<(), KeyError> {
        let all = self.transports();
        let mut mistakes = Mistakes::default();
        mistakes.keep(check_used(root, &all, |_| true));
        // An unused link is permitted if only the transport changes.
        let tunnelled = all.is_empty() || all.iter().any(|transport| TUNNEL.contains(transport));
        let link = check_used(&defaults.link, &all, |Key { with, .. }| tunnelled || *with == RAW);
        mistakes.keep(link);
        for host in &self.hosts {
            let drives = host.drives.iter().map(|drive| &self.drives[*drive].section);
            for section in std::iter::once(&host.section).chain(drives) {
                mistakes.keep(check_used(section, &[host.transport], |_| true));
            }
        }
        mistakes.or(())
    }

    /// Returns a name for each tunnel link of these hosts: of its drive, or of its switch node.
    pub fn link_names(&self, configs: &[HostConfig], stations: &[String]) -> Vec<String> {
        let hosts = self.hosts.iter().zip(configs);
        let named = hosts.flat_map(|(host, config)| {
            let drives: Vec<_> = host.drives.iter().flat_map(|drive| self.names(*drive)).collect();
            config.links().into_iter().map(move |link| match link.drive {
                Some((drive, _)) => drives[drive].clone(),
                None => {
                    let ([_, switch], _) = link.transport.stations().expect("two stations");
                    format!("{}@{}", stations[switch], host.name)
                }
            })
        });
        named.collect()
    }

    /// Returns the names of a drive's copies.
    pub fn names(&self, drive: usize) -> Vec<String> {
        copies(&self.drives[drive].name, self.drives[drive].count)
    }

    /// Returns the moves of drives between ports.
    pub fn moves(&self) -> Result<Vec<Move>, KeyError> {
        let place = |planned: &MovePlan| {
            let (from, to) = (self.port(planned.drive), self.port(&planned.name()));
            let (Some(from), Some(to)) = (from, to) else {
                let message = format!(
                    "drive '{}' cannot move: expected one drive of one host with transport tcp, tsn or raw",
                    planned.drive
                );
                return Err(planned.section.origin.fail(message));
            };
            Ok(Move { at: planned.at, from, to })
        };
        self.moves.iter().map(place).collect()
    }

    /// Returns the times at which drivers reset their drives.
    pub fn drive_resets(&self) -> Vec<Disturbance> {
        let hosts = self.hosts.iter().enumerate();
        let resets = hosts.flat_map(|(number, host)| {
            let times = host.section.parsed_list("drive_resets", Instant::parse);
            times.into_iter().map(move |(at, _)| (number, at))
        });
        let reset = |(host, at)| Disturbance { at, kind: DisturbanceKind::DriveReset(host) };
        resets.map(reset).collect()
    }

    /// Returns the host and the port of a drive that has no copies.
    fn port(&self, name: &str) -> Option<[usize; 2]> {
        self.hosts.iter().enumerate().find_map(|(number, host)| {
            let at = host.drives.iter().position(|at| self.drives[*at].name == name)?;
            let before = host.drives[..at].iter();
            let ports: usize = before.map(|at| self.drives[*at].count).sum();
            (self.drives[host.drives[at]].count == 1).then_some([number, ports])
        })
    }
}

/// Returns the nodes behind switch nodes, each with the position of its switch node in the plan.
fn behind_switches(root: &Section) -> BTreeMap<String, usize> {
    let nodes = root.named("nodes");
    let positions: BTreeMap<&str, usize> =
        nodes.iter().enumerate().map(|(at, (name, _))| (name.as_str(), at)).collect();
    let behind = nodes.iter().filter_map(|(name, section)| {
        let switch = positions.get(section.text("switch")?)?;
        Some((name.clone(), *switch))
    });
    behind.collect()
}

/// Returns the names of `count` copies. A single copy has no number.
pub fn copies(name: &str, count: usize) -> Vec<String> {
    match count {
        1 => vec![name.to_owned()],
        _ => (0..count).map(|copy| format!("{name}.{copy}")).collect(),
    }
}

fn moves<'a>(root: &Section<'a>) -> Result<Vec<MovePlan<'a>>, KeyError> {
    let read = |(_, section): (String, Section<'a>)| {
        let drive = section.required("drive", ": a drive")?;
        let to = section.required("to", ": a host")?;
        section.required("at", ", such as \"5ms\"")?;
        let at = Instant::ZERO + section.get("at").unwrap_or(Duration::ZERO);
        Ok(MovePlan { drive, to, at, section })
    };
    all(root.named("moves").into_iter().map(read))
}

/// Returns the names of drives that several hosts name.
fn shared_names(hosts: &[(String, Section)]) -> BTreeSet<String> {
    let (mut once, mut again) = (BTreeSet::new(), BTreeSet::new());
    for (_, section) in hosts {
        let named: BTreeSet<String> =
            section.list("drives").into_iter().map(|(name, _)| name).collect();
        again.extend(named.intersection(&once).cloned().collect::<Vec<_>>());
        once.extend(named);
    }
    again
}

/// Returns the drives that a host names; all drives if it is the only host.
fn drives_of(
    section: &Section,
    names: &Names,
    alone: bool,
    free: &mut [bool],
) -> Result<Vec<usize>, KeyError> {
    if section.find("drives").is_none() {
        if alone {
            free.fill(false);
            return Ok((0..names.len()).collect());
        }
        let message = format!("[{}] needs drives, some of: {}", section.name, names.join(", "));
        return Err(section.origin.fail(message));
    }
    let requested = section.list::<String>("drives").into_iter();
    let mut named = BTreeSet::new();
    let take = |(name, origin): (String, Origin)| {
        let found = names.find(0..names.len(), "drive", &name);
        let at = found.map_err(|message| origin.fail(message))?;
        free[at] = false;
        if !named.insert(at) {
            return Err(origin.fail(format!("drive '{name}' is named twice")));
        }
        Ok(at)
    };
    all(requested.map(take))
}
