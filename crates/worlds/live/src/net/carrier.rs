//! The carrier of a link: a TCP connection with or without TLS, raw Ethernet, or another carrier.

use super::address::{Address, Station};
use super::admission::Admission;
use super::connection::{Connection, Listener, SHORT_READ};
use super::gate::LineGate;
use super::other::{OtherAddress, OtherCarrier};
use super::raw::{RawConnection, RawListener};
use super::settings::LinkSettings;
use super::tls::TlsConnection;
use bytes::Bytes;
use credentials::{Credentials, Identity};
use node::Rights;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use wire::Instant;

/// Maximum number of reads from one TCP connection per turn. Without it, a far side that never
/// stops sending would starve the others.
const MAX_READS: usize = 16;

/// A connection that carries a link.
#[derive(Debug)]
pub enum Carrier {
    /// A TCP connection.
    Tcp(Connection),
    /// A TCP connection under TLS.
    Tls(Box<TlsConnection>),
    /// Raw Ethernet.
    Raw(Box<RawConnection>),
    /// Another carrier.
    Other(Box<dyn OtherCarrier>),
}

impl Carrier {
    /// Begins to connect; [`established`](Self::established) returns the outcome. Under TLS, `name`
    /// restricts the peer to the one of this name.
    ///
    /// # Errors
    /// A sentence: no socket, no such interface, no capability.
    pub fn connect(
        now: Instant,
        peer: &Address,
        name: Option<&Arc<str>>,
        settings: &LinkSettings,
    ) -> io::Result<Self> {
        Ok(match peer {
            Address::Tcp(peer) => match &settings.credentials {
                None => Self::Tcp(Connection::connect(*peer, settings)?),
                Some(credentials) => {
                    let name = name.cloned();
                    let connection = TlsConnection::connect(*peer, name, settings, credentials)?;
                    Self::Tls(connection.into())
                }
            },
            Address::Raw(peer) => Self::Raw(RawConnection::connect(now, peer, settings)?.into()),
            Address::Other(address) => Self::Other(address.connect()?),
        })
    }

    /// Whether the descriptor becomes writable when the connection is established.
    pub fn connects_when_writable(&self) -> bool {
        matches!(self, Self::Tcp(_) | Self::Tls(_))
    }

    /// Whether the far side is notified when this process ends in any way.
    pub fn signals_close(&self) -> bool {
        !matches!(self, Self::Raw(_))
    }

    /// Whether the connection is established.
    ///
    /// # Errors
    /// Why the connection failed.
    pub fn established(&mut self, now: Instant) -> io::Result<bool> {
        match self {
            Self::Tcp(connection) => connection.established(),
            Self::Tls(connection) => connection.established(now),
            Self::Raw(connection) => connection.established(now),
            Self::Other(connection) => connection.established(),
        }
    }

    /// The other end.
    pub fn peer(&self) -> Address {
        match self {
            Self::Tcp(connection) => connection.peer.into(),
            Self::Tls(connection) => connection.tcp.peer.into(),
            Self::Raw(connection) => Address::Raw(connection.peer.clone()),
            Self::Other(connection) => connection.peer(),
        }
    }

    /// The smoothed round trip of TCP, as the kernel measures it.
    pub fn round_trip(&self) -> Option<std::time::Duration> {
        match self {
            Self::Tcp(connection) => connection.round_trip(),
            Self::Tls(connection) => connection.tcp.round_trip(),
            Self::Raw(_) | Self::Other(_) => None,
        }
    }

    /// The far side, if it has proved its identity.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        if let Self::Tls(connection) = self { connection.identity() } else { None }
    }

    /// What the far side may do: everything without TLS.
    pub fn rights(&self) -> Rights {
        match self {
            Self::Tls(connection) => {
                connection.identity().map(|identity| identity.rights.clone()).unwrap_or_default()
            }
            _ => Rights::ALL,
        }
    }

    /// The far side's address, and its identity under TLS.
    pub fn remote(&self) -> Remote {
        Remote { address: self.peer(), identity: self.identity().cloned() }
    }

    /// Whether one end refused the key of the other, so that a further connection would fail too.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Tls(connection) if connection.is_refused())
    }

    /// Why TLS ended the connection; returned once.
    pub fn take_failure(&mut self) -> Option<String> {
        if let Self::Tls(connection) = self { connection.take_failure() } else { None }
    }

    /// As [`Connection::send_as_records`]; raw Ethernet always does so.
    pub fn send_as_records(&mut self) {
        match self {
            Self::Tcp(connection) => connection.send_as_records(),
            Self::Tls(connection) => connection.tcp.send_as_records(),
            Self::Raw(_) | Self::Other(_) => {}
        }
    }

    /// Limits the bytes of a read of TCP, and so of a call of [`receive`](Self::receive).
    pub fn limit_reads(&mut self, bytes: Option<usize>) {
        match self {
            Self::Tcp(connection) => connection.limit_reads(bytes),
            Self::Tls(connection) => connection.tcp.limit_reads(bytes),
            Self::Raw(_) | Self::Other(_) => {}
        }
    }

    /// Passes received bytes to `take`, within a limit per call; returns whether the connection
    /// has ended.
    pub fn receive(&mut self, now: Instant, mut take: impl FnMut(Bytes)) -> bool {
        let connection = match self {
            Self::Tcp(connection) => connection,
            Self::Tls(connection) => return connection.receive(now, MAX_READS, take),
            Self::Raw(connection) => return connection.receive(now, take),
            Self::Other(connection) => return connection.receive(&mut take),
        };
        for _ in 0..MAX_READS {
            match connection.receive() {
                Ok(Some(bytes)) if bytes.is_empty() => return true,
                Ok(Some(bytes)) => {
                    let short = bytes.len() < SHORT_READ;
                    take(bytes);
                    // A short read has emptied the socket, so the next call is not needed.
                    if short {
                        return false;
                    }
                }
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
        false
    }

    /// Whether anything received since the last call may have made room to send.
    pub fn take_room_changed(&mut self) -> bool {
        match self {
            Self::Raw(connection) => connection.take_room_changed(),
            Self::Tcp(_) | Self::Tls(_) | Self::Other(_) => false,
        }
    }

    /// Queues bytes, and sends what the network accepts.
    ///
    /// # Errors
    /// If the connection is gone.
    pub fn send(&mut self, now: Instant, bytes: Bytes) -> io::Result<()> {
        match self {
            Self::Tcp(connection) => connection.send_at(now, bytes),
            Self::Tls(connection) => connection.send_at(now, &bytes),
            Self::Raw(connection) => connection.send(now, bytes),
            Self::Other(connection) => connection.send(now, bytes),
        }
    }

    /// Sends queued bytes.
    ///
    /// # Errors
    /// If the connection is gone.
    pub fn flush(&mut self, now: Instant) -> io::Result<()> {
        match self {
            Self::Tcp(connection) => connection.flush_at(now),
            Self::Tls(connection) => connection.tcp.flush_at(now),
            Self::Raw(connection) => connection.flush(now),
            Self::Other(_) => Ok(()),
        }
    }

    /// Number of bytes that the network takes now.
    pub fn room(&mut self, now: Instant) -> usize {
        match self {
            Self::Tcp(connection) => connection.room(),
            Self::Tls(connection) => connection.tcp.room(),
            Self::Raw(connection) => connection.room(now),
            Self::Other(connection) => connection.room(),
        }
    }

    /// Whether the connection waits for the kernel to take more.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Tcp(connection) => connection.is_full(),
            Self::Tls(connection) => connection.tcp.is_full(),
            Self::Raw(connection) => connection.is_full(),
            Self::Other(_) => false,
        }
    }

    /// When to call [`flush`](Self::flush) at the latest.
    pub fn timer(&self) -> Option<Instant> {
        match self {
            Self::Raw(connection) => connection.timer(),
            Self::Tcp(connection) => connection.opens,
            Self::Tls(connection) => connection.tcp.opens,
            Self::Other(_) => None,
        }
    }

    /// Waits briefly until all sent bytes have arrived, before the connection is dropped.
    pub fn linger(&mut self) {
        match self {
            Self::Raw(connection) => connection.linger(),
            Self::Tcp(connection) => connection.linger(),
            Self::Tls(connection) => connection.tcp.linger(),
            Self::Other(_) => {}
        }
    }
}

impl AsFd for Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(connection) => connection.as_fd(),
            Self::Tls(connection) => connection.as_fd(),
            Self::Raw(connection) => connection.as_fd(),
            Self::Other(connection) => connection.fd(),
        }
    }
}

/// The far side of a connection. Its text has the name and the fingerprint of the key, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The address.
    pub address: Address,
    /// The identity under TLS.
    pub identity: Option<Arc<Identity>>,
}

impl From<Address> for Remote {
    fn from(address: Address) -> Self {
        Self { address, identity: None }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.identity {
            None => self.address.fmt(f),
            Some(identity) => write!(f, "{} {identity}", self.address),
        }
    }
}

/// Accepts connections.
#[derive(Debug)]
pub enum CarrierListener {
    /// On a TCP port.
    Tcp(Listener),
    /// On a TCP port, under TLS.
    Tls(Admission),
    /// On an Ethernet interface.
    Raw(RawListener),
    /// Connections of another carrier.
    Other(Arc<dyn OtherAddress>),
}

impl CarrierListener {
    /// Listens on `address`.
    ///
    /// # Errors
    /// A sentence that names the address, the interface or the capability.
    pub fn bind(address: &Address, settings: impl Into<LinkSettings>) -> io::Result<Self> {
        ReservedAddress::new(address, settings)?.listen()
    }

    /// The address on which the listener listens.
    ///
    /// # Errors
    /// As `getsockname(2)`.
    pub fn address(&self) -> io::Result<Address> {
        match self {
            Self::Tcp(listener) => Ok(listener.address()?.into()),
            Self::Tls(admission) => Ok(admission.listener.address()?.into()),
            Self::Raw(listener) => Ok(Address::Raw(listener.station.clone())),
            Self::Other(address) => Ok(Address::Other(address.clone())),
        }
    }

    /// The gate of the accepted connections.
    pub fn gate(&self) -> Option<&LineGate> {
        match self {
            Self::Tcp(listener) => listener.gate(),
            Self::Tls(admission) => admission.listener.gate(),
            Self::Raw(listener) => listener.settings.gate.as_ref(),
            Self::Other(_) => None,
        }
    }

    /// The next waiting connection.
    pub fn accept(&mut self, now: Instant) -> Option<Carrier> {
        match self {
            Self::Tcp(listener) => listener.accept().map(Carrier::Tcp),
            Self::Tls(admission) => admission.accept().map(|made| Carrier::Tls(made.into())),
            Self::Raw(listener) => listener.accept(now).map(|made| Carrier::Raw(made.into())),
            Self::Other(address) => address.accept().map(Carrier::Other),
        }
    }

    /// The next connection that TLS has refused, and why. Call it after [`accept`](Self::accept)
    /// has returned `None`.
    pub fn refusal(&mut self) -> Option<(Address, String)> {
        let Self::Tls(admission) = self else { return None };
        admission.refusal().map(|(peer, why)| (peer.into(), why))
    }
}

/// An address on which a node will listen. A TCP port is bound, and refuses connections; other
/// addresses are free until [`listen`](Self::listen).
#[derive(Debug)]
pub struct ReservedAddress(Reserved);

#[derive(Debug)]
enum Reserved {
    Tcp(SocketAddr, Listener, Option<Arc<Credentials>>),
    Raw(Station, LinkSettings),
    Other(Arc<dyn OtherAddress>),
}

impl ReservedAddress {
    /// Binds the port, which may need a capability that [`listen`](Self::listen) does not need
    /// (CAP_NET_BIND_SERVICE).
    ///
    /// # Errors
    /// As [`CarrierListener::bind`].
    pub fn new(address: &Address, settings: impl Into<LinkSettings>) -> io::Result<Self> {
        let settings = settings.into();
        Ok(Self(match address {
            Address::Tcp(address) => {
                let credentials = settings.credentials.clone();
                Reserved::Tcp(*address, Listener::reserve(*address, settings)?, credentials)
            }
            Address::Raw(station) => Reserved::Raw(station.clone(), settings),
            Address::Other(address) => Reserved::Other(address.clone()),
        }))
    }

    /// Begins to listen. Under TLS, starts a thread.
    ///
    /// # Errors
    /// As [`CarrierListener::bind`].
    pub fn listen(self) -> io::Result<CarrierListener> {
        Ok(match self.0 {
            Reserved::Tcp(address, bound, None) => CarrierListener::Tcp(bound.listen(address)?),
            Reserved::Tcp(address, bound, Some(credentials)) => {
                CarrierListener::Tls(Admission::start(bound.listen(address)?, credentials)?)
            }
            Reserved::Raw(station, settings) => {
                CarrierListener::Raw(RawListener::bind(&station, settings)?)
            }
            Reserved::Other(address) => CarrierListener::Other(address),
        })
    }
}

impl From<Listener> for CarrierListener {
    fn from(listener: Listener) -> Self {
        Self::Tcp(listener)
    }
}

impl AsFd for CarrierListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Tls(admission) => admission.as_fd(),
            Self::Raw(listener) => listener.as_fd(),
            Self::Other(address) => address.fd(),
        }
    }
}
