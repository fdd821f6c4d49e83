//! Simulations of published experiments, one module per publication. The published figures and
//! their sources are in `data`.
//!
//! # Modules
//!
//! - [`nvme_tsn`]: the NVMe/TSN paper
//! - [`expether`]: the aggregation paper
//! - [`tsn_ports`]: ports of TSN bridges, compared with other simulators
//! - [`tsn_vm`]: Linaro's virtual machines behind gates
//! - `runs`: parallel simulations
//! - `section`: one part of the results: text, tables, plots
//! - `row`: a published figure next to a simulated one
//! - `lab`: access to the simulations before they run
//! - `document`: the results of a publication as a document

#[cfg(test)]
mod described;
mod document;
pub mod expether;
mod lab;
pub mod nvme_tsn;
mod row;
mod runs;
mod section;
pub mod tsn_ports;
pub mod tsn_vm;

pub use document::{Checks, Part, Reproduce, Reproduction, Rows, reproduce};
pub use lab::{Lab, Simulation, unchanged};
pub use row::{Changed, Figure, Row};
use row::{error_percent, percent};
pub use runs::Runs;
pub use section::Section;
