//! Hosts, their drives and where those are.

use super::attached::{self, Pcie};
use super::moves::{self, MovePlan};
use super::network::Layout;
use super::recording::{self, Recording};
use super::section::{Section, unknown};
use super::units::Bounded;
use super::value::Origin;
use super::{Defaults, PlanError, distance, keys, units, workload};
use sim::Config;
use sim::drive::DriveConfig;
use sim::ethernet::Rate;
use sim::node::RootConfig;
use sim::pcie::LinkConfig;
use sim::transport::{RawConfig, TcpConfig, TransportConfig};
use sim::workload::{Notice, SoftwareConfig, Workload};
use sim::world::{Attached, HostConfig, PortConfig, SwitchConfig};
use std::sync::Arc;
use switch::congestion::{Config as Congestion, SwiftConfig};
use switch::raw::Settings;
use wire::Duration;

/// Names of transports.
pub const TRANSPORTS: [&str; 4] = ["direct", "tcp", "tsn", "raw"];

/// Copies of a host, or of a device node.
pub const MOST_COPIES: u64 = 32;

/// What a TCP segment carries: 1500 bytes less the headers of IP and TCP.
const SEGMENT: usize = 1460;

/// Any workload: for tables that are taken from the brief's configuration.
fn any() -> Workload {
    Workload::ConfigReads { count: 1, gap: Duration::ZERO }
}

/// The PCIe links of the brief: below the root port, below the switch.
pub fn brief_links() -> (LinkConfig, LinkConfig) {
    let config = Config::brief_tcp(any(), Rate::G1);
    let Attached::Switch(switch) = &config.hosts[0].attached else { unreachable!("a tunnel") };
    (config.hosts[0].link, switch.ports[0].link)
}

/// A node of the brief.
pub fn brief_station(tsn: bool, rate: Rate) -> sim::network::StationConfig {
    let config = if tsn { Config::brief_tsn(any(), rate) } else { Config::brief_tcp(any(), rate) };
    config.network.stations[0].clone()
}

/// A drive, or several of a kind.
pub struct DrivePlan<'a> {
    pub name: String,
    pub section: Section<'a>,
    pub config: DriveConfig,
    pub count: usize,
}

/// A host.
pub struct HostPlan<'a> {
    pub name: String,
    pub section: Section<'a>,
    pub transport: &'a str,
    /// Which of the drives are its own.
    pub drives: Vec<usize>,
}

/// Hosts and drives, and who has which.
pub struct Built<'a> {
    pub hosts: Vec<HostPlan<'a>>,
    pub drives: Vec<DrivePlan<'a>>,
    pub moves: Vec<MovePlan<'a>>,
}

impl<'a> Built<'a> {
    /// Hosts and drives, copies made of those with a count.
    pub fn new(root: &Section<'a>, defaults: &Defaults<'a>) -> Result<Self, PlanError> {
        Self::read(root, defaults)?.multiplied()
    }

    /// Each copy of a host has copies of its drives.
    fn multiplied(self) -> Result<Self, PlanError> {
        let (mut hosts, mut drives, moves) = (Vec::new(), self.drives, self.moves);
        for host in self.hosts {
            let count = host.section.number("count", 1, MOST_COPIES)?.unwrap_or(1);
            if count == 1 {
                hosts.push(host);
                continue;
            }
            for copy in 0..count {
                let name = format!("{}.{copy}", host.name);
                let mut own = Vec::new();
                for drive in &host.drives {
                    own.push(drives.len());
                    let DrivePlan { name: drive, section, config, count } = &drives[*drive];
                    let name = format!("{name}.{drive}");
                    let (section, config, count) = (section.clone(), config.clone(), *count);
                    drives.push(DrivePlan { name, section, config, count });
                }
                let (section, transport) = (host.section.clone(), host.transport);
                hosts.push(HostPlan { name, section, transport, drives: own });
            }
        }
        Ok(Self { hosts, drives, moves })
    }

    fn read(root: &Section<'a>, defaults: &Defaults<'a>) -> Result<Self, PlanError> {
        let transport = root.word("transport", &TRANSPORTS)?.unwrap_or("tcp");
        let mut drives = root.named("drives", keys::DRIVE, &defaults.drive)?;
        if drives.is_empty() {
            drives.push(("drive".into(), defaults.drive.clone()));
        }
        let mut drives = drives
            .into_iter()
            .map(|(name, section)| {
                if !name.is_ascii() || name.is_empty() {
                    return Err(section.origin.fail("a drive's name has ASCII letters only"));
                }
                let (config, count) = attached::drive(&section)?;
                Ok(DrivePlan { name, section, config, count })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut hosts = root.named("hosts", keys::HOSTS, &defaults.host)?;
        if hosts.is_empty() {
            hosts.push(("host".into(), defaults.host.clone()));
        }
        let alone = hosts.len() == 1;
        let moves = moves::read(root)?;
        let names: Vec<&str> = drives.iter().map(|drive| drive.name.as_str()).collect();
        let of: Vec<&str> = hosts.iter().map(|(name, _)| name.as_str()).collect();
        moves::check(&moves, &names, &of)?;
        let mut free: Vec<bool> = vec![true; drives.len()];
        let mut plans = Vec::new();
        for (name, section) in hosts {
            let come: Vec<_> = moves.iter().filter(|planned| planned.to == name).collect();
            let none = !alone && section.find("drives").is_none() && !come.is_empty();
            let mut own = match none {
                true => Vec::new(),
                false => drives_of(&section, &drives[..free.len()], alone, &mut free)?,
            };
            for planned in come {
                let Some(drive) = drives.iter().find(|drive| drive.name == planned.drive) else {
                    continue;
                };
                let (section, config) = (drive.section.clone(), drive.config.clone());
                let (name, count) = (moves::name(planned), drive.count);
                own.push(drives.len());
                drives.push(DrivePlan { name, section, config, count });
            }
            let transport = section.word("transport", &TRANSPORTS)?.unwrap_or(transport);
            let host = HostPlan { name, section, transport, drives: own };
            let copies: usize = host.drives.iter().map(|drive| drives[*drive].count).sum();
            let most = if host.transport == "direct" { 1 } else { 32 };
            if !(1..=most).contains(&copies) {
                let what = format!(
                    "host '{}' has {copies} drives: with transport {} it has 1 to {most}",
                    host.name, host.transport
                );
                return Err(host.section.place("drives").fail(what));
            }
            plans.push(host);
        }
        if let Some(left) = free.iter().position(|free| *free) {
            let drive = &drives[left];
            return Err(drive.section.origin.fail(format!("no host has drive '{}'", drive.name)));
        }
        Ok(Self { hosts: plans, drives, moves })
    }

    /// A name for each drive behind a tunnel, copies counted.
    pub fn drive_names(&self) -> Vec<String> {
        let tunnelled = self.hosts.iter().filter(|host| host.transport != "direct");
        tunnelled.flat_map(|host| host.drives.iter()).flat_map(|drive| self.names(*drive)).collect()
    }

    fn names(&self, drive: usize) -> Vec<String> {
        let DrivePlan { name, count, .. } = &self.drives[drive];
        match count {
            1 => vec![name.clone()],
            _ => (0..*count).map(|copy| format!("{name}.{copy}")).collect(),
        }
    }

    pub fn finish(
        &mut self,
        root: &Section<'a>,
        defaults: &Defaults<'a>,
        network: &Layout,
        known: &recording::Read,
    ) -> Result<Finished, PlanError> {
        let pcie = Pcie::read(&defaults.pcie)?;
        let standard = root.table("workload", keys::WORKLOAD)?;
        let mut made = Vec::new();
        let mut tunnelled = 0;
        let mut recordings = Vec::new();
        for (number, host) in self.hosts.iter().enumerate() {
            let own = host.section.table("workload", keys::WORKLOAD)?;
            let given = if own.is_there() { &own } else { &standard };
            let (workload, recorded) = workload::read(given, known)?;
            let mut drives = Vec::new();
            for drive in &host.drives {
                let DrivePlan { config, section, .. } = &self.drives[*drive];
                for name in self.names(*drive) {
                    let serial = serial(&name, drives.len());
                    drives.push((DriveConfig { serial, ..config.clone() }, section));
                }
            }
            fits(&workload, given, &drives)?;
            if let Some(recording) = &recorded {
                holds(recording, given, &drives)?;
            }
            recordings.push(recorded);
            let largest = drives.iter().map(|(drive, ..)| drive.max_payload).max();
            let mps = pcie.mps.or(largest).unwrap_or(256);
            let attached = if host.transport == "direct" {
                Attached::Direct(drives.remove(0).0)
            } else {
                let ports = drives
                    .into_iter()
                    .map(|(drive, section)| {
                        let node = network.node_of(section, tunnelled)?;
                        tunnelled += 1;
                        let stations = [network.station_of_host(number), node];
                        let priority = priority(host, defaults, network, stations)?;
                        let transport = match host.transport {
                            "raw" => raw(root, host, defaults, network, stations, priority, mps)?,
                            _ => tcp(defaults, stations, priority, mps)?,
                        };
                        Ok(PortConfig { transport, link: pcie.below_switch(), drive })
                    })
                    .collect::<Result<_, _>>()?;
                Attached::Switch(SwitchConfig {
                    aggregation: choice(root, &host.section, "aggregation", units::policy)?
                        .unwrap_or_default(),
                    rate_limit: choice(root, &host.section, "rate_limit", units::rate_limit)?,
                    ..switch(&defaults.link, mps, ports)?
                })
            };
            made.push(HostConfig {
                root: root_complex(&host.section, mps, pcie.rcb)?,
                software: software(&host.section, mps, pcie.mrrs)?,
                workload,
                link: pcie.below_root(host.transport == "direct"),
                attached,
            });
        }
        Ok((made, recordings))
    }
}

/// The hosts, and what each of them replays.
type Finished = (Vec<HostConfig>, Vec<Option<Arc<Recording>>>);

/// Whether the drives hold what was recorded.
fn holds(
    recording: &Recording,
    section: &Section,
    drives: &[(DriveConfig, &Section)],
) -> Result<(), PlanError> {
    let fail = |what: String| Err(section.place("replay").fail(format!("replay: {what}")));
    let (there, needed) = (drives.len(), recording.needs.len());
    if there < needed {
        return fail(format!("{needed} drives were recorded, this host has {there}"));
    }
    for (number, (needs, (drive, _))) in recording.needs.iter().zip(drives).enumerate() {
        if *needs > drive.size {
            return fail(format!(
                "drive {number} of the recording has commands for {needs} bytes, '{}' has {}; \
                 drive.size sets it",
                drive.serial, drive.size
            ));
        }
    }
    Ok(())
}

/// Up to 20 characters, unlike those of the host's other drives.
fn serial(name: &str, number: usize) -> String {
    format!("{}-{number}", &name[..name.len().min(16)])
}

/// The drives that a host names; all, if it is the only one.
fn drives_of(
    section: &Section,
    drives: &[DrivePlan],
    alone: bool,
    free: &mut [bool],
) -> Result<Vec<usize>, PlanError> {
    let names: Vec<&str> = drives.iter().map(|drive| drive.name.as_str()).collect();
    let Some(wanted) = section.list("drives", |text| Ok(text.to_owned()))? else {
        if alone {
            free.fill(false);
            return Ok((0..drives.len()).collect());
        }
        let what = format!("[{}] needs drives, some of: {}", section.name, names.join(", "));
        return Err(section.origin.fail(what));
    };
    let take = |(name, origin): &(String, Origin)| {
        let Some(at) = names.iter().position(|known| known == name) else {
            return Err(origin.fail(unknown("drive", name, &names)));
        };
        if !std::mem::replace(&mut free[at], false) {
            return Err(origin.fail(format!("drive '{name}' belongs to a host already")));
        }
        Ok(at)
    };
    wanted.iter().map(take).collect()
}

/// Whether a workload fits the drives: what else a run would find out late.
fn fits(
    workload: &Workload,
    section: &Section,
    drives: &[(DriveConfig, &Section)],
) -> Result<(), PlanError> {
    let nsid = workload.nsid();
    let sizes = drives.iter().map(|(drive, ..)| drive.sizes().nth(nsid as usize - 1));
    let Some(least) = sizes.min().flatten() else {
        let what = format!("nsid: a drive has no namespace {nsid}; drive.namespaces adds some");
        return Err(section.place("nsid").fail(what));
    };
    let (needed, key) = match workload {
        Workload::Fio(fio) => {
            let whole = fio.size / fio.bs as u64 * fio.bs as u64 * fio.numjobs as u64;
            match fio.stripe as u64 {
                0 => (whole, "size"),
                stripe => (whole.div_ceil(stripe * drives.len() as u64) * stripe, "size"),
            }
        }
        Workload::Dd { bs, count, .. } => (*bs as u64 * count, "count"),
        Workload::ConfigReads { .. } | Workload::Idle => (0, "configreads"),
        // Its recording says what it needs.
        Workload::Replay(_) => (0, "replay"),
    };
    if needed > least {
        let what = format!(
            "the workload needs {needed} bytes of each drive, the smallest has {least}; \
             drive.size sets it"
        );
        return Err(section.place(key).fail(what));
    }
    Ok(())
}

/// The priority of a tunnel's frames.
fn priority(
    host: &HostPlan,
    defaults: &Defaults,
    network: &Layout,
    stations: [usize; 2],
) -> Result<u8, PlanError> {
    let own = host.section.number("priority", 0, 7)?;
    let priority = match own {
        Some(priority) => priority,
        None => defaults.link.number("priority", 0, 7)?.unwrap_or(0),
    };
    if priority > 0 && !stations.iter().all(|at| network.tagged[*at]) {
        let section = if own.is_some() { &host.section } else { &defaults.link };
        let what = format!("priority {priority} needs frames with tags: set link.vlan, or tsn");
        return Err(section.place("priority").fail(what));
    }
    Ok(priority as u8)
}

fn tcp(
    defaults: &Defaults,
    stations: [usize; 2],
    priority: u8,
    mps: usize,
) -> Result<TransportConfig, PlanError> {
    let least = wire::frame::HEADER + 16 + mps + 4;
    let burst = defaults.link.parsed("burst", units::size)?.map(|burst| burst as usize);
    let burst = burst.unwrap_or(SEGMENT.max(least));
    if !(least..=1 << 20).contains(&burst) {
        let what = format!("burst: {least} bytes for the largest TLP at MPS {mps}, to 1MiB");
        return Err(defaults.link.place("burst").fail(what));
    }
    Ok(TransportConfig::Tcp(TcpConfig { stations, priority, burst }))
}

fn raw(
    root: &Section,
    host: &HostPlan,
    defaults: &Defaults,
    network: &Layout,
    stations: [usize; 2],
    priority: u8,
    mps: usize,
) -> Result<TransportConfig, PlanError> {
    let mtu = defaults.link.parsed("mtu", units::size)?.unwrap_or(1500) as usize;
    let least = wire::raw::HEADER + wire::frame::HEADER + 16 + mps + 4;
    if !(least..=9000).contains(&mtu) {
        let what = format!("mtu: {least} bytes for the largest TLP at MPS {mps}, to 9000B");
        return Err(defaults.link.place("mtu").fail(what));
    }
    let congestion = choice(root, &host.section, "congestion", units::congestion)?;
    let congestion = congestion.unwrap_or(Congestion::Swift(SwiftConfig::default()));
    let congestion = distance::aimed(congestion, &network.config, stations, priority, mtu);
    let loss_limit = defaults.link.within("loss_limit", &units::SILENCE)?;
    let standard = Settings::new(0);
    let settings = Settings {
        chunk: mtu - wire::raw::HEADER,
        congestion,
        give_up: loss_limit.unwrap_or(standard.give_up),
        ..standard
    };
    Ok(TransportConfig::Raw(RawConfig { stations, priority, settings }))
}

/// A key of a host and its device nodes, or else of the plan.
fn choice<T>(
    root: &Section,
    host: &Section,
    key: &str,
    parse: impl Fn(&str) -> Result<T, &'static str>,
) -> Result<Option<T>, PlanError> {
    match host.parsed(key, &parse)? {
        Some(own) => Ok(Some(own)),
        None => root.parsed(key, parse),
    }
}

fn switch(link: &Section, mps: usize, ports: Vec<PortConfig>) -> Result<SwitchConfig, PlanError> {
    let standard = SwitchConfig::new(mps, ports);
    let max_frame = link.parsed("max_frame", units::size)?.map(|bytes| bytes as usize);
    let max_frame = max_frame.unwrap_or(standard.max_frame);
    if !(16 + mps + 4..=1 << 20).contains(&max_frame) {
        let what = format!("max_frame: {} bytes for the largest TLP, to 1MiB", 16 + mps + 4);
        return Err(link.place("max_frame").fail(what));
    }
    let keepalive = link.within("keepalive", &units::SILENCE)?.unwrap_or(standard.keepalive);
    let loss_limit = link.within("loss_limit", &units::SILENCE)?.unwrap_or(standard.loss_limit);
    if loss_limit <= keepalive {
        let (least, most) = units::SILENCE.into_inner();
        let key = if link.find("loss_limit").is_some() { "loss_limit" } else { "keepalive" };
        return Err(link.place(key).fail(format!(
            "{key}: loss_limit is above keepalive, {} to {}",
            least.words(),
            most.words()
        )));
    }
    Ok(SwitchConfig { keepalive, loss_limit, max_frame, ..standard })
}

fn root_complex(section: &Section, mps: usize, rcb: usize) -> Result<RootConfig, PlanError> {
    let standard = RootConfig::BRIEF;
    let memory = section.parsed("memory", units::size)?.unwrap_or(standard.memory as u64);
    if !(1 << 20..=3 << 30).contains(&memory) {
        return Err(section.place("memory").fail("memory: 1MiB to 3GiB"));
    }
    let completion_timeout = section.within("completion_timeout", &units::COMPLETION)?;
    Ok(RootConfig {
        max_payload: mps,
        completion_size: rcb,
        completion_timeout: completion_timeout.unwrap_or(standard.completion_timeout),
        ecrc: section.word("ecrc", &["off", "on"])? == Some("on"),
        mmio: section.time("mmio", standard.mmio)?,
        memory_read: section.time("memory_read", standard.memory_read)?,
        memory: memory as usize,
        memory_at: standard.memory_at,
    })
}

fn software(section: &Section, mps: usize, mrrs: usize) -> Result<SoftwareConfig, PlanError> {
    let standard = SoftwareConfig::BRIEF;
    let interrupt = section.within("interrupt", &units::SHORT)?;
    let polling = section.within("polling", &units::INTERVAL)?;
    let notice = match (interrupt, polling) {
        (Some(_), Some(_)) => {
            let place = section.place("polling");
            return Err(place.fail("a host has interrupt or polling, not both"));
        }
        (_, Some(interval)) => Notice::Polling { interval },
        (Some(latency), None) => Notice::Interrupt { latency },
        (None, None) => standard.notice,
    };
    Ok(SoftwareConfig {
        submit: section.time("submit", standard.submit)?,
        notice,
        complete: section.time("complete", standard.complete)?,
        max_payload: mps,
        max_read_request: mrrs,
    })
}
