//! Gate control lists that meet deadlines of commands and streams.
//!
//! - [`windows`]: the lists of a candidate: how often and for how long commands have the line;
//! - [`verify`]: simulated latencies, by kind of command;
//! - [`help`]: what would help if no list meets the deadlines;
//! - [`periodic`]: schedules of one-way periodic streams;
//! - `request`: either search, as a document and a plan;
//! - [`document`]: the results.
//!
//! A command is sporadic: it may begin at any time, and waits for a window at each leg. So lists
//! have several short windows a cycle. The search tries the ways to share the line, lengths and
//! numbers of windows, the same at all ports, and then shortens windows port by port while the
//! bounds of all commands and streams stay below their deadlines. The clocks of the ports need not
//! agree, because the bounds hold for any offsets.

pub mod document;
pub mod help;
pub mod periodic;
mod request;
pub mod verify;
pub mod windows;

use crate::bound::{Bounds, Method, bound_with, flows, known_commands};
use crate::commands::{HostCommands, Kind};
use plan::{Bound as Required, Planned, Requirement, Subject};
pub use request::Request;
use sim::ethernet::traffic::StreamId;
use sim::network::CableEnd;
use std::collections::BTreeMap;
use tsn::GateControlList;
use windows::{Share, Window};
use wire::Duration;

/// The deadlines of all commands, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deadlines {
    /// Of reads.
    pub read: Option<Duration>,
    /// Of writes.
    pub write: Option<Duration>,
}

impl Deadlines {
    /// Sets the deadline of `read` or `write` to a time such as `300us`.
    ///
    /// # Errors
    /// What is expected instead, also if it is set already.
    pub fn set(&mut self, kind: &str, time: &str) -> Result<(), &'static str> {
        const EXPECTED: &str = "expected read=TIME or write=TIME, such as read=300us";
        let time = time.parse().map_err(|_| EXPECTED)?;
        let own = match kind {
            "read" => &mut self.read,
            "write" => &mut self.write,
            _ => return Err(EXPECTED),
        };
        match own.replace(time) {
            Some(_) => Err("one deadline for reads and one for writes"),
            None => Ok(()),
        }
    }

    fn of(self, kind: Kind) -> Option<Duration> {
        match kind {
            Kind::Read => self.read,
            Kind::Write => self.write,
        }
    }
}

/// What the search may use.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Whether the time of the search is over.
    pub is_over: &'a dyn Fn() -> bool,
    /// Times of lists are multiples of this.
    pub grain: Duration,
    /// The most entries of a list.
    pub entries: usize,
}

/// The lists of all ports; ports without an entry have no gates.
pub type Lists = BTreeMap<CableEnd, GateControlList>;

/// The result of a search.
pub struct Found {
    /// The lists.
    pub lists: Lists,
    /// How the line is shared, in words.
    pub share: String,
    /// The bounds with these lists.
    pub bounds: Bounds,
    /// Deadlines that the bounds miss: none if the lists are feasible.
    pub missed: Vec<Missed>,
    /// The share of the line that commands have alone, at the port with the most.
    pub reserved: f64,
    /// Candidates tried.
    pub tried: usize,
}

/// A deadline that a bound misses.
#[derive(Clone, Debug, PartialEq)]
pub struct Missed {
    /// The command or stream, in words.
    pub name: String,
    /// The deadline.
    pub deadline: Duration,
    /// The bound; `Err`: why there is none.
    pub bound: Result<Duration, String>,
}

/// How good a candidate is: the largest bound relative to its deadline if it misses any, then the
/// longest command, then the line's share that is reserved.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Score(f64, f64, f64);

/// A plan in search of lists.
pub struct Search<'a> {
    planned: &'a Planned,
    commands: Vec<Result<HostCommands, String>>,
    deadlines: Deadlines,
    ports: Vec<CableEnd>,
}

impl<'a> Search<'a> {
    /// A search for the lists of a plan. Its present lists are ignored.
    ///
    /// # Errors
    /// A deadline that no list can meet: it is shorter than a command through an empty network; or
    /// lines, shapers or streams that are overloaded without gates. A stream's deadline that is
    /// shorter than a frame.
    pub fn new(planned: &'a Planned, deadlines: Deadlines) -> Result<Self, String> {
        let ports = windows::ports(planned);
        let search = Self { planned, commands: known_commands(planned), deadlines, ports };
        for (host, commands) in planned.hosts.iter().zip(&search.commands) {
            let Ok(commands) = commands else { continue };
            for (kind, probe) in &commands.probes {
                let Some(deadline) = deadlines.of(*kind) else { continue };
                if deadline < probe.least {
                    let least = Duration::from_ps(probe.least.as_ps().next_multiple_of(1000));
                    let (kind, deadline, least) = (kind.name(), deadline.exact(), least.exact());
                    return Err(format!(
                        "{kind}={deadline} is too short: a {kind} of {host} takes {least} through \
                         an empty network"
                    ));
                }
            }
        }
        let mut open = windows::apply(planned, &Lists::new());
        open.find_overloads();
        if let Some(overload) = open.overload_sentences().first() {
            return Err(overload.clone());
        }
        planned.streams.iter().try_for_each(|(name, id)| fits_deadline(planned, name, *id))?;
        Ok(search)
    }

    /// The bounds of the plan as it is.
    pub fn before(&self) -> Bounds {
        bound_with(self.planned, &self.commands, Method::Tfa)
    }

    fn score(&self, bounds: &Bounds, missed: &[Missed], reserved: f64) -> Score {
        let ratio = |missed: &Missed| match &missed.bound {
            Ok(bound) => bound.as_ps() as f64 / missed.deadline.as_ps() as f64,
            Err(_) => 1e6,
        };
        let late = missed.iter().map(ratio).sum::<f64>();
        let commands = bounds.commands.iter().map(|command| match &command.bound {
            Ok(bound) => bound.as_ps() as f64,
            Err(_) => 1e18,
        });
        Score(late, commands.fold(0.0, f64::max), reserved)
    }

    /// Searches for lists: those with the fewest missed deadlines, then the shortest commands, then
    /// the most bandwidth left.
    ///
    /// # Errors
    /// The ports have no common grain.
    pub fn run(&self, limits: &Limits<'_>) -> Result<Found, String> {
        let (network, ports) = (&self.planned.config.network, self.ports.iter().copied());
        let entries = ports.clone().map(|port| network.port(port).gate_entries).min();
        let limits = &Limits {
            grain: windows::common_grain(network, ports, limits.grain)?,
            entries: limits.entries.min(entries.unwrap_or(usize::MAX)),
            ..*limits
        };
        let mut best: Option<(Score, BTreeMap<CableEnd, Window>, Found)> = None;
        let mut tried = 0;
        let mut attempt = |windows: BTreeMap<CableEnd, Window>, best: &mut Option<_>| {
            let Some(found) = self.attempt(&windows) else { return false };
            tried += 1;
            let score = self.score(&found.bounds, &found.missed, found.reserved);
            let better = best.as_ref().is_none_or(|(known, ..): &(Score, _, _)| score < *known);
            if better {
                *best = Some((score, windows, found));
            }
            better
        };
        for share in Share::ALL {
            for window in windows::candidates(self.planned, share, limits) {
                if (limits.is_over)() && best.is_some() {
                    break;
                }
                let all = self.ports.iter().map(|port| (*port, window)).collect();
                attempt(all, &mut best);
            }
        }
        // Shorter windows where they suffice, port by port.
        let mut step = 4;
        while step > 0 && !(limits.is_over)() {
            let mut any = false;
            for port in &self.ports {
                let Some((_, windows, _)) = &best else { break };
                let mut windows = windows.clone();
                let Some(shorter) = windows.get(port).and_then(|one| one.shorter(step, limits))
                else {
                    continue;
                };
                windows.insert(*port, shorter);
                any |= attempt(windows, &mut best);
                if (limits.is_over)() {
                    break;
                }
            }
            step = if any { step } else { step / 2 };
        }
        let (.., found) = best.expect("a plan without gates is a candidate");
        Ok(Found { tried, ..found })
    }

    fn attempt(&self, windows: &BTreeMap<CableEnd, Window>) -> Option<Found> {
        let mut lists = Lists::new();
        for (port, window) in windows {
            if let Some(list) = window.list(self.planned, *port)? {
                lists.insert(*port, list);
            }
        }
        let mut planned = windows::apply(self.planned, &lists);
        // Streams without a deadline keep their frames, too.
        planned.find_overloads();
        if !planned.overloads.is_empty() {
            return None;
        }
        let bounds = bound_with(&planned, &self.commands, Method::Tfa);
        let missed = missed(self.planned, &bounds, self.deadlines);
        let share = windows.values().next().map_or_else(String::new, Window::words);
        let reserved = windows.values().map(Window::reserved).fold(0.0, f64::max);
        Some(Found { lists, share, bounds, missed, reserved, tried: 0 })
    }
}

/// Whether a frame of a stream is sent within its deadlines.
///
/// # Errors
/// A listener's deadline is shorter than a frame at the last port.
fn fits_deadline(planned: &Planned, name: &str, id: StreamId) -> Result<(), String> {
    let network = &planned.config.network;
    // The bounds say why a stream has no path.
    let Ok(flow) = flows::of_stream(&network.wiring(), name, id, 0) else { return Ok(()) };
    for (end, listener) in flow.ends.iter().zip(&network.stream(id).listeners) {
        for port in end.before.iter().map(|hop| flow.hops[*hop].port) {
            let frame = network.port(port).rate.duration(flow.on_line(network, port)[1]);
            if let Some(deadline) = listener.deadline.filter(|deadline| *deadline < frame) {
                return Err(format!(
                    "stream {name}: the deadline of {} is too short: a frame takes {} at {}",
                    deadline.exact(),
                    frame.exact(),
                    planned.port_name(port)
                ));
            }
        }
    }
    Ok(())
}

/// The deadlines that bounds of a plan miss: those of `deadlines`, and of streams in the plan.
pub fn missed(planned: &Planned, bounds: &Bounds, deadlines: Deadlines) -> Vec<Missed> {
    let network = &planned.config.network;
    let commands = bounds.commands.iter().filter_map(|command| {
        let deadline = deadlines.of(command.kind).or_else(|| of_host(planned, &command.host))?;
        let name = format!("{} of {}", command.kind.name(), command.host);
        Some((name, deadline, &command.bound))
    });
    let streams = bounds.streams.iter().zip(&planned.streams).flat_map(|(bound, (_, id))| {
        let listeners = network.stream(*id).listeners.iter().zip(&bound.listeners);
        listeners.filter_map(|(listener, result)| {
            let name = format!("stream {} to {}", bound.name, result.name);
            Some((name, listener.deadline?, &result.bound))
        })
    });
    let late = |(name, deadline, bound): (String, Duration, &Result<Duration, String>)| {
        let holds = bound.as_ref().is_ok_and(|bound| *bound <= deadline);
        (!holds).then(|| Missed { name, deadline, bound: bound.clone() })
    };
    commands.chain(streams).filter_map(late).collect()
}

/// The deadline that the plan has for the commands of a host.
fn of_host(planned: &Planned, host: &str) -> Option<Duration> {
    let number = planned.hosts.iter().position(|name| name == host)?;
    planned.requirements.iter().find_map(|requirement| match requirement {
        Requirement { subject: Subject::Host(at), bound: Required::Deadline(deadline), .. }
            if *at == number =>
        {
            Some(*deadline)
        }
        _ => None,
    })
}
