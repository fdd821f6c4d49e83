//! Runs plans live: every node of a plan in network namespaces of this machine.
//!
//! # Modules
//!
//! - `network`: namespaces, bridges and cables
//! - `switch_node`: a switch node
//! - `settings`: settings of live nodes from a plan
//! - `calibrate`: fits the delays of this machine's nodes
//! - `compare`: rounds of a plan in both worlds
//! - `compare_document`: the document of a comparison, its text and its page
//! - `compare_pictures`: the pictures of the page
//! - `cpus`: the CPUs of the nodes
//! - `cuts`: cuts of cables
//! - `device`: the device node of a drive
//! - `differences`: the parts of a plan that only the simulator runs
//! - `floor`: raw TCP over the network of a plan
//! - `host`: a host with its workload
//! - `commands`: the commands of a host
//! - `report`: the results as a report of a simulation
//! - `run`: one live run of a plan

mod calibrate;
mod commands;
mod compare;
mod compare_document;
mod compare_pictures;
mod cpus;
mod cuts;
mod device;
mod differences;
mod floor;
mod host;
mod network;
mod report;
mod run;
mod settings;
mod switch_node;
#[cfg(test)]
mod tests;

pub use calibrate::{Calibration, Measurements, calibrate, this_machine};
pub use compare::{Case, CaseRounds, Comparison, Figures, Rounds, traces};
pub use compare_document::{
    CompareCase, CompareDocument, ErrorEstimate, FloorSummary, StageFigure, WorldFigure,
};
pub use differences::{differences, refusal};
pub use floor::{Floor, FloorRound};
pub use host::HostResult;
pub use run::{LiveOptions, LiveRun, run, run_host, serve_link};
