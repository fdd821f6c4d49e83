//! A TCP/IP host in virtual time, by smoltcp: real segments in real frames, Reno (RFC 5681),
//! retransmission, window scaling. The stack's clock runs faster than true time; see [`clock`].
//!
//! The host makes a frame only if the network interface has room ([`Input::CanTransmit`]). Until
//! then data wait in the socket. A socket accepts data only while few of its bytes are unsent
//! ([`Host::free_to_send`]). Until then data wait in the tunnel, where they can still be
//! aggregated.
//!
//! smoltcp has these limits: selective acknowledgements affect only the duplicate count and fill no
//! gaps; there are no TCP time stamps; the initial window is 2048 bytes (Linux: ten segments), so a
//! connection needs some round trips to reach full speed.

pub mod clock;
mod connection;
mod device;
mod engine;
mod segment;
pub(crate) use segment::Segment;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};

use bytes::Bytes;
use smoltcp::iface::{self, Interface, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::wire::{HardwareAddress, IpCidr};
use wire::{Duration, Instant};

use self::connection::Connection;
use self::device::Device;
use crate::ethernet::{Frame, FrameLatency, Mac, frame};

/// Prefix length of the IP network, which contains all peers.
const PREFIX: u8 = 8;

/// The first ephemeral port (RFC 6335, section 6).
const EPHEMERAL: u16 = 49_152;

/// A host's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Ethernet address.
    pub mac: Mac,
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// The largest IP packet, in bytes.
    pub mtu: usize,
    /// How long an acknowledgement may wait to be sent with data. `None`: every segment is
    /// acknowledged at once. More than one full segment is always acknowledged at once.
    pub ack_delay: Option<Duration>,
    /// Bytes that a socket buffers for its owner, and the offered window.
    pub receive_buffer: usize,
    /// Bytes that a socket buffers until they are acknowledged.
    pub send_buffer: usize,
    /// Number of unsent bytes from which on a socket accepts no more (Linux: `TCP_NOTSENT_LOWAT`).
    pub low_water: usize,
    /// How long sent data may remain unacknowledged before the connection is closed. `None`:
    /// without limit.
    pub user_timeout: Option<Duration>,
    /// Seed of initial sequence numbers.
    pub seed: u64,
    /// ID of the first frame.
    pub first_frame: u64,
}

impl Config {
    /// A host with address `ip` in a /8 network, an MTU of 1500 bytes, immediate acknowledgements,
    /// buffers of 256 KiB, and 16 KiB of unsent data as in the live world. IDs of frames begin at
    /// the IP address times 2^32.
    pub fn new(mac: Mac, ip: Ipv4Addr) -> Self {
        Self {
            mac,
            ip,
            mtu: frame::MTU,
            ack_delay: None,
            receive_buffer: 256 << 10,
            send_buffer: 256 << 10,
            low_water: 16 << 10,
            user_timeout: None,
            seed: u64::from(ip.to_bits()),
            first_frame: u64::from(ip.to_bits()) << 32,
        }
    }
}

/// Identifies a socket of a host. IDs are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u32);

/// Input of a host.
#[derive(Clone, Debug)]
pub enum Input {
    /// A frame from the network interface, without tag.
    Frame(Frame),
    /// The number of frames that the network interface accepts now.
    CanTransmit {
        /// The number of frames; it replaces the previous number.
        frames: usize,
    },
    /// Send bytes, at most [`Host::free_to_send`]. The bytes are lost if the peer has closed the
    /// connection.
    Send {
        /// On this connection.
        socket: SocketId,
        /// The bytes.
        data: Bytes,
    },
    /// Close the connection; sent bytes are still delivered.
    Close(SocketId),
    /// Reset the connection.
    Abort(SocketId),
}

/// Output of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A frame for the network interface, without tag.
    Transmit(Frame),
    /// A connection is established.
    Connected(SocketId),
    /// Bytes of the peer, in order.
    Received {
        /// On this connection.
        socket: SocketId,
        /// The bytes.
        data: Bytes,
        /// The latency of the frame with these bytes, by stage. If a frame filled a gap in front of
        /// received bytes, the latency of this frame.
        latency: FrameLatency,
    },
    /// A connection that had no room has room again.
    Writable(SocketId),
    /// A connection was closed by either side, was reset or timed out. Reported once; afterwards
    /// the ID is invalid.
    Closed(SocketId),
    /// No output before this time.
    Timeout(Option<Instant>),
}

/// Counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames received.
    pub received: u64,
    /// Frames made.
    pub sent: u64,
    /// Retransmitted segments: segments without new data and without a first SYN or FIN.
    pub retransmitted: u64,
}

/// A TCP host.
pub struct Host {
    config: Config,
    interface: Interface,
    device: Device,
    connections: Vec<Connection>,
    /// The empty set of sockets for frames that belong to no socket.
    no_socket: SocketSet<'static>,
    /// Index of the connection to poll first.
    next_turn: usize,
    /// Frames that wait for the network interface: at most one per socket, and answers.
    frames: VecDeque<Frame>,
    /// Number of frames that the network interface accepts now.
    room: usize,
    /// If set: no connection has work before this time (`None`: never) without input.
    rests: Option<Option<Instant>>,
    /// Events not reported yet.
    events: VecDeque<Output>,
    next_socket: u32,
    next_port: u16,
    frames_made: u64,
    counters: Counters,
}

impl Host {
    /// A host without sockets. Nothing is sent before [`Input::CanTransmit`].
    pub fn new(config: Config) -> Self {
        let mut device = Device::new(config.mtu, config.mac);
        let mut interface_config = iface::Config::new(HardwareAddress::Ip);
        interface_config.random_seed = config.seed;
        let start = clock::to_stack(Instant::ZERO);
        let mut interface = Interface::new(interface_config, &mut device, start);
        interface.update_ip_addrs(|addresses| {
            let address = IpCidr::new(config.ip.into(), PREFIX);
            addresses.push(address).expect("the first address");
        });
        Self {
            interface,
            device,
            connections: Vec::new(),
            no_socket: SocketSet::new(Vec::new()),
            next_turn: 0,
            frames: VecDeque::new(),
            room: 0,
            rests: None,
            events: VecDeque::new(),
            next_socket: 0,
            next_port: EPHEMERAL,
            frames_made: 0,
            counters: Counters::default(),
            config,
        }
    }

    /// This host after a power cycle: no sockets, new initial sequence numbers. The IDs of frames
    /// and sockets continue, and so do the ports: a peer may still have the former connection.
    #[must_use]
    pub fn restarted(&self) -> Self {
        let (seed, first_frame) = (
            self.config.seed.wrapping_add(self.frames_made.wrapping_mul(2) + 1),
            self.config.first_frame + self.frames_made,
        );
        let sockets = self.next_socket;
        let mut host = Self::new(Config { seed, first_frame, ..self.config.clone() });
        host.device.neighbours.clone_from(&self.device.neighbours);
        host.next_socket = sockets;
        host.next_port = self.next_port;
        host.counters = self.counters;
        host
    }

    /// Adds the address of a peer. There is no ARP: packets for other addresses are dropped.
    pub fn add_neighbour(&mut self, mac: Mac, ip: Ipv4Addr) {
        self.device.neighbours.insert(ip, mac);
    }

    /// Waits for one connection to `port`. Its frames have `priority`, 0 to 7. Call this once for
    /// each expected connection.
    ///
    /// # Panics
    /// If the priority is above 7.
    pub fn listen(&mut self, port: u16, priority: u8) -> SocketId {
        self.add_connection(priority, |socket, _| {
            socket.listen(port).expect("a new socket, a port");
        })
    }

    /// Connects to a peer. Frames have `priority`, 0 to 7.
    ///
    /// # Panics
    /// If the priority is above 7.
    pub fn connect(&mut self, remote: SocketAddrV4, priority: u8) -> SocketId {
        let port = self.next_port;
        self.next_port = port.checked_add(1).unwrap_or(EPHEMERAL);
        self.add_connection(priority, |socket, context| {
            socket.connect(context, remote, port).expect("a new socket, addresses and ports");
        })
    }

    fn add_connection(
        &mut self,
        priority: u8,
        open: impl FnOnce(&mut tcp::Socket<'_>, &mut iface::Context),
    ) -> SocketId {
        assert!(priority < 8, "priority {priority}");
        let id = SocketId(self.next_socket);
        self.next_socket += 1;
        let mut connection = Connection::new(id, priority, &self.config);
        open(connection.socket_mut(), self.interface.context());
        self.connections.push(connection);
        self.rests = None;
        id
    }

    /// Number of bytes that a socket accepts now: 0 if [`Config::low_water`] or more bytes are
    /// unsent, otherwise the free bytes of the send buffer. After 0, [`Output::Writable`] follows.
    /// 0 for an unknown socket.
    pub fn free_to_send(&mut self, socket: SocketId) -> usize {
        let low_water = self.config.low_water;
        self.find_mut(socket).map_or(0, |connection| connection.free_to_send(low_water))
    }

    /// Number of bytes that a socket accepts now, as [`free_to_send`](Self::free_to_send). Does not
    /// cause a later [`Output::Writable`].
    pub fn room(&self, socket: SocketId) -> usize {
        self.find(socket).map_or(0, |connection| connection.free(self.config.low_water))
    }

    /// Whether the peer has not acknowledged all bytes of a socket.
    pub fn has_unacknowledged(&self, socket: SocketId) -> bool {
        self.find(socket).is_some_and(|connection| connection.socket().send_queue() > 0)
    }

    /// Bytes that a socket has accepted and never sent.
    pub fn unsent(&self, socket: SocketId) -> u64 {
        self.find(socket).map_or(0, Connection::unsent)
    }

    /// Segments that a connection sent again. 0 for an unknown socket.
    pub fn retransmitted(&self, socket: SocketId) -> u64 {
        self.find(socket).map_or(0, |connection| connection.retransmitted)
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Handles an input.
    pub fn handle(&mut self, now: Instant, input: Input) {
        if let Input::CanTransmit { frames } = input {
            self.room = frames;
            return;
        }
        self.rests = None;
        match input {
            Input::Frame(frame) => self.receive(now, frame),
            Input::CanTransmit { .. } => {}
            Input::Send { socket, data } => {
                if let Some(connection) = self.find_mut(socket) {
                    connection.send(&data);
                }
            }
            Input::Close(socket) => self.end(socket, Connection::close),
            Input::Abort(socket) => self.end(socket, |connection| connection.socket_mut().abort()),
        }
    }

    /// The next output.
    pub fn poll(&mut self, now: Instant) -> Output {
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            if self.room == 0 {
                // Timers only make frames, which can wait for room.
                return Output::Timeout(None);
            }
            if let Some(frame) = self.frames.pop_front() {
                self.room -= 1;
                self.counters.sent += 1;
                return Output::Transmit(frame);
            }
            if let Some(wake) = self.rests
                && wake.is_none_or(|at| at > now)
            {
                return Output::Timeout(wake);
            }
            if !self.run(now) {
                let wakes = self.connections.iter().filter_map(|connection| connection.wake);
                let wake = wakes.min();
                self.rests = Some(wake);
                return Output::Timeout(wake);
            }
        }
    }

    fn find(&self, socket: SocketId) -> Option<&Connection> {
        self.connections.iter().find(|connection| connection.id == socket)
    }

    fn find_mut(&mut self, socket: SocketId) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|connection| connection.id == socket)
    }
}
