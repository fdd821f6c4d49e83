//! Drives behind one host that have one serial number: an operating system
//! takes them for one (Linux refuses the second, as a duplicate controller of
//! one subsystem).

use super::endpoint::Endpoint;
use pcie::enumerate::Node;

/// The first of `endpoints` that has the serial number of `node`.
pub(super) fn of(node: &Node, endpoints: &[Endpoint]) -> Option<usize> {
    endpoints.iter().position(|endpoint| same_serial(&endpoint.node, node))
}

fn same_serial(one: &Node, other: &Node) -> bool {
    let serial = |node: &Node| node.device().and_then(|device| device.serial);
    match (serial(one), serial(other)) {
        (Some(a), Some(b)) => nvme::same_serial([one.id, other.id], [a, b]),
        _ => false,
    }
}
