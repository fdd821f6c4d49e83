//! A small world: two hosts, their interfaces, and the network between them. The machine with the
//! earliest wake-up always runs next.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::*;
use sim::tcp::{self, Host, Output, SocketId};

pub const PORT: u16 = 4420;
pub const PRIORITY: u8 = 3;

/// The parts of the world.
#[derive(Clone, Debug)]
pub struct Plan {
    pub rate: Rate,
    /// The cables from the nodes. With a bridge, two cables without faults lead back to the nodes.
    pub cables: [cable::Config; 2],
    pub bridge: Option<bridge::Config>,
    pub nic_delay: Duration,
    pub tx_ring: usize,
    pub tagging: Option<nic::Tagging>,
    pub ack_delay: Option<Duration>,
    /// Bytes that a socket holds in each direction.
    pub buffers: usize,
    pub gates: Option<tsn::Gates>,
}

impl Plan {
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            cables: [faultless(), faultless()],
            bridge: None,
            nic_delay: Duration::from_ns(300),
            tx_ring: 16,
            tagging: None,
            ack_delay: None,
            buffers: 256 << 10,
            gates: None,
        }
    }

    pub fn bridged(rate: Rate, mode: bridge::Mode) -> Self {
        let mut plan = Self::new(rate);
        plan.bridge = Some(bridge::Config {
            ports: vec![port::Config::new(rate); 2],
            mode,
            delay: Duration::from_ns(1_500),
            jitter: Duration::ZERO,
            seed: 7,
            addresses: vec![(mac(0), 0), (mac(1), 1)],
            groups: Vec::new(),
            learns: false,
            forwards: Vec::new(),
            streams: Vec::new(),
        });
        if mode == bridge::Mode::CutThrough {
            plan.cables.iter_mut().for_each(|cable| cable.delivery = cable::Delivery::Header);
        }
        plan
    }
}

fn faultless() -> cable::Config {
    cable::Config { propagation: Duration::from_ns(50), ..Default::default() }
}

pub fn mac(node: usize) -> Mac {
    Mac::local(node as u32 + 1)
}

pub fn ip(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, node as u8 + 1)
}

/// A record of the byte streams between node 0 and node 1.
#[derive(Default, Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Every transmission at a node: node, start, end, frame id, length.
    pub line: Vec<(usize, u64, u64, u64, usize)>,
    /// The bytes that each node received.
    pub received: [Vec<u8>; 2],
    /// When a node received the last byte.
    pub last: Instant,
    pub connected: usize,
    pub closed: usize,
    pub events: u64,
}

pub struct World {
    pub now: Instant,
    pub hosts: [Host; 2],
    pub nics: [Nic; 2],
    /// The cables from node 0 and node 1, and with a bridge the cables back to node 0 and node 1.
    pub cables: Vec<Cable>,
    pub bridge: Option<Bridge>,
    pub sockets: [SocketId; 2],
    /// The bytes that each node sends.
    pub to_send: [Bytes; 2],
    pub sent: [usize; 2],
    pub log: Log,
    moved: u64,
}

impl World {
    pub fn new(plan: &Plan, data: [Bytes; 2]) -> Self {
        let mut hosts = [0, 1].map(|node| {
            Host::new(tcp::Config {
                ack_delay: plan.ack_delay,
                receive_buffer: plan.buffers,
                send_buffer: plan.buffers,
                ..tcp::Config::new(mac(node), ip(node))
            })
        });
        hosts[0].add_neighbour(mac(1), ip(1));
        hosts[1].add_neighbour(mac(0), ip(0));
        let listening = hosts[1].listen(PORT, PRIORITY);
        let connecting = hosts[0].connect(SocketAddrV4::new(ip(1), PORT), PRIORITY);
        let nics = [0, 1].map(|node| {
            Nic::new(nic::Config {
                mac: mac(node),
                ports: vec![port::Config {
                    gates: plan.gates.clone(),
                    ..port::Config::new(plan.rate)
                }],
                tx_delay: plan.nic_delay,
                rx_delay: plan.nic_delay,
                tx_ring: plan.tx_ring,
                tagging: plan.tagging,
                streams: Vec::new(),
                groups: Vec::new(),
            })
        });
        let mut cables: Vec<_> = plan.cables.clone().map(Cable::new).into();
        if plan.bridge.is_some() {
            cables.extend([0, 1].map(|_| Cable::new(faultless())));
        }
        Self {
            now: Instant::ZERO,
            hosts,
            nics,
            cables,
            bridge: plan.bridge.clone().map(Bridge::new),
            sockets: [connecting, listening],
            to_send: data,
            sent: [0; 2],
            log: Log::default(),
            moved: 0,
        }
    }

    /// Runs until all bytes have arrived, or until `limit`.
    pub fn run(&mut self, limit: Instant) {
        while !self.is_done() && self.step(limit) {}
    }

    fn is_done(&self) -> bool {
        (0..2).all(|node| self.log.received[1 - node].len() >= self.to_send[node].len())
    }

    /// Runs until no event is left, or until `limit`.
    pub fn settle(&mut self, limit: Instant) {
        while self.step(limit) {}
    }

    fn step(&mut self, limit: Instant) -> bool {
        // Polls all machines until none passes anything to another one.
        let wake = loop {
            let before = self.moved;
            assert!(before < 100_000_000, "no progress at {}", self.now);
            let wake = self.poll_all();
            if self.moved == before {
                break wake;
            }
        };
        match wake {
            Some(at) if at <= limit => {
                self.now = self.now.max(at);
                self.log.events += 1;
                assert!(self.log.events < 10_000_000, "it never ends, at {}", self.now);
                true
            }
            _ => false,
        }
    }

    fn poll_all(&mut self) -> Option<Instant> {
        let mut wakes = vec![self.poll_bridge()];
        for node in 0..2 {
            wakes.push(self.poll_cable(node));
            if self.bridge.is_some() {
                wakes.push(self.poll_cable(2 + node));
            }
            wakes.push(self.poll_nic(node));
            wakes.push(self.poll_host(node));
        }
        wakes.into_iter().flatten().min()
    }

    fn poll_cable(&mut self, number: usize) -> Option<Instant> {
        loop {
            match self.cables[number].poll(self.now) {
                cable::Output::Timeout(at) => return at,
                cable::Output::Deliver(transmission) => {
                    self.moved += 1;
                    if let (Some(bridge), port @ 0..2) = (&mut self.bridge, number) {
                        bridge.handle(self.now, bridge::Input::Frame { port, transmission });
                    } else {
                        let node = if number < 2 { 1 - number } else { number - 2 };
                        let arrived = nic::Input::FromLine { port: 0, transmission };
                        self.nics[node].handle(self.now, arrived);
                    }
                }
            }
        }
    }

    fn poll_bridge(&mut self) -> Option<Instant> {
        let bridge = self.bridge.as_mut()?;
        loop {
            match bridge.poll(self.now) {
                bridge::Output::Timeout(at) => return at,
                bridge::Output::Line { port, event } => {
                    self.moved += 1;
                    let cable = &mut self.cables[2 + port];
                    cable.handle(self.now, event);
                }
            }
        }
    }

    fn poll_nic(&mut self, node: usize) -> Option<Instant> {
        loop {
            match self.nics[node].poll(self.now) {
                nic::Output::Timeout(at) => return at,
                nic::Output::ToHost(frame) => {
                    self.moved += 1;
                    assert_eq!(frame.latency.until(), self.now);
                    self.hosts[node].handle(self.now, tcp::Input::Frame(frame));
                }
                nic::Output::Line { event, .. } => {
                    let transmission = transmitted(event);
                    self.moved += 1;
                    let (start, end) = (transmission.start.as_ps(), transmission.end.as_ps());
                    let (id, length) = (transmission.frame.id, transmission.frame.length());
                    self.log.line.push((node, start, end, id, length));
                    self.cables[node].handle(self.now, LineEvent::Transmit(transmission));
                }
            }
        }
    }

    fn poll_host(&mut self, node: usize) -> Option<Instant> {
        loop {
            self.write(node);
            let frames = self.nics[node].room_for(PRIORITY);
            self.hosts[node].handle(self.now, tcp::Input::CanTransmit { frames });
            match self.hosts[node].poll(self.now) {
                Output::Timeout(at) => return at,
                Output::Transmit(frame) => {
                    self.moved += 1;
                    self.nics[node].handle(self.now, nic::Input::FromHost(frame));
                }
                Output::Connected(_) => self.log.connected += 1,
                Output::Closed(_) => self.log.closed += 1,
                Output::Writable(_) => {}
                Output::Received { socket, data, latency, .. } => {
                    assert_eq!(socket, self.sockets[node]);
                    assert_eq!(latency.until(), self.now);
                    self.log.received[node].extend_from_slice(&data);
                    self.log.last = self.now;
                }
            }
        }
    }

    /// A node writes as many bytes as its socket accepts.
    fn write(&mut self, node: usize) {
        let left = self.to_send[node].len() - self.sent[node];
        if left == 0 {
            return;
        }
        let socket = self.sockets[node];
        let take = self.hosts[node].free_to_send(socket).min(left);
        if take > 0 {
            let data = self.to_send[node].slice(self.sent[node]..self.sent[node] + take);
            self.sent[node] += take;
            self.hosts[node].handle(self.now, tcp::Input::Send { socket, data });
        }
    }
}
