//! A TCP/IP host in virtual time, by smoltcp: real segments in real frames, Reno (RFC 5681),
//! retransmission, window scaling. The stack's clock runs faster than true time, see [`clock`].
//!
//! Transmit is a pull: the host makes a frame only if the network interface has room
//! ([`Input::CanTransmit`]); until then data wait in the socket. And a socket takes data only while
//! little of what it has is unsent ([`Host::free_to_send`]); until then data wait where they can
//! still be aggregated.
//!
//! Not implemented by smoltcp: selective acknowledgements are understood as far as the sender's
//! duplicate count, not used to fill gaps; no time stamps; the initial window is 2048 bytes (Linux:
//! ten segments), so that a connection needs some round trips until it is fast.

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

/// Length of the network's prefix. All peers are in this network.
const PREFIX: u8 = 8;

/// The first ephemeral port (RFC 6335, section 6).
const EPHEMERAL: u16 = 49_152;

/// A host's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its Ethernet address.
    pub mac: Mac,
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// The largest IP packet, in bytes.
    pub mtu: usize,
    /// How long an acknowledgement may wait for data to travel with; `None`: every segment is
    /// acknowledged at once. In any case what exceeds one full segment is.
    pub ack_delay: Option<Duration>,
    /// Bytes that a socket holds for its owner; the window it offers.
    pub receive_buffer: usize,
    /// Bytes that a socket holds until they are acknowledged.
    pub send_buffer: usize,
    /// Unsent bytes from which on a socket takes no more (Linux: `TCP_NOTSENT_LOWAT`).
    pub low_water: usize,
    /// How long sent data may stay without acknowledgement before the
    /// connection is given up; `None`: for ever.
    pub user_timeout: Option<Duration>,
    /// Seed of initial sequence numbers.
    pub seed: u64,
    /// Of the frames' ids: the first is this one.
    pub first_frame: u64,
}

impl Config {
    /// A host with address `ip` in a /8 network, MTU 1500, immediate
    /// acknowledgements, buffers of 256 KiB, and 16 KiB of unsent data as in
    /// the live world. Frame ids begin at the IP address times 2^32.
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

/// Identifies a socket of a host; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u32);

/// Input of a host.
#[derive(Clone, Debug)]
pub enum Input {
    /// A frame from the network interface, without tag.
    Frame(Frame),
    /// How many frames the network interface takes now.
    CanTransmit {
        /// That number; it replaces the previous one.
        frames: usize,
    },
    /// Bytes to send, at most [`Host::free_to_send`]. Lost if the peer has closed the connection.
    Send {
        /// On this connection.
        socket: SocketId,
        /// The bytes.
        data: Bytes,
    },
    /// Close the connection; what was sent is still delivered.
    Close(SocketId),
    /// Reset the connection.
    Abort(SocketId),
}

/// Output of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A frame for the network interface, without tag.
    Transmit(Frame),
    /// A connection was established, by either side.
    Connected(SocketId),
    /// Bytes of the peer, in order.
    Received {
        /// On this connection.
        socket: SocketId,
        /// The bytes.
        data: Bytes,
        /// The latency, by stage, of the frame that brought them; if it filled a gap, of the last.
        latency: FrameLatency,
    },
    /// A connection that had no room has room again.
    Writable(SocketId),
    /// A connection was closed by either side, reset or timed out. Reported
    /// once; the id is invalid then.
    Closed(SocketId),
    /// Nothing before this time.
    Timeout(Option<Instant>),
}

/// Counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames received.
    pub received: u64,
    /// Frames made.
    pub sent: u64,
    /// Segments made that carried data, SYN or FIN, all sent before.
    pub retransmitted: u64,
}

/// A TCP host.
pub struct Host {
    config: Config,
    interface: Interface,
    device: Device,
    connections: Vec<Connection>,
    /// Empty set for frames without a socket.
    no_socket: SocketSet<'static>,
    /// The connection to poll first.
    next_turn: usize,
    /// Frames made that the network interface has not taken: at most one of a socket, and answers.
    frames: VecDeque<Frame>,
    /// Frames that the network interface takes now.
    room: usize,
    /// No connection has anything to do before this time, unless there is input.
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

    /// The same host after its power came back: no socket, other sequence numbers; its frames are
    /// numbered on.
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
        host.counters = self.counters;
        host
    }

    /// Makes an address known: there is no ARP, and packets for others are dropped.
    pub fn add_neighbour(&mut self, mac: Mac, ip: Ipv4Addr) {
        self.device.neighbours.insert(ip, mac);
    }

    /// Waits for one connection to `port`. Its frames have `priority`, 0 to 7.
    /// For several connections call it several times.
    pub fn listen(&mut self, port: u16, priority: u8) -> SocketId {
        self.add_connection(priority, |socket, _| {
            socket.listen(port).expect("a new socket, a port");
        })
    }

    /// Connects to a peer. Frames have `priority`, 0 to 7.
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

    /// How many bytes a socket takes now: nothing while it has as much unsent as the low-water
    /// mark, else what fits in its buffer. If it is nothing, [`Output::Writable`] follows.
    pub fn free_to_send(&mut self, socket: SocketId) -> usize {
        let low_water = self.config.low_water;
        self.find_mut(socket).map_or(0, |connection| connection.free_to_send(low_water))
    }

    /// The same without a later [`Output::Writable`].
    pub fn room(&self, socket: SocketId) -> usize {
        self.find(socket).map_or(0, |connection| connection.free(self.config.low_water))
    }

    /// Bytes that a socket has taken and never sent.
    pub fn unsent(&self, socket: SocketId) -> u64 {
        self.find(socket).map_or(0, Connection::unsent)
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Takes an input.
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
            Input::Close(socket) => self.end(socket, |connection| connection.socket_mut().close()),
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
                // Timers only make frames: they can wait for room.
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
