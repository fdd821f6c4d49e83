//! The points that a TLP passed, with times.

use super::index::Frame;
use super::run::{Run, known};
use wire::trace::NodeRole;

/// A point that TLPs pass, in the order from the host to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
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
    pub location: Location,
    /// When, in nanoseconds on the timeline.
    pub at: i64,
    /// In which frame of which node, at the network sides.
    pub frame: Option<(usize, u32)>,
}

impl Run {
    /// The port of the root node, at which commands are seen.
    pub(super) fn location(&self) -> Location {
        locations(self.root().file.header.role).1
    }

    /// The points that the TLP with this number at the root node's port
    /// passed and at which it was seen, from the host to the drive.
    pub fn locations(&self, number: u64) -> Vec<Point> {
        let mut points = Vec::new();
        let (mut node, mut number) = (self.root, number as usize);
        // Each pass of the loop goes to a node further down.
        while let Some(tlp) = self.nodes[node].index.port.get(number) {
            let at = |at| self.timeline(node, at);
            let role = self.nodes[node].file.header.role;
            let (uplink, port, link) = locations(role);
            let index = &self.nodes[node].index;
            let frame = |slot: u32| known(slot).map(|slot| index.slots[slot].0);
            let seen = |location, frame: u32| Point {
                location,
                at: at(index.frames[frame as usize].at),
                frame: Some((node, frame)),
            };
            points.extend(frame(tlp.slots[0]).map(|frame| seen(uplink, frame)));
            points.push(Point { location: port, at: at(tlp.at), frame: None });
            let Some(slot) = known(tlp.slots[1]) else { break };
            let number_of_frame = index.slots[slot].0;
            points.push(seen(link, number_of_frame));
            let sent = &index.frames[number_of_frame as usize];
            let place = slot as u32 - sent.first;
            match self.far_end(node, sent, place) {
                FarEnd::Nowhere => break,
                FarEnd::Frame(child, frame) => {
                    let at =
                        self.timeline(child, self.nodes[child].index.frames[frame as usize].at);
                    let (location, _, _) = locations(self.nodes[child].file.header.role);
                    points.push(Point { location, at, frame: Some((child, frame)) });
                    break;
                }
                FarEnd::Tlp(child, tlp) => (node, number) = (child, tlp),
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
            match self.far_end(node, sent, slot as u32 - sent.first) {
                FarEnd::Tlp(child, tlp) => (node, number) = (child, tlp),
                FarEnd::Nowhere | FarEnd::Frame(..) => return None,
            }
        }
    }

    /// The other end of a frame that `node` saw on a link to a device.
    fn far_end(&self, node: usize, frame: &Frame, place: u32) -> FarEnd {
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
                Some(port) => FarEnd::Tlp(child, port),
                None => FarEnd::Frame(child, found),
            };
        }
        FarEnd::Nowhere
    }
}

enum FarEnd {
    Nowhere,
    /// Only its frame was seen.
    Frame(usize, u32),
    Tlp(usize, usize),
}

/// Link to the host, port, link to the devices.
fn locations(role: NodeRole) -> (Location, Location, Location) {
    match role {
        NodeRole::Host => (Location::UpstreamLink, Location::RootPort, Location::UpstreamLink),
        NodeRole::Switch => (Location::SwitchUplink, Location::SwitchPort, Location::SwitchLink),
        NodeRole::Device => (Location::DownstreamLink, Location::Function, Location::Function),
    }
}
