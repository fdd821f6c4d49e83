//! Drives that several hosts name: each host has a controller, and may register for reservations.

use super::network::Layout;
use super::owners::{HostPlan, Owners};
use keys::{KeyError, Mistakes, Section};
use nvme::initiator::Registration;
use sim::Config;
use sim::world::{ControllerPort, HostConfig, SharedDrive};
use std::collections::BTreeMap;
use wire::nvme::ReservationType;

/// Values of `drive_reservation`: no reservation, then the types in the order of their numbers.
pub const RESERVATIONS: [&str; 7] = [
    "register",
    "write-exclusive",
    "exclusive-access",
    "write-exclusive-registrants-only",
    "exclusive-access-registrants-only",
    "write-exclusive-all-registrants",
    "exclusive-access-all-registrants",
];

/// The key of a host that registers.
const KEY: &str = "drive_reservation";

/// Returns the registration of a host by `drive_reservation`: with its number as reservation key.
pub fn registration(section: &Section, host: usize, nsid: u32) -> Option<Registration> {
    let word = section.text(KEY)?;
    let number = RESERVATIONS.iter().position(|known| *known == word)?;
    let kind = ReservationType::from_number(number as u8);
    Some(Registration { nsid, key: host as u64 + 1, kind })
}

/// Returns the shared drives.
pub fn drives(owners: &Owners) -> Vec<SharedDrive> {
    let mut all: BTreeMap<&str, SharedDrive> = BTreeMap::new();
    for (number, host) in owners.hosts.iter().enumerate() {
        for (port, drive) in host.drives.iter().enumerate() {
            let Some(name) = &owners.drives[*drive].shared else { continue };
            let host_identifier = credentials::host_identifier(&host.name);
            let controller = ControllerPort { port: [number, port], host_identifier };
            let none = SharedDrive { controllers: Vec::new() };
            all.entry(name).or_insert(none).controllers.push(controller);
        }
    }
    all.into_values().collect()
}

/// Checks shared drives and the hosts that register.
///
/// # Errors
/// What the simulation cannot do.
pub fn check(config: &Config, owners: &Owners, network: &Layout) -> Result<(), KeyError> {
    let mut mistakes = Mistakes::default();
    for (host, made) in owners.hosts.iter().zip(&config.hosts) {
        mistakes.keep(check_host(host, made, owners, network));
    }
    let ports = config.shared.iter().flat_map(|drive| &drive.controllers);
    let links = config.hosts.iter().map(HostConfig::links).collect::<Vec<_>>();
    let station = |at: &ControllerPort| {
        let [host, port] = at.port;
        links[host].get(port).and_then(|link| link.transport.stations())
    };
    let stations: Vec<_> = ports.filter_map(station).map(|([_, device], _)| device).collect();
    if let Some((_, origin)) =
        network.kills.iter().find(|(kill, _)| stations.contains(&kill.station))
    {
        let message = "kills: the process of a drive that several hosts name cannot be killed";
        mistakes.note(origin.fail(message));
    }
    mistakes.or(())
}

fn check_host(
    host: &HostPlan,
    made: &HostConfig,
    owners: &Owners,
    network: &Layout,
) -> Result<(), KeyError> {
    let drives = || host.drives.iter().map(|drive| &owners.drives[*drive]);
    let shared = || drives().filter_map(|drive| Some((drive, drive.shared.as_ref()?)));
    if shared().count() < drives().count() && host.section.find(KEY).is_some() {
        let message = format!("'{KEY}' applies only to hosts whose drives all have several hosts");
        return host.section.fail(KEY, message);
    }
    if made.software.registration.is_some() && drives().any(|drive| drive.config.volatile) {
        let message = format!("'{KEY}' applies only to drives with media = \"persistent\"");
        return host.section.fail(KEY, message);
    }
    let Some((drive, name)) = shared().next() else { return Ok(()) };
    let fail = |reason: &str| {
        let message = format!("drive '{name}' has several hosts, which requires {reason}");
        host.section.fail("drives", message)
    };
    if host.is_direct() {
        return fail("a transport with tunnels");
    }
    if host.section.get("count").is_some_and(|count: usize| count > 1) {
        return fail("hosts with a 'count' of 1");
    }
    if drives().any(|drive| drive.count > 1) {
        return fail("drives with a 'count' of 1");
    }
    if !network.switches.is_empty() {
        return fail("nodes without 'switch'");
    }
    let node = drive.section.text("node");
    if node.is_some_and(|node| network.copies_of(node) > 1) {
        return fail("a node with a 'count' of 1");
    }
    if matches!(made.workload, sim::workload::Workload::Replay(_)) {
        return fail("workloads without 'replay'");
    }
    Ok(())
}
