//! Schedules as a document and as text.

use super::help::Help;
use super::verify::Longest;
use super::{Found, Lists, Missed};
use crate::bound::Bounds;
use plan::Planned;
use report::Align::{Left, Right};
use report::Table;
use schemars::JsonSchema;
use serde::Serialize;
use sim::network::CableEnd;
use std::collections::BTreeSet;
use std::fmt::Write;
use tsn::GateControlList;
use wire::Duration;

/// Entries of a list in the text.
const SHOWN: usize = 16;

/// Columns of the table of streams.
const STREAMS: [(&str, report::Align); 5] = [
    ("stream", Left),
    ("offset us", Right),
    ("latency us", Right),
    ("simulated us", Right),
    ("deadline us", Right),
];

/// Lists for the gates of a plan, and what they bring (`farlane tsn schedule --json`).
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ScheduleReport {
    /// Version of this format.
    pub schema: u32,
    /// The plan's file.
    pub plan: String,
    /// Whether the bounds of all commands and streams are below their deadlines.
    pub feasible: bool,
    /// How commands and other classes share the line.
    pub share: String,
    /// Candidates that the search tried.
    pub tried: usize,
    /// The commands of each host.
    pub commands: Vec<ScheduledCommand>,
    /// The scheduled streams, one row per listener; none if deadlines of commands are given.
    pub streams: Vec<ScheduledStream>,
    /// Deadlines that the bounds miss.
    pub missed: Vec<MissedRow>,
    /// Changes of the plan with which lists meet all deadlines.
    pub help: Vec<Help>,
    /// The lists. Ports that are not here have no gates.
    pub schedules: Vec<PortSchedule>,
}

/// The commands of a kind, before and after.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ScheduledCommand {
    /// Name of the host.
    pub host: String,
    /// `read` or `write`.
    pub kind: &'static str,
    /// With the lists of the plan.
    pub before: CommandFigures,
    /// With the lists of this document.
    pub after: CommandFigures,
}

/// A periodic stream at a listener.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ScheduledStream {
    /// Name of the stream; with several listeners, followed by the listener.
    pub name: String,
    /// From the begin of each period to the sending of its frames: the new `start` of the stream
    /// modulo its period.
    pub offset_ns: u64,
    /// From sending to the arrival of the last frame of a burst, with the error of the clocks.
    pub latency_ns: u64,
    /// The deadline; null without one at this listener.
    pub deadline_ns: Option<u64>,
    /// The longest simulated latency.
    pub simulated_max_ns: u64,
}

/// Latencies of a kind of command.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CommandFigures {
    /// The guaranteed latency; null if there is none.
    pub bound_ns: Option<u64>,
    /// The longest simulated latency; null without commands.
    pub simulated_max_ns: Option<u64>,
}

/// A deadline that a bound misses.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct MissedRow {
    /// The command or stream.
    pub name: String,
    /// The deadline.
    pub deadline_ns: u64,
    /// The bound; null if there is none.
    pub bound_ns: Option<u64>,
    /// Why there is no bound.
    pub why: Option<String>,
}

/// The list of a port.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct PortSchedule {
    /// The node.
    pub node: String,
    /// The node at the other end of the cable.
    pub peer: String,
    /// Length of the cycle.
    pub cycle_ns: u64,
    /// The entries: operation, open gates in hexadecimal, interval, as in a plan.
    pub entries: Vec<String>,
}

fn figures(bounds: &Bounds, longest: &Longest, planned: &Planned, at: usize) -> CommandFigures {
    let command = &bounds.commands[at];
    let host = planned.hosts.iter().position(|host| *host == command.host).unwrap_or(0);
    CommandFigures {
        bound_ns: command.bound.as_ref().ok().map(|bound| bound.as_ps().div_ceil(1000)),
        simulated_max_ns: longest.get(&(host, command.kind)).map(|longest| longest.as_ns()),
    }
}

/// The lists with the names of the plan.
pub fn port_schedules(planned: &Planned, lists: &Lists) -> Vec<PortSchedule> {
    let wiring = planned.config.network.wiring();
    let name = |end: CableEnd| planned.node_name(end).to_owned();
    let entry = |entry: &tsn::Entry| {
        let letter = entry.operation.letter();
        format!("{letter} {:02x} {}", entry.states.0, entry.interval.exact())
    };
    let schedule = |(port, list): (&CableEnd, &GateControlList)| PortSchedule {
        node: name(*port),
        peer: wiring.across(*port).map_or_else(String::new, |(_, end)| name(end)),
        cycle_ns: list.cycle_time().as_ns(),
        entries: list.entries().iter().map(entry).collect(),
    };
    lists.iter().map(schedule).collect()
}

impl From<&Missed> for MissedRow {
    fn from(missed: &Missed) -> Self {
        Self {
            name: missed.name.clone(),
            deadline_ns: missed.deadline.as_ns(),
            bound_ns: missed.bound.as_ref().ok().map(|bound| bound.as_ps().div_ceil(1000)),
            why: missed.bound.as_ref().err().cloned(),
        }
    }
}

impl ScheduleReport {
    /// Adds requirements of the plan that the simulation misses.
    pub fn require(&mut self, missed: Vec<MissedRow>) {
        let known: BTreeSet<String> = self.missed.iter().map(|row| row.name.clone()).collect();
        self.missed.extend(missed.into_iter().filter(|row| !known.contains(&row.name)));
        self.feasible = self.missed.is_empty();
    }

    /// The document of a search.
    pub fn new(
        plan: String,
        planned: &Planned,
        (bounds, longest): (&Bounds, &Longest),
        (found, after): (&Found, &Longest),
        help: Vec<Help>,
    ) -> Self {
        let commands = (0..bounds.commands.len()).map(|at| ScheduledCommand {
            host: bounds.commands[at].host.clone(),
            kind: bounds.commands[at].kind.name(),
            before: figures(bounds, longest, planned, at),
            after: figures(&found.bounds, after, planned, at),
        });
        Self {
            schema: 1,
            plan,
            feasible: found.missed.is_empty(),
            share: found.share.clone(),
            tried: found.tried,
            commands: commands.collect(),
            streams: Vec::new(),
            missed: found.missed.iter().map(MissedRow::from).collect(),
            help,
            schedules: port_schedules(planned, &found.lists),
        }
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let us = |ns: Option<u64>| {
            ns.map_or_else(|| "none".into(), |ns| format!("{:.1}", ns as f64 / 1e3))
        };
        let columns = [
            ("host", Left),
            ("command", Left),
            ("bound us", Right),
            ("simulated us", Right),
            ("scheduled: bound us", Right),
            ("simulated us", Right),
        ];
        let mut table = Table::new(&columns);
        for command in &self.commands {
            let ScheduledCommand { host, kind, before, after } = command;
            table.row(vec![
                host.clone(),
                (*kind).to_owned(),
                us(before.bound_ns),
                us(before.simulated_max_ns),
                us(after.bound_ns),
                us(after.simulated_max_ns),
            ]);
        }
        let mut streams = Table::new(&STREAMS);
        for stream in &self.streams {
            let times = [stream.offset_ns, stream.latency_ns, stream.simulated_max_ns];
            let times = times.map(Some).into_iter().chain([stream.deadline_ns]).map(us);
            streams.row([stream.name.clone()].into_iter().chain(times).collect());
        }
        let tables = [(&table, self.commands.len()), (&streams, self.streams.len())];
        let tables = tables.iter().filter(|(_, rows)| *rows > 0);
        let mut text: String = tables.map(|(table, _)| format!("{}\n", table.text())).collect();
        let mut line = |line: String| writeln!(text, "{line}").expect("a String takes all");
        match self.feasible {
            true if self.share.is_empty() => line("All deadlines are met without lists.".into()),
            true => line(format!("All deadlines are met, with {}.", self.share)),
            false => line(format!(
                "No list meets all deadlines. The best of {}: {}.",
                self.tried, self.share
            )),
        }
        for missed in &self.missed {
            let deadline = us(Some(missed.deadline_ns));
            let bound = us(missed.bound_ns);
            let why = missed.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            line(format!("  {}: {bound} us of {deadline} us{why}", missed.name));
        }
        for help in &self.help {
            line(format!("  would help: {}", help.words()));
        }
        for schedule in &self.schedules {
            let PortSchedule { node, peer, entries, cycle_ns } = schedule;
            let entries = match entries.len() {
                ..=SHOWN => entries.join(", "),
                count => {
                    let cycle = Duration::from_ns(*cycle_ns).exact();
                    format!("{}, … ({count} entries in {cycle})", entries[..SHOWN].join(", "))
                }
            };
            line(format!("{node} to {peer}: {entries}"));
        }
        text
    }
}
