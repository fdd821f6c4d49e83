//! A testbed for the controller: a host and media in plain memory, without I/O.

mod commands;
mod host;
mod media;
mod operations;
mod pair;
mod store;
mod testbed;
mod tracker;

pub use host::{Expect, Host};
pub use media::Media;
pub use operations::run_operations;
pub use pair::{
    Memory, Pair, abort, admin_sizes, create_commands, create_polled, delete, entry_sizes,
    event_request, get_log, identify, io, number_of_queues,
};
pub use store::RecordStore;
pub use testbed::{DATA, QUEUES, Testbed};
