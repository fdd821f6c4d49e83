//! The namespaces, and what leads from one to the next.

use super::bridge::{Bridge, Ports};
use super::place::{FAR_MAC, NEAR_MAC, Place};
use super::site::output;
use super::step::Steps;
use linux::Mac;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Where the bridge leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Far {
    /// To a namespace of the lab.
    Namespace,
    /// To a guest behind an interface of this machine, or behind a tap device that the lab makes.
    Guest {
        /// The interface; `tap` is the lab's.
        interface: String,
        /// The guest's MAC address.
        mac: String,
    },
}

impl Far {
    /// The listener's MAC address.
    pub fn mac(&self) -> &str {
        match self {
            Self::Namespace => FAR_MAC,
            Self::Guest { mac, .. } => mac,
        }
    }
}

impl FromStr for Far {
    type Err = String;

    /// A guest: INTERFACE,MAC.
    fn from_str(text: &str) -> Result<Self, String> {
        let (interface, mac) = text.split_once(',').ok_or("a guest is INTERFACE,MAC or tap,MAC")?;
        let mac: Mac = mac.parse().map_err(|error| format!("'{mac}': {error}"))?;
        Ok(Self::Guest { interface: interface_name(interface)?, mac: mac.to_string() })
    }
}

/// The name of an interface, for a shell line.
pub fn interface_name(text: &str) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte);
    // IFNAMSIZ of linux/if.h is 16, with its end.
    match (1..16).contains(&text.len()) && text.bytes().all(allowed) && !text.starts_with('-') {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "invalid interface name '{text}': expected up to 15 of A-Z a-z 0-9 - _ . : @"
        )),
    }
}

/// The words that lead to the ports of a lab's bridge.
pub fn ports(place: &Place) -> Ports {
    let bridge = place.bridge();
    Ports {
        ip: format!("ip -n {bridge}"),
        enter: format!("ip netns exec {bridge} "),
        near: "in".to_owned(),
        far: "out".to_owned(),
    }
}

/// Adds the steps that make namespaces and ports, but not yet what joins them.
pub fn cables(bridge: Bridge, far: &Far, place: &Place, steps: &mut Steps) {
    for namespace in place.namespaces() {
        steps.undone(
            format!("ip netns add {namespace}"),
            format!("test ! -e /run/netns/{namespace} || ip netns delete {namespace}"),
        );
    }
    let Ports { ip, .. } = ports(place);
    match far {
        Far::Namespace => {
            // A macvtap device stands for the talker's end of the cable.
            if !bridge.is_on_port() {
                steps.run(cable(("near", NEAR_MAC, &place.talker(), 1), "in", place));
                steps.run(format!("{ip} link set in up"));
            }
            steps.run(cable(("far", FAR_MAC, &place.listener(), 1), "out", place));
            steps.run(format!("{ip} link set out up"));
        }
        Far::Guest { interface, .. } => {
            steps.run(cable(("near", NEAR_MAC, &place.talker(), 8), "in", place));
            steps.run(format!("{ip} link set in up"));
            guest_port(bridge, interface, place, steps);
        }
    }
    if bridge.is_in_driver() {
        whole_frames(("near", &place.talker()), steps);
        if *far == Far::Namespace {
            whole_frames(("far", &place.listener()), steps);
        }
    }
}

/// Adds the steps that make the port towards a guest, if it is no device on the other one.
fn guest_port(bridge: Bridge, interface: &str, place: &Place, steps: &mut Steps) {
    let Ports { ip, .. } = ports(place);
    match interface {
        _ if bridge.is_on_port() => return,
        "tap" => steps.run(format!("{ip} tuntap add out mode tap")),
        name => {
            let is_gone = |name| format!("! {ip} link show dev {name} >/dev/null 2>&1");
            let up = if is_up(name) { format!(" && ip link set {name} up") } else { String::new() };
            steps.undone(
                format!("ip link set {name} netns {}", place.bridge()),
                // To the namespace of the shell that runs this line.
                format!("{} || {{ {ip} link set {name} netns $${up}; }}", is_gone(name)),
            );
            steps.undone(
                format!("{ip} link set {name} name out"),
                format!(
                    "{} || {{ {ip} link set out down && {ip} link set out name {name}; }}",
                    is_gone("out")
                ),
            );
        }
    }
    steps.run(format!("{ip} link set out up"));
}

/// Whether an interface is up: it is not any more when it comes from another namespace.
fn is_up(interface: &str) -> bool {
    // Not by /sys, which may be another namespace's.
    let shown = output(&format!("ip -o link show dev {interface}"));
    shown.is_ok_and(|text| text.split(['<', ',', '>']).any(|flag| flag == "UP"))
}

/// Adds the steps that join the ports.
pub fn join(bridge: Bridge, far: &Far, place: &Place, steps: &mut Steps) {
    let ports = ports(place);
    match (bridge, far) {
        (Bridge::Macvtap, Far::Namespace) => {
            let Ports { ip, .. } = &ports;
            steps.run(format!(
                "{ip} link add link out name near address {NEAR_MAC} type macvtap mode bridge"
            ));
            steps.run(format!("{ip} link set near netns {}", place.talker()));
        }
        (Bridge::Macvtap, Far::Guest { mac, .. }) => {
            bridge.join(&ports, &place.folder(), steps);
            steps.run(format!("{} link set out address {mac} up", ports.ip));
        }
        _ => bridge.join(&ports, &place.folder(), steps),
    }
}

/// A cable between an end and a port of the bridge. The end has so many transmit queues, and the port
/// as many receive queues, without which XDP is refused (drivers/net/veth.c in Linux): eight for
/// taprio at the end, else one, because a thread of Open vSwitch polls each. The port has eight
/// transmit queues for taprio, one for each priority. Frames are as long as those of a wire.
fn cable(
    (end, mac, namespace, queues): (&str, &str, &str, u8),
    port: &str,
    place: &Place,
) -> String {
    format!(
        "ip link add {port} netns {} numtxqueues 8 numrxqueues {queues} gso_max_segs 1 type veth \
         peer name {end} netns {namespace} address {mac} numtxqueues {queues} numrxqueues 8 \
         gso_max_segs 1",
        place.bridge()
    )
}

/// Adds the step for XDP in the driver of a veth (drivers/net/veth.c in Linux): it takes redirected
/// frames only if its peer polls (`gro on`), and sees neither checksums that are still to be computed
/// nor tags that are still to be inserted. The end is up first: Linux notes for the port that the end
/// polls only if it begins while the end is up (`veth_set_features`, Linux 6.12).
fn whole_frames((end, namespace): (&str, &str), steps: &mut Steps) {
    steps.run(format!("ip -n {namespace} link set {end} up"));
    steps.run(format!("ip netns exec {namespace} ethtool -K {end} gro on tx off txvlan off"));
}
