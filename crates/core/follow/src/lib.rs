//! NVMe controllers as seen from the TLPs that pass.

mod admin;
mod config;
mod entries;
mod places;
mod queues;
mod registers;
mod ring;

pub use admin::Effect;
pub use config::ConfigShadow;
pub use entries::completion_entries;
pub use places::Places;
pub use queues::{Queue, Queues};
pub use registers::{Registers, Touched};
pub use ring::Ring;
