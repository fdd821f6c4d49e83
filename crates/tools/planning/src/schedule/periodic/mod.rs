//! Schedules of one-way periodic streams.
//!
//! - [`problem`]: the streams of a plan as a scheduling problem;
//! - [`board`]: when ports are busy, and the earliest place of a stream;
//! - [`capacity`]: contradictions that no search can resolve;
//! - [`search`]: list scheduling and large neighbourhood search;
//! - [`lists`]: the gate control lists of a placement.
//!
//! A stream is placed by the time of its sending and its start at each port. Where possible, its
//! frames wait nowhere (no-wait: F. Dürr and N. G. Nayak, "No-wait packet scheduling for IEEE
//! time-sensitive networks", RTNS 2016). A stream that waits in a queue is alone there (frame
//! isolation: S. S. Craciunas et al., "Scheduling real-time communication in IEEE 802.1Qbv time
//! sensitive networks", RTNS 2016).

pub mod board;
pub mod capacity;
pub mod lists;
pub mod problem;
pub mod search;

use super::document::{MissedRow, ScheduleReport, ScheduledStream, port_schedules};
use super::{Limits, Lists, verify, windows};
use plan::{Overload, Plan, Planned, StreamStart};
use problem::{Problem, Timing};
use report::span::micros;
use search::Found;
use sim::Config;
use sim::network::StreamReport;
use wire::{Duration, Instant};

/// The parameters of a schedule.
pub struct Options<'a> {
    /// What the search may use.
    pub limits: Limits<'a>,
    /// How far the clocks of two nodes differ at most.
    pub margin: Duration,
    /// Seed of the search.
    pub seed: u64,
}

/// Schedules all periodic streams of a plan that have a deadline. Returns the report, and the plan
/// with the lists if all streams have a place.
///
/// A simulation of two cycles verifies the result.
///
/// # Errors
/// A plan without such streams, or with streams that no search can place (see [`problem::build`] and
/// [`capacity::cycles`]); a list that is too long; an error of the simulation.
pub fn schedule(
    file: String,
    plan: &Plan,
    planned: &Planned,
    options: &Options<'_>,
) -> Result<(ScheduleReport, Option<Plan>), String> {
    let Options { limits, margin, seed } = options;
    let margin = *margin + jitter(planned);
    let problem = problem::build(planned, Timing::Line, (margin, limits.grain))?;
    if problem.streams.is_empty() {
        return Err("no periodic stream has a deadline".to_owned());
    }
    let cycles = capacity::cycles(&problem)?;
    let found = search::search(&problem, *seed, limits.is_over);
    let mut report = ScheduleReport {
        schema: 1,
        plan: file,
        feasible: found.blocked.is_empty(),
        share: "a window for each frame".to_owned(),
        tried: found.tried,
        commands: Vec::new(),
        streams: Vec::new(),
        missed: found.blocked.iter().map(|blocked| missed(planned, &problem, *blocked)).collect(),
        help: Vec::new(),
        schedules: Vec::new(),
    };
    if !report.feasible {
        return Ok((report, None));
    }
    let lists = lists::lists(&found, &cycles, limits.entries)?;
    report.schedules = port_schedules(planned, &lists);
    let (scheduled, mut after) = apply(plan, planned, &found, &lists)?;
    cover(&mut after.config, cycles.into_iter().max().unwrap_or_default());
    let (simulated, required) = verify::simulated(&after)?;
    for number in 0..problem.streams.len() {
        let (rows, late) = rows(planned, &found, number, &simulated.streams)?;
        report.streams.extend(rows);
        report.missed.extend(late);
    }
    report.require(required);
    Ok((report, Some(scheduled)))
}

fn missed(planned: &Planned, problem: &Problem, (at, port): (usize, usize)) -> MissedRow {
    let stream = &problem.streams[at];
    let listeners = &planned.config.network.stream(stream.id).listeners;
    let deadline = listeners.iter().filter_map(|listener| listener.deadline).min();
    MissedRow {
        name: format!("stream {}", stream.name),
        deadline_ns: deadline.unwrap_or_default().as_ns(),
        bound_ns: None,
        why: Some(format!("no time is left at {}", problem.ports[port].name)),
    }
}

/// The plan with the lists and starts.
///
/// # Errors
/// A mistake in the new plan, such as a port without a table of its own or a class that has not
/// enough time left.
fn apply(
    plan: &Plan,
    planned: &Planned,
    found: &Found<'_>,
    lists: &Lists,
) -> Result<(Plan, Planned), String> {
    let streams = found.board.problem.streams.iter().zip(&found.board.placed);
    let starts: Vec<StreamStart> = streams
        .filter_map(|(stream, placed)| {
            let placed = placed.as_ref()?;
            // Not before the start in the plan.
            let from = planned.config.network.stream(stream.id).start.as_ps();
            let periods = from.saturating_sub(placed.release).div_ceil(stream.period);
            let start = Duration::from_ps(placed.release + periods * stream.period);
            Some(StreamStart { stream: stream.name.clone(), start, priority: placed.priority })
        })
        .collect();
    let scheduled = plan.with_schedule(planned, &windows::apply(planned, lists), &starts);
    let (plan, after) = scheduled.map_err(|error| error.to_string())?;
    let known = |new: &Overload| {
        let same = |old: &Overload| (old.place, &old.classes) == (new.place, &new.classes);
        planned.overloads.iter().any(same)
    };
    let mut overloads = after.overloads.iter().zip(after.overload_sentences());
    match overloads.find(|(overload, _)| !known(overload)) {
        Some((_, sentence)) => Err(format!("with these windows, {sentence}")),
        None => Ok((plan, after)),
    }
}

/// How much the arrival of a frame differs by the jitter of all bridges on its way: six standard
/// deviations each, which simulated bridges never exceed.
fn jitter(planned: &Planned) -> Duration {
    let bridges = planned.config.network.bridges.iter();
    Duration::from_ps(bridges.map(|bridge| 6 * bridge.jitter.as_ps()).sum())
}

/// Makes a run cover at least two cycles.
fn cover(config: &mut Config, cycle: u64) {
    let traffic = config.network.stations.iter().flat_map(|station| &station.traffic);
    let begin = traffic.map(|traffic| traffic.start).max().unwrap_or(Instant::ZERO);
    let least = begin.since(Instant::ZERO) + Duration::from_ps(2 * cycle);
    config.runtime = Some(config.runtime.map_or(least, |runtime| runtime.max(least)));
}

/// The rows of a stream, and the listeners whose simulated frames are late.
fn rows(
    planned: &Planned,
    found: &Found<'_>,
    number: usize,
    simulated: &[StreamReport],
) -> Result<(Vec<ScheduledStream>, Vec<MissedRow>), String> {
    let stream = &found.board.problem.streams[number];
    let unknown = || format!("stream {} has no place", stream.name);
    let placed = found.placed(number).ok_or_else(unknown)?;
    let report = simulated.iter().find(|report| report.stream == stream.id).ok_or_else(unknown)?;
    let (mut rows, mut late) = (Vec::new(), Vec::new());
    for (end, listener) in stream.ends.iter().zip(&report.listeners) {
        let name = match stream.ends.len() {
            1 => stream.name.clone(),
            _ => format!("{} at {}", stream.name, planned.stations[end.station]),
        };
        let (start, earliest) =
            (placed.starts[end.hop] - placed.release, stream.earliest()[end.hop]);
        let margin = found.board.problem.margin;
        let latency = board::longest(start, earliest, margin) + end.after;
        let latency = latency + jitter(planned).as_ps();
        let longest = listener.latency.longest();
        if longest.as_ps() > latency {
            late.push(MissedRow {
                name: format!("stream {name}"),
                deadline_ns: end.deadline.unwrap_or_default() / 1000,
                bound_ns: None,
                why: Some(format!(
                    "it takes {} us in the simulation and {} us by its windows: clocks of the plan \
                     differ by more than the clock error, or ports send frames of their own",
                    micros(longest.as_ns()),
                    micros(latency.div_ceil(1000)),
                )),
            });
        }
        if listener.lost + listener.late > 0 {
            late.push(MissedRow {
                name: format!("stream {name}"),
                deadline_ns: end.deadline.unwrap_or_default() / 1000,
                bound_ns: None,
                why: Some(format!(
                    "in the simulation {} of its frames are lost or late",
                    listener.lost + listener.late
                )),
            });
        }
        rows.push(ScheduledStream {
            name,
            offset_ns: placed.release.div_ceil(1000),
            latency_ns: latency.div_ceil(1000),
            deadline_ns: end.deadline.map(|deadline| deadline / 1000),
            simulated_max_ns: longest.as_ps().div_ceil(1000),
        });
    }
    Ok((rows, late))
}
