//! Connections over raw Ethernet: one packet socket per connection, one segment of the stream per
//! frame. [`switch::raw`] makes them reliable.

use super::address::Station;
use super::gate::LineGate;
use super::settings::LinkSettings;
use crate::{about, random_number};
use bytes::{Bytes, BytesMut};
use linux::{ETHERNET, Filter, Interface, Mac, PacketSocket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::sync::{Arc, Weak};
use switch::congestion;
use switch::raw::{Cause, Endpoint, Input, Output, Settings};
use wire::earliest;
use wire::raw::{Body, CONNECTION_MASK, ETHERTYPE, Frame, HEADER, Kind, VERSION};
use wire::{Duration, Instant};

/// Frames read per turn, so that other connections get their turn.
const MAX_READS: usize = 64;
/// Frames that may be sent before the kernel must accept more.
const BURST: usize = 64;
/// The receive buffer in bytes; frames are stored one after the other.
const INPUT: usize = 128 << 10;
/// The minimum retransmission timeout: a thread may wait this long for a processor without the loss
/// of a frame.
const LEAST_TIMEOUT: Duration = Duration::from_ms(2);
/// Frames in flight: the kernel's default receive buffer holds them.
const WINDOW: usize = 128;
/// How long a closing connection may wait for acknowledgements.
const LINGER: Duration = Duration::from_ms(100);
/// The MTU assumed on loopback: the MTU of standard Ethernet.
const LOOP_MTU: usize = 1500;

/// Local settings of a raw Ethernet connection.
#[derive(Clone, Copy, Debug)]
pub struct RawSettings {
    /// The congestion control.
    pub congestion: congestion::Config,
    /// The connection is lost when nothing was acknowledged for this long.
    pub give_up: Duration,
}

impl Default for RawSettings {
    fn default() -> Self {
        Self { congestion: congestion::Config::default(), give_up: Duration::from_ms(800) }
    }
}

impl RawSettings {
    fn endpoint(&self, interface: &Interface, connection: u32) -> Settings {
        Settings {
            segment: largest_segment(interface),
            window: WINDOW,
            congestion: self.congestion,
            initial_timeout: Duration::from_ms(10),
            min_timeout: LEAST_TIMEOUT,
            give_up: self.give_up,
            ..Settings::new(connection)
        }
    }
}

/// The MTU of frames on an interface, in bytes.
fn mtu_of(interface: &Interface) -> usize {
    let mtu = if interface.is_loopback { LOOP_MTU } else { interface.mtu };
    mtu.min(usize::from(u16::MAX))
}

/// The MTU of frames to `station` in bytes: the MTU of the interface, or on loopback the assumed
/// one.
///
/// # Errors
/// If there is no such interface.
pub fn mtu(station: &Station) -> io::Result<usize> {
    Ok(mtu_of(&Interface::find(&station.interface)?))
}

/// Bytes of the stream in a frame.
fn largest_segment(interface: &Interface) -> usize {
    mtu_of(interface) - HEADER
}

/// The largest Max_Payload_Size whose TLPs fit a frame to `station`: with a header of four
/// doublewords, digest (PCIe Base 4.0, section 2.2.1) and the tunnel's header.
///
/// # Errors
/// If there is no such interface, or it carries not even 128 bytes.
pub fn largest_payload(station: &Station) -> io::Result<u16> {
    let interface = Interface::find(&station.interface)?;
    let room = largest_segment(&interface).saturating_sub(wire::frame::HEADER + 16 + 4);
    let fits =
        [4096, 2048, 1024, 512, 256, 128].into_iter().find(|size| usize::from(*size) <= room);
    fits.ok_or_else(|| {
        let (name, mtu) = (&station.interface, interface.mtu);
        io::Error::other(format!("the MTU {mtu} of {name} is too small for a TLP"))
    })
}

/// A connection to the other end of a link, as a [`Carrier`](super::Carrier).
#[derive(Debug)]
pub struct RawConnection {
    socket: PacketSocket,
    endpoint: Endpoint,
    pub(super) peer: Station,
    header: [u8; ETHERNET],
    up: bool,
    down: Option<Cause>,
    /// Bytes of the stream, not yet in a frame.
    output: VecDeque<Bytes>,
    /// Frames that the kernel did not accept.
    pending: VecDeque<Vec<u8>>,
    delivered: VecDeque<Bytes>,
    input: BytesMut,
    timer: Option<Instant>,
    gate: Option<LineGate>,
    /// When the gate opens for the first of the pending frames.
    opens: Option<Instant>,
    /// Whether something was received since the last `take_room_changed`.
    room_changed: bool,
    now: Instant,
    /// Lets the listener detect that the connection is in use.
    _alive: Arc<()>,
}

impl RawConnection {
    pub fn connect(now: Instant, peer: &Station, settings: &LinkSettings) -> io::Result<Self> {
        let interface = Interface::find(&peer.interface)?;
        // On loopback a sender receives its own frames: random addresses tell stations apart.
        let own = if interface.is_loopback { random_mac() } else { interface.mac };
        let connection = random_number() as u32 & CONNECTION_MASK;
        let mut made = Self::new(&interface, own, peer.clone(), settings, connection)?;
        made.endpoint.handle(now, Input::Open);
        made.pump(now);
        Ok(made)
    }

    fn new(
        interface: &Interface,
        own: Mac,
        peer: Station,
        settings: &LinkSettings,
        connection: u32,
    ) -> io::Result<Self> {
        let filter = Filter::fields(
            &[
                &mac_at(0, own)[..],
                &mac_at(6, peer.mac),
                &[(CONNECTION_AT, 4, CONNECTION_MASK, connection)],
            ]
            .concat(),
        );
        let mut header = [0; ETHERNET];
        header[..6].copy_from_slice(&peer.mac.0);
        header[6..12].copy_from_slice(&own.0);
        header[12..].copy_from_slice(&ETHERTYPE.to_be_bytes());
        let socket = PacketSocket::open(interface, ETHERTYPE, &filter)?;
        settings.marking.mark(SockRef::from(&socket), None)?;
        let mut endpoint = settings.raw.endpoint(interface, connection);
        if let Some(gate) = &settings.gate {
            // A frame and its acknowledgement each wait at their end.
            let wait = gate.check(ETHERNET + mtu_of(interface))?;
            endpoint.initial_timeout = endpoint.initial_timeout + wait + wait;
            endpoint.min_timeout = endpoint.min_timeout + wait + wait;
        }
        Ok(Self {
            socket,
            endpoint: Endpoint::new(endpoint),
            peer,
            header,
            up: false,
            down: None,
            output: VecDeque::new(),
            pending: VecDeque::new(),
            delivered: VecDeque::new(),
            input: BytesMut::new(),
            timer: None,
            gate: settings.gate.clone(),
            opens: None,
            room_changed: false,
            now: Instant::ZERO,
            _alive: Arc::new(()),
        })
    }

    pub fn established(&mut self, now: Instant) -> io::Result<bool> {
        self.read(now)?;
        self.pump(now);
        match self.down {
            Some(Cause::Lost) => Err(io::Error::other("no answer")),
            Some(cause) => Err(io::Error::other(cause.to_string())),
            None => Ok(self.up),
        }
    }

    pub fn receive(&mut self, now: Instant, mut take: impl FnMut(Bytes)) -> bool {
        let failed = self.read(now).is_err();
        self.pump(now);
        self.delivered.drain(..).for_each(&mut take);
        failed || self.down.is_some()
    }

    /// Sends one segment if the bytes are no longer than [`room`](Self::room).
    pub fn send(&mut self, now: Instant, bytes: Bytes) -> io::Result<()> {
        self.output.push_back(bytes);
        self.flush(now)
    }

    /// Sends queued and due frames.
    pub fn flush(&mut self, now: Instant) -> io::Result<()> {
        self.pump(now);
        match self.down {
            Some(cause) => Err(io::Error::new(io::ErrorKind::ConnectionReset, cause.to_string())),
            None => Ok(()),
        }
    }

    /// Number of bytes that the next segment may have now.
    pub fn room(&self, now: Instant) -> usize {
        let waits = !self.output.is_empty() || !self.pending.is_empty();
        if waits { 0 } else { self.endpoint.room(now.max(self.now)) }
    }

    pub fn is_full(&self) -> bool {
        !self.pending.is_empty() && self.opens.is_none()
    }

    /// When to call [`flush`](Self::flush) at the latest.
    pub fn timer(&self) -> Option<Instant> {
        earliest([self.timer, self.opens])
    }

    /// Whether something was received since the last call; acknowledgements make room too.
    pub fn take_room_changed(&mut self) -> bool {
        std::mem::take(&mut self.room_changed)
    }

    /// Waits until all sent bytes are acknowledged, or for a tenth of a second: no retransmission
    /// is possible after the end of the process.
    pub fn linger(&mut self) {
        let (start, from) = (std::time::Instant::now(), self.now);
        while self.down.is_none() && !(self.output.is_empty() && self.endpoint.is_quiet()) {
            let spent = Duration::from_ns(start.elapsed().as_nanos() as u64);
            if spent > LINGER || self.read(from + spent).is_err() {
                return;
            }
            self.pump(from + spent);
            let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
            let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 }));
        }
    }

    fn read(&mut self, now: Instant) -> io::Result<()> {
        self.now = self.now.max(now);
        let longest = ETHERNET + HEADER + usize::from(u16::MAX);
        for _ in 0..MAX_READS {
            if self.input.len() < longest {
                self.input = BytesMut::zeroed(INPUT);
            }
            let Some(bytes) = self.socket.receive(&mut self.input)? else { return Ok(()) };
            self.room_changed = true;
            let frame = self.input.split_to(bytes).freeze();
            if let Some(payload) = frame.len().checked_sub(ETHERNET) {
                let payload = frame.slice(frame.len() - payload..);
                self.endpoint.handle(self.now, Input::Received(payload));
            }
        }
        Ok(())
    }

    /// Executes the endpoint's actions, as far as the kernel accepts frames.
    fn pump(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.flush_pending();
        loop {
            self.fill();
            match self.endpoint.poll(self.now) {
                Output::Transmit(payload) => {
                    let frame = [&self.header[..], &payload].concat();
                    self.pending.push_back(frame);
                    self.flush_pending();
                }
                Output::Connected => self.up = true,
                Output::Delivered(bytes) => self.delivered.push_back(bytes),
                Output::Down(cause) => self.down = Some(cause),
                Output::Timeout(at) => {
                    self.timer = at;
                    return;
                }
            }
        }
    }

    /// Cuts the stream into segments while there is room.
    fn fill(&mut self) {
        while let Some(mut bytes) = self.output.pop_front() {
            let room = if self.pending.is_empty() { self.endpoint.room(self.now) } else { 0 };
            if room == 0 {
                return self.output.push_front(bytes);
            }
            if bytes.len() > room {
                self.output.push_front(bytes.split_off(room));
            }
            self.endpoint.send(self.now, bytes.into());
        }
    }

    fn flush_pending(&mut self) {
        self.opens = None;
        while let Some(frame) = self.pending.front() {
            let gate = self.gate.as_ref();
            self.opens = gate.and_then(|gate| gate.holds(self.now, frame.len()));
            if self.opens.is_some() {
                break;
            }
            match self.socket.send(frame) {
                // A frame that cannot be sent counts as lost and is retransmitted. If no frame can
                // be sent, the connection is lost.
                Ok(true) | Err(_) => {
                    gate.inspect(|gate| gate.sent(frame.len()));
                    self.pending.pop_front();
                }
                Ok(false) => break,
            }
        }
        let frames = if self.pending.is_empty() { BURST } else { 0 };
        self.endpoint.handle(self.now, Input::CanTransmit { frames });
    }
}

impl Drop for RawConnection {
    fn drop(&mut self) {
        if self.down.is_none() {
            self.endpoint.handle(self.now, Input::Close);
            self.pump(self.now);
        }
    }
}

impl AsFd for RawConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Accepts connections on an interface.
#[derive(Debug)]
pub struct RawListener {
    socket: PacketSocket,
    interface: Interface,
    pub(super) station: Station,
    pub(super) settings: LinkSettings,
    /// Open connections: a repeated Open belongs to one of them.
    connections: Vec<(Mac, u32, Weak<()>)>,
    _claim: UnixListener,
}

/// Reserves an interface: Ethernet has no ports, so one node listens on it. The name of an
/// abstract socket is unique in a network namespace, and is freed with the process (unix(7)).
fn claim(interface: &str) -> io::Result<UnixListener> {
    let name = UnixAddress::from_abstract_name(format!("farlane raw:{interface}"))?;
    UnixListener::bind_addr(&name)
        .map_err(|error| about(format!("cannot listen on raw:{interface}"), error))
}

impl RawListener {
    pub fn bind(station: &Station, settings: LinkSettings) -> io::Result<Self> {
        let interface = Interface::find(&station.interface)?;
        let open = (ETHERNET as u32, 1, 0xff, u32::from(VERSION << 4 | Kind::Open as u8));
        let filter = Filter::fields(&[&mac_at(0, interface.mac)[..], &[open]].concat());
        let socket = PacketSocket::open(&interface, ETHERTYPE, &filter)?;
        let station = Station { interface: station.interface.clone(), mac: interface.mac };
        let claim = claim(&station.interface)?;
        Ok(Self { socket, interface, station, settings, connections: Vec::new(), _claim: claim })
    }

    pub fn accept(&mut self, now: Instant) -> Option<RawConnection> {
        let mut buffer = [0; ETHERNET + wire::raw::MIN_PAYLOAD];
        while let Ok(Some(length)) = self.socket.receive(&mut buffer) {
            let frame = buffer.get(ETHERNET..length).unwrap_or_default();
            let Ok(Frame { connection, body: Body::Open(_), .. }) = Frame::decode(frame) else {
                continue;
            };
            let from = Mac(*buffer[6..].first_chunk().expect("a header"));
            self.connections.retain(|(.., alive)| alive.strong_count() > 0);
            if self.connections.iter().any(|known| (known.0, known.1) == (from, connection)) {
                continue;
            }
            let peer = Station { interface: self.station.interface.clone(), mac: from };
            let own = self.station.mac;
            let made = RawConnection::new(&self.interface, own, peer, &self.settings, connection);
            let Ok(mut made) = made else { continue };
            made.endpoint.handle(now, Input::Accept);
            made.endpoint.handle(now, Input::Received(Bytes::copy_from_slice(frame)));
            made.pump(now);
            self.connections.push((from, connection, Arc::downgrade(&made._alive)));
            return Some(made);
        }
        None
    }
}

impl AsFd for RawListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The offset of a frame's connection number, in the low 24 bits of a word: behind the first
/// two bytes of the header.
const CONNECTION_AT: u32 = ETHERNET as u32 + 2;

type Field = (u32, u8, u32, u32);

/// Matches the destination (`at` 0) or the source (6) of a frame.
fn mac_at(at: u32, Mac([a, b, c, d, e, f]): Mac) -> [Field; 2] {
    let high = u32::from_be_bytes([a, b, c, d]);
    let low = u32::from(u16::from_be_bytes([e, f]));
    [(at, 4, u32::MAX, high), (at + 4, 2, 0xffff, low)]
}

/// A random address, locally administered (IEEE 802-2014, 8.2.2).
fn random_mac() -> Mac {
    let [_, a, b, c, d, e, ..] = random_number().to_be_bytes();
    Mac([0x02, a, b, c, d, e])
}
