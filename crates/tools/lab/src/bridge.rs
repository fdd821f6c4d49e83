//! The kinds of bridges, and how each joins the two ports.

use super::step::Steps;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A kind of bridge.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[schemars(rename = "BridgeKind")]
#[serde(rename_all = "kebab-case")]
pub enum Bridge {
    /// The kernel's bridge, as between a NIC and a guest's tap device
    Linux,
    /// A macvtap device on the port
    Macvtap,
    /// XDP programs that redirect each port's frames to the other one, in the driver
    Xdp,
    /// XDP programs that redirect each port's frames to the other one, in the kernel
    XdpGeneric,
    /// Open vSwitch, its kernel datapath
    Ovs,
    /// Open vSwitch in user space
    OvsUser,
    /// Open vSwitch in user space on AF_XDP sockets
    OvsAfxdp,
    /// No bridge: the guest has a whole NIC
    Vfio,
}

impl Bridge {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Linux,
        Self::Macvtap,
        Self::Xdp,
        Self::XdpGeneric,
        Self::Ovs,
        Self::OvsUser,
        Self::OvsAfxdp,
        Self::Vfio,
    ];

    /// Returns the name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Macvtap => "macvtap",
            Self::Xdp => "xdp",
            Self::XdpGeneric => "xdp-generic",
            Self::Ovs => "ovs",
            Self::OvsUser => "ovs-user",
            Self::OvsAfxdp => "ovs-afxdp",
            Self::Vfio => "vfio",
        }
    }

    /// Returns the programs that the steps of the bridge need.
    pub fn tools(self) -> &'static [&'static str] {
        match self {
            Self::Ovs | Self::OvsUser | Self::OvsAfxdp => &[
                "ip",
                "ethtool",
                "ovsdb-tool",
                "ovsdb-server",
                "ovs-vsctl",
                "ovs-vswitchd",
                "ovs-appctl",
            ],
            Self::Xdp => &["ip", "ethtool"],
            _ => &["ip"],
        }
    }

    /// Returns whether one of the two ports is a device on top of the other port, so that nothing
    /// joins the ports.
    pub fn is_on_port(self) -> bool {
        self == Self::Macvtap
    }

    /// Returns whether XDP programs receive frames from the drivers of the ports.
    pub fn is_in_driver(self) -> bool {
        matches!(self, Self::Xdp | Self::OvsAfxdp)
    }

    /// Adds the steps that join two ports; files are in `folder`.
    pub fn join(self, ports: &Ports, folder: &Path, steps: &mut Steps) {
        let Ports { ip, near, far, .. } = ports;
        match self {
            Self::Linux => {
                steps.run(format!("{ip} link add bridge0 type bridge mcast_snooping 0"));
                steps.run(format!("{ip} link set {near} master bridge0"));
                steps.run(format!("{ip} link set {far} master bridge0"));
                steps.run(format!("{ip} link set bridge0 up"));
            }
            Self::Xdp => redirect(ports, "native", steps),
            Self::XdpGeneric => redirect(ports, "generic", steps),
            Self::Ovs => open_vswitch(ports, folder, "system", "", steps),
            Self::OvsUser => {
                steps.run(TUN);
                open_vswitch(ports, folder, "netdev", "", steps);
            }
            Self::OvsAfxdp => {
                steps.run(TUN);
                let kind = " type=afxdp options:xdp-mode=best-effort";
                open_vswitch(ports, folder, "netdev", kind, steps);
            }
            // The guest owns the whole NIC (Linux Documentation/driver-api/vfio.rst).
            Self::Vfio => {
                let device = format!("$(basename $(readlink /sys/class/net/{near}/device))");
                steps.run(format!("device={device}"));
                steps.run("echo vfio-pci >/sys/bus/pci/devices/$device/driver_override");
                steps.run("echo $device >/sys/bus/pci/devices/$device/driver/unbind");
                steps.run("modprobe vfio-pci");
                steps.run("echo $device >/sys/bus/pci/drivers_probe");
            }
            Self::Macvtap => {
                steps.run(format!("{ip} link add link {near} name {far} type macvtap mode bridge"));
            }
        }
    }
}

/// Two ports, and the commands that reach them.
#[derive(Clone, Debug)]
pub struct Ports {
    /// The `ip` command, with the namespace of the ports.
    pub ip: String,
    /// Prefix that runs a program in the namespace; empty, or with a space at the end.
    pub enter: String,
    /// The port towards the talker.
    pub near: String,
    /// The port towards the listener.
    pub far: String,
}

impl Ports {
    /// The QEMU command that starts a guest behind the port towards the listener.
    pub fn guest(&self, bridge: Bridge, mac: &str) -> String {
        let Self { enter, far, .. } = self;
        let qemu = "qemu-system-x86_64 …";
        let device = format!("-device virtio-net-pci,netdev=n0,mac={mac}");
        match bridge {
            // The number of the tap device is the index of the macvtap interface (Linux
            // drivers/net/macvtap.c).
            Bridge::Macvtap => format!(
                "{enter}sh -c 'exec {qemu} -netdev tap,id=n0,fd=3,vhost=on {device} \
                 3<>/dev/tap$(cat /sys/class/net/{far}/ifindex)'"
            ),
            Bridge::Vfio => format!("{enter}{qemu} -device vfio-pci,host=$device"),
            _ => format!(
                "{enter}{qemu} -netdev tap,id=n0,ifname={far},script=no,downscript=no,vhost=on \
                 {device}"
            ),
        }
    }
}

/// Checks the kernel's TUN device. Without this device Open vSwitch cannot create the interface of
/// a bridge.
const TUN: &str = "modprobe -q tun || test -e /dev/net/tun";

fn redirect(Ports { enter, near, far, .. }: &Ports, mode: &str, steps: &mut Steps) {
    let line = format!("{enter}farlane latency redirect {near} {far} --mode {mode}");
    steps.keep(line, "redirect.log", "redirecting between");
}

/// Adds the steps of Open vSwitch with a database and sockets of its own. Another instance on the
/// machine is not changed.
fn open_vswitch(ports: &Ports, folder: &Path, datapath: &str, interface: &str, steps: &mut Steps) {
    let Ports { ip, enter, near, far } = ports;
    let folder = folder.join("ovs");
    let folder = folder.display();
    let enter = format!("{enter}env OVS_RUNDIR={folder} OVS_LOGDIR={folder}");
    steps.run(format!("mkdir {folder}"));
    steps.run(format!(
        "ovsdb-tool create {folder}/conf.db /usr/share/openvswitch/vswitch.ovsschema"
    ));
    let daemon = |name: &str| {
        format!("--unixctl={folder}/{name}.ctl --pidfile={folder}/{name}.pid --log-file --detach")
    };
    let end = |name: &str, flag: &str| {
        // An instance that does not answer is killed; a missing one is no failure.
        format!(
            "test ! -e {folder}/{name}.pid || ovs-appctl --timeout=10 -t {folder}/{name}.ctl exit{flag} \
             || kill -9 $(cat {folder}/{name}.pid) || true"
        )
    };
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
    for port in [near, far] {
        let set = match interface {
            "" => String::new(),
            options => format!(" -- set interface {port}{options}"),
        };
        steps.run(format!("{control} add-port bridge0 {port}{set}"));
        // add-port succeeds when the database has the port, with or without an interface.
        let error = format!("{control} get interface {port} error");
        steps.run(format!("test \"$({error})\" = '[]' || {{ {error} >&2; false; }}"));
    }
    steps.run(format!("{ip} link set bridge0 up"));
}
