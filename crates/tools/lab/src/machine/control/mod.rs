//! Queueing disciplines and filters, as `tc -j` prints them (iproute2, tc(8), tc-taprio(8),
//! tc-flower(8), tc-skbedit(8)).

use linux::time::{Overslept, oversleep};
use serde_json::Value;
use std::fmt::Write;
use tsn::{GateControlList, taprio};

/// A queueing discipline.
#[derive(Clone, Debug)]
pub struct Qdisc {
    /// Kind of the discipline, such as `taprio` or `noqueue`.
    pub kind: String,
    /// Whether the discipline is the device's root, which every frame passes.
    pub is_root: bool,
    /// The gates of a taprio.
    pub gates: Option<Gates>,
}

/// The gates of a taprio.
#[derive(Clone, Debug)]
pub struct Gates {
    /// Clock of the gates, such as `TAI`; empty if there is none, as with an offload.
    pub clock: String,
    /// The traffic class of each of the kernel's priorities 0 to 15.
    pub map: Vec<u8>,
    /// The list in force.
    pub in_force: Option<GateControlList>,
    /// The list that begins later: at its base time, or with the next cycle.
    pub pending: Option<GateControlList>,
}

/// Parses the output of `tc -j qdisc show dev DEVICE`.
///
/// # Errors
/// The mistake in the text.
pub fn qdiscs(json: &str) -> Result<Vec<Qdisc>, String> {
    let qdisc = |value: &Value| {
        let options = &value["options"];
        let gates = (value["kind"] == "taprio").then(|| gates(options)).transpose()?;
        let is_root = value["root"] == true;
        Ok(Qdisc { kind: text(&value["kind"]), is_root, gates })
    };
    elements(json)?.iter().map(qdisc).collect()
}

fn gates(options: &Value) -> Result<Gates, String> {
    let map = options["map"].as_array().into_iter().flatten();
    Ok(Gates {
        clock: text(&options["clockid"]),
        map: map.filter_map(|class| class.as_u64()?.try_into().ok()).collect(),
        in_force: list(options)?,
        pending: list(&options["admin"])?,
    })
}

/// Parses a gate control list; `None` if there is none.
fn list(options: &Value) -> Result<Option<GateControlList>, String> {
    let Some(entries) = options["schedule"].as_array() else { return Ok(None) };
    let mut line =
        format!("base-time {} cycle-time {}", options["base_time"], options["cycle_time"]);
    for entry in entries {
        let [letter, mask] = [text(&entry["cmd"]), text(&entry["gatemask"])];
        let _ = write!(line, " sched-entry {letter} {mask} {}", entry["interval"]);
    }
    taprio::parse(&line).map(Some).map_err(|error| format!("tc's taprio: {}", error.message))
}

/// Checks that the root of a device is a taprio whose active list is `expected`.
///
/// # Errors
/// A description of the actual root.
pub fn gated(found: &[Qdisc], expected: &GateControlList) -> Result<(), String> {
    let Some(root) = found.iter().find(|qdisc| qdisc.is_root) else {
        return Err("there is no queueing discipline".to_owned());
    };
    let Some(gates) = &root.gates else {
        return Err(format!("the queueing discipline is {}, not taprio", root.kind));
    };
    if !["TAI", ""].contains(&gates.clock.as_str()) {
        return Err(format!("its clock is {}", gates.clock));
    }
    let mut classes = (0..8).zip(&gates.map);
    if let Some((priority, class)) = classes.find(|(priority, class)| priority != *class) {
        return Err(format!(
            "priority {priority} has traffic class {class}; expected class {priority}"
        ));
    }
    let is_asked = |list: &Option<GateControlList>| {
        list.as_ref().is_some_and(|list| {
            (list.base_time(), list.cycle_time(), list.entries())
                == (expected.base_time(), expected.cycle_time(), expected.entries())
        })
    };
    match &gates.in_force {
        _ if is_asked(&gates.in_force) => Ok(()),
        _ if is_asked(&gates.pending) => {
            Err("the list is pending: it begins at its base time".to_owned())
        }
        None => Err("no list is in force, and another one is pending".to_owned()),
        Some(list) => Err(format!(
            "another list is in force: {} entries, a cycle of {} ns",
            list.entries().len(),
            list.cycle_time().as_ns()
        )),
    }
}

/// Checks that software gates can execute a list; `shortest` is [`shortest_entry`].
///
/// # Errors
/// The entry that is too short.
pub fn keepable(list: &GateControlList, shortest: u64) -> Result<(), String> {
    let intervals = (0..).zip(list.entries()).map(|(index, entry)| (index, entry.interval.as_ns()));
    match intervals.into_iter().find(|(_, interval)| *interval < shortest) {
        None => Ok(()),
        Some((index, interval)) => Err(format!(
            "entry {index} lasts {interval} ns: software gates here need {shortest} ns or more, \
             because the kernel runs a timer at each entry; shorter ones can hang the machine"
        )),
    }
}

/// A flower filter that sets the kernel's priority of frames by their VLAN tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The protocol, such as `802.1Q`.
    pub protocol: String,
    /// Match only frames of this VLAN.
    pub vlan: Option<u16>,
    /// Match only frames of this priority (PCP).
    pub vlan_priority: Option<u8>,
    /// The kernel's priority that matching frames receive.
    pub priority: u32,
}

/// Parses the output of `tc -j filter show dev DEVICE ingress`; filters of other kinds are ignored.
///
/// # Errors
/// The mistake in the text.
pub fn filters(json: &str) -> Result<Vec<Filter>, String> {
    let filter = |filter: &Value| {
        let (keys, actions) =
            (&filter["options"]["keys"], filter["options"]["actions"].as_array()?);
        let edits = actions.iter().filter(|action| action["kind"] == "skbedit");
        let mut priorities = edits.filter_map(|action| class(action["priority"].as_str()?));
        Some(Filter {
            protocol: text(&filter["protocol"]),
            vlan: keys["vlan_id"].as_u64().and_then(|vlan| vlan.try_into().ok()),
            vlan_priority: keys["vlan_prio"].as_u64().and_then(|pcp| pcp.try_into().ok()),
            priority: priorities.next()?,
        })
    };
    let all = elements(json)?;
    Ok(all.iter().filter(|value| value["kind"] == "flower").filter_map(filter).collect())
}

/// Checks that frames of a VLAN and a priority receive this priority in the kernel.
///
/// # Errors
/// The priority that they receive.
pub fn set_again(found: &[Filter], vlan: u16, priority: u8) -> Result<(), String> {
    let matching = found.iter().find(|filter| {
        filter.protocol == "802.1Q"
            && filter.vlan.is_none_or(|wanted| wanted == vlan)
            && filter.vlan_priority.is_none_or(|wanted| wanted == priority)
    });
    match matching {
        Some(filter) if filter.priority == u32::from(priority) => Ok(()),
        Some(filter) => Err(format!("it becomes priority {}", filter.priority)),
        None => Err(format!("there is no filter for VLAN {vlan}, priority {priority}")),
    }
}

/// Parses a class as printed by `print_tc_classid` of iproute2's tc/tc_util.c: MAJOR:MINOR in
/// hexadecimal, either left out if it is 0; `none` is 0.
fn class(text: &str) -> Option<u32> {
    let number = |text: &str| match text {
        "" => Some(0),
        text => u16::from_str_radix(text, 16).ok().map(u32::from),
    };
    match text.split_once(':') {
        Some((major, minor)) => Some(number(major)? << 16 | number(minor)?),
        None => (text == "none").then_some(0),
    }
}

fn elements(json: &str) -> Result<Vec<Value>, String> {
    serde_json::from_str(json).map_err(|error| format!("tc -j printed no list: {error}"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Minimum entry of a gate control list for software gates in ns, however fast the machine is. In
/// an emulated guest entries of 50 us worked, and entries of 5 us hung the guest.
const SHORTEST_ENTRY: u64 = 100_000;

/// Returns the shortest entry of a gate control list, in ns, that software gates of this machine
/// can execute. The kernel's taprio runs a timer at each entry (Linux net/sched/sch_taprio.c,
/// `advance_sched`). If the timer takes as long as the entry, the machine has no time left. A
/// thread that sleeps and wakes measures the time, in at most a tenth of a second.
pub fn shortest_entry() -> u64 {
    // proc_pid_timerslack_ns(5): the time by which the kernel may delay the wake-up of a thread.
    let slack = std::fs::read_to_string("/proc/self/timerslack_ns").unwrap_or_default();
    shortest_entry_of(oversleep(SHORTEST_ENTRY, 21), slack.trim().parse().unwrap_or(0))
}

/// Returns twice the wake-up delay without the slack, at least [`SHORTEST_ENTRY`]; all in ns.
fn shortest_entry_of(late: Overslept, slack: u64) -> u64 {
    SHORTEST_ENTRY.max(2 * late.least.saturating_sub(slack))
}

#[cfg(test)]
mod tests;
