//! TCP connections that carry frames.

mod address;
mod connection;

pub use address::resolve_local;
pub use connection::{Connection, Listener};
