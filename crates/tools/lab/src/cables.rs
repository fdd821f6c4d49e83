//! The namespaces, and the cables between them.

use super::bridge::{Bridge, Ports};
use super::place::{FAR_MAC, NEAR_MAC, Place};
use super::site::output;
use super::step::Steps;
use linux::Mac;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The far side of the bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Far {
    /// A namespace of the lab.
    Namespace,
    /// A guest behind an interface of this machine, or behind a tap device that the lab creates.
    Guest {
        /// Name of the interface; `tap` for the lab's tap device.
        interface: String,
        /// The guest's MAC address.
        mac: String,
    },
}

impl Far {
    /// Returns the listener's MAC address.
    pub fn mac(&self) -> &str {
        match self {
            Self::Namespace => FAR_MAC,
            Self::Guest { mac, .. } => mac,
        }
    }
}

impl FromStr for Far {
    type Err = String;

    /// Parses a guest: INTERFACE,MAC.
    fn from_str(text: &str) -> Result<Self, String> {
        let (interface, mac) = text.split_once(',').ok_or("a guest is INTERFACE,MAC or tap,MAC")?;
        let mac: Mac = mac.parse().map_err(|error| format!("'{mac}': {error}"))?;
        Ok(Self::Guest { interface: interface_name(interface)?, mac: mac.to_string() })
    }
}

/// Checks that the name of an interface has 1 to 15 characters that are safe in a shell line.
pub fn interface_name(text: &str) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte);
    // IFNAMSIZ of linux/if.h is 16, terminator included.
    match (1..16).contains(&text.len()) && text.bytes().all(allowed) && !text.starts_with('-') {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "invalid interface name '{text}': expected 1 to 15 characters of A-Z a-z 0-9 - _ . : @, \
             the first not '-'"
        )),
    }
}

/// Returns the commands that reach the ports of a lab's bridge.
pub fn ports(place: &Place) -> Ports {
    let bridge = place.bridge();
    Ports {
        ip: format!("ip -n {bridge}"),
        enter: format!("ip netns exec {bridge} "),
        near: "in".to_owned(),
        far: "out".to_owned(),
    }
}

/// Adds the steps that create namespaces and ports, but do not join them.
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
            // A macvtap device replaces the talker's end of the cable.
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

/// Adds the steps that create the port towards a guest, unless it is a device on the other port.
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
                // Moves the interface to the namespace of the shell that runs this line.
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

/// Returns a shell condition that an interface is up. An interface is down after it returns from
/// another namespace.
fn is_up(interface: &str) -> bool {
    // `/sys` is not used, because it may show another namespace.
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

/// Adds a cable between an end and a port of the bridge. The port has as many receive queues as the
/// end has transmit queues, because XDP requires this (drivers/net/veth.c in Linux). An end with
/// taprio has eight transmit queues; other ends have one, because a thread of Open vSwitch polls
/// each queue. A port with taprio has eight transmit queues, one per priority. Frames have the same
/// maximum length as on a wire.
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

/// Adds the step that prepares a veth for XDP in the driver (drivers/net/veth.c in Linux). The
/// driver accepts redirected frames only if its peer polls (`gro on`), and handles neither
/// checksums nor tags that are still to be computed or inserted. The end must be up first: Linux
/// records that the end polls only if polling begins while the end is up (`veth_set_features`,
/// Linux 6.12).
fn whole_frames((end, namespace): (&str, &str), steps: &mut Steps) {
    steps.run(format!("ip -n {namespace} link set {end} up"));
    steps.run(format!("ip netns exec {namespace} ethtool -K {end} gro on tx off txvlan off"));
}
