//! Connections that have not said who they are, probes, and those that are
//! turned away. None of them can do more than waste its own connection.

use super::DeviceEvent;
use crate::net::Carrier;
use bytes::{Bytes, BytesMut};
use switch::tunnel::{Cause, Input, Output, Settings, Tunnel};
use wire::frame::{self, Control, Header, Reject, Role};
use wire::{Duration, Instant};

/// Connections without a greeting, or probes, at the same time.
const MOST: usize = 16;
/// How long a connection may keep its greeting to itself.
const PATIENCE: Duration = Duration::from_ms(2_000);
/// How long a host waits for the one before it, if nothing tells that that one
/// has ended: longer than a link takes to be lost.
const SUCCESSION: Duration = Duration::from_ms(1_000);

#[derive(Debug)]
struct Visitor {
    connection: Carrier,
    /// What came before it was known who it is.
    greeting: BytesMut,
    /// Set once it is known not to become the host.
    tunnel: Option<Tunnel>,
    /// The group that it wants the device to belong to.
    moved: Option<u16>,
    settings: Settings,
    since: Instant,
    gone: bool,
}

/// A connection that greets as a host.
pub(super) struct Host {
    pub connection: Carrier,
    pub greeting: Bytes,
    pub group: u16,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Visitors(Vec<Visitor>);

impl Visitors {
    /// Takes a new connection; the oldest has to go if there are too many.
    pub fn welcome(&mut self, now: Instant, connection: Carrier, settings: Settings) {
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        let greeting = BytesMut::new();
        let visitor = Visitor {
            connection,
            greeting,
            tunnel: None,
            moved: None,
            settings,
            since: now,
            gone: false,
        };
        self.0.push(visitor);
    }

    /// When the next one runs out of time.
    pub fn timer(&self) -> Option<Instant> {
        let timer = |visitor: &Visitor| match &visitor.tunnel {
            Some(_) => visitor.settings.keepalive,
            None => PATIENCE,
        };
        let own = self.0.iter().map(|visitor| Some(visitor.since + timer(visitor)));
        let carriers = self.0.iter().map(|visitor| visitor.connection.timer());
        switch::upstream::next_timer(own.chain(carriers))
    }

    /// The group that one of them wants the device to belong to.
    pub fn moved(&mut self) -> Option<u16> {
        self.0.iter_mut().find_map(|visitor| visitor.moved.take())
    }

    /// Looks at all of them; yields one that greets as a host of `group`, with
    /// its group and what it sent, if a host is wanted.
    pub fn service(
        &mut self,
        now: Instant,
        wanted: bool,
        group: u16,
        tell: &mut impl FnMut(DeviceEvent),
    ) -> Option<Host> {
        let mut chosen = None;
        for (index, visitor) in self.0.iter_mut().enumerate() {
            if let Some(theirs) = visitor.service(now, wanted && chosen.is_none(), group, tell) {
                chosen = Some((index, theirs));
            }
        }
        let chosen = chosen.map(|(index, group)| {
            let visitor = self.0.remove(index);
            let greeting = visitor.greeting.freeze();
            Host { connection: visitor.connection, greeting, group }
        });
        self.0.retain(|visitor| !visitor.gone);
        chosen
    }
}

impl Visitor {
    /// The host's group, if this is the host that is wanted.
    fn service(
        &mut self,
        now: Instant,
        wanted: bool,
        group: u16,
        tell: &mut impl FnMut(DeviceEvent),
    ) -> Option<u16> {
        let (greeting, tunnel) = (&mut self.greeting, &mut self.tunnel);
        let gone = self.connection.receive(now, |bytes| match tunnel {
            Some(tunnel) => tunnel.handle(now, Input::Received(bytes)),
            None => greeting.extend_from_slice(&bytes),
        });
        self.gone |= gone || (self.tunnel.is_none() && now >= self.since + PATIENCE);
        if self.tunnel.is_none() && !self.gone {
            match role(&self.greeting) {
                None => return None,
                Some(Some((Role::Host, theirs))) if belongs(theirs, group) => {
                    if wanted {
                        return Some(theirs);
                    }
                    if self.may_succeed(now) {
                        return None;
                    }
                    self.entertain(now, Some(Reject::Busy));
                }
                Some(Some((Role::Host, _))) => self.entertain(now, Some(Reject::Group)),
                Some(_) => self.entertain(now, None),
            }
        }
        self.talk(now, tell);
        None
    }

    /// On raw Ethernet the kernel says no goodbye for a process that was
    /// killed: the host may be the last one, started again.
    fn may_succeed(&self, now: Instant) -> bool {
        !self.connection.says_end() && now < self.since + SUCCESSION
    }

    /// Gives the visitor a tunnel end of its own, which answers echoes and
    /// finds every fault, or turns the visitor away.
    fn entertain(&mut self, now: Instant, away: Option<Reject>) {
        let mut tunnel = Tunnel::new(self.settings);
        tunnel.handle(now, Input::Connected);
        match away {
            Some(reason) => tunnel.turn_away(reason),
            None => tunnel.handle(now, Input::Received(self.greeting.split().freeze())),
        }
        self.tunnel = Some(tunnel);
    }

    fn talk(&mut self, now: Instant, tell: &mut impl FnMut(DeviceEvent)) {
        let Some(tunnel) = &mut self.tunnel else { return };
        self.since = now;
        loop {
            tunnel.handle(now, Input::CanTransmit { bytes: self.connection.room(now) });
            // A probe carries no TLPs.
            while tunnel.pop(pcie::Ready::ALL).is_some() {}
            match tunnel.poll(now) {
                Output::Transmit(bytes) => {
                    self.gone |= self.connection.send(now, bytes.into()).is_err()
                }
                Output::Down(cause) => {
                    while let Output::Transmit(bytes) = tunnel.poll(now) {
                        let _ = self.connection.send(now, bytes.into());
                    }
                    if !matches!(cause, Cause::Goodbye | Cause::Disconnected) {
                        tell(DeviceEvent::TurnedAway(self.connection.peer(), cause));
                    }
                    self.gone = true;
                    return;
                }
                Output::Timeout(_) => return,
                Output::Move(group) => self.moved = Some(group),
                Output::Up(_) | Output::Reset | Output::EchoReply(_) => {}
            }
        }
    }
}

/// Whether a host of one group may have a device of another.
pub(super) fn belongs(host: u16, device: u16) -> bool {
    device == 0 || host == device
}

/// Who greets, and its group: `None` while that is not known, `Some(None)` if it is nobody
/// we know.
fn role(greeting: &[u8]) -> Option<Option<(Role, u16)>> {
    let head = greeting.first_chunk::<{ frame::HEADER }>()?;
    let Ok(header) = Header::decode(*head) else { return Some(None) };
    if header.length > 1024 {
        return Some(None);
    }
    let payload = greeting.get(frame::HEADER..frame::HEADER + usize::from(header.length))?;
    match Control::decode(header.kind, payload) {
        Ok(Control::Hello(hello)) if hello.version == frame::VERSION => {
            Some(Some((hello.role, hello.group)))
        }
        _ => Some(None),
    }
}
