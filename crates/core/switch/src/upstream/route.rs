//! Routing: by address, by ID, implicit.

use super::Upstream;
use pcie::{Target, bridge};
use wire::tlp::{Class, ConfigKind, ConfigRequest, Message, Packet, Routing, Tlp, message_code};
use wire::{Bdf, Instant};

impl Upstream {
    /// Routes a TLP from the root complex.
    pub(super) fn route_downstream(&mut self, _now: Instant, tlp: Tlp) {
        match tlp.packet {
            Packet::ConfigRead(request) | Packet::ConfigWrite(request) => {
                self.configure(tlp, request);
            }
            Packet::MemoryRead(request) | Packet::MemoryWrite(request) => {
                match self.port_of_address(request.address) {
                    Some(port) if self.bridge.claims_address(request.address) => {
                        self.send(port, tlp);
                    }
                    _ => self.unsupported_request(&tlp),
                }
            }
            Packet::Completion(c) => match self.port_of_bus(c.requester.bus()) {
                Some(port) => {
                    let ended = usize::from(c.ends(tlp.payload()));
                    let reads = &mut self.ports[port].reads;
                    *reads = reads.saturating_sub(ended);
                    self.send(port, tlp);
                }
                None => self.errors.unexpected_completion += 1,
            },
            Packet::Message(message) => self.message_from_above(tlp, message),
        }
    }

    fn port_of_address(&self, address: u64) -> Option<usize> {
        self.ports.iter().position(|port| port.bridge.claims_address(address))
    }

    fn port_of_bus(&self, bus: u8) -> Option<usize> {
        self.ports.iter().position(|port| port.bridge.claims_bus(bus))
    }

    pub(super) fn port_of(&self, target: Target) -> Option<usize> {
        match target {
            Target::Address(address) => self.port_of_address(address),
            Target::Id(id) => self.port_of_bus(id.bus()),
            Target::Implicit => None,
        }
    }

    fn send(&mut self, port: usize, tlp: Tlp) {
        let id = self.port_id(port);
        self.pending_requests.add(port, &tlp);
        let refused = self.ports[port].send(id, tlp);
        self.up.extend(refused);
    }

    /// The function of downstream port `port`.
    fn port_id(&self, port: usize) -> Bdf {
        Bdf::new(self.bridge.secondary(), port as u8, 0)
    }

    fn unsupported_request(&mut self, tlp: &Tlp) {
        // Software reads vendor IDs to search functions, so a missing function is not an error.
        let probe = matches!(tlp.packet, Packet::ConfigRead(read) if read.register == 0);
        self.errors.unsupported_request += u64::from(!probe);
        self.up.extend(bridge::unsupported_request(self.id, tlp));
    }

    /// Handles a configuration request for the upstream port, for a mirrored port, or for a bus
    /// below a mirrored port.
    fn configure(&mut self, mut tlp: Tlp, request: ConfigRequest) {
        let target = request.target;
        if request.kind == ConfigKind::Type0 {
            if target.device() != 0 || target.function() != 0 {
                return self.unsupported_request(&tlp);
            }
            self.id = target;
            let (completion, reset) = self.bridge.configure(&tlp, request);
            if reset {
                for port in 0..self.ports.len() {
                    self.ports[port].hot_reset();
                    self.set_intx(port, [false; 4]);
                }
            }
            self.up.push(completion);
        } else if target.bus() == self.bridge.secondary() {
            let index = usize::from(target.device());
            if target.function() != 0 || index >= self.ports.len() {
                return self.unsupported_request(&tlp);
            }
            let (completion, reset) = self.ports[index].bridge.configure(&tlp, request);
            if reset {
                self.ports[index].reset_link();
                self.set_intx(index, [false; 4]);
            }
            self.up.push(completion);
        } else if let Some(port) = self.port_of_bus(target.bus()) {
            if target.bus() == self.ports[port].bridge.secondary() {
                // A link has only device 0 (PCIe Base 4.0, section 7.3.1).
                if target.device() != 0 {
                    return self.unsupported_request(&tlp);
                }
                to_type0(&mut tlp);
            }
            self.send(port, tlp);
        } else {
            self.unsupported_request(&tlp);
        }
    }

    fn message_from_above(&mut self, tlp: Tlp, message: Message) {
        match message.routing {
            Routing::Broadcast => {
                for port in 0..self.ports.len() {
                    if self.ports[port].tunnel.is_up() {
                        self.send(port, tlp.clone());
                    }
                }
            }
            Routing::ById | Routing::ByAddress => match self.port_of(Target::from_tlp(&tlp)) {
                Some(port) => self.send(port, tlp),
                None => self.errors.unsupported_request += 1,
            },
            // The message ends at this port.
            _ => {}
        }
    }

    /// The downstream port that is the target of a TLP received from `port`; `None` if the target
    /// is not below this switch, or without peer-to-peer.
    pub(super) fn peer(&self, port: usize, tlp: &Tlp) -> Option<usize> {
        if !self.settings.p2p {
            return None;
        }
        let peer = self.port_of(Target::from_tlp(tlp))?;
        match &tlp.packet {
            Packet::MemoryRead(_) | Packet::MemoryWrite(_) => (peer != port).then_some(peer),
            Packet::Completion(_) => Some(peer),
            Packet::Message(message) if message.routing == Routing::ById => {
                (peer != port).then_some(peer)
            }
            _ => None,
        }
    }

    /// Routes a TLP received from downstream port `port`; returns the TLP if it goes to the root
    /// complex. The device node is not trusted: requester and completer IDs must be on the buses
    /// below the port.
    pub(super) fn route_upstream(&mut self, port: usize, tlp: Tlp) -> Option<Tlp> {
        let sender = match tlp.packet {
            Packet::Completion(c) => c.completer,
            _ => bridge::requester(&tlp).unwrap_or_default(),
        };
        if !self.ports[port].bridge.claims_bus(sender.bus()) {
            self.ports[port].errors.acs_violation += tlp.packets() as u64;
            self.unsupported_request_below(port, &tlp);
            return None;
        }
        match tlp.packet {
            Packet::MemoryRead(_) | Packet::MemoryWrite(_) => {
                if !self.ports[port].bridge.bus_master() || !self.bridge.bus_master() {
                    self.ports[port].errors.bus_master_off += tlp.packets() as u64;
                    self.unsupported_request_below(port, &tlp);
                    return None;
                }
                match self.peer(port, &tlp) {
                    Some(peer) => self.peer_to_peer(port, peer, tlp),
                    None => {
                        self.ports[port].reads += usize::from(tlp.class() == Class::NonPosted);
                        return Some(tlp);
                    }
                }
            }
            Packet::Completion(c) => {
                if !self.pending_requests.answers(port, c, tlp.data.len()) {
                    self.ports[port].errors.unexpected_completion += 1;
                    return None;
                }
                match self.peer(port, &tlp) {
                    Some(peer) => self.send(peer, tlp),
                    None => return Some(tlp),
                }
            }
            Packet::Message(message) => {
                tlp.singles().for_each(|tlp| self.message_from_below(port, tlp, message));
            }
            Packet::ConfigRead(_) | Packet::ConfigWrite(_) => {
                // Configuration requests only travel downstream.
                self.ports[port].errors.malformed += 1;
                self.unsupported_request_below(port, &tlp);
            }
        }
        None
    }

    fn peer_to_peer(&mut self, from: usize, to: usize, tlp: Tlp) {
        let (from_id, to_id) = (self.port_id(from), self.port_id(to));
        self.pending_requests.add(to, &tlp);
        if let Some(refusal) = self.ports[to].send(to_id, tlp) {
            self.ports[from].send(from_id, refusal);
        }
    }

    fn unsupported_request_below(&mut self, port: usize, tlp: &Tlp) {
        let id = self.port_id(port);
        if let Some(refusal) = bridge::unsupported_request(id, tlp) {
            self.ports[port].send(id, refusal);
        }
    }

    fn message_from_below(&mut self, port: usize, tlp: Tlp, message: Message) {
        match (message.routing, message.code) {
            (Routing::Local, code @ message_code::ASSERT_INTA..=0x27) => {
                let mut intx = self.ports[port].intx;
                intx[usize::from(code & 3)] = code & 4 == 0;
                self.set_intx(port, intx);
            }
            (Routing::ToRootComplex | Routing::Gathered, _) => self.up.push(tlp),
            (Routing::ById, _) => match self.peer(port, &tlp) {
                Some(peer) => self.send(peer, tlp),
                None => self.up.push(tlp),
            },
            _ => self.ports[port].errors.unsupported_request += 1,
        }
    }

    /// Sets the INTx levels of a port. The levels of all ports, swizzled by device number and or'ed
    /// (PCIe Base 4.0, section 2.2.8.1), become messages of the upstream port.
    pub(super) fn set_intx(&mut self, port: usize, intx: [bool; 4]) {
        self.ports[port].intx = intx;
        let level = |wire: usize| {
            let through = |(number, port): (usize, &super::port::Port)| {
                (0..4).any(|pin| port.intx[pin] && (pin + number) % 4 == wire)
            };
            self.ports.iter().enumerate().any(through)
        };
        let levels: [bool; 4] = std::array::from_fn(level);
        for (wire, level) in levels.into_iter().enumerate() {
            if self.intx[wire] == level {
                continue;
            }
            self.intx[wire] = level;
            let base = if level { message_code::ASSERT_INTA } else { message_code::DEASSERT_INTA };
            self.up.push(Tlp::intx(self.id, base + wire as u8));
        }
    }
}

/// Converts a type 1 request to type 0, on its target bus.
fn to_type0(tlp: &mut Tlp) {
    if let Packet::ConfigRead(request) | Packet::ConfigWrite(request) = &mut tlp.packet {
        request.kind = ConfigKind::Type0;
    }
}
