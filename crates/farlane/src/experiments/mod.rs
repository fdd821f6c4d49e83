//! Published experiments, simulated: one module a publication. Its figures lie
//! in `data`, with their source; here is what is simulated for them.

pub mod nvme_tsn;
mod runs;
mod section;

pub use runs::{Failed, Runs};
pub use section::{Grid, Section};
