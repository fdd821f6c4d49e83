//! Runs plans live: every node of a plan in network namespaces of this machine.
//!
//! # Modules
//!
//! - `network`: namespaces, bridges and cables
//! - `settings`: settings of live nodes from a plan
//! - `cuts`: cuts of cables
//! - `device`: the device node of a drive
//! - `differences`: what of a plan only the simulator does
//! - `host`: a host with its workload
//! - `commands`: the commands of a host
//! - `report`: the results as a report of a simulation
//! - `run`: one live run of a plan

mod commands;
mod cuts;
mod device;
mod differences;
mod host;
mod network;
mod report;
mod run;
mod settings;

pub use differences::{differences, refusal};
pub use host::HostResult;
pub use run::{LiveOptions, LiveRun, run};
