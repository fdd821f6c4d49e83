//! The handling of streams in a node: a node identifies frames (IEEE 802.1CB-2017, clause 6),
//! filters and polices them (IEEE 802.1Q-2022, 8.6.5.2 to 8.6.5.5), numbers them, discards copies
//! (802.1CB, clause 7), and sends frames along the streams' own paths.

mod identify;
mod table;

pub use identify::{Header, Identification};
pub use table::{Counters, Handling, Recover, StreamTable, Verdict};
