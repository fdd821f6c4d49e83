//! NVMe controllers as seen from the TLPs that pass.

mod entries;
mod places;
mod ring;

pub use entries::completion_entries;
pub use places::Places;
pub use ring::Ring;
