//! Carriers of links: TCP connections with and without TLS, raw Ethernet, and the trait of other
//! carriers.

mod address;
mod admission;
mod carrier;
mod connection;
mod gate;
mod other;
mod raw;
mod settings;
mod tls;

pub use address::{Address, DEFAULT_PORT, Peer, Protection, Station};
pub use admission::Admission;
pub use carrier::{Carrier, CarrierListener, Remote, ReservedAddress};
pub use connection::{Connection, Listener};
pub use gate::LineGate;
pub use linux::{ETHERNET, Filter, Interface, Mac, Marking, Namespace, PacketSocket};
pub use other::{OtherAddress, OtherCarrier};
pub use raw::{RawSettings, largest_payload, mtu};
pub use settings::LinkSettings;
pub use tls::TlsConnection;
