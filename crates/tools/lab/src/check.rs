//! Checks before and after building: what this machine supports, and which settings the kernel
//! reports.

use super::bridge::Bridge;
use super::cables::{Far, ports};
use super::experiment::Experiment;
use super::results::{GateCheck, GateVerdict, RunResult};
use super::site::output;
use super::threads::{group, waited_for};
use super::window::Gates;
use crate::machine::threads::Thread;
use crate::machine::{control, tools};
use latency_linux::Setting;
use report::{Failure, Outcome};
use std::time::Duration;
use tsn::GateControlList;

/// Number of attempts to read a list that is not active yet, and the time between them. The kernel
/// activates a list at the start of a cycle (Linux net/sched/sch_taprio.c).
const ASKED: (u32, Duration) = (10, Duration::from_millis(100));

/// Fails if software gates of this machine cannot execute a list.
pub fn keepable(list: &GateControlList) -> Outcome {
    control::keepable(list, control::shortest_entry())
        .map_err(|why| Failure(format!("--gate: {why}")))
}

/// Returns the reason why the lab cannot build this bridge on any machine; `None` if a machine can
/// have it.
pub fn impossible(experiment: &Experiment, bridge: Bridge) -> Option<&'static str> {
    match (bridge, &experiment.far) {
        (Bridge::Vfio, _) => Some(
            "vfio needs two machines, and a NIC that is given to a guest whole: --dry-run --boards \
             prints what is to be run",
        ),
        (Bridge::Macvtap, Far::Guest { interface, .. }) if interface != "tap" => {
            Some("a macvtap device is the guest's own: --guest tap,MAC")
        }
        _ => None,
    }
}

/// Fails if the bridge cannot be built here: on no machine, or because a tool is missing.
pub fn possible(experiment: &Experiment, bridge: Bridge) -> Outcome {
    if let Some(why) = impossible(experiment, bridge) {
        return Err(Failure(why.to_owned()));
    }
    let mut names = bridge.tools().to_vec();
    if experiment.gates.is_some() || experiment.drop > 0 {
        names.push("tc");
    }
    names.extend(experiment.stress.map(|_| "iperf3"));
    names.extend(experiment.isolated.map(|_| "taskset"));
    names.extend(experiment.kernel_fifo.map(|_| "chrt"));
    names.into_iter().try_for_each(|name| tools::find(name).map(drop).map_err(Failure))
}

/// Returns the requested settings, and whether the kernel reports them.
pub fn settings(experiment: &Experiment, bridge: Bridge) -> Vec<Setting> {
    let mut settings = Vec::new();
    if let Some(Gates { list, .. }) = &experiment.gates {
        let place = &experiment.place;
        let (namespace, device) = match experiment.far {
            Far::Namespace => (place.bridge(), "out"),
            Far::Guest { .. } => (place.talker(), "near"),
        };
        settings.push(Setting::asked(
            &format!("gates at {device}"),
            "taprio".to_owned(),
            gates(&namespace, device, list),
        ));
        // Frames of priority 0 need no filter.
        let filtered = experiment.priority > 0 && !bridge.is_on_port();
        if experiment.far == Far::Namespace && filtered {
            let found = filters(&namespace, experiment.vlan, experiment.priority);
            settings.push(Setting::asked("priority set again at in", tag(experiment), found));
        }
    }
    if let Bridge::Xdp | Bridge::XdpGeneric = bridge {
        let mode = if bridge == Bridge::Xdp { "xdp" } else { "xdpgeneric" };
        let found = xdp(experiment, mode);
        settings.push(Setting::asked("XDP at in and out", mode.to_owned(), found));
    }
    if let Some(cpu) = experiment.isolated {
        let file = format!("{}/cpuset.cpus.partition", group(&experiment.place));
        let found = std::fs::read_to_string(file).unwrap_or_default();
        let found = if found.trim() == "isolated" { Ok(()) } else { Err(found) };
        settings.push(Setting::asked("CPU of the talker alone", cpu.to_string(), found));
    }
    if let Some(priority) = experiment.kernel_fifo {
        let found = real_time(&waited_for(&experiment.place));
        settings.push(Setting::asked(
            "threads of softirqs and vhost",
            format!("SCHED_FIFO {priority}"),
            found,
        ));
    }
    settings
}

/// Adds the result of the measurement to the setting of gates that are installed but not active.
pub fn measured(gate: &GateCheck, settings: &mut [Setting]) {
    let gates = settings
        .iter_mut()
        .find(|setting| setting.name.starts_with("gates at ") && setting.in_force);
    if let Some(gates) = gates.filter(|_| gate.verdict != GateVerdict::Gated) {
        gates.in_force = gate.verdict == GateVerdict::Late;
        gates.note = format!("the kernel has the list; measured: {}", gate.verdict.text());
    }
}

fn gates(namespace: &str, device: &str, list: &GateControlList) -> Result<(), String> {
    let line = format!("tc -n {namespace} -j qdisc show dev {device}");
    let qdiscs = |json: &str| devices::tc::qdiscs(json, &mut Vec::new());
    let compare = || control::gated(&qdiscs(&output(&line).map_err(|why| why.0)?)?, list);
    let mut found = compare();
    for _ in 0..ASKED.0 {
        if found.is_ok() {
            break;
        }
        std::thread::sleep(ASKED.1);
        found = compare();
    }
    found
}

/// Checks that a filter sets the priority of tagged frames.
fn filters(namespace: &str, vlan: u16, priority: u8) -> Result<(), String> {
    let found = output(&format!("tc -n {namespace} -j filter show dev in ingress"));
    let found = devices::tc::filters(&found.map_err(|why| why.0)?, &mut Vec::new())?;
    control::set_again(&found, vlan, priority)
}

/// Checks that all these threads are real-time threads.
fn real_time(threads: &[Thread]) -> Result<(), String> {
    match threads.iter().find(|thread| thread.priority == 0) {
        None if threads.is_empty() => Err("there are none".to_owned()),
        None => Ok(()),
        Some(Thread { name, policy, .. }) => Err(format!("{name} is {policy}")),
    }
}

/// Checks that both ports have an XDP program of this mode, named as in `ip link`.
fn xdp(experiment: &Experiment, mode: &str) -> Result<(), String> {
    let ports = ports(&experiment.place);
    for port in [&ports.near, &ports.far] {
        let shown = output(&format!("{} link show dev {port}", ports.ip)).map_err(|why| why.0)?;
        if !shown.split_whitespace().any(|word| word.split('/').next() == Some(mode)) {
            return Err(format!("{port} has no program of this mode"));
        }
    }
    Ok(())
}

/// Checks that frames arrived with the tag with which they were sent. Returns `None` if the
/// listener did not count frames.
pub fn tags(experiment: &Experiment, run: &RunResult) -> Option<Setting> {
    let listen = run.listen.as_ref()?;
    let came = listen.counts?.received;
    let expected = (experiment.vlan, experiment.priority);
    let whole = listen.tags.iter().filter(|tag| (tag.vlan, tag.priority) == expected);
    let kept: u64 = whole.map(|tag| tag.n).sum();
    let found = match kept {
        kept if kept == came => Ok(()),
        kept => Err(format!("{kept} of {came} frames came with it")),
    };
    Some(Setting::asked("tag at the listener", tag(experiment), found))
}

fn tag(experiment: &Experiment) -> String {
    format!("VLAN {}, priority {}", experiment.vlan, experiment.priority)
}
