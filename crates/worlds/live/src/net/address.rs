//! Addresses and names of far sides. Without keys or `--insecure`, only loopback is allowed.

use super::other::OtherAddress;
use linux::{Interface, Mac};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// The default TCP port of nodes. Of the dynamic ports, 49152 to 65535 (RFC 6335, section 6),
/// and above those that Linux gives to clients, 32768 to 60999 (Linux, ip-sysctl.rst,
/// `ip_local_port_range`).
pub const DEFAULT_PORT: u16 = 61_420;

/// The address of a node, to listen on or to connect to.
#[derive(Clone, Debug)]
pub enum Address {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A station on an Ethernet.
    Raw(Station),
    /// An address of another carrier.
    Other(Arc<dyn OtherAddress>),
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tcp(one), Self::Tcp(other)) => one == other,
            (Self::Raw(one), Self::Raw(other)) => one == other,
            (Self::Other(one), Self::Other(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for Address {}

/// An Ethernet station behind an interface of this machine.
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
            Self::Other(_) => f.write_str("another carrier"),
        }
    }
}

/// The prefix of Ethernet addresses.
const RAW: &str = "raw:";

impl Address {
    /// The machine without the port, which changes with each connection.
    pub fn machine(&self) -> String {
        match self {
            Self::Tcp(address) => address.ip().to_string(),
            Self::Raw(_) | Self::Other(_) => self.to_string(),
        }
    }

    /// The address to listen on, from `HOST[:PORT]` or `raw:INTERFACE`. A name with several
    /// addresses stands for the first one.
    ///
    /// # Errors
    /// As [`Peer::find`].
    pub fn to_listen(text: &str, protection: Protection) -> io::Result<Self> {
        let Some(name) = text.strip_prefix(RAW) else {
            return Ok(tcp(text, protection)?.swap_remove(0));
        };
        let interface = Interface::find(name)?;
        allow_raw(text, interface.is_loopback, protection)?;
        Ok(Self::Raw(Station { interface: name.into(), mac: interface.mac }))
    }
}

/// How the links of a node are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Not at all, on loopback only.
    Loopback,
    /// Not at all, on any network (`--insecure`).
    Insecure,
    /// By TLS, with keys.
    Keys,
}

/// A far side: the name that the user wrote, and its addresses.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The name as the user wrote it.
    name: String,
    /// The addresses, at least one, best first.
    addresses: Vec<Address>,
    /// The only name in the file of peers that the far side may have.
    key_name: Option<Arc<str>>,
    /// The same far side over a second path.
    second: Option<Box<Self>>,
}

/// The texts of the paths to a far side, which commas separate: behind `raw:INTERFACE` and before
/// `peer=NAME` a comma belongs to the address.
fn split_paths(text: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    let mut waits_for_mac = false;
    for piece in text.split(',') {
        match paths.last_mut() {
            Some(last) if waits_for_mac || piece.starts_with("peer=") => {
                *last = format!("{last},{piece}");
                waits_for_mac = false;
            }
            _ => {
                waits_for_mac = piece.starts_with(RAW);
                paths.push(piece.to_owned());
            }
        }
    }
    paths
}

impl Peer {
    /// A far side over one path, or over two that a comma separates. Each path is as in
    /// [`find_path`](Self::find_path).
    ///
    /// # Errors
    /// As [`find_path`](Self::find_path), and for more than two paths.
    pub fn find(text: &str, protection: Protection) -> io::Result<Self> {
        let paths = split_paths(text);
        let [first, rest @ ..] = &paths[..] else { unreachable!("split yields a piece") };
        let mut peer = Self::find_path(first, protection)?;
        match rest {
            [] => {}
            [second] => peer.second = Some(Self::find_path(second, protection)?.into()),
            _ => {
                let why = format!("'{text}' has {} paths: expected one or two", paths.len());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
        }
        Ok(peer)
    }

    /// The far side over each of its paths.
    pub fn paths(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.second.as_deref())
    }

    /// A far side from `HOST[:PORT][,peer=NAME]` or `raw:INTERFACE,MAC`. HOST is an IPv4 address,
    /// an IPv6 address (in brackets if a port follows) or a name, which is resolved once, here: this
    /// may block for seconds. NAME is the only name in the file of peers that the far side may have.
    /// Loopback is allowed with any `protection`, raw Ethernet never with keys.
    ///
    /// # Errors
    /// A sentence that names the address and the fault.
    pub fn find_path(text: &str, protection: Protection) -> io::Result<Self> {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let Some(rest) = text.strip_prefix(RAW) else {
            let (address, key_name) = match text.split_once(",peer=") {
                Some((address, name)) => (address, Some(Arc::from(name))),
                None => (text, None),
            };
            if key_name.is_some() && protection != Protection::Keys {
                return Err(invalid(format!("'{text}': peer= needs --key and --peers")));
            }
            let addresses = tcp(address, protection)?;
            return Ok(Self { name: address.into(), addresses, key_name, second: None });
        };
        let name = text.to_owned();
        let (interface, mac) = rest.split_once(',').ok_or_else(|| {
            invalid(format!("invalid address '{text}': expected raw:INTERFACE,MAC"))
        })?;
        let mac = mac.parse().map_err(|why| invalid(format!("'{text}': {why}")))?;
        let found = Interface::find(interface)?;
        allow_raw(text, found.is_loopback, protection)?;
        let station = Station { interface: interface.into(), mac };
        let addresses = vec![Address::Raw(station)];
        Ok(Self { name, addresses, key_name: None, second: None })
    }

    /// The addresses of the far side, at least one, in the order in which to try them.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The only name in the file of peers that the far side may have, if the user gave one.
    pub fn key_name(&self) -> Option<&Arc<str>> {
        self.key_name.as_ref()
    }

    /// The address for attempt number `attempt`: the attempts cycle through all addresses.
    pub fn address(&self, attempt: usize) -> &Address {
        &self.addresses[attempt % self.addresses.len()]
    }

    /// The address of attempt `attempt` for messages, with the name if they differ.
    pub fn named(&self, attempt: usize) -> String {
        let address = self.address(attempt).to_string();
        if address == self.name { address } else { format!("{} ({address})", self.name) }
    }
}

impl From<Address> for Peer {
    fn from(address: Address) -> Self {
        Self { name: address.to_string(), addresses: vec![address], key_name: None, second: None }
    }
}

impl From<&Address> for Peer {
    fn from(address: &Address) -> Self {
        address.clone().into()
    }
}

impl From<&Self> for Peer {
    fn from(peer: &Self) -> Self {
        peer.clone()
    }
}

/// Host and port of a text; the default port is [`DEFAULT_PORT`].
fn host_and_port(text: &str) -> Option<(&str, u16)> {
    if text.parse::<IpAddr>().is_ok() {
        return Some((text, DEFAULT_PORT));
    }
    let (host, rest) = match text.strip_prefix('[') {
        Some(text) => text.split_once(']')?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(port) => port.parse().ok()?,
        None if rest.is_empty() => DEFAULT_PORT,
        None => return None,
    };
    (!host.is_empty()).then_some((host, port))
}

/// The addresses of `HOST` or `HOST:PORT`, at least one, each once.
fn tcp(text: &str, protection: Protection) -> io::Result<Vec<Address>> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let parts = host_and_port(text).ok_or_else(|| {
        invalid(format!("invalid address '{text}': expected HOST[:PORT] or [IPV6][:PORT]"))
    })?;
    let found = parts.to_socket_addrs();
    let found = found.map_err(|error| io::Error::other(format!("'{text}': {error}")))?;
    let mut addresses: Vec<Address> = Vec::new();
    for address in found {
        let named = if address.ip().to_string() == parts.0 || address.to_string() == text {
            address.to_string()
        } else {
            format!("{text} ({address})")
        };
        let allowed = address.ip().is_loopback() || protection != Protection::Loopback;
        allow(named, allowed)?;
        if !addresses.contains(&address.into()) {
            addresses.push(address.into());
        }
    }
    if addresses.is_empty() {
        return Err(io::Error::other(format!("the name '{text}' has no address")));
    }
    Ok(addresses)
}

fn allow(address: impl fmt::Display, allowed: bool) -> io::Result<()> {
    if allowed {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{address} is not loopback, and links are neither authenticated nor encrypted: \
             add --insecure if the network between the nodes is trusted, or use keys (docs/security.md)"
        ),
    ))
}

/// TLS needs TCP, so raw Ethernet is never protected by keys.
fn allow_raw(address: &str, is_loopback: bool, protection: Protection) -> io::Result<()> {
    if protection == Protection::Keys {
        let why = format!(
            "{address}: --key does not protect raw Ethernet; use MACsec (docs/security.md) with \
             --insecure"
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    if is_loopback || protection == Protection::Insecure {
        return Ok(());
    }
    let why = format!(
        "{address} is not loopback, and links are neither authenticated nor encrypted: add --insecure \
         if the network between the nodes is trusted"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_be_left_out() {
        for (text, host, port) in [
            ("192.0.2.7", "192.0.2.7", DEFAULT_PORT),
            ("192.0.2.7:99", "192.0.2.7", 99),
            ("node.example", "node.example", DEFAULT_PORT),
            ("node.example:0", "node.example", 0),
            ("::1", "::1", DEFAULT_PORT),
            ("[::1]", "::1", DEFAULT_PORT),
            ("[2001:db8::1]:99", "2001:db8::1", 99),
        ] {
            assert_eq!(host_and_port(text), Some((host, port)), "{text}");
        }
        for bad in ["", ":99", "host:", "host:65536", "host:x", "a:b:99", "[::1", "[::1]99"] {
            assert_eq!(host_and_port(bad), None, "{bad}");
            let error = Peer::find(bad, Protection::Insecure).unwrap_err().to_string();
            assert!(error.starts_with(&format!("invalid address '{bad}'")), "{error}");
        }
    }

    #[test]
    fn names_are_resolved() {
        let peer = Peer::find("localhost:99", Protection::Loopback).unwrap();
        for (attempt, address) in peer.addresses().iter().enumerate() {
            let Address::Tcp(address) = address else { panic!("{address} is no TCP address") };
            assert!(address.ip().is_loopback() && address.port() == 99, "{address}");
            assert_eq!(peer.named(attempt), format!("localhost:99 ({address})"));
        }
        assert_eq!(peer.address(0), peer.address(peer.addresses().len()), "all have their turn");
        assert_eq!(
            Peer::find("127.0.0.1:99", Protection::Loopback).unwrap().named(0),
            "127.0.0.1:99"
        );
        // An empty label fails without a name server.
        let error = Peer::find("a..b", Protection::Loopback).unwrap_err().to_string();
        assert!(error.starts_with("'a..b': "), "{error}");
    }

    #[test]
    fn other_machines_are_refused() {
        for text in ["192.0.2.7", "192.0.2.7:99", "2001:db8::1", "[2001:db8::1]:99"] {
            let error = Peer::find(text, Protection::Loopback).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("--insecure"), "{error}");
            for protection in [Protection::Insecure, Protection::Keys] {
                assert!(Peer::find(text, protection).is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn keys_allow_a_name_and_exclude_raw_ethernet() {
        let peer = Peer::find("192.0.2.7:99,peer=store", Protection::Keys).unwrap();
        assert_eq!(peer.key_name().map(|name| &**name), Some("store"));
        assert_eq!(peer.named(0), "192.0.2.7:99");
        let error = Peer::find("127.0.0.1,peer=store", Protection::Insecure).unwrap_err();
        assert!(error.to_string().contains("needs --key"), "{error}");
        for error in [
            Peer::find("raw:lo,02:00:00:00:00:01", Protection::Keys).unwrap_err(),
            Address::to_listen("raw:lo", Protection::Keys).unwrap_err(),
        ] {
            assert!(error.to_string().contains("MACsec"), "{error}");
        }
    }
}
