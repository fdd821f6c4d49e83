//! A node as a shell script for Linux: `tc`, `ethtool`, `bridge` and `ip`.

mod filters;
mod forwarding;
mod qdiscs;

pub(crate) use filters::{cyclic, unassigned};

use crate::node::Node;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Options of scripts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The network controllers execute gates and preemption (`flags 0x2`, `hw 1`). Otherwise the
    /// kernel executes gates, and preemption is left out.
    pub offload: bool,
    /// Frames of periodic streams that pass a gate leave at their times (etf). Their classes drop
    /// frames of sockets without launch times.
    pub launch_times: bool,
}

/// A script and what it lacks.
#[derive(Clone, Debug)]
pub struct Script {
    /// The text.
    pub text: String,
    /// One sentence for each part of the plan that the script does not set.
    pub notes: Vec<String>,
}

/// The lines of a script.
#[derive(Default)]
struct Lines {
    up: Vec<String>,
    /// Lines of gates that the kernel executes, each with its number among `up` and its device.
    gates: Vec<(usize, String)>,
    down: Vec<String>,
    notes: Vec<String>,
}

impl Lines {
    fn up(&mut self, line: impl Into<String>) {
        self.up.push(line.into());
    }

    /// Adds the line of gates that the kernel executes.
    fn gates(&mut self, device: &str, line: String) {
        self.gates.push((self.up.len(), device.to_owned()));
        self.up(line);
    }

    /// Starts the gates again at the end. Another discipline resets all those of its interface, and
    /// the reset of taprio cancels its timer: the gates stay as they are (Linux 6.12,
    /// `qdisc_graft` and `taprio_reset` in net/sched).
    fn start_gates(&mut self) {
        let stops = |(number, device): &(usize, String)| {
            let other = format!("tc qdisc replace dev {device} ");
            self.up[number + 1..].iter().any(|line| line.starts_with(&other))
        };
        let stopped = self.gates.iter().filter(|gates| stops(gates));
        let lines: Vec<String> = stopped.map(|(number, _)| self.up[*number].clone()).collect();
        if !lines.is_empty() {
            self.remark("The lines above stopped the timers of the gates: start them");
            self.up.extend(lines);
        }
    }

    /// Adds a line of undo, which may fail.
    fn down(&mut self, line: impl Into<String>) {
        let line = format!("quietly {}", line.into());
        if !self.down.contains(&line) {
            self.down.push(line);
        }
    }

    /// Adds a comment for the reader of the script.
    fn remark(&mut self, text: impl std::fmt::Display) {
        self.up.push(one_line(&format!("# {text}")));
    }

    /// Adds a part of the plan that the script does not set, as a comment and as a note.
    fn note(&mut self, text: impl std::fmt::Display) {
        self.remark(format_args!("Not set: {text}"));
        self.notes.push(text.to_string());
    }
}

/// Writes the script of a node. `plan` is the name of the plan.
pub fn script(node: &Node, plan: &str, options: &Options) -> Script {
    let mut lines = Lines::default();
    let devices = devices(node);
    for (port, device) in node.ports.iter().zip(&devices) {
        lines.remark(format_args!("To {}", port.peer));
        // Stations send all frames without a path of their own through their first port.
        let launches = if device == &devices[0] { &node.launches[..] } else { &[] };
        qdiscs::Part { port, device, launches, options, lines: &mut lines }.write();
    }
    if node.is_bridge() {
        filters::lines(node, &devices, options, &mut lines);
        forwarding::bridge(node, &devices, &mut lines);
    } else {
        forwarding::station(node, &devices, &mut lines);
    }
    forwarding::redundancy(node, &mut lines);
    lines.start_gates();
    let text = text(node, plan, &devices, &lines);
    Script { text, notes: lines.notes }
}

/// Returns each port's interface as a word of the shell, `"$PORT_peer"`.
fn devices(node: &Node) -> Vec<String> {
    let mut used = BTreeSet::new();
    let mut device = |peer: &str| {
        let word = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let mut name: String = peer.chars().map(word).collect();
        while !used.insert(name.clone()) {
            name.push('_');
        }
        format!("\"$PORT_{name}\"")
    };
    node.ports.iter().map(|port| device(&port.peer)).collect()
}

fn text(node: &Node, plan: &str, devices: &[String], lines: &Lines) -> String {
    let Node { name, .. } = node;
    let file = crate::file_name(name);
    let [line, plan] = [name, plan].map(one_line);
    let kind = if node.is_bridge() { "bridge" } else { "station" };
    let mut text = format!(
        "#!/bin/sh\n# The {kind} {line} of {plan}, by farlane tsn export.\n\
         #   sh {file}.sh        sets up the interfaces; a second time changes nothing\n\
         #   sh {file}.sh undo   removes the settings\n\
         # Needs root, iproute2, and interfaces with a transmit queue for each traffic class.\n\
         # Replaces the queueing disciplines and filters of the interfaces.\n\
         set -eu\n\n# Interfaces, named after the nodes at the other ends of their cables.\n"
    );
    let mut add = |line: &str| writeln!(text, "{line}").expect("a String takes all");
    for (port, device) in node.ports.iter().zip(devices) {
        let variable = device.trim_matches(['"', '$']);
        add(&format!("{variable}=${{{variable}:-{}}}", quoted(&port.peer)));
    }
    for vlan in &node.vlans {
        add(&format!("VLAN_{vlan}=${{VLAN_{vlan}:-{}.{vlan}}}", devices[0]));
    }
    if node.is_bridge() {
        add("# The bridge that has them as ports.");
        add(&format!("BRIDGE=${{BRIDGE:-{}}}", quoted(name)));
    }
    add("\nquietly() { \"$@\" 2>/dev/null || :; }\n");
    if node.is_bridge() {
        add(&filters::priorities(node));
    }
    add("undo() {");
    lines.down.iter().for_each(|line| add(&format!("    {line}")));
    add("}\n\nset_up() {");
    lines.up.iter().for_each(|line| add(&format!("    {line}")));
    add("}\n\ncase ${1:-} in\n\"\")\n    undo\n    set_up\n    ;;\nundo) undo ;;");
    add("*)\n    echo \"usage: $0 [undo]\" >&2\n    exit 2\n    ;;\nesac");
    text
}

/// Returns a text as a word of the shell.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    match text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Returns a text without line breaks, for comments.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
