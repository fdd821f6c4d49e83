//! Connections that have not said who they are, probes, and those that are
//! turned away. None of them can do more than waste its own connection.

use super::{Event, Output};
use crate::path::{self, PathId};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use switch::tunnel::{self, Cause, Input, Settings, Tunnel};
use switch::upstream::next_timer;
use wire::frame::{self, Control, Header, Moved, Reject, Role};
use wire::{Duration, Instant};

/// Connections without a greeting, or probes, at the same time.
const MOST: usize = 16;
/// How long a connection may keep its greeting to itself.
const GREETING_TIMEOUT: Duration = Duration::from_ms(2_000);
/// Hosts turned away that are remembered, and for how long: who waits for a
/// device tries five times a second.
const MOST_REJECTED: usize = 16;
const REMEMBERED: Duration = Duration::from_ms(2_000);
/// How long a host waits for the one before it, if nothing tells that that one
/// has ended: longer than a link takes to be lost.
const TAKEOVER: Duration = Duration::from_ms(1_000);

#[derive(Debug)]
struct PendingConnection {
    path: PathId,
    signals_close: bool,
    room: usize,
    /// What came before it was known who it is.
    greeting: BytesMut,
    /// Set once it is known not to become the host.
    tunnel: Option<Tunnel>,
    /// The group that it wants the device to belong to; nothing else of it is
    /// looked at before that is answered.
    requested_move: Option<u16>,
    since: Instant,
    timer: Option<Instant>,
    gone: bool,
}

/// A connection that greets as a host.
pub(super) struct AcceptedHost {
    pub path: PathId,
    pub greeting: Bytes,
    pub group: u16,
    pub room: usize,
}

/// What becomes of a connection.
enum Decision {
    /// That is not known yet, or has been for long.
    Wait,
    /// It is the host that is wanted, of this group.
    Host(u16),
    /// A host of that group is turned away, and may come again.
    Reject(Reject, u16),
    /// It is no host.
    Serve,
}

/// See the module.
#[derive(Debug)]
pub(super) struct PendingConnections {
    settings: Settings,
    all: Vec<PendingConnection>,
    /// Groups of hosts that were turned away, and when.
    rejected: VecDeque<(Instant, u16)>,
    /// How many went, or had to go, without a greeting.
    without_hello: u64,
}

impl PendingConnections {
    pub fn new(settings: Settings) -> Self {
        Self { settings, all: Vec::new(), rejected: VecDeque::new(), without_hello: 0 }
    }

    /// Takes a new connection; yields the oldest, which has to go, if there
    /// are too many.
    pub fn accept(&mut self, now: Instant, path: PathId, signals_close: bool) -> Option<PathId> {
        let oldest = (self.all.len() >= MOST).then(|| self.all.remove(0));
        let without_hello = oldest.as_ref().is_some_and(|oldest| oldest.tunnel.is_none());
        self.without_hello += u64::from(without_hello);
        self.all.push(PendingConnection {
            path,
            signals_close,
            room: 0,
            greeting: BytesMut::new(),
            tunnel: None,
            requested_move: None,
            since: now,
            timer: None,
            gone: false,
        });
        oldest.map(|oldest| oldest.path)
    }

    /// When the next one wants to be looked at.
    pub fn timer(&self) -> Option<Instant> {
        next_timer(self.all.iter().map(|connection| connection.timer))
    }

    /// How many went, or had to go, without a greeting.
    pub fn without_hello(&self) -> u64 {
        self.without_hello
    }

    /// The group that one of them wants the device to belong to, and who it
    /// is.
    pub fn requested_move(&self) -> Option<(u16, PathId)> {
        self.all.iter().find_map(|connection| Some((connection.requested_move?, connection.path)))
    }

    /// Answers the one that [`requested_move`](Self::requested_move) told of.
    pub fn answer_move(&mut self, answer: Moved) {
        let asker = self.all.iter_mut().find(|connection| connection.requested_move.is_some());
        let Some(asker) = asker else { return };
        asker.requested_move = None;
        if let Some(tunnel) = &mut asker.tunnel {
            tunnel.answer_move(answer);
        }
    }

    /// Whether a host that a device of `group` serves was turned away a short
    /// time ago.
    pub fn awaits(&self, now: Instant, group: u16) -> bool {
        self.rejected.iter().any(|(at, host)| now < *at + REMEMBERED && belongs(*host, group))
    }

    /// Takes what happened to one of them.
    pub fn handle(&mut self, now: Instant, path: PathId, input: path::Input) {
        let connection = self.all.iter_mut().find(|connection| connection.path == path);
        let Some(connection) = connection else { return };
        match (input, &mut connection.tunnel) {
            (path::Input::Received(bytes), Some(tunnel)) => {
                tunnel.handle(now, Input::Received(bytes));
            }
            (path::Input::Received(bytes), None) => connection.greeting.extend_from_slice(&bytes),
            (path::Input::Room(bytes), _) if !connection.gone => connection.room = bytes,
            (path::Input::Closed, _) => (connection.room, connection.gone) = (0, true),
            _ => {}
        }
    }

    /// Looks at all of them; yields one that greets as a host of `group`, if a
    /// host is wanted.
    pub fn serve(
        &mut self,
        now: Instant,
        wanted: bool,
        group: u16,
        out: &mut VecDeque<Output>,
    ) -> Option<AcceptedHost> {
        let mut chosen = None;
        for (index, connection) in self.all.iter_mut().enumerate() {
            match connection.judge(now, wanted && chosen.is_none(), group) {
                Decision::Wait => {}
                Decision::Host(theirs) => chosen = Some((index, theirs)),
                Decision::Reject(reason, theirs) => {
                    self.rejected.truncate(MOST_REJECTED - 1);
                    self.rejected.push_front((now, theirs));
                    connection.serve(now, self.settings, Some(reason));
                }
                Decision::Serve => connection.serve(now, self.settings, None),
            }
            connection.poll_tunnel(now, out);
        }
        let chosen = chosen.map(|(index, group)| {
            let PendingConnection { path, greeting, room, .. } = self.all.remove(index);
            AcceptedHost { path, greeting: greeting.freeze(), group, room }
        });
        self.all.retain(|connection| {
            if connection.gone {
                self.without_hello += u64::from(connection.tunnel.is_none());
                out.push_back(Output::Close { path: connection.path, linger: false });
            }
            !connection.gone
        });
        chosen
    }
}

impl PendingConnection {
    fn judge(&mut self, now: Instant, wanted: bool, group: u16) -> Decision {
        // Who asks a web server for a page often closes at once.
        let goes = self.gone && frame::may_greet(&self.greeting);
        if self.tunnel.is_some() || goes {
            return Decision::Wait;
        }
        match role(&self.greeting) {
            None => {
                self.gone = now >= self.since + GREETING_TIMEOUT;
                self.timer = Some(self.since + GREETING_TIMEOUT);
                Decision::Wait
            }
            Some(Some((Role::Host, theirs))) if !belongs(theirs, group) => {
                Decision::Reject(Reject::Group, theirs)
            }
            Some(Some((Role::Host, theirs))) if wanted => Decision::Host(theirs),
            Some(Some((Role::Host, _))) if self.may_replace_host(now) => {
                self.timer = Some(self.since + TAKEOVER);
                Decision::Wait
            }
            Some(Some((Role::Host, theirs))) => Decision::Reject(Reject::Busy, theirs),
            Some(_) => Decision::Serve,
        }
    }

    /// On raw Ethernet the kernel says no goodbye for a process that was
    /// killed: the host may be the last one, started again. It sends nothing
    /// behind its greeting until that is answered.
    fn may_replace_host(&self, now: Instant) -> bool {
        let greets = self.greeting.len() <= frame::HEADER + frame::MAX_HELLO;
        !self.signals_close && greets && now < self.since + TAKEOVER
    }

    /// Gives the connection a tunnel end of its own, which answers echoes and
    /// finds every fault, or turns the connection away.
    fn serve(&mut self, now: Instant, settings: Settings, away: Option<Reject>) {
        let mut tunnel = Tunnel::new(settings);
        tunnel.handle(now, Input::Connected);
        match away {
            Some(reason) => tunnel.turn_away(reason),
            None => tunnel.handle(now, Input::Received(self.greeting.split().freeze())),
        }
        self.tunnel = Some(tunnel);
    }

    fn poll_tunnel(&mut self, now: Instant, out: &mut VecDeque<Output>) {
        let Some(tunnel) = &mut self.tunnel else { return };
        if self.requested_move.is_some() {
            return;
        }
        let path = self.path;
        let mut frames = BytesMut::new();
        let mut transmit = |frames: &mut BytesMut, room: &mut usize| {
            *room -= frames.len();
            out.push_back(Output::Transmit { path, bytes: frames.split().freeze() });
        };
        tunnel.handle(now, Input::CanTransmit { bytes: self.room });
        loop {
            // A probe carries no TLPs.
            while tunnel.pop(pcie::Ready::ALL).is_some() {}
            match tunnel.poll(now, &mut frames) {
                tunnel::Output::Transmit(_) => transmit(&mut frames, &mut self.room),
                tunnel::Output::Down(cause) => {
                    while let tunnel::Output::Transmit(_) = tunnel.poll(now, &mut frames) {
                        transmit(&mut frames, &mut self.room);
                    }
                    if !matches!(cause, Cause::Goodbye | Cause::Disconnected) {
                        out.push_back(Output::Event(Event::Rejected(path, cause)));
                    }
                    self.gone = true;
                    return;
                }
                tunnel::Output::Timeout(at) => {
                    self.timer = at;
                    return;
                }
                tunnel::Output::Move(group) => {
                    self.requested_move = Some(group);
                    return;
                }
                tunnel::Output::Up(_)
                | tunnel::Output::Reset
                | tunnel::Output::EchoReply(_)
                | tunnel::Output::Moved(_) => {}
            }
        }
    }
}

/// Whether a host of one group may have a device of another.
pub(super) fn belongs(host: u16, device: u16) -> bool {
    device == 0 || host == device
}

/// Who greets, and its group: `None` while that is not known, `Some(None)` if
/// it is nobody we know.
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
