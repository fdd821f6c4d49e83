//! Simulated latencies, by kind of command.

use super::document::MissedRow;
use crate::commands::Kind;
use plan::Planned;
use plan::simulate::Shared;
use plan::simulate::requirements::{self, Deadlines, Row};
use report::span::micros;
use sim::World;
use sim::ethernet::traffic::Pattern;
use sim::measure::{CommandRecord, Observer, Op};
use sim::world::Report;
use stats::random::Random;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use wire::Duration;

/// The longest latency of each host and kind of command.
pub type Longest = BTreeMap<(usize, Kind), Duration>;

struct Watcher(Rc<RefCell<Longest>>);

impl Observer for Watcher {
    fn command(&mut self, record: &CommandRecord) {
        let kind = match record.op {
            Op::Read => Kind::Read,
            Op::Write => Kind::Write,
            _ => return,
        };
        let mut longest = self.0.borrow_mut();
        let known = longest.entry((record.host.into(), kind)).or_default();
        *known = (*known).max(record.until.since(record.since));
    }
}

/// Simulates a plan. Returns the report, and the requirements of the plan that it misses.
///
/// # Errors
/// The error of the simulation.
pub fn simulated(planned: &Planned) -> Result<(Report, Vec<MissedRow>), String> {
    let deadlines = Shared::new(Deadlines::new(&planned.requirements));
    let report = World::new(&planned.config).and_then(|mut world| {
        world.observe(Box::new(deadlines.clone()));
        world.run()
    });
    let report = report.map_err(|error| error.to_string())?;
    let rows = requirements::rows(&deadlines.0.borrow(), &report);
    let missed = rows.into_iter().filter(|row| !row.holds);
    let row = |row: Row| MissedRow {
        name: row.name,
        deadline_ns: row.limit_ns.unwrap_or(0),
        bound_ns: None,
        why: Some(match row.worst_ns {
            Some(worst) => format!("it takes {} us in the simulation", micros(worst)),
            None => format!("{} of {} are lost or late in the simulation", row.late, row.count),
        }),
    };
    let missed = missed.map(row).collect();
    Ok((report, missed))
}

/// Simulates a plan `trials` times, each but the first with other starts of streams and hosts.
/// Returns the longest latencies of all trials.
///
/// # Errors
/// The error of a simulation.
pub fn longest(planned: &Planned, trials: u64) -> Result<Longest, String> {
    let longest = Rc::new(RefCell::new(Longest::new()));
    for trial in 0..trials {
        let mut config = planned.config.clone();
        let mut random = Random::for_component(trial, "starts");
        for traffic in config.network.stations.iter_mut().flat_map(|station| &mut station.traffic) {
            if let (Pattern::Periodic(interval), 1..) = (&traffic.pattern, trial) {
                let shift = random.below(interval.as_ps());
                traffic.start += Duration::from_ps(shift);
            }
        }
        for host in &mut config.hosts {
            let shift = if trial > 0 { random.below(1_000_000_000) } else { 0 };
            host.software.start_delay = host.software.start_delay + Duration::from_ps(shift);
        }
        let mut world = World::new(&config).map_err(|error| error.to_string())?;
        world.observe(Box::new(Watcher(longest.clone())));
        world.run().map_err(|error| error.to_string())?;
    }
    Ok(std::mem::take(&mut longest.borrow_mut()))
}
