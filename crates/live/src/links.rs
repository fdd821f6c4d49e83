//! The connections of a switch's downstream links: made, kept, made again.

use crate::attached::Activity;
use crate::net::Connection;
use crate::poller::Poller;
use crate::trace::Tracer;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use switch::Upstream;
use switch::tunnel::{Cause, Input};
use switch::upstream::LinkOutput;
use wire::frame::Hello;
use wire::trace::Tap;
use wire::{Duration, Instant};

/// Pause between attempts to connect.
const RETRY: Duration = Duration::from_ms(200);
/// How long TCP may take to connect. The kernel alone would try for minutes,
/// with ever longer pauses, and so miss a node that is back.
const CONNECTING: Duration = Duration::from_ms(2_000);
/// Reads from one connection before the others have their turn: a far side
/// that never stops sending may not starve them.
const MOST_READS: usize = 16;

/// What happened to a link.
#[derive(Clone, Debug)]
pub enum LinkEvent {
    /// Up, with the far side's greeting.
    Up(usize, Hello),
    /// Down, after it was up.
    Down(usize, Cause),
    /// An attempt failed; another follows. The flag says that it will fail
    /// again, for the far side is of another kind.
    Failed(usize, String, bool),
    /// An echo came back.
    Echo(usize, u64),
}

#[derive(Debug)]
enum State {
    /// Try again at this time.
    Waiting(Instant),
    /// TCP is on its way, since then.
    Connecting(Connection, Instant),
    /// The tunnel has it; the flag is what epoll watches for.
    Open(Connection, bool),
}

#[derive(Debug)]
struct Link {
    peer: SocketAddr,
    state: State,
    up: bool,
}

/// One connection a downstream port.
#[derive(Debug)]
pub struct Links {
    links: Vec<Link>,
    events: VecDeque<LinkEvent>,
    tracer: Tracer,
}

impl Links {
    /// Connections to be made to `peers`, one a downstream port.
    pub fn new(peers: &[SocketAddr]) -> Self {
        let link = |peer: &SocketAddr| Link {
            peer: *peer,
            state: State::Waiting(Instant::ZERO),
            up: false,
        };
        let links = peers.iter().map(link).collect();
        Self { links, events: VecDeque::new(), tracer: Tracer::off() }
    }

    /// The same, with what passes them recorded.
    #[must_use]
    pub fn traced(mut self, tracer: Tracer) -> Self {
        self.tracer = tracer;
        self
    }

    /// What records.
    pub fn tracer(&self) -> Tracer {
        self.tracer.clone()
    }

    /// The next event.
    pub fn event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// The far side of link `index`.
    pub fn peer(&self, index: usize) -> SocketAddr {
        self.links[index].peer
    }

    /// Moves bytes between the connections and the tunnels of `upstream`.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub fn service(
        &mut self,
        now: Instant,
        upstream: &mut Upstream,
        poller: &Poller,
    ) -> io::Result<Activity> {
        let mut all = Activity::default();
        if let Some(number) = self.tracer.echo_due(now) {
            (0..self.links.len()).for_each(|index| upstream.echo(index, number));
        }
        for index in 0..self.links.len() {
            let one = self.service_link(now, index, upstream, poller)?;
            all.moved |= one.moved;
            all.timer = switch::upstream::next_timer([all.timer, one.timer]);
        }
        Ok(all)
    }

    fn service_link(
        &mut self,
        now: Instant,
        index: usize,
        upstream: &mut Upstream,
        poller: &Poller,
    ) -> io::Result<Activity> {
        let link = &mut self.links[index];
        match &mut link.state {
            State::Waiting(at) if now < *at => {
                return Ok(Activity { moved: false, timer: Some(*at) });
            }
            State::Waiting(_) => match Connection::connect(link.peer) {
                Ok(connection) => {
                    poller.add(&connection, true)?;
                    link.state = State::Connecting(connection, now);
                }
                Err(error) => self.fail(now, index, &error),
            },
            State::Connecting(connection, since) => match connection.established() {
                Ok(false) if now < *since + CONNECTING => {}
                Ok(false) => self.fail(now, index, &io::ErrorKind::TimedOut.into()),
                Ok(true) => {
                    let State::Connecting(connection, _) =
                        std::mem::replace(&mut link.state, State::Waiting(now))
                    else {
                        unreachable!("matched above");
                    };
                    poller.modify(&connection, false)?;
                    link.state = State::Open(connection, false);
                    self.tracer.connected(Tap::link(index));
                    upstream.handle_link(now, index, Input::Connected);
                    return Ok(Activity { moved: true, timer: None });
                }
                Err(error) => self.fail(now, index, &error),
            },
            State::Open(..) => return self.carry(now, index, upstream, poller),
        }
        let timer = match &self.links[index].state {
            State::Waiting(at) => Some(*at),
            State::Connecting(_, since) => Some(*since + CONNECTING),
            State::Open(..) => None,
        };
        Ok(Activity { moved: false, timer })
    }

    fn fail(&mut self, now: Instant, index: usize, error: &io::Error) {
        let link = &mut self.links[index];
        link.state = State::Waiting(now + RETRY);
        let event = LinkEvent::Failed(index, format!("{}: {error}", link.peer), false);
        self.tell(event);
    }

    /// Queues an event. Attempts fail as long as nobody is there, so of those
    /// in a row only the latest is kept.
    fn tell(&mut self, event: LinkEvent) {
        if let (LinkEvent::Failed(index, ..), Some(LinkEvent::Failed(last, ..))) =
            (&event, self.events.back())
            && index == last
        {
            self.events.pop_back();
        }
        self.events.push_back(event);
    }

    /// Output first, for it may have waited for this; then input, and what
    /// that makes room for.
    fn carry(
        &mut self,
        now: Instant,
        index: usize,
        upstream: &mut Upstream,
        poller: &Poller,
    ) -> io::Result<Activity> {
        let before = self.transmit(now, index, upstream);
        let State::Open(connection, _) = &mut self.links[index].state else {
            return Ok(Activity { moved: true, timer: Some(now + RETRY) });
        };
        let (tap, tracer) = (Tap::link(index), &self.tracer);
        let mut received = false;
        let gone = receive(connection, |bytes| {
            received = true;
            tracer.stream(tap, true, &bytes);
            upstream.handle_link(now, index, Input::Received(bytes));
        });
        if gone {
            upstream.handle_link(now, index, Input::Disconnected);
        }
        let after = if received || gone {
            self.transmit(now, index, upstream)
        } else {
            Activity::default()
        };
        let State::Open(connection, watched) = &mut self.links[index].state else {
            return Ok(Activity { moved: true, timer: Some(now + RETRY) });
        };
        if *watched != connection.is_full() {
            *watched = !*watched;
            poller.modify(&*connection, *watched)?;
        }
        let moved = received || before.moved || after.moved;
        Ok(Activity { moved, timer: if received { after.timer } else { before.timer } })
    }

    /// What the tunnel wants, while there is room.
    fn transmit(&mut self, now: Instant, index: usize, upstream: &mut Upstream) -> Activity {
        let link = &mut self.links[index];
        let State::Open(connection, _) = &mut link.state else {
            return Activity::default();
        };
        let tap = Tap::link(index);
        let mut moved = false;
        let mut gone = connection.flush().is_err();
        loop {
            if gone {
                gone = false;
                upstream.handle_link(now, index, Input::Disconnected);
            }
            let room = connection.room();
            upstream.handle_link(now, index, Input::CanTransmit { bytes: room });
            match upstream.poll_link(now, index) {
                LinkOutput::Transmit(bytes) => {
                    moved = true;
                    let bytes = Bytes::from(bytes);
                    self.tracer.stream(tap, false, &bytes);
                    gone = connection.send(bytes).is_err();
                }
                LinkOutput::Up(hello) => {
                    moved = true;
                    link.up = true;
                    self.events.push_back(LinkEvent::Up(index, hello));
                }
                LinkOutput::EchoReply(number) => {
                    moved = true;
                    if !self.tracer.is_mine(number) {
                        self.events.push_back(LinkEvent::Echo(index, number));
                    }
                }
                LinkOutput::Down(cause) => {
                    // What is queued (a reject, a goodbye) still goes out.
                    if let LinkOutput::Transmit(bytes) = upstream.poll_link(now, index) {
                        let bytes = Bytes::from(bytes);
                        self.tracer.stream(tap, false, &bytes);
                        let _ = connection.send(bytes);
                    }
                    self.close_link(now, index, upstream, cause);
                    return Activity { moved: true, timer: Some(now + RETRY) };
                }
                LinkOutput::Timeout(at) => return Activity { moved, timer: at },
            }
        }
    }

    fn close_link(&mut self, now: Instant, index: usize, upstream: &mut Upstream, cause: Cause) {
        upstream.handle_link(now, index, Input::Disconnected);
        let link = &mut self.links[index];
        link.state = State::Waiting(now + RETRY);
        self.tracer.down(Tap::link(index), &cause);
        let was_up = std::mem::take(&mut link.up);
        let event = if was_up {
            LinkEvent::Down(index, cause)
        } else {
            let passing = matches!(cause, Cause::Disconnected | Cause::Lost | Cause::Goodbye);
            LinkEvent::Failed(index, format!("{}: {cause}", link.peer), !passing)
        };
        self.tell(event);
    }

    /// Says goodbye on every link.
    pub fn close(&mut self, upstream: &mut Upstream) {
        upstream.goodbye();
        for (index, link) in self.links.iter_mut().enumerate() {
            let State::Open(connection, _) = &mut link.state else { continue };
            upstream.handle_link(Instant::ZERO, index, Input::CanTransmit { bytes: 1 << 16 });
            while let LinkOutput::Transmit(bytes) = upstream.poll_link(Instant::ZERO, index) {
                let bytes = Bytes::from(bytes);
                self.tracer.stream(Tap::link(index), false, &bytes);
                let _ = connection.send(bytes);
            }
        }
    }
}

/// Takes what a connection has, within reason, into `take`; whether it is
/// gone.
pub(crate) fn receive(connection: &mut Connection, mut take: impl FnMut(Bytes)) -> bool {
    for _ in 0..MOST_READS {
        match connection.receive() {
            Ok(Some(bytes)) if bytes.is_empty() => return true,
            Ok(Some(bytes)) => {
                let short = bytes.len() < 32 << 10;
                take(bytes);
                // A short read has emptied the socket: save the next call.
                if short {
                    return false;
                }
            }
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
    false
}
