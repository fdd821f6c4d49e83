//! The points that a TLP passed, with their times.

use super::decode::PayloadPrint;
use super::index::PortTlp;
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
    /// The point.
    pub location: Location,
    /// Time in nanoseconds on the timeline.
    pub at: i64,
    /// At the network sides: the node, and the index of the frame at this node.
    pub frame: Option<(usize, u32)>,
}

impl Run {
    /// Returns the location of the root node's port, at which commands are seen.
    pub(super) fn location(&self) -> Location {
        locations(self.root().file.header.role).1
    }

    /// Returns the points at which the TLP with this number at the root node's port was seen, from
    /// the host to the drive.
    pub fn locations(&self, number: u64) -> Vec<Point> {
        let framed = |location, node: usize, frame: u32| {
            let at = self.timeline(node, self.nodes[node].index.frames[frame as usize].at);
            Point { location, at, frame: Some((node, frame)) }
        };
        let role = |node: usize| self.nodes[node].file.header.role;
        let mut points = Vec::new();
        let (passed, last) = self.way(number);
        for (node, tlp) in passed {
            let (uplink, port, link) = locations(role(node));
            let slots = &self.nodes[node].index.slots;
            let frame = |slot: u32, at| known(slot).map(|slot| framed(at, node, slots[slot].0));
            points.extend(frame(tlp.slots[0], uplink));
            points.push(Point { location: port, at: self.timeline(node, tlp.at), frame: None });
            points.extend(frame(tlp.slots[1], link));
        }
        points.extend(last.map(|(node, frame)| framed(locations(role(node)).0, node, frame)));
        points
    }

    /// Returns the device node at whose drive the TLP with this number at the root node's port was
    /// seen, and the time of that node's clock.
    pub(super) fn at_drive(&self, number: u64) -> Option<(usize, u64)> {
        let (node, tlp) = *self.way(number).0.last()?;
        (self.nodes[node].file.header.role == NodeRole::Device).then_some((node, tlp.at))
    }

    /// Returns the node at whose port the TLP with this number at the root node's port had another
    /// payload. Returns `None` where records are missing, because different TLPs may be matched
    /// there.
    pub(super) fn payload_differs(&self, number: u64) -> Option<usize> {
        let whole = |node: usize| {
            let index = &self.nodes[node].index;
            (index.gaps, index.lost, index.bad, index.beyond) == (0, 0, 0, 0)
        };
        let first = self.root().index.port.get(number as usize)?.payload;
        if self.nodes.len() == 1 || first == PayloadPrint::default() || !whole(self.root) {
            return None;
        }
        let key = |node: usize| self.nodes[node].file.header.key;
        let differs = |(node, tlp): &&AtPort| {
            let one_key = key(*node) != 0 && key(*node) == key(self.root);
            whole(*node) && tlp.payload.differs(first, one_key)
        };
        self.way(number).0.iter().find(differs).map(|(node, _)| *node)
    }

    /// Returns the nodes at whose ports the TLP with this number at the root node's port was seen.
    /// If only the TLP's frame was seen at the next node, that node and the frame are returned too.
    fn way(&self, number: u64) -> (Vec<AtPort>, Option<(usize, u32)>) {
        let mut passed = Vec::new();
        let (mut node, mut number) = (self.root, number as usize);
        // Each iteration continues at a node further down.
        while let Some(tlp) = self.nodes[node].index.port.get(number) {
            passed.push((node, *tlp));
            match known(tlp.slots[1]).and_then(|slot| self.far_end(node, slot)) {
                None => break,
                Some(FarEnd::Frame(child, frame)) => return (passed, Some((child, frame))),
                Some(FarEnd::Tlp(child, tlp)) => (node, number) = (child, tlp),
            }
        }
        (passed, None)
    }

    /// Returns the other end of the frame with the TLP of `slot`, which `node` saw on a link to a
    /// device.
    fn far_end(&self, node: usize, slot: usize) -> Option<FarEnd> {
        let index = &self.nodes[node].index;
        let frame = &index.frames[index.slots[slot].0 as usize];
        let place = slot as u32 - frame.first;
        for (child, other) in self.nodes.iter().enumerate() {
            let Some(parent) = &other.parent else { continue };
            if parent.node != node || parent.tap != frame.tap {
                continue;
            }
            let Some(connection) = parent.connections.get(&frame.connection) else { continue };
            let tap = wire::trace::Tap::UPLINK;
            let found = other.index.frame(tap, *connection, frame.up, frame.sequence);
            let Some(found) = found else { continue };
            let other_frame = &other.index.frames[found as usize];
            if other_frame.tlps != frame.tlps || place >= other_frame.kept {
                continue;
            }
            let (_, port) = other.index.slots[(other_frame.first + place) as usize];
            let tlp = known(port).map(|port| FarEnd::Tlp(child, port));
            return Some(tlp.unwrap_or(FarEnd::Frame(child, found)));
        }
        None
    }
}

type AtPort = (usize, PortTlp);

enum FarEnd {
    /// Only the frame was seen.
    Frame(usize, u32),
    Tlp(usize, usize),
}

/// Returns the locations of the link to the host, the port, and the link to the devices.
fn locations(role: NodeRole) -> (Location, Location, Location) {
    match role {
        NodeRole::Host => (Location::UpstreamLink, Location::RootPort, Location::UpstreamLink),
        NodeRole::Switch => (Location::SwitchUplink, Location::SwitchPort, Location::SwitchLink),
        NodeRole::Device => (Location::DownstreamLink, Location::Function, Location::Function),
    }
}
