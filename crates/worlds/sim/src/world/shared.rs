//! Drives with several controllers.

use super::{Attached, Config, ControllerPort, HostConfig, PortConfig, SharedDrive, World};
use crate::drive::DriveConfig;
use crate::ensure;
use crate::node::DriveNode;
use crate::workload::{MOST_QUEUES, Workload};

/// Checks a shared drive.
///
/// # Errors
/// The reason why its controllers cannot be at these ports.
pub(super) fn check(config: &Config, drive: &SharedDrive) -> Result<(), &'static str> {
    let ports = drive.controllers.iter().map(|controller| controller.port);
    let found: Option<Vec<&PortConfig>> = ports.clone().map(|port| port_at(config, port)).collect();
    let found = found.ok_or("a controller needs a port of a host's own switch")?;
    let hosts: Vec<usize> = ports.clone().map(|[host, _]| host).collect();
    let ordered = hosts.is_sorted_by(|one, next| one < next) && hosts.len() > 1;
    ensure(ordered, "it needs two controllers at least, in the order of their hosts")?;
    let first = found[0];
    let station = |port: &PortConfig| port.transport.stations().map(|([_, device], _)| device);
    let place = station(first).ok_or("it needs ports with a network transport")?;
    let same = |port: &&PortConfig| station(port) == Some(place);
    ensure(found.iter().all(same), "its controllers are at different stations")?;
    let alike = |port: &&PortConfig| {
        port.drive.volatile == first.drive.volatile && port.drive.sizes().eq(first.drive.sizes())
    };
    ensure(found.iter().all(alike), "its ports have different drives")?;
    let elsewhere = |port: [usize; 2]| {
        let all = config.shared.iter().flat_map(|other| &other.controllers);
        let moves = config.moves.iter().flat_map(|planned| [planned.from, planned.to]);
        all.filter(|other| other.port == port).count() > 1 || moves.into_iter().any(|at| at == port)
    };
    ensure(!ports.clone().any(elsewhere), "one of its ports has another drive, or moves")?;
    let killed = config.kills.iter().any(|kill| kill.station == place);
    ensure(!killed, "the process of a drive with several controllers cannot be killed")?;
    let replays = |host: &usize| matches!(config.hosts[*host].workload, Workload::Replay(_));
    ensure(!hosts.iter().any(replays), "one of its hosts replays a recording")
}

/// Checks that a host with a registration has only shared drives, with records.
///
/// # Errors
/// If not.
pub(super) fn check_registration(
    config: &Config,
    number: usize,
    host: &HostConfig,
) -> Result<(), &'static str> {
    if host.software.registration.is_none() {
        return Ok(());
    }
    let controllers = config.shared.iter().flat_map(|drive| &drive.controllers);
    let shared = controllers.filter(|controller| controller.port[0] == number).count();
    ensure(shared == host.drives().len(), "it registers, but has a drive of its own")?;
    let volatile = host.drives().iter().any(|drive| drive.volatile);
    ensure(!volatile, "it registers, but a drive with volatile media has no reservations")
}

fn port_at(config: &Config, [host, port]: [usize; 2]) -> Option<&PortConfig> {
    match &config.hosts.get(host)?.attached {
        Attached::Switch(switch) => switch.ports.get(port),
        Attached::Direct(_) => None,
    }
}

impl World {
    /// The shared drive behind a port.
    pub(super) fn shared_at(&self, port: [usize; 2]) -> Option<usize> {
        let leads = |controller: &ControllerPort| controller.port == port;
        self.shared.iter().position(|drive| drive.controllers.iter().any(leads))
    }

    /// The next controller of a shared drive. The first one makes the drive.
    pub(super) fn next_controller(
        &mut self,
        shared: usize,
        number: u16,
        config: &DriveConfig,
    ) -> DriveNode {
        let before = self.sharing[shared].last().copied();
        self.sharing[shared].push(self.drives.len());
        match before {
            Some(before) => self.drives[before].next_controller(number),
            None => {
                let controllers = self.shared[shared].controllers.iter();
                let hosts = controllers.map(|controller| controller.host_identifier);
                self.new_drive(number, MOST_QUEUES, config, hosts.collect())
            }
        }
    }

    /// Wakes the other controllers of a drive if something may concern them.
    pub(super) fn wake_other_controllers(&mut self, drive: usize) {
        let Some(all) = self.sharing.iter().find(|all| all.contains(&drive)) else { return };
        if self.drives[drive].take_stirred() {
            for other in all.iter().filter(|other| **other != drive) {
                self.kernel.arm_by(self.drive_components[*other], self.kernel.now());
            }
        }
    }
}
