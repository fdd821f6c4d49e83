//! VLANs, and addresses with given ports.

use super::Lines;
use crate::node::{Node, Stream};
use sim::ethernet::streams::Identification;
use std::fmt::Display;

/// Adds the VLANs and the static entries of a bridge.
pub(super) fn bridge(node: &Node, devices: &[String], lines: &mut Lines) {
    const BRIDGE: &str = "\"$BRIDGE\"";
    let filters = node.ports.iter().any(|port| !port.config.vlans.is_empty());
    if filters {
        lines.up(format!("ip link set dev {BRIDGE} type bridge vlan_filtering 1"));
        lines.down(format!("ip link set dev {BRIDGE} type bridge vlan_filtering 0"));
    }
    for (port, device) in node.ports.iter().zip(devices).filter(|_| filters) {
        let (vlans, pvid) = (&port.config.vlans, port.config.pvid);
        let all = vlans.is_empty();
        let mut add = |vlan: &dyn Display, flags: &str| {
            lines.up(format!("bridge vlan add dev {device} vid {vlan}{flags}"));
            lines.down(format!("bridge vlan del dev {device} vid {vlan}"));
        };
        if all {
            add(&"2-4094", "");
        }
        for vlan in vlans.iter().filter(|vlan| **vlan != pvid) {
            add(vlan, "");
        }
        if all || vlans.contains(&pvid) {
            add(&pvid, " pvid untagged");
        }
        if !all && !vlans.contains(&1) {
            lines.up(format!("quietly bridge vlan del dev {device} vid 1"));
        }
        lines.down(format!("bridge vlan add dev {device} vid 1 pvid untagged"));
    }
    let by_address = |own: &Stream| matches!(own.identification, Identification::Null { .. });
    for stream in node.streams.iter().filter(|own| !own.outputs.is_empty() && !by_address(own)) {
        lines.note(format_args!(
            "stream {}: its paths, which do not depend on an address",
            stream.name
        ));
    }
    for entry in &node.entries {
        let (address, vlan) = (entry.address, entry.vlan.filter(|vlan| filters && *vlan > 0));
        if !address.is_group() && entry.ports.len() > 1 {
            lines.note(format_args!("the copies of frames to {address} at several ports"));
            continue;
        }
        for port in &entry.ports {
            let device = &devices[*port];
            let (add, del) = if address.is_group() {
                let words = |word: &str| {
                    format!("bridge mdb {word} dev {BRIDGE} port {device} grp {address}")
                };
                (words("replace") + " permanent", words("del"))
            } else {
                let words = |word: &str| format!("bridge fdb {word} {address} dev {device} master");
                (words("replace") + " static", words("del"))
            };
            let word = if address.is_group() { "vid" } else { "vlan" };
            let vlan = vlan.map_or(String::new(), |vlan| format!(" {word} {vlan}"));
            lines.up(add + &vlan);
            lines.down(del + &vlan);
        }
    }
}

/// Adds the VLAN interfaces of a station, which write the priority into the tag.
pub(super) fn station(node: &Node, devices: &[String], lines: &mut Lines) {
    let Some(device) = devices.first() else { return };
    const MAP: &str = "0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7";
    for vlan in &node.vlans {
        let name = format!("\"$VLAN_{vlan}\"");
        lines.up(format!(
            "ip link add link {device} name {name} type vlan id {vlan} egress-qos-map {MAP} \
             ingress-qos-map {MAP}"
        ));
        lines.up(format!("ip link set dev {name} up"));
        lines.down(format!("ip link del dev {name}"));
    }
}

/// Notes what the node does for redundant streams.
pub(super) fn redundancy(node: &Node, lines: &mut Lines) {
    for stream in &node.streams {
        let parts = [(stream.recover.is_some(), "elimination"), (stream.numbers, "numbering")];
        let parts: Vec<&str> =
            parts.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
        if !parts.is_empty() {
            let parts = parts.join(" and ");
            lines.note(format_args!("stream {}: {parts} of frames (802.1CB)", stream.name));
        }
    }
}
