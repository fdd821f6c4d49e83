//! Push: the time that the tunnel adds to a 4 KiB command at each rate, with and without push, the
//! computed minimum, and a published goal for remote storage.

use super::least::least;
use super::speeds::{RATES, TUNNELS};
use super::{Experiment, Topology, us};
use crate::{Runs, Section};
use node::push::Mode;
use report::Align::{Left, Right};
use report::{Column, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sim::Config;
use sim::ethernet::Rate;
use wire::Duration;

const GOAL: &str = include_str!("../../data/remote-nvme.json");

/// A published figure in microseconds.
#[derive(Clone, Debug, Deserialize)]
pub struct Figure {
    /// Place of the figure in the publication.
    pub source: String,
    /// The figure in microseconds.
    pub value: u64,
}

/// A published goal for the latency of remote storage: `data/remote-nvme.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Goal {
    /// Title of the publication.
    pub title: String,
    /// Author of the publication.
    pub author: String,
    /// The organisation that published the goal.
    pub publisher: String,
    /// Maximum time that remote storage may add to a local drive.
    pub goal_us: Figure,
    /// Time that a prototype added.
    pub prototype_us: Figure,
}

/// Reads the file.
///
/// # Panics
/// If the file, which is part of the program, is invalid.
pub fn goal() -> Goal {
    serde_json::from_str(GOAL).expect("data/remote-nvme.json is part of the program")
}

/// The time that the tunnel adds compared with a directly attached drive.
#[derive(Clone, Copy, Debug, Default, JsonSchema, Serialize)]
pub struct AddedTime {
    /// Added time without push.
    pub plain_us: f64,
    /// Added time with push.
    pub push_us: f64,
    /// Minimum time with push, computed from the parameters.
    pub least_us: f64,
    /// Whether `push_us` is within the goal for remote storage, 10 us.
    pub within_goal: bool,
}

/// The time that a tunnel adds, with and without push.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct PushedTunnel {
    /// Rate of the network.
    pub rate: String,
    /// `tcp` or `tsn`.
    pub topology: &'static str,
    /// Time added to a 4 KiB read.
    pub read: AddedTime,
    /// Time added to a 4 KiB write.
    pub write: AddedTime,
}

fn config(topology: Topology, experiment: Experiment, rate: Rate, push: Mode) -> Config {
    let mut config = topology.config(experiment.workload(), rate);
    config.hosts[0].root.push = push;
    config
}

/// Simulates reads and writes at every rate, with and without push.
///
/// # Errors
/// If a simulation fails.
pub fn simulate() -> Result<Vec<PushedTunnel>, Failure> {
    const COMMANDS: [Experiment; 2] = [Experiment::Read, Experiment::Write];
    const MODES: [Mode; 2] = [Mode::Off, Mode::All];
    let mut cases = vec![(Topology::Direct, Rate::G1)];
    cases.extend(TUNNELS.into_iter().flat_map(|tunnel| RATES.map(|rate| (tunnel, rate))));
    let mut runs = Runs::default();
    for (topology, rate) in &cases {
        for (experiment, push) in
            COMMANDS.into_iter().flat_map(|kind| MODES.map(|mode| (kind, mode)))
        {
            let name = format!("{experiment:?} {topology:?} {rate}, push {push}");
            runs.add(name, config(*topology, experiment, *rate, push));
        }
    }
    let reports = runs.run()?;
    let time = |case: usize, command: usize, mode: usize| {
        COMMANDS[command].mean(&reports[4 * case + 2 * command + mode])
    };
    let goal = Duration::from_us(goal().goal_us.value);
    let added = |case: usize, command: usize| {
        let (topology, rate) = cases[case];
        let [plain, push] = [0, 1].map(|mode| time(case, command, mode) - time(0, command, 0));
        let experiment = COMMANDS[command];
        let config = config(topology, experiment, rate, Mode::All);
        let least = least(&config, experiment == Experiment::Write);
        AddedTime {
            plain_us: us(plain),
            push_us: us(push),
            least_us: us(least),
            within_goal: push <= goal,
        }
    };
    let pushed = |(case, (topology, rate)): (usize, &(Topology, Rate))| PushedTunnel {
        rate: rate.name().to_owned(),
        topology: topology.name(),
        read: added(case, 0),
        write: added(case, 1),
    };
    Ok(cases.iter().enumerate().skip(1).map(pushed).collect())
}

fn signed(us: f64) -> String {
    format!("{us:+.2}")
}

fn yes(within: bool) -> String {
    (if within { "yes" } else { "no" }).to_owned()
}

/// Returns the results as a table.
pub fn section(rows: &[PushedTunnel]) -> Section {
    let columns: [Column<PushedTunnel>; 10] = [
        ("", Left, |row| row.topology.to_owned()),
        ("Ethernet", Right, |row| row.rate.clone()),
        ("read, plain TLPs", Right, |row| signed(row.read.plain_us)),
        ("push", Right, |row| signed(row.read.push_us)),
        ("least", Right, |row| signed(row.read.least_us)),
        ("goal", Right, |row| yes(row.read.within_goal)),
        ("write, plain TLPs", Right, |row| signed(row.write.plain_us)),
        ("push", Right, |row| signed(row.write.push_us)),
        ("least", Right, |row| signed(row.write.least_us)),
        ("goal", Right, |row| yes(row.write.within_goal)),
    ];
    let Goal { title, author, publisher, goal_us, prototype_us } = goal();
    let source = format!(
        "The goal: remote storage adds no more than {} us to a local drive ({author}, \"{title}\", \
         {publisher}; its prototype of 2014 added {} us).",
        goal_us.value, prototype_us.value
    );
    let notes = [
        "Added to the directly attached drive, whose commands take the times of the table above. \
         Least: pipelines once each way and bits once, by arithmetic; nothing waits for anything \
         else, and what leaves together is in one frame.",
        &source,
    ];
    Section::from_rows(
        "With push: what a tunnel adds to a 4 KiB command, us",
        &columns,
        rows,
        &notes,
    )
}
