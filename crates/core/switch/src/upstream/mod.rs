//! The host side of the switch: the upstream port, and a mirror of every downstream port. If a
//! device node fails, its mirrored port remains and reports link down.

mod pending_requests;
mod port;
mod route;

use crate::downstream::count_down;
use crate::tunnel::{self, Settings as TunnelSettings, Tunnel};
use pcie::config::PcieKind;
use pcie::{Bridge, Errors, Function, Input, OrderedQueue, Output, Ports, PushRoom, Ready, Target};
use pending_requests::PendingRequests;
use port::Port;
use wire::tlp::{Class, Tlp};
use wire::{Bdf, Instant};

/// Settings of the switch.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of downstream ports, 1 to 32.
    pub ports: u8,
    /// Largest payload supported, in bytes: 128 to 4096.
    pub max_payload: usize,
    /// Whether endpoints may access each other directly. If not, all upstream requests go to the
    /// root complex (ACS P2P Request Redirect, PCIe Base 4.0, section 6.12.3).
    pub p2p: bool,
    /// Settings of the links.
    pub tunnel: TunnelSettings,
}

/// Output of a link of the switch. Resets, moves and answers to moves do not occur. After link up,
/// the host should enumerate below the port.
pub use crate::tunnel::Output as LinkOutput;

/// The maximum number of TLPs of one class that are queued for the root complex. Further TLPs wait
/// in the links.
const MAX_UPSTREAM: usize = 256;

/// The maximum number of unanswered reads from below a port. Further reads wait in the link of the
/// port.
const MAX_READS: usize = 128;

/// The upstream port with the mirrors of all downstream ports.
#[derive(Debug)]
pub struct Upstream {
    settings: Settings,
    bridge: Bridge,
    /// ID of the upstream port, captured from configuration requests.
    id: Bdf,
    ports: Vec<Port>,
    up: OrderedQueue,
    pending_requests: PendingRequests,
    next_port: usize,
    intx: [bool; 4],
    errors: Errors,
}

impl Upstream {
    /// A switch after power-on. All links are down.
    ///
    /// # Panics
    /// If the switch has no port, or more than 32.
    pub fn new(settings: Settings) -> Self {
        assert!((1..=32).contains(&settings.ports), "a switch has 1 to 32 downstream ports");
        let mut bridge = Bridge::new(PcieKind::UpstreamPort, settings.max_payload);
        bridge.set_link(true);
        let ports = (0..settings.ports).map(|number| Port::new(number, &settings)).collect();
        Self {
            settings,
            bridge,
            id: Bdf::default(),
            ports,
            up: OrderedQueue::default(),
            pending_requests: PendingRequests::default(),
            next_port: 0,
            intx: [false; 4],
            errors: Errors::default(),
        }
    }

    /// Handles an input from the network of link `port`.
    pub fn handle_link(&mut self, now: Instant, port: usize, input: tunnel::Input) {
        self.ports[port].tunnel.handle(now, input);
    }

    /// The next output of link `port`.
    pub fn poll_link(&mut self, now: Instant, port: usize) -> LinkOutput {
        let link = &mut self.ports[port];
        let output = link.tunnel.poll(now);
        match &output {
            LinkOutput::Up(hello) => {
                let takes = usize::from(hello.max_payload);
                link.bridge.set_max_payload_supported(self.settings.max_payload.min(takes));
                link.bridge.set_link(true);
                (link.push_capacity, link.takes) = (hello.push as usize, takes);
            }
            LinkOutput::Down(cause) => {
                link.bridge.set_link(false);
                count_down(&mut link.errors, cause, link.tunnel.take_posted_lost());
                link.reads = 0;
                self.pending_requests.forget(port);
                self.set_intx(port, [false; 4]);
            }
            LinkOutput::Reset | LinkOutput::Move(_) | LinkOutput::Moved(_) => {
                unreachable!("resets, moves and their answers from below close the link")
            }
            // The port stays up while the session is interrupted.
            LinkOutput::PathLost(..)
            | LinkOutput::Resumed
            | LinkOutput::Joined(_)
            | LinkOutput::FailedOver(_) => {}
            LinkOutput::Transmit(..) | LinkOutput::EchoReply(_) | LinkOutput::Timeout(_) => {}
        }
        output
    }

    /// Announces to the far side of every link that this end closes it.
    pub fn goodbye(&mut self) {
        self.ports.iter_mut().for_each(|port| port.tunnel.goodbye());
    }

    /// Sets whether posted requests from link `port` stay in its tunnel, so that the far side uses
    /// up its credits. This does not affect other links.
    pub fn hold(&mut self, port: usize, held: bool) {
        self.ports[port].held = held;
    }

    /// The number of links.
    pub fn links(&self) -> usize {
        self.ports.len()
    }

    /// The tunnel of link `port`.
    pub fn tunnel(&self, port: usize) -> &Tunnel {
        &self.ports[port].tunnel
    }

    /// The tunnel of link `port`, to send an echo or for reports.
    pub fn tunnel_mut(&mut self, port: usize) -> &mut Tunnel {
        &mut self.ports[port].tunnel
    }

    /// The buses below downstream port `port`, for
    /// [`clear_bus_masters`](pcie::RootComplex::clear_bus_masters) after the loss of the link.
    pub fn buses(&self, port: usize) -> std::ops::RangeInclusive<u8> {
        self.ports[port].bridge.buses()
    }

    /// Error counters: of the upstream port, then of each downstream port.
    pub fn errors(&self) -> Vec<Errors> {
        std::iter::once(self.errors).chain(self.ports.iter().map(|port| port.errors)).collect()
    }

    /// Moves TLPs from the links towards the root complex while there is room, round robin over the
    /// ports. Returns whether any TLP was moved.
    fn collect(&mut self) -> bool {
        let (count, first, mut any) = (self.ports.len(), self.next_port, false);
        for turn in 0..count {
            let index = (first + turn) % count;
            while self.ports[index].tunnel.has_received() {
                let ready = self.room(index);
                let Some(tlp) = self.ports[index].tunnel.pop(ready) else { break };
                let tlp = self.route_upstream(index, tlp);
                self.up.extend(tlp);
                self.next_port = (first + 1) % count;
                any = true;
            }
        }
        any
    }

    /// The next TLP for a root complex that accepts `ready`, without the queue; `None` unless the
    /// switch has one port and the queue is empty.
    fn next_received(&mut self, ready: Ready) -> Option<Tlp> {
        if self.ports.len() > 1 || !self.up.is_empty() {
            return None;
        }
        while self.ports[0].tunnel.has_received() {
            let room = self.room(0);
            let takes = Ready::from_fn(|class| ready.has(class) && room.has(class))
                .with_runs(ready.takes_runs() && room.takes_runs());
            let tlp = self.ports[0].tunnel.pop(takes)?;
            if let Some(tlp) = self.route_upstream(0, tlp) {
                return Some(tlp);
            }
            if !self.up.is_empty() {
                return None;
            }
        }
        None
    }

    /// The classes to take from link `index`: classes with room at the target of their next TLP
    /// and, for reads, with room on the link for the completion.
    fn room(&self, index: usize) -> Ready {
        let port = &self.ports[index];
        let peer = |class| {
            let front = if self.settings.p2p { port.tunnel.front(class) } else { None };
            let peer = front.and_then(|tlp| self.peer(index, tlp));
            peer.map(|peer| &self.ports[peer].tunnel).filter(|tunnel| tunnel.is_up())
        };
        let goes = |class| match peer(class) {
            Some(tunnel) => tunnel.ready().has(class),
            None => self.up.len(class) < MAX_UPSTREAM,
        };
        let reads = port.tunnel.front(Class::NonPosted).is_some();
        let answer = || port.tunnel.ready().has(Class::Completion) && port.reads < MAX_READS;
        // With peer-to-peer, the packets of a run may have different targets.
        Ready::NONE
            .with_runs(!self.settings.p2p)
            .with(Class::Posted, !port.held && goes(Class::Posted))
            .with(Class::NonPosted, reads && answer() && goes(Class::NonPosted))
            .with(Class::Completion, goes(Class::Completion))
    }

    /// The classes of `ready` for which every link that is up has room. The target of a TLP is
    /// unknown until the TLP is received.
    fn room_below(&self, ready: Ready) -> Ready {
        let links = self.ports.iter().map(|port| &port.tunnel).filter(|link| link.is_up());
        links.fold(ready, |all, link| {
            let link = link.ready();
            Ready::from_fn(|class| all.has(class) && link.has(class))
        })
    }
}

impl Function for Upstream {
    fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Tlp(tlp) => self.route_downstream(now, tlp),
            Input::HotReset => {
                self.bridge.reset();
                self.up.clear();
                self.pending_requests = PendingRequests::default();
                self.intx = [false; 4];
                for port in &mut self.ports {
                    port.intx = [false; 4];
                    port.hot_reset();
                }
            }
        }
    }

    fn poll(&mut self, _now: Instant, ready: Ready) -> Output {
        if let Some(tlp) = self.next_received(ready) {
            return Output::Tlp(tlp);
        }
        // TLPs that are already in the queue leave first.
        match self.up.poll(ready) {
            Output::Wait(_) if self.collect() => self.up.poll(ready),
            output => output,
        }
    }

    fn ready(&self) -> Ready {
        let answer = self.up.len(Class::Completion) < MAX_UPSTREAM;
        self.room_below(Ready::ALL.with(Class::NonPosted, answer))
    }

    fn ports(&self) -> Option<&dyn Ports> {
        Some(self)
    }
}

impl Ports for Upstream {
    /// Queue 0 is for the switch, queue `n + 1` for port `n`.
    fn queue(&self, target: Target) -> usize {
        self.port_of(target).map_or(0, |port| port + 1)
    }

    fn is_interrupted(&self, queue: usize) -> bool {
        queue.checked_sub(1).is_some_and(|port| self.ports[port].tunnel.is_interrupted())
    }

    /// Only functions directly below a downstream port have room. Behind another switch, pushed
    /// bytes could be invalidated by a reset that this switch does not detect.
    fn push_room(&self, target: Bdf) -> Option<PushRoom> {
        let port = &self.ports[self.port_of(Target::Id(target))?];
        let bridges = [&self.bridge, &port.bridge];
        let reads = bridges.iter().all(|bridge| bridge.bus_master());
        let there = port.bridge.secondary() == target.bus() && port.tunnel.is_up();
        if !reads || !there || port.push_capacity == 0 {
            return None;
        }
        let credits = port.tunnel.queue().posted_credits();
        Some(PushRoom {
            payload: bridges.iter().fold(port.takes, |least, b| least.min(b.max_payload())),
            headers: credits.headers,
            data: credits.data,
            capacity: port.push_capacity,
        })
    }

    /// Completions always have room, which was reserved when the reads were accepted.
    fn queue_ready(&self, queue: usize) -> Ready {
        let answer = self.up.len(Class::Completion) < MAX_UPSTREAM;
        let tunnel = queue.checked_sub(1).map(|port| &self.ports[port].tunnel);
        match tunnel.filter(|tunnel| tunnel.is_up()).map(Tunnel::ready) {
            Some(ready) => ready
                .with(Class::NonPosted, answer && ready.has(Class::NonPosted))
                .with(Class::Completion, true)
                .with_runs(true),
            None => Ready::ALL.with(Class::NonPosted, answer),
        }
    }
}
