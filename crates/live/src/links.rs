//! The connections of a switch's downstream links: made, kept, made again.

use crate::attached::Activity;
use crate::net::{Address, Carrier, RawSettings};
use crate::poller::Poller;
use crate::trace::Tracer;
use std::collections::VecDeque;
use std::io;
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
    /// The connection is on its way, since then.
    Connecting(Carrier, Instant),
    /// The tunnel has it; the flag is what epoll watches for.
    Open(Carrier, bool),
}

#[derive(Debug)]
struct Link {
    peer: Address,
    state: State,
    up: bool,
}

/// One connection a downstream port.
#[derive(Debug)]
pub struct Links {
    links: Vec<Link>,
    events: VecDeque<LinkEvent>,
    tracer: Tracer,
    raw: RawSettings,
}

impl Links {
    /// Connections to be made to `peers`, one a downstream port.
    pub fn new(peers: &[Address]) -> Self {
        let link = |peer: &Address| Link {
            peer: peer.clone(),
            state: State::Waiting(Instant::ZERO),
            up: false,
        };
        let links = peers.iter().map(link).collect();
        Self { links, events: VecDeque::new(), tracer: Tracer::off(), raw: RawSettings::default() }
    }

    /// The same, with settings of its own for raw Ethernet.
    #[must_use]
    pub fn over(mut self, raw: RawSettings) -> Self {
        self.raw = raw;
        self
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
    pub fn peer(&self, index: usize) -> &Address {
        &self.links[index].peer
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
            State::Waiting(_) => match Carrier::connect(now, &link.peer, self.raw) {
                Ok(connection) => {
                    poller.add(&connection, connection.connects_by_output())?;
                    link.state = State::Connecting(connection, now);
                }
                Err(error) => self.fail(now, index, &error),
            },
            State::Connecting(connection, since) => match connection.established(now) {
                Ok(false) if now < *since + CONNECTING => {}
                Ok(false) => self.fail(now, index, &io::ErrorKind::TimedOut.into()),
                Ok(true) => {
                    let State::Connecting(connection, _) =
                        std::mem::replace(&mut link.state, State::Waiting(now))
                    else {
                        unreachable!("matched above");
                    };
                    let mut connection = connection;
                    if upstream.tunnel(index).is_record_by_record() {
                        connection.keep_records();
                    }
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
            State::Connecting(connection, since) => {
                switch::upstream::next_timer([Some(*since + CONNECTING), connection.timer()])
            }
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
        let gone = connection.receive(now, |bytes| {
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
        let timer = if received { after.timer } else { before.timer };
        Ok(Activity { moved, timer: switch::upstream::next_timer([timer, connection.timer()]) })
    }

    /// What the tunnel wants, while there is room.
    fn transmit(&mut self, now: Instant, index: usize, upstream: &mut Upstream) -> Activity {
        let link = &mut self.links[index];
        let State::Open(connection, _) = &mut link.state else {
            return Activity::default();
        };
        let tap = Tap::link(index);
        let mut moved = false;
        let mut gone = connection.flush(now).is_err();
        loop {
            if gone {
                gone = false;
                upstream.handle_link(now, index, Input::Disconnected);
            }
            let room = connection.room(now);
            upstream.handle_link(now, index, Input::CanTransmit { bytes: room });
            match upstream.poll_link(now, index) {
                LinkOutput::Transmit(bytes) => {
                    moved = true;
                    self.tracer.stream(tap, false, &bytes);
                    gone = connection.send(now, bytes).is_err();
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
                    while let LinkOutput::Transmit(bytes) = upstream.poll_link(now, index) {
                        self.tracer.stream(tap, false, &bytes);
                        let _ = connection.send(now, bytes);
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
                self.tracer.stream(Tap::link(index), false, &bytes);
                let _ = connection.send(Instant::ZERO, bytes);
            }
            connection.linger();
        }
    }
}
