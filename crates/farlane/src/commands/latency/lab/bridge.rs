//! The kinds of bridges, and how each joins the two ports.

use super::place::{FAR_MAC, NEAR_MAC, Place};
use super::step::Steps;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A kind of bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bridge {
    /// The kernel's bridge, as between a NIC and a guest's tap device
    Linux,
    /// A macvtap device on the port: the talker's, in place of a cable
    Macvtap,
    /// XDP programs that redirect each port's frames to the other one, in the driver
    Xdp,
    /// The same without the driver's help
    XdpGeneric,
    /// Open vSwitch, its kernel datapath
    Ovs,
    /// Open vSwitch in user space
    OvsUser,
    /// Open vSwitch in user space on AF_XDP sockets
    OvsAfxdp,
    /// A NIC given to a guest whole, without a bridge
    Vfio,
}

impl Bridge {
    /// As options name it.
    pub fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// The program that each step needs, and its package in Debian.
    pub fn tools(self) -> &'static [&'static str] {
        match self {
            Self::Ovs | Self::OvsUser | Self::OvsAfxdp => {
                &["ip", "ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-vswitchd", "ovs-appctl"]
            }
            Self::Xdp => &["ip", "ethtool"],
            _ => &["ip"],
        }
    }

    /// Whether the talker's interface is a device on the port `out`, not one on a cable to `in`.
    pub fn is_on_port(self) -> bool {
        self == Self::Macvtap
    }

    /// Adds the steps that join the ports `in` and `out`.
    pub fn join(self, place: &Place, steps: &mut Steps) {
        let bridge = place.bridge();
        match self {
            Self::Linux => {
                steps.run(format!("ip -n {bridge} link add bridge0 type bridge mcast_snooping 0"));
                steps.run(format!("ip -n {bridge} link set in master bridge0"));
                steps.run(format!("ip -n {bridge} link set out master bridge0"));
                steps.run(format!("ip -n {bridge} link set bridge0 up"));
            }
            Self::Macvtap => {
                let talker = place.talker();
                steps.run(format!(
                    "ip -n {bridge} link add link out name near address {NEAR_MAC} type macvtap \
                     mode bridge"
                ));
                steps.run(format!("ip -n {bridge} link set near netns {talker}"));
            }
            Self::Xdp => redirect(place, "native", steps),
            Self::XdpGeneric => redirect(place, "generic", steps),
            Self::Ovs => open_vswitch(place, "system", "", steps),
            Self::OvsUser => {
                steps.run("modprobe -q tun || test -e /dev/net/tun");
                open_vswitch(place, "netdev", "", steps);
            }
            Self::OvsAfxdp => {
                steps.run("modprobe -q tun || test -e /dev/net/tun");
                open_vswitch(place, "netdev", " type=afxdp options:xdp-mode=best-effort", steps);
            }
            Self::Vfio => {}
        }
    }
}

fn redirect(place: &Place, mode: &str, steps: &mut Steps) {
    if mode == "native" {
        // A veth takes redirected frames only if its peer polls, and no checksum that is not yet
        // computed is ever (drivers/net/veth.c in Linux).
        for (namespace, name) in [(place.talker(), "near"), (place.listener(), "far")] {
            steps.run(format!("ip netns exec {namespace} ethtool -K {name} gro on tx off"));
        }
    }
    let line =
        format!("ip netns exec {} farlane latency redirect in out --mode {mode}", place.bridge());
    steps.keep(line, "redirect.log", "redirecting between");
}

/// Open vSwitch with a database and sockets of its own: one that runs on the machine is not touched.
fn open_vswitch(place: &Place, datapath: &str, interface: &str, steps: &mut Steps) {
    let (folder, bridge) = (place.folder().join("ovs"), place.bridge());
    let folder = folder.display();
    let enter = format!("ip netns exec {bridge} env OVS_RUNDIR={folder} OVS_LOGDIR={folder}");
    steps.run(format!("mkdir {folder}"));
    steps.run(format!(
        "ovsdb-tool create {folder}/conf.db /usr/share/openvswitch/vswitch.ovsschema"
    ));
    let daemon = |name: &str| {
        format!("--unixctl={folder}/{name}.ctl --pidfile={folder}/{name}.pid --log-file --detach")
    };
    let end =
        |name: &str, how: &str| format!("ovs-appctl --timeout=10 -t {folder}/{name}.ctl exit{how}");
    steps.undone(
        format!(
            "{enter} ovsdb-server {folder}/conf.db --remote=punix:{folder}/db.sock {} -vconsole:off",
            daemon("ovsdb-server")
        ),
        end("ovsdb-server", ""),
    );
    let control = format!("ovs-vsctl --timeout=30 --db=unix:{folder}/db.sock");
    steps.run(format!("{control} --no-wait init"));
    steps.undone(
        format!(
            "{enter} ovs-vswitchd unix:{folder}/db.sock {} -vconsole:off",
            daemon("ovs-vswitchd")
        ),
        end("ovs-vswitchd", " --cleanup"),
    );
    steps.run(format!("{control} add-br bridge0 -- set bridge bridge0 datapath_type={datapath}"));
    for port in ["in", "out"] {
        let set = match interface {
            "" => String::new(),
            options => format!(" -- set interface {port}{options}"),
        };
        steps.run(format!("{control} add-port bridge0 {port}{set}"));
        // add-port is done when the database has the port, with or without an interface.
        let error = format!("{control} get interface {port} error");
        steps.run(format!("test \"$({error})\" = '[]' || {{ {error} >&2; false; }}"));
    }
    steps.run(format!("ip -n {bridge} link set bridge0 up"));
}

/// Adds the steps that make the namespaces and the cables, but for the bridge.
pub fn cables(bridge: Bridge, place: &Place, steps: &mut Steps) {
    for namespace in place.namespaces() {
        steps.undone(format!("ip netns add {namespace}"), format!("ip netns delete {namespace}"));
    }
    if !bridge.is_on_port() {
        steps.run(cable(("near", NEAR_MAC, &place.talker()), "in", place));
    }
    steps.run(cable(("far", FAR_MAC, &place.listener()), "out", place));
    if !bridge.is_on_port() {
        steps.run(format!("ip -n {} link set in up", place.bridge()));
    }
    steps.run(format!("ip -n {} link set out up", place.bridge()));
}

/// A cable between an end and a port of the bridge. The port has a transmit queue for each priority,
/// for taprio. It has as many receive queues as the end has for transmission, without which XDP is
/// refused (drivers/net/veth.c in Linux): one, because a thread of Open vSwitch polls each. Frames
/// are as long as those of a wire.
fn cable((end, mac, namespace): (&str, &str, &str), port: &str, place: &Place) -> String {
    format!(
        "ip link add {port} netns {} numtxqueues 8 numrxqueues 1 gso_max_segs 1 type veth \
         peer name {end} netns {namespace} address {mac} numtxqueues 1 numrxqueues 8 gso_max_segs 1",
        place.bridge()
    )
}
