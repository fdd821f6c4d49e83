//! TCP connections and raw Ethernet that carry frames, and a script in their place for tests.

mod address;
mod carrier;
mod connection;
mod gate;
mod raw;
mod scripted;
mod settings;

pub use address::{Address, DEFAULT_PORT, Peer, Station};
pub use carrier::{Carrier, CarrierListener};
pub use connection::{Connection, Listener};
pub use gate::LineGate;
pub use linux::{ETHERNET, Filter, Interface, Mac, Marking, Namespace, PacketSocket};
pub use raw::{RawSettings, largest_payload, mtu};
pub use scripted::Script;
pub use settings::LinkSettings;
