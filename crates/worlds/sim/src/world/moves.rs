//! Device nodes that move from one host to another.

use super::{Move, World};
use crate::workload::KnownWrites;
use wire::Instant;

/// The group of a host whose drives move.
pub(super) fn group_of(host: usize) -> u16 {
    host as u16 + 1
}

/// The port that has the device node of port `place` at the start of the simulation.
pub(super) fn origin(moves: &[Move], mut place: [usize; 2]) -> [usize; 2] {
    let mut before = None;
    let earlier = |at, before: Option<Instant>| before.is_none_or(|before| at < before);
    while let Some(last) = moves.iter().find(|last| last.to == place && earlier(last.at, before)) {
        (place, before) = (last.from, Some(last.at));
    }
    place
}

/// The initial group of the device node at `place`; `None` if it never moves.
pub(super) fn first_group(moves: &[Move], place: [usize; 2]) -> Option<u16> {
    let goes = moves.iter().any(|planned| [planned.from, planned.to].contains(&place));
    goes.then(|| group_of(origin(moves, place)[0]))
}

impl World {
    /// The tunnel link of a port of a host's switch.
    pub(super) fn link_of(&self, [host, port]: [usize; 2]) -> usize {
        let switch = self.switch_hosts.iter().position(|owner| *owner == host);
        self.switches[switch.expect("it was checked")].first + port
    }

    /// The port of a tunnel link.
    pub(super) fn place_of(&self, link: usize) -> [usize; 2] {
        let switch = self.device_switches[link];
        [self.switch_hosts[switch], link - self.switches[switch].first]
    }

    /// Sets the seed of the drive's contents at the second host.
    pub(super) fn prepare_move(&mut self, planned: &Move, nsid: u32) {
        let drive = &self.drives[self.drive_behind(planned.from)];
        let [host, port] = planned.to;
        self.hosts[host].software.set_pattern(port, drive.pattern(nsid));
        if drive.volatile {
            self.hosts[host].software.identify_contents();
        }
    }

    /// The drive of the device node behind a port.
    fn drive_behind(&self, place: [usize; 2]) -> usize {
        let device = self.device_numbers[self.link_of(place)];
        self.device_drives[self.device_homes[device]].expect("it was checked")
    }

    /// Moves a drive to the second host after the first host has released it.
    pub(super) fn hand_over(&mut self, number: usize) {
        let Move { from: [host, port], to, .. } = self.moves[number];
        let drive = self.drive_behind([host, port]);
        let built = self.device_drives[self.link_of(to)].expect("it was checked");
        let queues = self.drives[built].queues();
        self.drives[drive].taken_by(self.kernel.now(), to[1] as u16, queues);
        self.drive_above[drive].0 = to[0];
        let incarnation = self.drives[drive].incarnation();
        let written = self.hosts[host].software.written(port, incarnation);
        self.hosts[to[0]].software.add_known_writes(to[1], KnownWrites { incarnation, written });
    }
}
