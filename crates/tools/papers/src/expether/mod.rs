//! J. Suzuki et al. (NEC), "End-to-End Adaptive Packet Aggregation for High-Throughput I/O Bus
//! Network Using Ethernet", Hot Interconnects 2014 ("the aggregation paper"). A host uses a RAID0
//! of SATA SSDs over 10 Gb/s Ethernet, with one TLP per frame or with aggregated TLPs. The paper
//! has three evaluations.

pub mod ablation;
pub mod assumed;
mod parameters;
mod published;
mod results;
pub mod setup;
pub mod sweep;
mod table;
#[cfg(test)]
mod tests;

pub use ablation::Ablation;
pub use assumed::Assumed;
pub use parameters::{ExpetherParameter, parameters, section as parameter_section};
pub use published::{Figure, Published, published};
pub use results::{ExpetherResults, Part};
pub use setup::{Interconnect, Setup};
pub use sweep::{CurvePoint, Sweep};
pub use table::{Latencies, Statement, Table};
