//! A list as a command for Linux: `tc qdisc replace … taprio` (iproute2, tc-taprio(8)).

use std::fmt::Write;

use crate::GateControlList;

/// Options of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options<'a> {
    /// The network interface.
    pub device: &'a str,
    /// Full offload (`flags 0x2`): the network controller runs the list. Else
    /// the kernel does, by the clock `CLOCK_TAI`.
    pub offload: bool,
}

/// The command that sets `list` on an interface with eight queues, one for each priority (the
/// kernel's priorities 8 to 15 use the first); one line. The base time is unchanged: on a real
/// machine it counts from 1970 (TAI), and the kernel advances a past one by whole cycles.
pub fn command(list: &GateControlList, options: &Options<'_>) -> String {
    let mut line = format!(
        "tc qdisc replace dev {} parent root handle 100 taprio num_tc 8 \
         map 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 1@4 1@5 1@6 1@7 base-time {}",
        options.device,
        list.base_time().as_ns()
    );
    for entry in list.entries() {
        let (states, interval) = (entry.states.0, entry.interval.as_ns());
        let letter = entry.operation.letter();
        write!(line, " sched-entry {letter} {states:02x} {interval}").expect("a String takes all");
    }
    write!(line, " cycle-time {}", list.cycle_time().as_ns()).expect("a String takes all");
    line.push_str(if options.offload { " flags 0x2" } else { " flags 0x0 clockid CLOCK_TAI" });
    line
}
