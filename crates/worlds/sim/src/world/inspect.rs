//! What a test looks at in a world.

use super::World;
use crate::ethernet::cable;
use crate::node::{DeviceNode, SwitchNode};
use switch::tunnel::{Counters, Tunnel};

/// The state of one end of a tunnel.
#[derive(Clone, Copy, Debug)]
pub struct TunnelState {
    /// The counters, since the last power cycle of the node.
    pub counters: Counters,
    /// Bytes of sent frames that are kept until they are acknowledged.
    pub kept: usize,
    /// Whether no TLPs leave before an acknowledgement.
    pub is_full: bool,
    /// Whether the session waits for a connection.
    pub is_interrupted: bool,
}

impl World {
    /// Number of sessions that went on in another process after a kill.
    pub fn restored(&self) -> u64 {
        self.devices.iter().map(|device| device.restored).sum()
    }

    /// The state of every end of a tunnel, those of hosts and switch nodes first.
    pub fn tunnel_states(&self) -> impl Iterator<Item = TunnelState> {
        let hosts = self.switches.iter().flat_map(SwitchNode::tunnels);
        let ends = hosts.chain(self.devices.iter().map(DeviceNode::tunnel));
        ends.map(|end: &Tunnel| {
            let ((kept, is_full), is_interrupted) = (end.kept(), end.is_interrupted());
            TunnelState { counters: end.counters(), kept, is_full, is_interrupted }
        })
    }

    /// The counters of all cables together.
    pub fn cable_counters(&self) -> cable::Counters {
        self.network.cable_counters()
    }

    /// Duplicate raw data frames that stations have dropped.
    pub fn raw_duplicates(&self) -> u64 {
        self.network.raw_duplicates()
    }

    /// Compares the contents of all drives with what their hosts wrote: each range whose contents
    /// are certain, and of drives that do not move all other blocks. Returns the numbers of compared
    /// and of different ranges.
    pub fn compare_contents(&mut self) -> (u64, u64) {
        let (mut compared, mut differ) = (0, 0);
        // The second port of a drive that moves has a drive that is never used.
        let used: Vec<_> = self.device_homes.iter().map(|home| self.device_drives[*home]).collect();
        for (at, (drive, (host, above))) in
            self.drives.iter_mut().zip(&self.drive_above).enumerate()
        {
            if above.is_some() && !used.contains(&Some(at)) {
                continue;
            }
            let (software, number) = (&self.hosts[*host].software, usize::from(drive.number));
            let incarnation = drive.incarnation();
            if !software.holds(number, incarnation) {
                continue;
            }
            let written = software.written(number, incarnation);
            let (all, wrong) = drive.compare(software.nsid(), &written, self.moves.is_empty());
            compared += all;
            differ += wrong;
        }
        (compared, differ)
    }
}
