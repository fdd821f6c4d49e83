//! Non-blocking TCP connections and their listener.

use super::gate::{FRAME, LineGate};
use super::settings::LinkSettings;
use crate::about;
use crate::receive::receive;
use bytes::{Buf, Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use socket2::{Domain, SockRef, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use wire::{Arena, Duration, Instant};

/// Unsent bytes in the kernel above which a socket does not count as writable: TLPs wait in the
/// tunnel, where they can still be aggregated.
const UNSENT: u32 = 16 << 10;
/// The most bytes between two queries of the kernel's room, while the kernel always had room: more
/// than ten full offers. A send that the kernel does not accept in full ends this at once, so at
/// most one offer waits.
const MOST_UNCHECKED: usize = 1 << 20;
/// Bytes per read.
const READ: usize = 128 << 10;
/// Connections that may wait to be accepted (listen(2)); the kernel lowers it to
/// `net.core.somaxconn`. A flood of strangers fills a short queue.
const BACKLOG: i32 = 4096;
/// A read of fewer bytes has emptied the socket, so a further read is not needed.
pub(super) const SHORT_READ: usize = 32 << 10;
/// Bytes offered to the tunnel at once.
const OFFER: usize = 64 << 10;

/// Headers of a segment: Ethernet 14 bytes, IPv6 40, TCP 20 and time stamps 12.
const HEADERS: usize = 86;
/// How long a closing connection may wait for a window.
const LINGER: std::time::Duration = std::time::Duration::from_millis(100);

/// A connection to the other end of a link.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    pub(super) peer: SocketAddr,
    input: Arena,
    /// Bytes of the largest read, if limited.
    read_limit: Option<usize>,
    output: Bytes,
    /// Bytes sent since the last query of the kernel's room.
    unchecked: usize,
    /// Bytes until the next query, doubled after each query that finds room.
    interval: usize,
    /// Number of queries of the kernel's room.
    #[cfg(test)]
    asked: usize,
    flags: SendFlags,
    gate: Option<LineGate>,
    /// When the gate opens for the output.
    pub(super) opens: Option<Instant>,
}

impl Connection {
    /// Begins to connect; [`established`](Self::established) returns the outcome.
    ///
    /// # Errors
    /// If no socket can be created, or this process may not mark its packets.
    pub fn connect(peer: SocketAddr, settings: &LinkSettings) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(peer), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        settings.marking.mark(SockRef::from(&socket), Some(Domain::for_address(peer)))?;
        match socket.connect(&peer.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        Self::new(socket.into(), peer, settings)
    }

    fn new(stream: TcpStream, peer: SocketAddr, settings: &LinkSettings) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT)?;
        Ok(Self {
            stream,
            peer,
            input: Arena::new(READ),
            read_limit: None,
            output: Bytes::new(),
            unchecked: 0,
            interval: UNSENT as usize,
            #[cfg(test)]
            asked: 0,
            flags: SendFlags::NOSIGNAL,
            gate: settings.gate.clone(),
            opens: None,
        })
    }

    /// Sends each later call's bytes in TCP segments of their own: the kernel appends nothing
    /// to a record that ended (`MSG_EOR`, `tcp_skb_can_collapse_to` in Linux). Retransmissions
    /// may still merge.
    pub fn send_as_records(&mut self) {
        self.flags |= SendFlags::EOR;
    }

    /// Limits the bytes of a read.
    pub fn limit_reads(&mut self, bytes: Option<usize>) {
        self.read_limit = bytes;
    }

    /// The smoothed round trip, as the kernel measures it.
    pub(super) fn round_trip(&self) -> Option<std::time::Duration> {
        linux::round_trip(&self.stream).ok().filter(|time| !time.is_zero())
    }

    /// Whether the connection is established.
    ///
    /// # Errors
    /// Why the connection failed.
    pub fn established(&self) -> io::Result<bool> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        match self.stream.peer_addr() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The received bytes; `None` if there are none, empty bytes at the end of the stream.
    ///
    /// # Errors
    /// As `recv(2)`.
    pub fn receive(&mut self) -> io::Result<Option<Bytes>> {
        let mut small;
        let block = match self.read_limit {
            Some(limit) => {
                small = BytesMut::with_capacity(limit);
                &mut small
            }
            None => self.input.block(READ / 4),
        };
        if self.read_limit.is_none() {
            // Reuse the memory if earlier bytes were dropped: it is in the cache.
            let _ = block.try_reclaim(READ);
        }
        match receive(&self.stream, block) {
            Ok(_) => Ok(Some(block.split().freeze())),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Queues bytes, and sends what the kernel accepts.
    ///
    /// # Errors
    /// As `send(2)`.
    pub fn send(&mut self, bytes: Bytes) -> io::Result<()> {
        self.send_at(Instant::ZERO, bytes)
    }

    /// As [`send`](Self::send), at `now` on the clock of `opens`.
    pub(super) fn send_at(&mut self, now: Instant, bytes: Bytes) -> io::Result<()> {
        self.output = if self.output.is_empty() {
            bytes
        } else {
            [&self.output[..], &bytes[..]].concat().into()
        };
        self.flush_at(now)
    }

    /// Sends queued bytes.
    ///
    /// # Errors
    /// As `send(2)`.
    pub fn flush(&mut self) -> io::Result<()> {
        self.flush_at(Instant::ZERO)
    }

    /// As [`flush`](Self::flush), at `now`. With a gate, bytes go in pieces of one segment.
    pub(super) fn flush_at(&mut self, now: Instant) -> io::Result<()> {
        self.opens = None;
        while !self.output.is_empty() {
            let most = if self.gate.is_some() { FRAME - HEADERS } else { usize::MAX };
            let piece = &self.output[..self.output.len().min(most)];
            let gate = self.gate.as_ref();
            self.opens = gate.and_then(|gate| gate.holds(now, HEADERS + piece.len()));
            if self.opens.is_some() {
                return Ok(());
            }
            match rustix::net::send(&self.stream, piece, self.flags) {
                Ok(bytes) => {
                    gate.inspect(|gate| gate.sent(HEADERS + bytes));
                    if bytes < piece.len() {
                        self.interval = UNSENT as usize;
                    }
                    self.output.advance(bytes);
                    self.unchecked += bytes;
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    self.interval = UNSENT as usize;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        // Releases the memory to its owner.
        self.output = Bytes::new();
        Ok(())
    }

    /// Number of bytes that the network takes now.
    pub fn room(&mut self) -> usize {
        if !self.output.is_empty() {
            return 0;
        }
        if self.unchecked > self.interval {
            #[cfg(test)]
            (self.asked += 1);
            let mut fds = [PollFd::new(&self.stream, PollFlags::OUT)];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            if !matches!(poll(&mut fds, Some(&now)), Ok(n) if n > 0) {
                self.interval = UNSENT as usize;
                return 0;
            }
            self.unchecked = 0;
            self.interval = MOST_UNCHECKED.min(2 * self.interval);
        }
        OFFER
    }

    /// Whether the connection waits for the kernel to take more.
    pub fn is_full(&self) -> bool {
        let full = !self.output.is_empty() || self.unchecked > self.interval;
        full && self.opens.is_none()
    }

    /// Waits for a window for the rest of the output.
    pub(super) fn linger(&mut self) {
        let start = std::time::Instant::now();
        while self.opens.is_some() && start.elapsed() < LINGER {
            std::thread::sleep(std::time::Duration::from_micros(100));
            let now = Instant::ZERO + Duration::from_ns(start.elapsed().as_nanos() as u64);
            if self.flush_at(now).is_err() {
                return;
            }
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Accepts connections.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    settings: LinkSettings,
}

impl Listener {
    /// Listens on `address`.
    ///
    /// # Errors
    /// A sentence that names the address.
    pub fn bind(address: SocketAddr, settings: LinkSettings) -> io::Result<Self> {
        Self::reserve(address, settings)?.listen(address)
    }

    /// Binds the port, and refuses connections until [`listen`](Self::listen). Error: as
    /// [`bind`](Self::bind).
    pub(super) fn reserve(address: SocketAddr, settings: LinkSettings) -> io::Result<Self> {
        let ip = Domain::for_address(address);
        let socket = Socket::new(ip, Type::STREAM, None)?;
        // Set before the first connection, because the kernel uses the marks of this socket for its
        // answer.
        settings.marking.mark(SockRef::from(&socket), Some(ip))?;
        socket.set_reuse_address(true)?;
        let bound = socket.bind(&address.into());
        bound.map_err(|error| about(format!("cannot listen on {address}"), error))?;
        socket.set_nonblocking(true)?;
        Ok(Self { listener: socket.into(), settings })
    }

    /// Accepts connections from now on; `address` is for messages. Error: as
    /// [`bind`](Self::bind); another socket may have begun to listen on the port.
    pub(super) fn listen(self, address: SocketAddr) -> io::Result<Self> {
        let listening = SockRef::from(&self.listener).listen(BACKLOG);
        listening.map_err(|error| about(format!("cannot listen on {address}"), error))?;
        Ok(self)
    }

    /// The gate of the accepted connections.
    pub(super) fn gate(&self) -> Option<&LineGate> {
        self.settings.gate.as_ref()
    }

    /// The address on which the listener listens.
    ///
    /// # Errors
    /// As `getsockname(2)`.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next waiting connection; `None` if there is none, or if this one failed before it could
    /// be accepted. Then others may still wait.
    pub fn accept(&self) -> Option<Connection> {
        let (stream, peer) = self.listener.accept().ok()?;
        // An accepted socket does not inherit IPV6_TCLASS.
        let ip = Domain::for_address(self.address().ok()?);
        self.settings.marking.mark(SockRef::from(&stream), Some(ip)).ok()?;
        Connection::new(stream, peer, &self.settings).ok()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Data segments that the socket has sent, according to `ss` (iproute2).
    fn segments(connection: &Connection) -> usize {
        let port = connection.stream.local_addr().unwrap().port();
        let mut ss = Command::new("ss");
        ss.args(["-tinH", "state", "established", &format!("sport = :{port}")]);
        let output = ss.output().expect("ss of iproute2 is there");
        let text = String::from_utf8(output.stdout).unwrap();
        let word = text.split_whitespace().find_map(|word| word.strip_prefix("data_segs_out:"));
        word.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no count: {text}"))
    }

    /// A connection and its other end.
    fn pair() -> [Connection; 2] {
        let listener =
            Listener::bind("127.0.0.1:0".parse().unwrap(), LinkSettings::default()).unwrap();
        let near =
            Connection::connect(listener.address().unwrap(), &LinkSettings::default()).unwrap();
        loop {
            if let Some(far) = listener.accept() {
                return [near, far];
            }
        }
    }

    /// Sends `frames` of 88 bytes to a peer that reads only when the kernel accepts no more, so
    /// that waiting frames could be merged.
    fn send_to_a_slow_reader(frames: usize, records: bool) -> usize {
        let [mut near, mut far] = pair();
        if records {
            near.send_as_records();
        }
        let (mut sent, mut read) = (0, 0);
        while read < frames * 88 {
            near.flush().unwrap();
            if sent < frames && near.room() > 0 {
                near.send(vec![sent as u8; 88].into()).unwrap();
                sent += 1;
            } else if let Some(bytes) = far.receive().unwrap() {
                read += bytes.len();
            }
        }
        segments(&near)
    }

    #[test]
    fn a_record_is_a_segment() {
        const FRAMES: usize = 5_000;
        let (merged, alone) =
            (send_to_a_slow_reader(FRAMES, false), send_to_a_slow_reader(FRAMES, true));
        assert!(alone >= FRAMES, "{alone} segments for {FRAMES} records");
        assert!(merged < FRAMES * 9 / 10, "{merged} segments: nothing had waited");
    }

    /// Reads `bytes` of `far`, while `near` sends queued bytes.
    fn read(near: &mut Connection, far: &mut Connection, mut bytes: usize) {
        while bytes > 0 {
            near.flush().unwrap();
            bytes -= far.receive().unwrap().map_or(0, |read| read.len());
        }
    }

    #[test]
    fn a_network_with_room_is_asked_once_in_ten_sends_or_less() {
        const SENDS: usize = 1000;
        let [mut near, mut far] = pair();
        for _ in 0..SENDS {
            while near.room() < OFFER {}
            near.send(vec![1; OFFER].into()).unwrap();
            near.room();
            read(&mut near, &mut far, OFFER);
        }
        assert!(near.asked <= SENDS / 10, "asked {} times in {SENDS} sends", near.asked);
    }

    #[test]
    fn a_network_that_was_fast_and_stops_has_no_room_until_it_is_read() {
        let [mut near, mut far] = pair();
        for turn in 0..3 {
            let mut sent = 0;
            while near.room() > 0 {
                near.send(vec![1; OFFER].into()).unwrap();
                sent += OFFER;
            }
            assert!(near.is_full() && near.output.len() <= OFFER, "turn {turn}");
            assert_eq!(near.interval, UNSENT as usize, "turn {turn}");
            read(&mut near, &mut far, sent);
            while near.room() == 0 {}
            assert!(!near.is_full(), "turn {turn}");
        }
    }
}
