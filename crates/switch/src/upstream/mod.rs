//! The host's side of the switch: the upstream port, and a mirror of every
//! downstream port, so that a dead device node leaves a port that reports
//! link-down instead of taking its port along.

mod pending_requests;
mod port;
mod route;

use crate::downstream::{count_down, earlier};
use crate::tunnel::{self, Cause, Report, Settings as TunnelSettings, Tunnel};
use bytes::BytesMut;
use pcie::config::PcieKind;
use pcie::{Bridge, Errors, Function, Input, OrderedQueue, Output, Ready, Target};
use pending_requests::PendingRequests;
use port::Port;
use wire::frame::Hello;
use wire::tlp::Class;
use wire::{Bdf, Instant};

/// What the switch is built of.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Downstream ports, 1 to 32.
    pub ports: u8,
    /// Largest payload supported, in bytes: 128 to 4096.
    pub max_payload: usize,
    /// Whether endpoints may reach each other. If not, everything that comes
    /// from below goes to the root complex (ACS P2P Request Redirect, PCIe
    /// Base 4.0, section 6.12.3), which knows what each may reach.
    pub p2p: bool,
    /// For the links.
    pub tunnel: TunnelSettings,
}

/// What a link of the switch wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkOutput {
    /// So many bytes at the end of the buffer are for the network.
    Transmit(usize),
    /// The link came up: the port reports it, the host should look below.
    Up(Hello),
    /// The link went down; close the connection.
    Down(Cause),
    /// An echo came back.
    EchoReply(u64),
    /// Nothing more now; call again after an input or at this time.
    Timeout(Option<Instant>),
}

/// TLPs that wait for the root complex in each class before the links are
/// left to hold more.
const MAX_UP: usize = 256;

/// Reads from below a port that are not answered before its link is left to
/// hold more.
const MAX_READS: usize = 128;

/// See the module.
#[derive(Debug)]
pub struct Upstream {
    settings: Settings,
    bridge: Bridge,
    /// Bus on which the upstream port is: from configuration requests.
    id: Bdf,
    ports: Vec<Port>,
    up: OrderedQueue,
    pending_requests: PendingRequests,
    next_port: usize,
    wires: [bool; 4],
    errors: Errors,
}

impl Upstream {
    /// A switch after power-on, all links down.
    ///
    /// # Panics
    /// If it has no port, or more than 32.
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
            wires: [false; 4],
            errors: Errors::default(),
        }
    }

    /// Takes what the network of link `port` brings.
    pub fn handle_link(&mut self, now: Instant, port: usize, input: tunnel::Input) {
        self.ports[port].tunnel.handle(now, input);
    }

    /// The next thing for the network of link `port`, frames behind what is in
    /// `out`.
    pub fn poll_link(&mut self, now: Instant, port: usize, out: &mut BytesMut) -> LinkOutput {
        let link = &mut self.ports[port];
        match link.tunnel.poll(now, out) {
            tunnel::Output::Transmit(length) => LinkOutput::Transmit(length),
            tunnel::Output::Up(hello) => {
                let takes = usize::from(hello.max_payload);
                link.bridge.set_max_payload_supported(self.settings.max_payload.min(takes));
                link.bridge.set_link(true);
                LinkOutput::Up(hello)
            }
            tunnel::Output::Down(cause) => {
                link.bridge.set_link(false);
                count_down(&mut link.errors, &cause, link.tunnel.take_posted_lost());
                link.reads = 0;
                self.pending_requests.forget(port);
                self.set_wire(port, [false; 4]);
                LinkOutput::Down(cause)
            }
            tunnel::Output::EchoReply(number) => LinkOutput::EchoReply(number),
            tunnel::Output::Reset | tunnel::Output::Move(_) | tunnel::Output::Moved(_) => {
                unreachable!("resets, moves and their answers from below close the link")
            }
            tunnel::Output::Timeout(at) => LinkOutput::Timeout(at),
        }
    }

    /// Measures link `port`: an [`LinkOutput::EchoReply`] will follow.
    pub fn echo(&mut self, port: usize, number: u64) {
        self.ports[port].tunnel.echo(number);
    }

    /// As [`tunnel::Tunnel::report_frames`], for link `port`.
    pub fn report_frames(&mut self, port: usize, on: bool) {
        self.ports[port].tunnel.report_frames(on);
    }

    /// As [`tunnel::Tunnel::poll_report`], of link `port`.
    pub fn poll_report(&mut self, port: usize) -> Option<Report> {
        self.ports[port].tunnel.poll_report()
    }

    /// Tells the far side of every link that this end closes on purpose.
    pub fn goodbye(&mut self) {
        self.ports.iter_mut().for_each(|port| port.tunnel.goodbye());
    }

    /// Leaves posted requests from link `port` in its tunnel while `held`, so
    /// that the far side runs out of credits for them; other links go on.
    pub fn hold(&mut self, port: usize, held: bool) {
        self.ports[port].held = held;
    }

    /// How many links there are.
    pub fn links(&self) -> usize {
        self.ports.len()
    }

    /// The tunnel of link `port`.
    pub fn tunnel(&self, port: usize) -> &tunnel::Tunnel {
        &self.ports[port].tunnel
    }

    /// The bus right below downstream port `port`.
    pub fn secondary(&self, port: usize) -> u8 {
        self.ports[port].bridge.secondary()
    }

    /// The buses below downstream port `port`, for
    /// [`clear_bus_masters`](pcie::RootComplex::clear_bus_masters) when its link is
    /// lost.
    pub fn buses(&self, port: usize) -> std::ops::RangeInclusive<u8> {
        self.ports[port].bridge.buses()
    }

    /// What went wrong, the upstream port first, then each downstream port.
    pub fn errors(&self) -> Vec<Errors> {
        std::iter::once(self.errors).chain(self.ports.iter().map(|port| port.errors)).collect()
    }

    /// Moves packets from the links towards the root complex, the ports in
    /// turn, while there is room.
    fn gather(&mut self) {
        let count = self.ports.len();
        for turn in 0..count {
            let index = (self.next_port + turn) % count;
            while self.ports[index].tunnel.has_received() {
                let ready = self.room(index);
                let Some(tlp) = self.ports[index].tunnel.pop(ready) else { break };
                self.take_from_below(index, tlp);
            }
        }
        self.next_port = (self.next_port + 1) % count;
    }

    /// What may come out of link `index`: there must be room where the next
    /// of a class goes, and on its own link for the answer.
    fn room(&self, index: usize) -> Ready {
        let port = &self.ports[index];
        let peer = |class| {
            let front = if self.settings.p2p { port.tunnel.front(class) } else { None };
            let peer = front.and_then(|tlp| self.peer(index, tlp));
            peer.map(|peer| &self.ports[peer].tunnel).filter(|tunnel| tunnel.is_up())
        };
        let goes = |class| match peer(class) {
            Some(tunnel) => tunnel.ready().has(class),
            None => self.up.len(class) < MAX_UP,
        };
        let answer = port.tunnel.ready().has(Class::Completion) && port.reads < MAX_READS;
        Ready::NONE
            .with(Class::Posted, !port.held && goes(Class::Posted))
            .with(Class::NonPosted, answer && goes(Class::NonPosted))
            .with(Class::Completion, goes(Class::Completion))
    }

    /// The classes of `ready` for which every link that is up has room: a
    /// packet is routed only once it is here.
    fn room_below(&self, ready: Ready) -> Ready {
        self.ports.iter().filter(|port| port.tunnel.is_up()).fold(ready, |ready, port| {
            let link = port.tunnel.ready();
            Class::ALL
                .into_iter()
                .fold(ready, |all, class| all.with(class, all.has(class) && link.has(class)))
        })
    }
}

impl Function for Upstream {
    fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Tlp(tlp) => self.take_from_above(now, tlp),
            Input::HotReset => {
                self.bridge.reset();
                self.up.clear();
                self.pending_requests = PendingRequests::default();
                self.wires = [false; 4];
                for port in &mut self.ports {
                    port.wires = [false; 4];
                    port.hot_reset();
                }
            }
        }
    }

    fn poll(&mut self, _now: Instant, ready: Ready) -> Output {
        // What was gathered goes before the ports are looked at again.
        if let tlp @ Output::Tlp(_) = self.up.poll(ready) {
            return tlp;
        }
        self.gather();
        self.up.poll(ready)
    }

    fn ready(&self) -> Ready {
        let answer = self.up.len(Class::Completion) < MAX_UP;
        self.room_below(Ready::ALL.with(Class::NonPosted, answer))
    }

    /// Queue 0 is the switch itself, queue 1 its port 0.
    fn queue(&self, target: Target) -> usize {
        let port = match target {
            Target::Address(address) => self.port_of_address(address),
            Target::Id(id) => self.port_of_bus(id.bus()),
            Target::Implicit => None,
        };
        port.map_or(0, |port| port + 1)
    }

    /// Completions answer reads for which a port had room.
    fn queue_ready(&self, queue: usize) -> Ready {
        let answer = self.up.len(Class::Completion) < MAX_UP;
        let tunnel = queue.checked_sub(1).map(|port| &self.ports[port].tunnel);
        match tunnel.filter(|tunnel| tunnel.is_up()).map(Tunnel::ready) {
            Some(ready) => ready
                .with(Class::NonPosted, answer && ready.has(Class::NonPosted))
                .with(Class::Completion, true),
            None => Ready::ALL.with(Class::NonPosted, answer),
        }
    }
}

/// The next timer of all links, for owners that poll them together.
pub fn next_timer(outputs: impl IntoIterator<Item = Option<Instant>>) -> Option<Instant> {
    outputs.into_iter().fold(None, earlier)
}
