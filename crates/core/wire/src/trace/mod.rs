//! Trace files: timestamped records of what a node observed. `docs/trace.md` specifies the bytes.
//!
//! A file is a [`Header`], then independent [chunks](ChunkHeader): each has a number, a checksum
//! and its start time, so that a file can be a ring and may be truncated anywhere. A chunk is a
//! sequence of [`Record`]s, each with kind and length, so that unknown kinds can be skipped.

mod chunk;
mod event;
mod header;
mod holes;
mod payload;
mod record;
#[cfg(test)]
mod tests;
mod varint;

pub use chunk::{CHUNK_HEADER, ChunkHeader, MAX_CHUNK, SYNC};
pub use event::{CommandId, ControllerState, MediaOperation, NvmeEvent};
pub use header::{FIRST_VERSION, Header, MAGIC, Malformed, NodeRole, VERSION, VIRTUAL_CLOCK};
pub use holes::{Hole, Holes};
pub use payload::{Follower, Kept, PayloadKey, Payloads};
pub use record::{
    HEAD, LinkState, MAX_HEADS, Record, Records, Tap, Timed, encode_tlp, max_record_length,
};
