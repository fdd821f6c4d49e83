//! Device nodes that go from one host to another.

use super::{Move, World};
use crate::kernel::Component;
use crate::workload::Learnt;

impl World {
    /// The tunnel link of a port of a host's switch.
    pub(super) fn link_of(&self, [host, port]: [usize; 2]) -> usize {
        let switch = self.switch_hosts.iter().position(|of| *of == host);
        self.switches[switch.expect("it was checked")].first + port
    }

    /// Until it goes, the device node knows nothing of the second host, which
    /// knows what the drive holds.
    pub(super) fn prepare_move(&mut self, planned: &Move, nsid: u32) {
        let [first, second] = [planned.from, planned.to].map(|place| self.link_of(place));
        self.devices[second].stay_away();
        let drive = &self.drives[self.device_drives[first]];
        let [host, port] = planned.to;
        self.hosts[host].software.holds(port, drive.pattern(nsid));
        if drive.is_volatile() {
            self.hosts[host].software.ask_for_contents();
        }
    }

    /// The first host has let go and lost the link: the second may have it.
    /// Yields its device component.
    pub(super) fn hand_over(&mut self, number: usize) -> Component {
        let Move { from: [host, port], to, .. } = self.moves[number];
        let [first, second] = [[host, port], to].map(|place| self.link_of(place));
        let drive = self.device_drives[first];
        let queues = self.drives[self.device_drives[second]].queues();
        self.drives[drive].taken_by(self.kernel.now(), to[1] as u16, queues);
        self.device_drives[second] = drive;
        self.drive_above[drive] = (to[0], Some(second));
        let incarnation = self.drives[drive].incarnation();
        let written = self.hosts[host].software.written(port, incarnation);
        self.hosts[to[0]].software.learn(to[1], Learnt { incarnation, written });
        self.devices[second].come_back();
        self.device_components[second]
    }
}
