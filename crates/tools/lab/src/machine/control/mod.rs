//! Checks of queueing disciplines and filters.

use devices::tc::{Filter, Options, Qdisc};
use linux::time::{Overslept, oversleep};
use tsn::GateControlList;

/// Checks that the root of a device is a taprio whose active list is `expected`.
///
/// # Errors
/// A description of the actual root.
pub fn gated(found: &[Qdisc], expected: &GateControlList) -> Result<(), String> {
    let Some(root) = found.iter().find(|qdisc| qdisc.is_root) else {
        return Err("there is no queueing discipline".to_owned());
    };
    let Options::Taprio(classes, gates) = &root.options else {
        return Err(format!("the queueing discipline is {}, not taprio", root.kind));
    };
    if !["TAI", ""].contains(&gates.clock.as_str()) {
        return Err(format!("its clock is {}", gates.clock));
    }
    let mut classes = (0..8).zip(&classes.map);
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

/// Checks that frames of a VLAN and a priority receive this priority in the kernel.
///
/// # Errors
/// The priority that they receive.
pub fn set_again(found: &[Filter], vlan: u16, priority: u8) -> Result<(), String> {
    let matching = found.iter().find_map(|filter| {
        let is = |key, value| filter.number(key).is_none_or(|wanted| wanted == u64::from(value));
        let matches = is("vlan_id", vlan) && is("vlan_prio", priority.into());
        filter.priority().filter(|_| filter.protocol == "802.1Q" && matches)
    });
    match matching {
        Some(found) if found == u32::from(priority) => Ok(()),
        Some(found) => Err(format!("it becomes priority {found}")),
        None => Err(format!("there is no filter for VLAN {vlan}, priority {priority}")),
    }
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
