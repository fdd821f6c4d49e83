//! Connections that have not said who they are, probes, and those that are
//! turned away. None of them can do more than waste its own connection.

use super::DeviceEvent;
use crate::links::receive;
use crate::net::Connection;
use bytes::{Bytes, BytesMut};
use switch::tunnel::{Cause, Input, Output, Settings, Tunnel};
use wire::frame::{self, Control, Header, Reject, Role};
use wire::{Duration, Instant};

/// Connections without a greeting, or probes, at the same time.
const MOST: usize = 16;
/// How long a connection may keep its greeting to itself.
const PATIENCE: Duration = Duration::from_ms(2_000);

#[derive(Debug)]
struct Visitor {
    connection: Connection,
    /// What came before it was known who it is.
    greeting: BytesMut,
    /// Set once it is known not to become the host.
    tunnel: Option<Tunnel>,
    settings: Settings,
    since: Instant,
    gone: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Visitors(Vec<Visitor>);

impl Visitors {
    /// Takes a new connection; the oldest has to go if there are too many.
    pub fn welcome(&mut self, now: Instant, connection: Connection, settings: Settings) {
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        let greeting = BytesMut::new();
        let visitor =
            Visitor { connection, greeting, tunnel: None, settings, since: now, gone: false };
        self.0.push(visitor);
    }

    /// When the next one runs out of time.
    pub fn timer(&self) -> Option<Instant> {
        let timer = |visitor: &Visitor| match &visitor.tunnel {
            Some(_) => visitor.settings.keepalive,
            None => PATIENCE,
        };
        self.0.iter().map(|visitor| visitor.since + timer(visitor)).min()
    }

    /// Looks at all of them; yields one that greets as a host, with what it
    /// sent, if a host is wanted.
    pub fn service(
        &mut self,
        now: Instant,
        wanted: bool,
        tell: &mut impl FnMut(DeviceEvent),
    ) -> Option<(Connection, Bytes)> {
        let mut chosen = None;
        for (index, visitor) in self.0.iter_mut().enumerate() {
            if visitor.service(now, wanted && chosen.is_none(), tell) {
                chosen = Some(index);
            }
        }
        let chosen = chosen.map(|index| {
            let visitor = self.0.remove(index);
            (visitor.connection, visitor.greeting.freeze())
        });
        self.0.retain(|visitor| !visitor.gone);
        chosen
    }
}

impl Visitor {
    /// Whether this is the host that is wanted.
    fn service(&mut self, now: Instant, wanted: bool, tell: &mut impl FnMut(DeviceEvent)) -> bool {
        let (greeting, tunnel) = (&mut self.greeting, &mut self.tunnel);
        let gone = receive(&mut self.connection, |bytes| match tunnel {
            Some(tunnel) => tunnel.handle(now, Input::Received(bytes)),
            None => greeting.extend_from_slice(&bytes),
        });
        self.gone |= gone || (self.tunnel.is_none() && now >= self.since + PATIENCE);
        if self.tunnel.is_none() && !self.gone {
            match role(&self.greeting) {
                None => return false,
                Some(Some(Role::Host)) if wanted => return true,
                Some(role) => self.entertain(now, role),
            }
        }
        self.talk(now, tell);
        false
    }

    /// Gives the visitor a tunnel end of its own, which answers echoes and
    /// finds every fault.
    fn entertain(&mut self, now: Instant, role: Option<Role>) {
        let mut tunnel = Tunnel::new(self.settings);
        tunnel.handle(now, Input::Connected);
        if role == Some(Role::Host) {
            tunnel.turn_away(Reject::Busy);
        } else {
            tunnel.handle(now, Input::Received(self.greeting.split().freeze()));
        }
        self.tunnel = Some(tunnel);
    }

    fn talk(&mut self, now: Instant, tell: &mut impl FnMut(DeviceEvent)) {
        let Some(tunnel) = &mut self.tunnel else { return };
        self.since = now;
        loop {
            tunnel.handle(now, Input::CanTransmit { bytes: self.connection.room() });
            // A probe carries no TLPs.
            while tunnel.pop(pcie::Ready::ALL).is_some() {}
            match tunnel.poll(now) {
                Output::Transmit(bytes) => self.gone |= self.connection.send(bytes.into()).is_err(),
                Output::Down(cause) => {
                    if let Output::Transmit(bytes) = tunnel.poll(now) {
                        let _ = self.connection.send(bytes.into());
                    }
                    if !matches!(cause, Cause::Goodbye | Cause::Disconnected) {
                        tell(DeviceEvent::TurnedAway(self.connection.peer(), cause));
                    }
                    self.gone = true;
                    return;
                }
                Output::Timeout(_) => return,
                Output::Up(_) | Output::Reset | Output::EchoReply(_) => {}
            }
        }
    }
}

/// Who greets: `None` while that is not known, `Some(None)` if it is nobody
/// we know.
fn role(greeting: &[u8]) -> Option<Option<Role>> {
    let head = greeting.first_chunk::<{ frame::HEADER }>()?;
    let Ok(header) = Header::decode(*head) else { return Some(None) };
    if header.length > 1024 {
        return Some(None);
    }
    let payload = greeting.get(frame::HEADER..frame::HEADER + usize::from(header.length))?;
    match Control::decode(header.kind, payload) {
        Ok(Control::Hello(hello)) if hello.version == frame::VERSION => Some(Some(hello.role)),
        _ => Some(None),
    }
}
