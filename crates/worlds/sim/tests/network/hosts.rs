//! TCP hosts alone: the bytes of their frames, neighbours, several sockets.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::*;
use sim::tcp::{Config, Host, Input, Output, SocketId};

use crate::network::world::{PORT, ip, mac};

/// Two hosts on a line without delay. `seen` has every frame.
struct Pair {
    hosts: [Host; 2],
    now: Instant,
    seen: Vec<Frame>,
    received: Vec<(SocketId, Bytes)>,
    connected: Vec<(usize, SocketId)>,
}

impl Pair {
    fn new(neighbours: bool) -> Self {
        let mut hosts = [0, 1].map(|node| Host::new(Config::new(mac(node), ip(node))));
        if neighbours {
            hosts[0].add_neighbour(mac(1), ip(1));
            hosts[1].add_neighbour(mac(0), ip(0));
        }
        Self {
            hosts,
            now: Instant::ZERO,
            seen: Vec::new(),
            received: Vec::new(),
            connected: Vec::new(),
        }
    }

    fn connect(&mut self) -> SocketId {
        self.hosts[0].connect(SocketAddrV4::new(ip(1), PORT), 3)
    }

    /// Runs until neither host has output now. Returns the next wake-up.
    fn settle(&mut self) -> Option<Instant> {
        loop {
            if let [Some(one), Some(two)] = [self.step(0), self.step(1)] {
                return one.into_iter().chain(two).min();
            }
        }
    }

    /// Handles one output of a host. `Some` with the next wake-up if there is no output.
    fn step(&mut self, node: usize) -> Option<Option<Instant>> {
        self.hosts[node].handle(self.now, Input::CanTransmit { frames: 1 });
        match self.hosts[node].poll(self.now) {
            Output::Timeout(at) => return Some(at),
            Output::Transmit(frame) => {
                self.seen.push(frame.clone());
                self.hosts[1 - node].handle(self.now, Input::Frame(frame));
            }
            Output::Received { socket, data, .. } => self.received.push((socket, data)),
            Output::Connected(socket) => self.connected.push((node, socket)),
            Output::Writable(_) | Output::Closed(_) => {}
        }
        None
    }

    /// Advances to the next timer.
    fn wait(&mut self) {
        let at = self.settle().expect("a timer");
        assert!(at > self.now);
        self.now = at;
    }

    fn send(&mut self, socket: SocketId, data: &[u8]) {
        let data = Bytes::copy_from_slice(data);
        self.hosts[0].handle(self.now, Input::Send { socket, data });
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The sum of RFC 1071: 0xffff if the parts include a correct checksum.
fn sum(parts: &[&[u8]]) -> u16 {
    let bytes: Vec<u8> = parts.concat();
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn check_sums(frame: &Frame) {
    let ip = &frame.bytes[14..];
    assert_eq!(sum(&[&ip[..20]]), 0xffff, "IPv4");
    let length = u16::from_be_bytes([ip[2], ip[3]]) - 20;
    let pseudo = [&ip[12..20], &[0, 6], &length.to_be_bytes()].concat();
    assert_eq!(sum(&[&pseudo, &ip[20..]]), 0xffff, "TCP");
}

#[test]
fn golden_frames() {
    let mut pair = Pair::new(true);
    pair.hosts[1].listen(PORT, 3);
    let socket = pair.connect();
    pair.settle();
    assert_eq!(pair.connected.len(), 2);
    pair.send(socket, b"farlane!");
    pair.settle();
    assert_eq!(pair.received[0].1, b"farlane!"[..]);
    pair.seen.iter().for_each(check_sums);
    // SYN, SYN and ACK, ACK, data, ACK.
    assert_eq!(pair.seen.len(), 5, "no more than needed");
    let lengths: Vec<_> = pair.seen.iter().map(|frame| frame.bytes.len()).collect();
    assert_eq!(lengths, [66, 66, 54, 62, 54]);
    // Ethernet, IPv4 without identification or fragments, 64 hops; port 49152
    // to 4420, SYN, MSS 1460, window scale 3, SACK permitted.
    let syn = hex(&pair.seen[0].bytes);
    assert!(syn.starts_with("0200000000020200000000010800450000340000400040"), "{syn}");
    assert_eq!(syn, GOLDEN_SYN);
    let mut captured = Vec::new();
    let mut data = pair.seen[3].clone();
    data.tag = Some(Tag { pcp: 3, vid: 5 });
    data.capture(&mut captured);
    assert_eq!(hex(&captured), GOLDEN_DATA);
}

const GOLDEN_SYN: &str = "0200000000020200000000010800\
    4500003400004000400626c20a0000010a000002\
    c0001144b3cc1d93000000008002ffffb9700000020405b40303030402000000";
const GOLDEN_DATA: &str = "0200000000020200000000018100600508\
    004500003000004000400626c60a0000010a000002\
    c0001144b3cc1d94eac0548c501880009a7100006661726c616e6521";

#[test]
fn packets_to_unknown_addresses_are_dropped() {
    let mut pair = Pair::new(false);
    pair.hosts[1].listen(PORT, 0);
    pair.connect();
    pair.settle();
    pair.wait();
    pair.settle();
    assert!(pair.seen.is_empty() && pair.connected.is_empty());
}

/// A host has more neighbours and sockets than a fixed table of the stack holds.
#[test]
fn a_host_has_as_many_neighbours_and_sockets_as_it_is_given() {
    let mut host = Host::new(Config::new(mac(0), ip(0)));
    for number in 1..=1000u32 {
        let address = Ipv4Addr::from_bits(ip(0).to_bits() + number);
        host.add_neighbour(Mac::local(1 + number), address);
        host.connect(SocketAddrV4::new(address, PORT), 0);
    }
    let mut seen = Vec::new();
    loop {
        host.handle(Instant::ZERO, Input::CanTransmit { frames: 1 });
        match host.poll(Instant::ZERO) {
            Output::Transmit(frame) => seen.push(frame.destination()),
            Output::Timeout(_) => break,
            other => panic!("{other:?}"),
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (2..=1001).map(Mac::local).collect::<Vec<_>>());
}

/// Several sockets share the interface frame by frame.
#[test]
fn sockets_take_turns() {
    let mut pair = Pair::new(true);
    for _ in 0..3 {
        pair.hosts[1].listen(PORT, 0);
    }
    let sockets = [(); 3].map(|()| pair.connect());
    pair.settle();
    assert_eq!(pair.connected.len(), 6);
    // Until the congestion windows are wide.
    for &socket in &sockets {
        pair.send(socket, &[7; 60_000]);
    }
    pair.settle();
    let before = pair.seen.len();
    for &socket in &sockets {
        pair.send(socket, &[7; 14_600]);
    }
    pair.settle();
    let ports: Vec<_> = pair.seen[before..]
        .iter()
        .filter(|frame| frame.source() == mac(0) && frame.bytes.len() > 1_000)
        .map(|frame| u16::from_be_bytes([frame.bytes[34], frame.bytes[35]]) - 49_152)
        .collect();
    assert_eq!(ports.len(), 30);
    for turn in ports.chunks(3) {
        let mut turn = turn.to_vec();
        turn.sort_unstable();
        assert_eq!(turn, [0, 1, 2]);
    }
    let total: usize = pair.received.iter().map(|(_, data)| data.len()).sum();
    assert_eq!(total, 3 * 74_600);
}

/// A socket takes data below its low-water mark, then none until it has sent.
#[test]
fn socket_takes_data_below_low_water_mark() {
    let mut pair = Pair::new(true);
    pair.hosts[1].listen(PORT, 0);
    let socket = pair.connect();
    assert_eq!(pair.hosts[0].free_to_send(socket), 0, "not connected");
    pair.settle();
    assert_eq!(pair.hosts[0].free_to_send(socket), 256 << 10);
    pair.hosts[0].handle(pair.now, Input::CanTransmit { frames: 0 });
    pair.send(socket, &[1; 16_383]);
    assert_eq!(pair.hosts[0].free_to_send(socket), (256 << 10) - 16_383);
    pair.send(socket, &[1]);
    assert_eq!(pair.hosts[0].free_to_send(socket), 0);
    assert_eq!(pair.hosts[0].unsent(socket), 16_384);
    assert_eq!(pair.hosts[0].poll(pair.now), Output::Timeout(None), "no room");
    // One segment is enough to be below the mark again.
    pair.hosts[0].handle(pair.now, Input::CanTransmit { frames: 1 });
    assert!(matches!(pair.hosts[0].poll(pair.now), Output::Writable(_)));
    assert!(matches!(pair.hosts[0].poll(pair.now), Output::Transmit(_)));
    assert_eq!(pair.hosts[0].unsent(socket), 16_384 - 1_460);
}

/// Without an answer, a host retransmits its SYN after 1 ms, then with exponential backoff, until
/// the user timeout.
#[test]
fn a_dead_peer() {
    let mut config = Config::new(mac(0), ip(0));
    config.user_timeout = Some(Duration::from_ms(20));
    let mut host = Host::new(config);
    host.add_neighbour(mac(1), ip(1));
    let socket = host.connect(SocketAddrV4::new(ip(1), PORT), 0);
    let mut now = Instant::ZERO;
    let mut sent = Vec::new();
    loop {
        host.handle(now, Input::CanTransmit { frames: 1 });
        match host.poll(now) {
            Output::Transmit(_) => sent.push(now.as_ns() / 1_000),
            Output::Closed(closed) => {
                assert_eq!(closed, socket);
                break;
            }
            Output::Timeout(at) => now = at.expect("a timer"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(sent, [0, 1_000, 3_000, 7_000, 15_000]);
    assert_eq!(now, Instant::from_ns(20_000_000));
}
