//! `--dry-run --boards`: the experiment on two boards, with a script for each machine.

use super::bridge::{Bridge, Ports};
use super::cables::interface_name;
use super::experiment::Experiment;
use super::place::{FAR, NEAR};
use super::step::{End, Steps};
use super::window::Gates;
use std::fmt::Write;
use std::path::Path;
use std::str::FromStr;
use tsn::taprio;

/// NICs of the two boards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boards {
    /// NIC of the talker, with hardware time stamps and gates.
    pub talker: String,
    /// NIC of the bridge.
    pub bridge: String,
}

impl FromStr for Boards {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (talker, bridge) =
            text.split_once(',').ok_or("NICs are TALKER,BRIDGE, such as eth1,eth1")?;
        Ok(Self { talker: interface_name(talker)?, bridge: interface_name(bridge)? })
    }
}

/// Makes this clock a grandmaster that announces the offset of TAI from UTC, so that CLOCK_TAI is
/// right (linuxptp, pmc(8); the values are IEEE 1588-2019, tables 4 to 6).
const GRANDMASTER: &str = "pmc -u -b 0 -t 1 'SET GRANDMASTER_SETTINGS_NP clockClass 248 \
    clockAccuracy 0xfe offsetScaledLogVariance 0xffff currentUtcOffset 37 leap61 0 leap59 0 \
    currentUtcOffsetValid 1 ptpTimescale 1 timeTraceable 1 frequencyTraceable 0 timeSource 0xa0'";

/// Returns the scripts for the boards and the guest.
pub fn script(experiment: &Experiment, bridges: &[Bridge], boards: &Boards) -> String {
    let mut text = String::new();
    for bridge in bridges {
        part(&mut text, experiment, *bridge, boards).expect("a String takes all");
    }
    text
}

fn part(
    text: &mut String,
    experiment: &Experiment,
    bridge: Bridge,
    Boards { talker, bridge: port }: &Boards,
) -> std::fmt::Result {
    writeln!(text, "# Bridge: {}", bridge.name())?;
    writeln!(text, "\n# On the talker's board, as root: {talker} is the grandmaster")?;
    synchronise(text, talker)?;
    writeln!(text, "sleep 1\n{GRANDMASTER}")?;
    if let Some(Gates { list, .. }) = &experiment.gates {
        let options = taprio::Options::new(talker, true);
        writeln!(text, "{}", taprio::command(list, &options))?;
    }
    writeln!(text, "\n# On the bridge's board, as root")?;
    synchronise(text, port)?;
    lines(text, experiment, bridge, port)?;
    writeln!(text, "\n# In the guest, as root")?;
    writeln!(text, "{}", experiment.in_guest())?;
    writeln!(text, "\n# On the talker's board again")?;
    if experiment.stress.is_some() {
        writeln!(text, "ip address add {NEAR}/24 dev {talker}")?;
        writeln!(text, "ip neighbour add {FAR} lladdr {} dev {talker}", experiment.far.mac())?;
    }
    for run in experiment.runs() {
        if run.is_loaded
            && let Some(stress) = experiment.stress
        {
            writeln!(text, "{} &", stress.client("", experiment.seconds(&run)))?;
        }
        let name = super::experiment::file_name(bridge, &run, "talk");
        let to = format!("raw:{talker},{}", experiment.far.mac());
        let talk = experiment.talk_to("", &to, bridge, &run);
        writeln!(text, "{talk} --hardware {talker} >{name}.json")?;
    }
    writeln!(text)
}

/// Adds the lines that start gPTP and synchronise CLOCK_REALTIME (linuxptp, ptp4l(8) and
/// phc2sys(8)).
fn synchronise(text: &mut String, interface: &str) -> std::fmt::Result {
    let profile = "/usr/share/doc/linuxptp/configs/gPTP.cfg";
    writeln!(text, "ptp4l -i {interface} -f {profile} --step_threshold=1 &")?;
    writeln!(
        text,
        "phc2sys -s {interface} -c CLOCK_REALTIME --step_threshold=1 --transportSpecific=1 -w &"
    )
}

/// Adds the lines for the bridge between the NIC and a guest's tap device, and for the guest.
fn lines(
    text: &mut String,
    experiment: &Experiment,
    bridge: Bridge,
    port: &str,
) -> std::fmt::Result {
    let (ip, near, far) = ("ip".to_owned(), port.to_owned(), "tap0".to_owned());
    let ports = Ports { ip, enter: String::new(), near, far };
    let mut steps = Steps::default();
    if !bridge.is_on_port() && bridge != Bridge::Vfio {
        steps.run("ip tuntap add tap0 mode tap");
        steps.run("ip link set tap0 up");
    }
    whole_frames(text, bridge, port)?;
    bridge.join(&ports, Path::new("/run"), &mut steps);
    if bridge.is_on_port() {
        steps.run(format!("ip link set tap0 address {} up", experiment.far.mac()));
    }
    for step in steps.0 {
        let end = if step.end == End::Itself { "" } else { " &" };
        writeln!(text, "{}{end}", step.line)?;
    }
    writeln!(text, "{}", ports.guest(bridge, experiment.far.mac()))
}

/// Adds the NIC settings that XDP programs need. The kernel's bridge and other ports of Open
/// vSwitch enable promiscuous mode themselves (`dev_set_promiscuity` in Linux net/bridge/br_if.c,
/// net/openvswitch/vport-netdev.c).
fn whole_frames(text: &mut String, bridge: Bridge, nic: &str) -> std::fmt::Result {
    if bridge.is_in_driver() || bridge == Bridge::XdpGeneric {
        writeln!(text, "# {nic} drops frames for the guest's MAC address, which is not its own.")?;
        writeln!(text, "ip link set {nic} promisc on")?;
    }
    if bridge.is_in_driver() {
        writeln!(text, "# XDP does not see a tag that {nic} has taken off.")?;
        writeln!(text, "ethtool -K {nic} rxvlan off")?;
    }
    Ok(())
}
