//! Builds the simulator's configuration of hosts, links and drives.

use super::attached::Pcie;
use super::network::Layout;
use super::owners::{HostPlan, Owners};
use super::recording::{self, Recording};
use super::section::Defaults;
use super::units::{Form, SILENCE};
use super::{distance, shared, workload};
use keys::{KeyError, Section, all, allowed, set_fields};
use node::push::Mode as Push;
use sim::drive::DriveConfig;
use sim::network::Wiring;
use sim::node::RootConfig;
use sim::transport::{Encapsulation, RawConfig, TcpConfig, TransportConfig};
use sim::workload::{CompletionMode, SoftwareConfig, Workload};
use sim::world::{Attached, HostConfig, LowerConfig, PortConfig, SwitchConfig};
use std::collections::BTreeSet;
use std::sync::Arc;
use switch::congestion::{Config as Congestion, SwiftConfig};
use switch::raw::Settings;
use wire::Duration;
use wire::frame::Paths;

/// Maximum payload of a TCP segment: 1500 bytes less the headers of IP and TCP.
const SEGMENT: usize = 1460;
/// Bytes that a live node hands to TCP at once: its largest tunnel frame.
const STREAM_BURST: usize = 32 << 10;

/// The hosts, and the recording that each host replays.
type BuiltHosts = (Vec<HostConfig>, Vec<Option<Arc<Recording>>>);

/// Builds hosts from the tables of a plan.
pub struct HostBuilder<'a> {
    pub root: &'a Section<'a>,
    pub defaults: &'a Defaults<'a>,
    pub owners: &'a Owners<'a>,
    pub network: &'a Layout,
    pub wiring: &'a Wiring<'a>,
}

impl HostBuilder<'_> {
    /// Builds all hosts.
    pub fn hosts(&self, known: &recording::Read) -> Result<BuiltHosts, KeyError> {
        let pcie = Pcie::read(&self.defaults.pcie)?;
        // The first stations belong to the hosts that are not attached directly.
        let mut counts = (0, 0);
        let hosts = self.owners.hosts.iter().enumerate();
        let made = all(hosts.map(|host| self.host(host, &pcie, &mut counts, known)))?;
        let (made, recordings): BuiltHosts = made.into_iter().unzip();
        self.check_nodes(&made)?;
        Ok((made, recordings))
    }

    /// Checks that a drive is behind each node with a switch node, and that tunnels use each second
    /// interface.
    fn check_nodes(&self, hosts: &[HostConfig]) -> Result<(), KeyError> {
        let links = hosts.iter().flat_map(HostConfig::links);
        let ends = links.filter_map(|link| link.transport.stations());
        let (near, used): (BTreeSet<usize>, BTreeSet<usize>) =
            ends.map(|([near, far], _)| (near, far)).unzip();
        let is_idle = |station: &usize| !near.contains(station) && !used.contains(station);
        if let Some((_, (_, key))) = self.network.seconds.iter().find(|(at, _)| is_idle(at)) {
            return Err(key.fail("'second' applies only to hosts and nodes with tunnels"));
        }
        match self.network.switches.iter().find(|(node, _)| !used.contains(node)) {
            Some((_, (_, origin))) => {
                Err(origin.fail("'switch' applies only to nodes with drives"))
            }
            None => Ok(()),
        }
    }

    /// Builds a host. The numbers count stations and tunnels of the previous hosts.
    fn host(
        &self,
        (number, host): (usize, &HostPlan),
        pcie: &Pcie,
        (station, tunnelled): &mut (usize, usize),
        known: &recording::Read,
    ) -> Result<(HostConfig, Option<Arc<Recording>>), KeyError> {
        let (own, first) = (*station, *tunnelled);
        let mut drives = Vec::new();
        for drive in &host.drives {
            let plan = &self.owners.drives[*drive];
            for name in self.owners.names(*drive) {
                let serial = serial(plan.shared.as_ref().unwrap_or(&name), drives.len());
                drives.push((DriveConfig { serial, ..plan.config.clone() }, &plan.section));
            }
        }
        if !host.is_direct() {
            (*station, *tunnelled) = (own + 1, first + drives.len());
        }
        let given = workload::host_section(&host.section, self.root);
        let (workload, recorded) = workload::read(&given, known)?;
        fits(&workload, &given, &drives)?;
        if let Some(recording) = &recorded {
            holds(recording, &given, &drives)?;
        }
        let largest = drives.iter().map(|(drive, ..)| drive.max_payload).max();
        let mps = pcie.mps.or(largest).unwrap_or(256);
        let attached = if host.is_direct() {
            Attached::Direct(drives.remove(0).0)
        } else {
            Attached::Switch(self.switches(host, (own, first), pcie, mps, drives)?)
        };
        let made = HostConfig {
            root: root_complex(&host.section, mps, pcie.rcb),
            software: SoftwareConfig {
                registration: shared::registration(&host.section, number, workload.nsid()),
                ..software(&host.section, &given, mps, pcie.mrrs)?
            },
            workload,
            link: pcie.below_root(host.is_direct()),
            attached,
        };
        Ok((made, recorded))
    }

    /// Builds the switch of a host, and the switch nodes below it. `first` is the number of the
    /// host's first drive among all drives behind tunnels.
    fn switches(
        &self,
        host: &HostPlan,
        (own, first): (usize, usize),
        pcie: &Pcie,
        mps: usize,
        drives: Vec<(DriveConfig, &Section)>,
    ) -> Result<SwitchConfig, KeyError> {
        let (link, mut ports) = (pcie.below_switch(), Vec::new());
        // The ports of each switch node, by its station. Drives behind one follow one another.
        let mut lower: Vec<(usize, Vec<PortConfig>)> = Vec::new();
        for ((drive, section), number) in drives.into_iter().zip(first..) {
            let node = self.network.node_of(section, number)?;
            let switch = self.network.switches.get(&node).map(|(switch, _)| *switch);
            let (transport, second) = self.transports(host, [switch.unwrap_or(own), node], mps)?;
            let port = PortConfig { transport, second, link, drive };
            match (switch, lower.last_mut()) {
                (None, _) => ports.push(port),
                (Some(switch), Some((last, ports))) if *last == switch => ports.push(port),
                (Some(switch), _) => lower.push((switch, vec![port])),
            }
        }
        let mut top = self.switch(host, mps, ports)?;
        let lower = lower.into_iter().map(|(station, ports)| {
            let (transport, second) = self.transports(host, [own, station], mps)?;
            Ok(LowerConfig { transport, second, link, switch: self.switch(host, mps, ports)? })
        });
        top.switches = all(lower)?;
        Ok(top)
    }

    /// Returns the value of a key of the host and its device nodes; otherwise the plan's value.
    fn host_or_root<T: Form>(&self, host: &HostPlan, key: &str) -> Option<T> {
        host.section.parsed(key, T::parse).or_else(|| self.root.parsed(key, T::parse))
    }

    /// Returns the congestion control of a host, without the target delay that the simulation
    /// derives from the network.
    pub fn congestion(&self, host: &HostPlan) -> Congestion {
        let swift = Congestion::Swift(SwiftConfig::default());
        self.host_or_root(host, "congestion").unwrap_or(swift)
    }

    /// Builds the transports of a tunnel: its first path, and the second path if an end has a second
    /// interface.
    fn transports(
        &self,
        host: &HostPlan,
        stations: [usize; 2],
        mps: usize,
    ) -> Result<(TransportConfig, Option<TransportConfig>), KeyError> {
        let seconds = &self.network.seconds;
        let second = stations.map(|at| seconds.get(&at).map_or(at, |(second, _)| *second));
        let further = (second != stations).then(|| self.transport(host, second, mps));
        Ok((self.transport(host, stations, mps)?, further.transpose()?))
    }

    fn transport(
        &self,
        host: &HostPlan,
        stations: [usize; 2],
        mps: usize,
    ) -> Result<TransportConfig, KeyError> {
        let link = &self.defaults.link;
        let place = if host.section.find("priority").is_some() { &host.section } else { link };
        let priority = place.get("priority").unwrap_or(0);
        let tagged = |at: &usize| self.network.config.stations[*at].tagging.is_some();
        if priority > 0 && !stations.iter().all(tagged) {
            let message = format!(
                "priority {priority} needs frames with tags: set link.vlan, or transport = \"tsn\""
            );
            return place.fail("priority", message);
        }
        let least = wire::frame::HEADER + 16 + mps + 4;
        if host.transport != "raw" {
            let is_thread = self.network.config.stations[stations[0]].processor.is_some();
            let usual = if is_thread { STREAM_BURST } else { SEGMENT };
            let burst = link.get("burst").unwrap_or(usual.max(least));
            if !(least..=1 << 20).contains(&burst) {
                let message = format!(
                    "burst: expected {least}B (the largest TLP at MPS {mps}) to 1MiB; found {burst}B"
                );
                return link.fail("burst", message);
            }
            return Ok(TransportConfig::Tcp(TcpConfig { stations, priority, burst }));
        }
        let mtu: usize = link.get("mtu").unwrap_or(1500);
        let Encapsulation { frame, tlp } = self.encapsulation();
        let least = wire::raw::HEADER + least + frame + tlp;
        if !(least..=9000).contains(&mtu) {
            let message = format!(
                "mtu: expected {least}B (the largest TLP at MPS {mps}) to 9000B; found {mtu}B"
            );
            return link.fail("mtu", message);
        }
        let congestion = self.congestion(host);
        let congestion = distance::with_target(congestion, self.wiring, stations, priority, mtu);
        let standard = Settings::new(0);
        let give_up = link.get("loss_limit").unwrap_or(standard.give_up);
        let segment = mtu - wire::raw::HEADER;
        let ack_delay = link.get("ack_time").unwrap_or(standard.ack_delay);
        let ack_after = link.get("ack_frames").unwrap_or(standard.ack_after);
        let acks = Settings { ack_delay, ack_after, ..standard };
        let settings = Settings { segment, congestion, give_up, ..acks };
        Ok(TransportConfig::Raw(RawConfig { stations, priority, settings }))
    }

    fn encapsulation(&self) -> Encapsulation {
        let bytes = |key| self.defaults.link.get(key).unwrap_or(0);
        Encapsulation { frame: bytes("frame_extra"), tlp: bytes("tlp_extra") }
    }

    fn switch(
        &self,
        host: &HostPlan,
        mps: usize,
        ports: Vec<PortConfig>,
    ) -> Result<SwitchConfig, KeyError> {
        let link = &self.defaults.link;
        let mut switch = SwitchConfig::new(mps, ports);
        switch.aggregation = self.host_or_root(host, "aggregation").unwrap_or_default();
        switch.rate_limit = self.host_or_root(host, "rate_limit");
        set_fields!(switch, link, keepalive loss_limit survive keep max_frame);
        if link.text("paths") == Some("both") {
            switch.paths = Paths::Both;
        }
        if self.network.seconds.is_empty() && link.find("paths").is_some() {
            return link.fail("paths", "'paths' requires 'second' at a host or node");
        }
        if switch.survive == Duration::ZERO && switch.ports.iter().any(|port| port.second.is_some())
        {
            return link.fail("survive", "survive: two paths require a time above 0ns");
        }
        switch.encapsulation = self.encapsulation();
        if switch.encapsulation.tlp > 0 && switch.encapsulation.frame == 0 {
            return link.fail("tlp_extra", "'tlp_extra' requires 'frame_extra'");
        }
        let least = 16 + mps + 4;
        if !(least..=1 << 20).contains(&switch.max_frame) {
            let message = format!("max_frame: {least} bytes for the largest TLP, to 1MiB");
            return link.fail("max_frame", message);
        }
        if switch.loss_limit <= switch.keepalive {
            let key = if link.find("loss_limit").is_some() { "loss_limit" } else { "keepalive" };
            let (least, most) = (allowed::time(SILENCE.0), allowed::time(SILENCE.1));
            let message = format!("{key}: loss_limit is above keepalive, {least} to {most}");
            return link.fail(key, message);
        }
        Ok(switch)
    }
}

/// Returns a serial number of up to 20 characters, unique among the host's drives.
fn serial(name: &str, number: usize) -> String {
    format!("{}-{number}", &name[..name.len().min(16)])
}

/// Checks that the drives are large enough for the recording.
fn holds(
    recording: &Recording,
    section: &Section,
    drives: &[(DriveConfig, &Section)],
) -> Result<(), KeyError> {
    let fail = |message: String| section.fail("replay", format!("replay: {message}"));
    let (present, needed) = (drives.len(), recording.needs.len());
    if present < needed {
        return fail(format!("{needed} drives were recorded, this host has {present}"));
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

/// Checks that a workload fits the drives. The simulation would find the error late.
fn fits(
    workload: &Workload,
    section: &Section,
    drives: &[(DriveConfig, &Section)],
) -> Result<(), KeyError> {
    let nsid = workload.nsid();
    let sizes = drives.iter().map(|(drive, ..)| drive.sizes().nth(nsid as usize - 1));
    let Some(least) = sizes.min().flatten() else {
        let message = format!("nsid: a drive has no namespace {nsid}; drive.namespaces adds some");
        return section.fail("nsid", message);
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
        // A replay checks its own needs.
        Workload::ConfigReads { .. } | Workload::Idle | Workload::Replay(_) => (0, ""),
    };
    if needed > least {
        let message = format!(
            "the workload needs {needed} bytes of each drive, the smallest has {least}; \
             drive.size sets it"
        );
        return section.fail(key, message);
    }
    Ok(())
}

fn root_complex(section: &Section, mps: usize, rcb: usize) -> RootConfig {
    let mut root = RootConfig { max_payload: mps, completion_size: rcb, ..RootConfig::NVME_TSN };
    set_fields!(root, section, completion_timeout mmio memory_read memory);
    if section.text("memory_at") == Some("high") {
        root.memory_at = RootConfig::HIGH_MEMORY;
    }
    root.push = section.parsed("push", Push::parse).unwrap_or_default();
    RootConfig { ecrc: section.text("ecrc") == Some("on"), ..root }
}

fn software(
    section: &Section,
    workload: &Section,
    mps: usize,
    mrrs: usize,
) -> Result<SoftwareConfig, KeyError> {
    let mut software =
        SoftwareConfig { max_payload: mps, max_read_request: mrrs, ..SoftwareConfig::NVME_TSN };
    set_fields!(software, section, submit complete);
    software.start_delay = workload.get("startdelay").unwrap_or_default();
    software.completions = match (section.get("interrupt"), section.get("polling")) {
        (Some(_), Some(_)) => {
            return section.fail("polling", "'interrupt' and 'polling' exclude each other");
        }
        (_, Some(interval)) => CompletionMode::Polling { interval },
        (Some(latency), None) => CompletionMode::Interrupt { latency },
        (None, None) => software.completions,
    };
    Ok(software)
}
