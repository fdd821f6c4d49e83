//! What a node does with the frames of streams: it identifies them (IEEE 802.1CB-2017, clause 6),
//! filters and polices them (IEEE 802.1Q-2022, 8.6.5.2 to 8.6.5.5), numbers them, discards copies
//! (802.1CB, clause 7), and sends them along their own paths.

mod identify;
mod table;

pub use identify::{Header, Identification};
pub use table::{Counters, Handling, Recover, StreamTable, Verdict};
