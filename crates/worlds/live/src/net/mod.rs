//! Carriers of links: TCP connections, raw Ethernet, and the trait of other carriers.

mod address;
mod carrier;
mod connection;
mod gate;
mod other;
mod raw;
mod settings;

pub use address::{Address, DEFAULT_PORT, Peer, Station};
pub use carrier::{Carrier, CarrierListener, ReservedAddress};
pub use connection::{Connection, Listener};
pub use gate::LineGate;
pub use linux::{ETHERNET, Filter, Interface, Mac, Marking, Namespace, PacketSocket};
pub use other::{OtherAddress, OtherCarrier};
pub use raw::{RawSettings, largest_payload, mtu};
pub use settings::LinkSettings;
