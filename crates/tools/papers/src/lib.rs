//! Published experiments, simulated: one module a publication. Its figures lie
//! in `data`, with their source; here is what is simulated for them.

#[cfg(test)]
mod described;
pub mod expether;
pub mod nvme_tsn;
mod row;
mod runs;
mod section;
pub mod tsn_ports;
pub mod tsn_vm;

pub use row::Row;
use row::{error_percent, percent};
pub use runs::Runs;
pub use section::Section;
