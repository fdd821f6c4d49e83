//! The carrier of a link: a TCP connection, raw Ethernet, or another carrier.

use super::address::Address;
use super::connection::{Connection, Listener};
use super::gate::LineGate;
use super::other::{OtherAddress, OtherCarrier};
use super::raw::{RawConnection, RawListener};
use super::settings::LinkSettings;
use bytes::Bytes;
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
    /// Raw Ethernet.
    Raw(Box<RawConnection>),
    /// Another carrier.
    Other(Box<dyn OtherCarrier>),
}

impl Carrier {
    /// Begins to connect; [`established`](Self::established) returns the outcome.
    ///
    /// # Errors
    /// A sentence: no socket, no such interface, no capability.
    pub fn connect(now: Instant, peer: &Address, settings: &LinkSettings) -> io::Result<Self> {
        Ok(match peer {
            Address::Tcp(peer) => Self::Tcp(Connection::connect(*peer, settings)?),
            Address::Raw(peer) => Self::Raw(RawConnection::connect(now, peer, settings)?.into()),
            Address::Other(address) => Self::Other(address.connect()?),
        })
    }

    /// Whether the descriptor becomes writable when the connection is established.
    pub fn connects_when_writable(&self) -> bool {
        matches!(self, Self::Tcp(_))
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
            Self::Raw(connection) => connection.established(now),
            Self::Other(connection) => connection.established(),
        }
    }

    /// The other end.
    pub fn peer(&self) -> Address {
        match self {
            Self::Tcp(connection) => connection.peer.into(),
            Self::Raw(connection) => Address::Raw(connection.peer.clone()),
            Self::Other(connection) => connection.peer(),
        }
    }

    /// As [`Connection::send_as_records`]; raw Ethernet always does so.
    pub fn send_as_records(&mut self) {
        if let Self::Tcp(connection) = self {
            connection.send_as_records();
        }
    }

    /// Passes received bytes to `take`, within a limit per call; returns whether the connection
    /// has ended.
    pub fn receive(&mut self, now: Instant, mut take: impl FnMut(Bytes)) -> bool {
        let connection = match self {
            Self::Tcp(connection) => connection,
            Self::Raw(connection) => return connection.receive(now, take),
            Self::Other(connection) => return connection.receive(&mut take),
        };
        for _ in 0..MAX_READS {
            match connection.receive() {
                Ok(Some(bytes)) if bytes.is_empty() => return true,
                Ok(Some(bytes)) => {
                    let short = bytes.len() < 32 << 10;
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
            Self::Tcp(_) | Self::Other(_) => false,
        }
    }

    /// Queues bytes, and sends what the network accepts.
    ///
    /// # Errors
    /// If the connection is gone.
    pub fn send(&mut self, now: Instant, bytes: Bytes) -> io::Result<()> {
        match self {
            Self::Tcp(connection) => connection.send_at(now, bytes),
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
            Self::Raw(connection) => connection.flush(now),
            Self::Other(_) => Ok(()),
        }
    }

    /// Number of bytes that the network takes now.
    pub fn room(&mut self, now: Instant) -> usize {
        match self {
            Self::Tcp(connection) => connection.room(),
            Self::Raw(connection) => connection.room(now),
            Self::Other(connection) => connection.room(),
        }
    }

    /// Whether the connection waits for the kernel to take more.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Tcp(connection) => connection.is_full(),
            Self::Raw(connection) => connection.is_full(),
            Self::Other(_) => false,
        }
    }

    /// When to call [`flush`](Self::flush) at the latest.
    pub fn timer(&self) -> Option<Instant> {
        match self {
            Self::Raw(connection) => connection.timer(),
            Self::Tcp(connection) => connection.opens,
            Self::Other(_) => None,
        }
    }

    /// Waits briefly until all sent bytes have arrived, before the connection is dropped.
    pub fn linger(&mut self) {
        match self {
            Self::Raw(connection) => connection.linger(),
            Self::Tcp(connection) => connection.linger(),
            Self::Other(_) => {}
        }
    }
}

impl AsFd for Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(connection) => connection.as_fd(),
            Self::Raw(connection) => connection.as_fd(),
            Self::Other(connection) => connection.fd(),
        }
    }
}

/// Accepts connections.
#[derive(Debug)]
pub enum CarrierListener {
    /// On a TCP port.
    Tcp(Listener),
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
        let settings = settings.into();
        Ok(match address {
            Address::Tcp(address) => Self::Tcp(Listener::bind(*address, settings)?),
            Address::Raw(station) => Self::Raw(RawListener::bind(station, settings)?),
            Address::Other(address) => Self::Other(address.clone()),
        })
    }

    /// The address on which the listener listens.
    ///
    /// # Errors
    /// As `getsockname(2)`.
    pub fn address(&self) -> io::Result<Address> {
        match self {
            Self::Tcp(listener) => Ok(listener.address()?.into()),
            Self::Raw(listener) => Ok(Address::Raw(listener.station.clone())),
            Self::Other(address) => Ok(Address::Other(address.clone())),
        }
    }

    /// The gate of the accepted connections.
    pub fn gate(&self) -> Option<&LineGate> {
        match self {
            Self::Tcp(listener) => listener.gate(),
            Self::Raw(listener) => listener.settings.gate.as_ref(),
            Self::Other(_) => None,
        }
    }

    /// The next waiting connection.
    pub fn accept(&mut self, now: Instant) -> Option<Carrier> {
        match self {
            Self::Tcp(listener) => listener.accept().map(Carrier::Tcp),
            Self::Raw(listener) => listener.accept(now).map(|made| Carrier::Raw(made.into())),
            Self::Other(address) => address.accept().map(Carrier::Other),
        }
    }
}

/// An address on which a node will listen: a TCP port that this process has bound and that refuses
/// connections. Other addresses are only checked by [`listen`](Self::listen).
#[derive(Debug)]
pub struct ReservedAddress(Reserved);

#[derive(Debug)]
enum Reserved {
    Tcp(SocketAddr, Listener),
    Other(Address, LinkSettings),
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
                Reserved::Tcp(*address, Listener::reserve(*address, settings)?)
            }
            Address::Raw(_) | Address::Other(_) => Reserved::Other(address.clone(), settings),
        }))
    }

    /// Begins to listen.
    ///
    /// # Errors
    /// As [`CarrierListener::bind`].
    pub fn listen(self) -> io::Result<CarrierListener> {
        match self.0 {
            Reserved::Tcp(address, bound) => Ok(CarrierListener::Tcp(bound.listen(address)?)),
            Reserved::Other(address, settings) => CarrierListener::bind(&address, settings),
        }
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
            Self::Raw(listener) => listener.as_fd(),
            Self::Other(address) => address.fd(),
        }
    }
}
