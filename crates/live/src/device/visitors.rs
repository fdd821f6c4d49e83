//! Connections that have not said who they are, probes, and those that are
//! turned away. None of them can do more than waste its own connection.

use super::DeviceEvent;
use crate::net::{Address, Carrier};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use switch::tunnel::{Cause, Input, Output, Settings, Tunnel};
use wire::frame::{self, Control, Header, Moved, Reject, Role};
use wire::{Duration, Instant};

/// Connections without a greeting, or probes, at the same time.
const MOST: usize = 16;
/// How long a connection may keep its greeting to itself.
const PATIENCE: Duration = Duration::from_ms(2_000);
/// Hosts turned away that are remembered, and for how long: who waits for a
/// device tries five times a second.
const MOST_WAITING: usize = 16;
const WAITING: Duration = Duration::from_ms(2_000);
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
    /// The group that it wants the device to belong to; nothing else of it is
    /// looked at before that is answered.
    wants_move: Option<u16>,
    /// The group of a host that has just been turned away.
    turned_away: Option<u16>,
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
pub(super) struct Visitors {
    all: Vec<Visitor>,
    /// Groups of hosts that were turned away, and when.
    waiting: VecDeque<(Instant, u16)>,
    /// How many went, or had to go, without a greeting.
    silent: u64,
}

impl Visitors {
    /// Takes a new connection; the oldest has to go if there are too many.
    pub fn welcome(&mut self, now: Instant, connection: Carrier, settings: Settings) {
        if self.all.len() >= MOST {
            let oldest = self.all.remove(0);
            self.silent += u64::from(oldest.tunnel.is_none());
        }
        let greeting = BytesMut::new();
        let visitor = Visitor {
            connection,
            greeting,
            tunnel: None,
            wants_move: None,
            turned_away: None,
            settings,
            since: now,
            gone: false,
        };
        self.all.push(visitor);
    }

    /// When the next one runs out of time.
    pub fn timer(&self) -> Option<Instant> {
        let timer = |visitor: &Visitor| match &visitor.tunnel {
            Some(_) => visitor.settings.keepalive,
            None => PATIENCE,
        };
        let own = self.all.iter().map(|visitor| Some(visitor.since + timer(visitor)));
        let carriers = self.all.iter().map(|visitor| visitor.connection.timer());
        switch::upstream::next_timer(own.chain(carriers))
    }

    /// How many went, or had to go, without a greeting.
    pub fn silent(&self) -> u64 {
        self.silent
    }

    /// The group that one of them wants the device to belong to, and who it
    /// is.
    pub fn wants_move(&self) -> Option<(u16, Address)> {
        let wants = |visitor: &Visitor| Some((visitor.wants_move?, visitor.connection.peer()));
        self.all.iter().find_map(wants)
    }

    /// Answers the one that [`wants_move`](Self::wants_move) told of.
    pub fn answer_move(&mut self, answer: Moved) {
        let asker = self.all.iter_mut().find(|visitor| visitor.wants_move.is_some());
        let Some(asker) = asker else { return };
        asker.wants_move = None;
        if let Some(tunnel) = &mut asker.tunnel {
            tunnel.answer_move(answer);
        }
    }

    /// Whether a host that a device of `group` serves was turned away a short
    /// time ago.
    pub fn awaits(&self, now: Instant, group: u16) -> bool {
        self.waiting.iter().any(|(at, host)| now < *at + WAITING && belongs(*host, group))
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
        for (index, visitor) in self.all.iter_mut().enumerate() {
            if let Some(theirs) = visitor.service(now, wanted && chosen.is_none(), group, tell) {
                chosen = Some((index, theirs));
            }
            if let Some(theirs) = visitor.turned_away.take() {
                self.waiting.truncate(MOST_WAITING - 1);
                self.waiting.push_front((now, theirs));
            }
        }
        let chosen = chosen.map(|(index, group)| {
            let visitor = self.all.remove(index);
            let greeting = visitor.greeting.freeze();
            Host { connection: visitor.connection, greeting, group }
        });
        self.all.retain(|visitor| {
            self.silent += u64::from(visitor.gone && visitor.tunnel.is_none());
            !visitor.gone
        });
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
        // Who asks a web server for a page often closes at once.
        let stranger = !frame::may_greet(&self.greeting);
        if self.tunnel.is_none() && (stranger || !self.gone) {
            match role(&self.greeting) {
                None => return None,
                Some(Some((Role::Host, theirs))) if belongs(theirs, group) => {
                    if wanted {
                        return Some(theirs);
                    }
                    if self.may_succeed(now) {
                        return None;
                    }
                    self.turn_away(now, Reject::Busy, theirs);
                }
                Some(Some((Role::Host, theirs))) => self.turn_away(now, Reject::Group, theirs),
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

    /// Turns a host of that group away, which may come again.
    fn turn_away(&mut self, now: Instant, reason: Reject, group: u16) {
        self.turned_away = Some(group);
        self.entertain(now, Some(reason));
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
        if self.wants_move.is_some() {
            return;
        }
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
                Output::Move(group) => {
                    self.wants_move = Some(group);
                    return;
                }
                Output::Up(_) | Output::Reset | Output::EchoReply(_) | Output::Moved(_) => {}
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
    if !frame::may_greet(greeting) {
        return Some(None);
    }
    let head = greeting.first_chunk::<{ frame::HEADER }>()?;
    let Ok(header) = Header::decode(*head) else { return Some(None) };
    let payload = greeting.get(frame::HEADER..frame::HEADER + usize::from(header.length))?;
    match Control::decode(header.kind, payload) {
        Ok(Control::Hello(hello)) if hello.version == frame::VERSION => {
            Some(Some((hello.role, hello.group)))
        }
        _ => Some(None),
    }
}
