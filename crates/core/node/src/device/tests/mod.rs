//! A test double of the surroundings of a device node: scripted paths, clock and peers.

mod connections;
mod hosts;
mod pending_connections;
mod random;
mod sessions;

use super::*;
use crate::Rights;
use pcie::{Input as Packet, Output as Next, Ports, Ready, Wait};
use std::collections::BTreeMap;
use switch::aggregate::Policy;
use switch::tunnel;
use wire::frame::{Reject, Role};
use wire::tlp::Tlp;
use wire::{Bdf, Duration};

/// The attached function: records what it receives, and sends what a test supplies.
#[derive(Debug, Default)]
struct Stub {
    received: Vec<Tlp>,
    /// Number of TLPs received before each reset.
    resets: Vec<usize>,
    sends: VecDeque<Tlp>,
}

impl Function for Stub {
    fn handle(&mut self, _: Instant, input: Packet) {
        match input {
            Packet::Tlp(tlp) => self.received.push(tlp),
            Packet::HotReset => self.resets.push(self.received.len()),
        }
    }

    fn poll(&mut self, _: Instant, ready: Ready) -> Next {
        let ready = self.sends.front().is_some_and(|tlp| ready.has(tlp.class()));
        let next = if ready { self.sends.pop_front() } else { None };
        next.map_or(Next::Wait(Wait::default()), Next::Tlp)
    }

    fn ready(&self) -> Ready {
        Ready::ALL
    }

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}

fn write(fill: u8, length: usize) -> Tlp {
    Tlp::write_bytes(Bdf::default(), 0x1000, &Bytes::from(vec![fill; length])).unwrap()
}

/// The far end of a path.
#[derive(Debug)]
struct Peer {
    tunnel: Tunnel,
    /// Whether the peer sends and receives; otherwise it has failed silently.
    alive: bool,
    room: usize,
    outputs: Vec<tunnel::Output>,
    /// The pieces that the node transmitted.
    heard: Vec<Vec<u8>>,
    /// Set once the node has closed the path: whether it lingered.
    closed: Option<bool>,
    gone: bool,
}

impl Peer {
    fn last(&self) -> Option<&tunnel::Output> {
        self.outputs.last()
    }
}

struct Shell {
    node: DeviceNode<Stub>,
    now: Instant,
    timer: Option<Instant>,
    peers: BTreeMap<PathId, Peer>,
    events: Vec<Event>,
    linked: Vec<PathId>,
    further: Vec<(PathId, u16, Bytes)>,
}

impl Shell {
    fn new(change: impl FnOnce(DeviceNode<Stub>) -> DeviceNode<Stub>) -> Self {
        Self::with(Settings::new(Role::Device, 1), change)
    }

    fn with(settings: Settings, change: impl FnOnce(DeviceNode<Stub>) -> DeviceNode<Stub>) -> Self {
        let node = change(DeviceNode::new(settings, Stub::default()));
        let (events, linked, further) = (Vec::new(), Vec::new(), Vec::new());
        let (now, timer, peers) = (Instant::ZERO, None, BTreeMap::new());
        Self { node, now, timer, peers, events, linked, further }
    }

    /// A peer connects; its bytes pass with the next `settle`.
    fn connect(&mut self, settings: Settings, signals_close: bool) -> PathId {
        self.connect_with(Rights::ALL, settings, signals_close)
    }

    /// As [`connect`](Self::connect), with these rights.
    fn connect_with(&mut self, rights: Rights, settings: Settings, signals_close: bool) -> PathId {
        self.accept(Tunnel::new(settings), rights, signals_close, None)
    }

    /// A path to a peer with this end of the link and this name.
    fn accept(
        &mut self,
        mut tunnel: Tunnel,
        rights: Rights,
        signals_close: bool,
        name: Option<&str>,
    ) -> PathId {
        let path = PathId(self.peers.len() as u64);
        tunnel.handle(self.now, tunnel::Input::Connected);
        let peer = Peer {
            tunnel,
            alive: true,
            room: 1 << 20,
            outputs: Vec::new(),
            heard: Vec::new(),
            closed: None,
            gone: false,
        };
        self.peers.insert(path, peer);
        let peer = name.map(Into::into);
        self.node.handle(self.now, path, path::Input::Accepted { signals_close, rights, peer });
        path
    }

    fn host(&mut self, group: u16) -> PathId {
        let settings = Settings { group, ..Settings::new(Role::Host, 2) };
        let path = self.connect(settings, true);
        self.settle();
        path
    }

    fn probe(&mut self) -> PathId {
        let path = self.connect(Settings::new(Role::Probe, 3), true);
        self.settle();
        path
    }

    /// A connection that sends `bytes` instead of a greeting.
    fn stranger(&mut self, bytes: &'static [u8]) -> PathId {
        let path = self.connect(Settings::new(Role::Device, 4), true);
        self.node.handle(self.now, path, path::Input::Received(Bytes::from_static(bytes)));
        path
    }

    fn peer(&mut self, path: PathId) -> &mut Peer {
        self.peers.get_mut(&path).expect("a path")
    }

    fn gone(&mut self, path: PathId) {
        self.peer(path).gone = true;
        self.node.handle(self.now, path, path::Input::Closed);
    }

    /// Passes the peers' bytes to the node. Returns whether there were any.
    fn bring(&mut self) -> bool {
        let mut any = false;
        for (path, peer) in &mut self.peers {
            if !peer.alive {
                continue;
            }
            let open = !peer.gone && peer.closed.is_none();
            peer.tunnel.handle(self.now, tunnel::Input::CanTransmit { bytes: 1 << 20 });
            loop {
                match peer.tunnel.poll(self.now) {
                    tunnel::Output::Timeout(_) => break,
                    tunnel::Output::Transmit(_, bytes) if open => {
                        any = true;
                        let input = path::Input::Received(bytes);
                        self.node.handle(self.now, *path, input);
                    }
                    tunnel::Output::Transmit(..) => {}
                    output => peer.outputs.push(output),
                }
            }
        }
        any
    }

    /// Carries out the node's actions until there are none, and checks that they are allowed.
    /// Returns whether there were any.
    fn act(&mut self) -> bool {
        for (path, peer) in &self.peers {
            self.node.handle(self.now, *path, path::Input::Room(peer.room));
        }
        for step in 0.. {
            assert!(step < 100_000, "the node never rests");
            match self.node.poll(self.now) {
                Output::Transmit { path, bytes } => {
                    let (now, peer) = (self.now, self.peer(path));
                    assert!(peer.closed.is_none() && !peer.gone, "{path:?} is no open path");
                    assert!(!bytes.is_empty() && bytes.len() <= peer.room, "no room");
                    peer.room -= bytes.len();
                    peer.heard.push(bytes.to_vec());
                    if peer.alive {
                        peer.tunnel.handle(now, tunnel::Input::Received(bytes));
                    }
                }
                Output::Close { path, linger } => {
                    assert_ne!(self.node.link(), Some(path));
                    let peer = self.peer(path);
                    assert_eq!(peer.closed.replace(linger), None, "closed twice");
                }
                Output::Linked { path, .. } => {
                    assert_eq!(self.node.link(), Some(path));
                    self.linked.push(path);
                }
                Output::Further { path, number, greeting } => {
                    self.further.push((path, number, greeting));
                }
                Output::Event(event) => self.events.push(event),
                Output::Timeout(at) => {
                    assert!(at.is_none_or(|at| at > self.now), "a timer in the past");
                    self.timer = at;
                    return step > 0;
                }
            }
        }
        unreachable!()
    }

    /// Runs both directions until nothing moves.
    fn settle(&mut self) {
        while self.bring() | self.act() {}
    }

    /// Lets time pass, and calls the node at its timers.
    fn wait(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            let tick = self.now + Duration::from_ms(50);
            self.now = self.timer.unwrap_or(end).min(tick).min(end);
            self.settle();
        }
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn rejected(&mut self, path: PathId, why: Reject) {
        let cause = Cause::Rejected(why);
        let down = tunnel::Output::Down(cause.clone());
        assert_eq!(self.peer(path).last(), Some(&down));
        assert_eq!(self.peer(path).closed, Some(false));
        assert!(self.events().contains(&Event::Rejected(path, cause)));
    }
}
