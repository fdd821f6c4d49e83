//! Connections without a Hello so far, probes, and rejected connections. None of them can disturb
//! another connection.

use super::{Event, Output};
use crate::Rights;
use crate::path::{self, PathId};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::sync::Arc;
use switch::tunnel::{self, Cause, Input, Settings, Tunnel};
use wire::earliest;
use wire::frame::{self, Control, Header, Hello, LinkConnection, Moved, Reject, Role};
use wire::{Duration, Instant};

/// Largest number of pending connections and probes.
const MOST: usize = 16;
/// Time limit for a Hello.
const GREETING_TIMEOUT: Duration = Duration::from_ms(2_000);
/// Number of rejected hosts that are remembered. A waiting host retries five times per second.
const MOST_REJECTED: usize = 16;
const REMEMBERED: Duration = Duration::from_ms(2_000);
/// How long a new host waits until the link of the previous host is lost, if the path does not
/// signal its end.
const TAKEOVER: Duration = Duration::from_ms(1_000);

#[derive(Debug)]
struct PendingConnection {
    path: PathId,
    signals_close: bool,
    rights: Rights,
    peer: Option<Arc<str>>,
    room: usize,
    /// Bytes received before the role was known.
    greeting: BytesMut,
    /// Set once it is clear that the peer will not become the host.
    tunnel: Option<Tunnel>,
    /// The requested group of a Move; further frames of this probe wait for the answer.
    requested_move: Option<u16>,
    since: Instant,
    timer: Option<Instant>,
    gone: bool,
}

/// A connection with the Hello of a host that is accepted.
pub(super) struct AcceptedHost {
    pub path: PathId,
    pub greeting: Bytes,
    pub group: u16,
    pub room: usize,
    pub peer: Option<Arc<str>>,
}

/// The host that uses the device.
#[derive(Debug)]
pub(super) struct Occupant {
    /// The name of its session, if the session survives connections.
    pub session: Option<u128>,
    /// The name of the host, if it has proved its identity.
    pub peer: Option<Arc<str>>,
    /// Whether its session has no path.
    pub interrupted: bool,
    /// Whether its session takes a further path.
    pub takes_further: bool,
    /// The name of its link, if the link has several connections.
    pub link: Option<u128>,
}

/// What a pending connection needs.
pub(super) enum Served {
    /// The peer becomes the host, or goes on as the host.
    Host(AcceptedHost),
    /// The peer is the host, whose present path is to be closed first.
    Returns,
    /// The path, the bytes received over it, and the number of a further connection of the host.
    Further(PathId, Bytes, u16),
    /// The peer is to become the host, and the session of the present host is to be ended first.
    Replaces,
}

enum Decision {
    /// Nothing now: the role is unknown, or the connection is already served.
    Wait,
    /// Accept the peer as the host, of this group, or as the present host.
    Host(u16),
    /// As [`Served::Returns`].
    Returns,
    /// As [`Served::Replaces`].
    Replaces,
    /// As [`Served::Further`]: the number of the connection.
    Further(u16),
    /// Reject this host of that group; it may try again.
    Reject(Reject, u16),
    /// Serve the peer, which is not a host.
    Serve,
}

/// All connections except the connection of the host.
#[derive(Debug)]
pub(super) struct PendingConnections {
    settings: Settings,
    all: Vec<PendingConnection>,
    /// Groups of rejected hosts, with the time of the rejection.
    rejected: VecDeque<(Instant, u16)>,
    /// Connections that closed, or were closed, without a Hello.
    without_hello: u64,
}

impl PendingConnections {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, all: Vec::new(), rejected: VecDeque::new(), without_hello: 0 }
    }

    /// Adds a connection. If there are too many, returns one to be closed: the oldest without a
    /// Hello, or else the oldest.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        path: PathId,
        (signals_close, rights, peer): (bool, Rights, Option<Arc<str>>),
    ) -> Option<PathId> {
        let ungreeted = self.all.iter().position(|connection| connection.tunnel.is_none());
        let oldest = (self.all.len() >= MOST).then(|| self.all.remove(ungreeted.unwrap_or(0)));
        let without_hello = oldest.as_ref().is_some_and(|oldest| oldest.tunnel.is_none());
        self.without_hello += u64::from(without_hello);
        self.all.push(PendingConnection {
            path,
            signals_close,
            rights,
            peer,
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

    /// When to serve the connections again.
    pub(super) fn timer(&self) -> Option<Instant> {
        earliest(self.all.iter().map(|connection| connection.timer))
    }

    /// Number of connections that closed, or were closed, without a Hello.
    pub(super) fn without_hello(&self) -> u64 {
        self.without_hello
    }

    /// The group that a probe requests to move the device to, the probe's path, and whether the
    /// probe may do so.
    pub(super) fn requested_move(&self) -> Option<(u16, PathId, bool)> {
        let requested = |connection: &PendingConnection| {
            Some((connection.requested_move?, connection.path, connection.rights.move_device))
        };
        self.all.iter().find_map(requested)
    }

    /// Answers [`requested_move`](Self::requested_move).
    pub(super) fn answer_move(&mut self, answer: Moved) {
        let asker = self.all.iter_mut().find(|connection| connection.requested_move.is_some());
        let Some(asker) = asker else { return };
        asker.requested_move = None;
        if let Some(tunnel) = &mut asker.tunnel {
            tunnel.answer_move(answer);
        }
    }

    /// Whether a host that may use a device of `group` was rejected recently.
    pub(super) fn awaits(&self, now: Instant, group: u16) -> bool {
        self.rejected.iter().any(|(at, host)| now < *at + REMEMBERED && belongs(*host, group))
    }

    /// Takes an event of a connection.
    pub(super) fn handle(&mut self, now: Instant, path: PathId, input: path::Input) {
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

    /// Serves all connections of a device of `group`. Returns what one of them needs.
    pub(super) fn serve(
        &mut self,
        now: Instant,
        occupant: Option<&Occupant>,
        group: u16,
        out: &mut VecDeque<Output>,
    ) -> Option<Served> {
        let (mut chosen, mut first, mut further) = (None, None, None);
        for (index, connection) in self.all.iter_mut().enumerate() {
            if chosen.is_some() || first.is_some() || further.is_some() {
                connection.poll_tunnel(now, out);
                continue;
            }
            match connection.judge(now, occupant, (group, self.settings.connection)) {
                Decision::Wait => {}
                Decision::Host(theirs) => chosen = Some((index, theirs)),
                Decision::Returns => first = Some(Served::Returns),
                Decision::Replaces => first = Some(Served::Replaces),
                Decision::Further(number) => further = Some((index, number)),
                Decision::Reject(reason, theirs) => {
                    if reason != Reject::Unauthorized {
                        self.rejected.truncate(MOST_REJECTED - 1);
                        self.rejected.push_front((now, theirs));
                    }
                    connection.serve(now, self.settings, Some(reason));
                }
                Decision::Serve => connection.serve(now, self.settings, None),
            }
            connection.poll_tunnel(now, out);
        }
        first = first.or_else(|| {
            let (index, number) = further?;
            let PendingConnection { path, greeting, .. } = self.all.remove(index);
            Some(Served::Further(path, greeting.freeze(), number))
        });
        let chosen = chosen.map(|(index, group)| {
            let PendingConnection { path, greeting, room, peer, .. } = self.all.remove(index);
            let greeting = greeting.freeze();
            Served::Host(AcceptedHost { path, greeting, group, room, peer })
        });
        self.all.retain(|connection| {
            if connection.gone {
                self.without_hello += u64::from(connection.tunnel.is_none());
                out.push_back(Output::Close { path: connection.path, linger: false });
            }
            !connection.gone
        });
        chosen.or(first)
    }
}

impl PendingConnection {
    fn judge(
        &mut self,
        now: Instant,
        occupant: Option<&Occupant>,
        (group, connections): (u16, Option<LinkConnection>),
    ) -> Decision {
        // A client of another protocol, such as HTTP, often closes at once.
        let goes = self.gone && frame::may_be_greeting(&self.greeting);
        if self.tunnel.is_some() || goes {
            return Decision::Wait;
        }
        match sender(&self.greeting) {
            None => {
                self.gone = now >= self.since + GREETING_TIMEOUT;
                self.timer = Some(self.since + GREETING_TIMEOUT);
                Decision::Wait
            }
            Some(Some(Hello { role: Role::Host, group: theirs, .. }))
                if !self.rights.attach.contain(theirs) =>
            {
                Decision::Reject(Reject::Unauthorized, theirs)
            }
            Some(Some(Hello { role: Role::Probe, group: theirs, .. }))
                if !self.rights.may_probe() =>
            {
                Decision::Reject(Reject::Unauthorized, theirs)
            }
            Some(Some(Hello { role: Role::Host, group: theirs, .. }))
                if !belongs(theirs, group) =>
            {
                Decision::Reject(Reject::Group(Some((group, theirs))), theirs)
            }
            Some(Some(hello)) if hello.role == Role::Host => {
                match connections
                    .zip(hello.connection)
                    .filter(|(own, theirs)| own.number > 1 && theirs.number > 0)
                {
                    Some((own, theirs)) if self.is_further(occupant, own, theirs) => {
                        Decision::Further(theirs.number)
                    }
                    Some(_) => Decision::Reject(Reject::NoLink, hello.group),
                    None => self.judge_host(now, occupant, hello),
                }
            }
            Some(_) => Decision::Serve,
        }
    }

    /// Whether the present host opens a further connection of its link.
    fn is_further(
        &self,
        occupant: Option<&Occupant>,
        own: LinkConnection,
        theirs: LinkConnection,
    ) -> bool {
        let same = |host: &Occupant| host.link == Some(theirs.link) && host.peer == self.peer;
        theirs.number < own.number && occupant.is_some_and(same)
    }

    /// Judges a host that may use the device, if no other host does.
    fn judge_host(
        &mut self,
        now: Instant,
        occupant: Option<&Occupant>,
        Hello { group, session, .. }: Hello,
    ) -> Decision {
        let goes_on = session.is_some_and(|session| session.expected.is_some());
        let Some(occupant) = occupant else {
            return match goes_on {
                true => Decision::Reject(Reject::NoSession, group),
                false => Decision::Host(group),
            };
        };
        // A session belongs to the peer that began it, and to the secret in its name.
        let same_peer = occupant.peer == self.peer;
        let same = |shift: u32| {
            let ids = session.map(|session| session.id).zip(occupant.session);
            same_peer && ids.is_some_and(|(theirs, ours)| theirs >> shift == ours >> shift)
        };
        let (same_session, same_process) = (same(0), same(32));
        match occupant.interrupted {
            interrupted if goes_on && same_session => match interrupted || occupant.takes_further {
                true => Decision::Host(group),
                false => Decision::Returns,
            },
            _ if goes_on => Decision::Reject(Reject::NoSession, group),
            _ if same_process => Decision::Replaces,
            // The host was restarted.
            true if same_peer && self.peer.is_some() => Decision::Replaces,
            true if session.is_some() => Decision::Reject(Reject::Interrupted, group),
            false if self.may_replace_host(now) => {
                self.timer = Some(self.since + TAKEOVER);
                Decision::Wait
            }
            _ => Decision::Reject(Reject::Busy, group),
        }
    }

    /// On raw Ethernet the kernel sends no Goodbye for a killed process, so the peer may be the
    /// restarted current host. The peer sends nothing between its Hello and the answer.
    fn may_replace_host(&self, now: Instant) -> bool {
        let greets = self.greeting.len() <= frame::HEADER + frame::MAX_HELLO;
        !self.signals_close && greets && now < self.since + TAKEOVER
    }

    /// Serves the connection with a tunnel of its own, which answers echoes and detects protocol
    /// errors, or rejects the connection.
    fn serve(&mut self, now: Instant, settings: Settings, away: Option<Reject>) {
        let mut tunnel = Tunnel::new(settings);
        tunnel.handle(now, Input::Connected);
        match away {
            Some(reason) => tunnel.reject_peer(reason),
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
        let mut transmit = |bytes: Bytes, room: &mut usize| {
            *room -= bytes.len();
            out.push_back(Output::Transmit { path, bytes });
        };
        tunnel.handle(now, Input::CanTransmit { bytes: self.room });
        loop {
            // A probe carries no TLPs.
            while tunnel.pop(pcie::Ready::ALL).is_some() {}
            match tunnel.poll(now) {
                tunnel::Output::Transmit(_, bytes) => transmit(bytes, &mut self.room),
                tunnel::Output::Down(cause) => {
                    while let tunnel::Output::Transmit(_, bytes) = tunnel.poll(now) {
                        transmit(bytes, &mut self.room);
                    }
                    if !matches!(
                        cause,
                        Cause::Goodbye | Cause::Disconnected | Cause::ClosedUngreeted
                    ) {
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
                | tunnel::Output::PathLost(..)
                | tunnel::Output::Resumed
                | tunnel::Output::Joined(_)
                | tunnel::Output::FailedOver(_)
                | tunnel::Output::Reset
                | tunnel::Output::EchoReply(_)
                | tunnel::Output::Moved(_) => {}
            }
        }
    }
}

/// Whether a host of group `host` may use a device of group `device`.
pub(super) fn belongs(host: u16, device: u16) -> bool {
    device == 0 || host == device
}

/// The name of the link that a greeting begins, if the link has several connections.
pub(super) fn link_of(greeting: &[u8], own: LinkConnection) -> Option<u128> {
    let theirs = sender(greeting)??.connection?;
    (theirs.queue_pairs == own.queue_pairs).then_some(theirs.link)
}

/// The Hello of the sender: `None` while unknown, `Some(None)` if the bytes are not a Hello of this
/// version.
fn sender(greeting: &[u8]) -> Option<Option<Hello>> {
    if !frame::may_be_greeting(greeting) {
        return Some(None);
    }
    let head = greeting.first_chunk::<{ frame::HEADER }>()?;
    let Ok(header) = Header::decode(*head) else { return Some(None) };
    let payload = greeting.get(frame::HEADER..frame::HEADER + usize::from(header.length))?;
    match Control::decode(header.kind, payload) {
        Ok(Control::Hello(hello)) if hello.version == frame::VERSION => Some(Some(hello)),
        _ => Some(None),
    }
}
