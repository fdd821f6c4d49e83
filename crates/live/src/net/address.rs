//! Addresses, and the rule that nothing leaves this machine by accident.

use super::interface::{Interface, Mac};
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Where a node listens, or is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A station on an Ethernet.
    Raw(Station),
}

/// A station that is reached through an interface of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Station {
    /// Name of the interface.
    pub interface: String,
    /// Address of the station.
    pub mac: Mac,
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for Station {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{RAW}{},{}", self.interface, self.mac)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Raw(station) => station.fmt(f),
        }
    }
}

/// How addresses on an Ethernet begin.
const RAW: &str = "raw:";

impl Address {
    /// The machine alone: without what changes with each connection.
    pub fn machine(&self) -> String {
        match self {
            Self::Tcp(address) => address.ip().to_string(),
            Self::Raw(station) => station.to_string(),
        }
    }

    /// Where a far side is: `HOST:PORT` or `raw:INTERFACE,MAC`. Anything but
    /// loopback is refused unless `insecure` is set: links are neither
    /// authenticated nor encrypted.
    ///
    /// # Errors
    /// A sentence that names the address and what is wrong.
    pub fn of_peer(text: &str, insecure: bool) -> io::Result<Self> {
        let Some(rest) = text.strip_prefix(RAW) else { return tcp(text, insecure) };
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let (name, mac) = rest
            .split_once(',')
            .ok_or_else(|| invalid(format!("'{text}' is no raw:INTERFACE,MAC of a far side")))?;
        let mac = mac.parse().map_err(|why| invalid(format!("'{text}': {why}")))?;
        let interface = Interface::find(name)?;
        allow(text, interface.is_loopback || insecure)?;
        Ok(Self::Raw(Station { interface: name.into(), mac }))
    }

    /// Where this node listens: `HOST:PORT` or `raw:INTERFACE`.
    ///
    /// # Errors
    /// As [`of_peer`](Self::of_peer).
    pub fn to_listen(text: &str, insecure: bool) -> io::Result<Self> {
        let Some(name) = text.strip_prefix(RAW) else { return tcp(text, insecure) };
        let interface = Interface::find(name)?;
        allow(text, interface.is_loopback || insecure)?;
        Ok(Self::Raw(Station { interface: name.into(), mac: interface.mac }))
    }
}

fn tcp(text: &str, insecure: bool) -> io::Result<Address> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let mut found = text
        .to_socket_addrs()
        .map_err(|error| invalid(format!("'{text}' is no HOST:PORT: {error}")))?;
    let address = found.next().ok_or_else(|| invalid(format!("'{text}' has no address")))?;
    allow(address, address.ip().is_loopback() || insecure)?;
    Ok(Address::Tcp(address))
}

fn allow(what: impl fmt::Display, allowed: bool) -> io::Result<()> {
    if allowed {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{what} is not loopback, and links are neither authenticated nor encrypted: \
             add --insecure if the network between the nodes is trusted"
        ),
    ))
}
