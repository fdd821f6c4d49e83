//! The handling of streams in a node. A node identifies frames (IEEE 802.1CB-2017, clause 6),
//! filters and polices them (IEEE 802.1Q-2022, 8.6.5.2 to 8.6.5.5), discards copies and numbers
//! frames (802.1CB, clause 7), and sends frames along the path of their stream.

mod identify;
mod table;

pub use identify::{Header, Identification};
pub use table::{Counters, Handling, OWN, Recover, StreamTable, Verdict};
