//! Where a TLP was when.

use super::index::Frame;
use super::run::{Run, known};
use wire::trace::NodeRole;

/// A point that TLPs pass, in the order from the host to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Station {
    /// The root port: between the host and the upstream port.
    RootPort,
    /// The network side of the upstream port.
    UpstreamLink,
    /// The network side of a switch node's downstream port to its host.
    SwitchUplink,
    /// Between the two ports of a switch node.
    SwitchPort,
    /// The network side of a switch node's upstream port.
    SwitchLink,
    /// The network side of the downstream port.
    DownstreamLink,
    /// The function: between the downstream port and the drive.
    Function,
}

/// One TLP at one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Where.
    pub station: Station,
    /// When, in nanoseconds on the timeline.
    pub at: i64,
    /// In which frame of which node, at the network sides.
    pub frame: Option<(usize, u32)>,
}

impl Run {
    /// The port of the root node, at which commands are seen.
    pub(super) fn station(&self) -> Station {
        stations(self.root().file.header.role).1
    }

    /// The points that the TLP with this number at the root node's port
    /// passed and at which it was seen, from the host to the drive.
    pub fn journey(&self, number: u64) -> Vec<Point> {
        let mut points = Vec::new();
        let (mut node, mut number) = (self.root, number as usize);
        // Each turn goes to a node further down.
        while let Some(tlp) = self.nodes[node].index.port.get(number) {
            let at = |at| self.timeline(node, at);
            let role = self.nodes[node].file.header.role;
            let (uplink, port, link) = stations(role);
            let index = &self.nodes[node].index;
            let frame = |slot: u32| known(slot).map(|slot| index.slots[slot].0);
            let seen = |station, frame: u32| Point {
                station,
                at: at(index.frames[frame as usize].at),
                frame: Some((node, frame)),
            };
            points.extend(frame(tlp.slots[0]).map(|frame| seen(uplink, frame)));
            points.push(Point { station: port, at: at(tlp.at), frame: None });
            let Some(slot) = known(tlp.slots[1]) else { break };
            let number_of_frame = index.slots[slot].0;
            points.push(seen(link, number_of_frame));
            let sent = &index.frames[number_of_frame as usize];
            let place = slot as u32 - sent.first;
            match self.across(node, sent, place) {
                Across::Nowhere => break,
                Across::Frame(child, frame) => {
                    let at =
                        self.timeline(child, self.nodes[child].index.frames[frame as usize].at);
                    let (station, _, _) = stations(self.nodes[child].file.header.role);
                    points.push(Point { station, at, frame: Some((child, frame)) });
                    break;
                }
                Across::Tlp(child, tlp) => (node, number) = (child, tlp),
            }
        }
        points
    }

    /// The device node at whose drive the TLP with this number at the root
    /// node's port was seen, and when by that node's clock.
    pub(super) fn at_drive(&self, number: u64) -> Option<(usize, u64)> {
        let (mut node, mut number) = (self.root, number as usize);
        loop {
            let index = &self.nodes[node].index;
            let tlp = index.port.get(number)?;
            if self.nodes[node].file.header.role == NodeRole::Device {
                return Some((node, tlp.at));
            }
            let slot = known(tlp.slots[1])?;
            let sent = &index.frames[index.slots[slot].0 as usize];
            match self.across(node, sent, slot as u32 - sent.first) {
                Across::Tlp(child, tlp) => (node, number) = (child, tlp),
                Across::Nowhere | Across::Frame(..) => return None,
            }
        }
    }

    /// The other end of a frame that `node` saw on a link to a device.
    fn across(&self, node: usize, frame: &Frame, place: u32) -> Across {
        for (child, other) in self.nodes.iter().enumerate() {
            let Some(parent) = &other.parent else { continue };
            if parent.node != node || parent.tap != frame.tap {
                continue;
            }
            let Some(connection) = parent.connections.get(&frame.connection) else { continue };
            let tap = wire::trace::Tap::UPLINK;
            let found = other.index.frame(tap, *connection, frame.up, frame.sequence);
            let Some(found) = found else { continue };
            let theirs = &other.index.frames[found as usize];
            if theirs.tlps != frame.tlps || place >= theirs.kept {
                continue;
            }
            let (_, port) = other.index.slots[(theirs.first + place) as usize];
            return match known(port) {
                Some(port) => Across::Tlp(child, port),
                None => Across::Frame(child, found),
            };
        }
        Across::Nowhere
    }
}

enum Across {
    Nowhere,
    /// Only its frame was seen.
    Frame(usize, u32),
    Tlp(usize, usize),
}

/// Link to the host, port, link to the devices.
fn stations(role: NodeRole) -> (Station, Station, Station) {
    match role {
        NodeRole::Host => (Station::UpstreamLink, Station::RootPort, Station::UpstreamLink),
        NodeRole::Switch => (Station::SwitchUplink, Station::SwitchPort, Station::SwitchLink),
        NodeRole::Device => (Station::DownstreamLink, Station::Function, Station::Function),
    }
}
