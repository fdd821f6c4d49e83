//! A testbed for the controller: a host made of plain functions, media made of plain bytes, nothing
//! in between.

mod commands;
mod host;
mod input;
mod media;
mod operations;
mod store;
mod testbed;
mod tracker;

pub use host::{Expect, Host, Pair, create_commands, delete, entry_sizes};
pub use media::Media;
pub use operations::run_operations;
pub use store::RecordStore;
pub use testbed::{DATA, QUEUES, Testbed};
