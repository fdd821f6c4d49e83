//! TCP connections and raw Ethernet that carry frames.

mod address;
mod connection;
mod interface;
mod namespace;
mod packet;

pub use address::resolve_local;
pub use connection::{Connection, Listener};
pub use interface::{Interface, Mac};
pub use namespace::Namespace;
pub use packet::{ETHERNET, Filter, PacketSocket};
