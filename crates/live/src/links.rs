//! The connections of a switch's downstream links: made, kept, made again.

use crate::attached::Activity;
use crate::net::{Carrier, Peer, RawSettings};
use crate::poller::Poller;
use crate::trace::Tracer;
use std::collections::VecDeque;
use std::io;
use switch::Upstream;
use switch::congestion::Rate;
use switch::egress::Egress;
use switch::tunnel::{Cause, Input};
use switch::upstream::{LinkOutput, next_timer};
use wire::frame::Hello;
use wire::trace::Tap;
use wire::{Duration, Instant};

/// Pause between attempts to connect.
const RETRY: Duration = Duration::from_ms(200);
/// How long TCP may take to connect. The kernel alone would try for minutes,
/// with ever longer pauses, and so miss a node that is back.
const CONNECTING: Duration = Duration::from_ms(2_000);
/// Bytes of the largest frame of a tunnel: what a link may send before the next
/// has its turn.
pub(crate) const FRAME: usize = (32 << 10) + 12;

/// What happened to a link.
#[derive(Clone, Debug)]
pub enum LinkEvent {
    /// Up, with the far side's greeting.
    Up(usize, Hello),
    /// Down, after it was up.
    Down(usize, Cause),
    /// An attempt failed; another follows. The flag says that it will fail
    /// again, for the far side is of another kind; that is told once.
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
    peer: Peer,
    /// Attempts that failed: the next takes the next address of the peer.
    failed: usize,
    state: State,
    up: bool,
    /// Why the last attempt failed, if the next will too.
    refusal: Option<Cause>,
}

impl Link {
    /// The far side as a message names it.
    fn name(&self) -> String {
        self.peer.named(self.failed)
    }

    /// When to look again, whatever the tunnel says.
    fn timer(&self) -> Option<Instant> {
        match &self.state {
            State::Waiting(at) => Some(*at),
            State::Connecting(connection, since) => {
                next_timer([Some(*since + CONNECTING), connection.timer()])
            }
            State::Open(connection, _) => connection.timer(),
        }
    }

    /// Watches for room while the kernel takes no more.
    fn watch(&mut self, poller: &Poller) -> io::Result<()> {
        if let State::Open(connection, watched) = &mut self.state
            && *watched != connection.is_full()
        {
            *watched = !*watched;
            poller.modify(&*connection, *watched)?;
        }
        Ok(())
    }
}

/// One connection a downstream port.
#[derive(Debug)]
pub struct Links {
    links: Vec<Link>,
    egress: Egress,
    events: VecDeque<LinkEvent>,
    tracer: Tracer,
    raw: RawSettings,
}

impl Links {
    /// Connections to be made to `peers`, one a downstream port.
    pub fn new<'a, P>(peers: &'a [P]) -> Self
    where
        &'a P: Into<Peer>,
    {
        let link = |peer: &'a P| Link {
            peer: peer.into(),
            failed: 0,
            state: State::Waiting(Instant::ZERO),
            up: false,
            refusal: None,
        };
        let links = peers.iter().map(link).collect();
        let egress = Egress::new(peers.len().max(1), FRAME, None);
        let raw = RawSettings::default();
        Self { links, egress, events: VecDeque::new(), tracer: Tracer::off(), raw }
    }

    /// The same, with settings of its own for raw Ethernet.
    #[must_use]
    pub fn over(mut self, raw: RawSettings) -> Self {
        self.raw = raw;
        self
    }

    /// The same with a limit to what goes out on all links together. They
    /// share it evenly in bytes.
    #[must_use]
    pub fn limited(mut self, rate: Option<Rate>) -> Self {
        self.egress = Egress::new(self.links.len().max(1), FRAME, rate);
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

    /// The far side of link `index` as a message names it.
    pub fn peer(&self, index: usize) -> String {
        self.links[index].name()
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
            all.moved |= self.connect(now, index, upstream, poller)?;
        }
        // Output first, for it may have waited for this; then input, and what
        // that makes room for.
        let mut sent = self.transmit_all(now, upstream);
        all.moved |= sent.moved;
        let mut received = false;
        for index in 0..self.links.len() {
            received |= self.receive(now, index, upstream);
        }
        if received {
            sent = self.transmit_all(now, upstream);
            all.moved = true;
        }
        for link in &mut self.links {
            link.watch(poller)?;
        }
        let timers = self.links.iter().map(Link::timer).chain([sent.timer]);
        all.timer = next_timer(timers);
        Ok(all)
    }

    /// Makes a connection if it is time; whether it stands now.
    fn connect(
        &mut self,
        now: Instant,
        index: usize,
        upstream: &mut Upstream,
        poller: &Poller,
    ) -> io::Result<bool> {
        let link = &mut self.links[index];
        match &mut link.state {
            State::Waiting(at) if now < *at => {}
            State::Waiting(_) => {
                match Carrier::connect(now, link.peer.address(link.failed), self.raw) {
                    Ok(connection) => {
                        poller.add(&connection, connection.connects_by_output())?;
                        link.state = State::Connecting(connection, now);
                    }
                    Err(error) => self.fail(now, index, &error),
                }
            }
            State::Connecting(connection, since) => match connection.established(now) {
                Ok(false) if now < *since + CONNECTING => {}
                Ok(false) => self.fail(now, index, &io::ErrorKind::TimedOut.into()),
                Ok(true) => {
                    let State::Connecting(mut connection, _) =
                        std::mem::replace(&mut link.state, State::Waiting(now))
                    else {
                        unreachable!("matched above");
                    };
                    if upstream.tunnel(index).is_record_by_record() {
                        connection.keep_records();
                    }
                    poller.modify(&connection, false)?;
                    link.state = State::Open(connection, false);
                    self.tracer.connected(Tap::link(index));
                    upstream.report_frames(index, self.tracer.is_on());
                    upstream.handle_link(now, index, Input::Connected);
                    return Ok(true);
                }
                Err(error) => self.fail(now, index, &error),
            },
            State::Open(..) => {}
        }
        Ok(false)
    }

    fn fail(&mut self, now: Instant, index: usize, error: &io::Error) {
        let link = &mut self.links[index];
        link.state = State::Waiting(now + RETRY);
        let event = LinkEvent::Failed(index, format!("{}: {error}", link.name()), false);
        link.failed = link.failed.wrapping_add(1);
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

    /// Takes what a connection has; whether there was anything.
    fn receive(&mut self, now: Instant, index: usize, upstream: &mut Upstream) -> bool {
        let State::Open(connection, _) = &mut self.links[index].state else { return false };
        let (tap, tracer) = (Tap::link(index), &self.tracer);
        let mut received = false;
        let gone = connection.receive(now, |bytes| {
            received = true;
            upstream.handle_link(now, index, Input::Received(bytes));
            tracer.frames(tap, || upstream.poll_report(index));
        });
        received |= connection.take_stirred();
        if gone {
            upstream.handle_link(now, index, Input::Disconnected);
        }
        received || gone
    }

    /// What the tunnels want, in turn, while there is room.
    fn transmit_all(&mut self, now: Instant, upstream: &mut Upstream) -> Activity {
        let mut all = Activity::default();
        for (index, link) in self.links.iter_mut().enumerate() {
            if let State::Open(connection, _) = &mut link.state
                && connection.flush(now).is_err()
            {
                upstream.handle_link(now, index, Input::Disconnected);
            }
        }
        let mut egress = std::mem::take(&mut self.egress);
        egress.serve(now, |index| self.transmit(now, index, true, upstream, &mut all));
        if let Some(at) = egress.held_until(now) {
            // Links come up and go down all the same.
            for index in 0..self.links.len() {
                self.transmit(now, index, false, upstream, &mut all);
            }
            all.timer = next_timer([all.timer, Some(at)]);
        }
        self.egress = egress;
        all
    }

    /// What one tunnel wants, up to a frame if it may send; yields the frame's
    /// bytes.
    fn transmit(
        &mut self,
        now: Instant,
        index: usize,
        may: bool,
        upstream: &mut Upstream,
        all: &mut Activity,
    ) -> Option<usize> {
        let link = &mut self.links[index];
        let State::Open(connection, _) = &mut link.state else { return None };
        let tap = Tap::link(index);
        let bytes = if may { connection.room(now) } else { 0 };
        upstream.handle_link(now, index, Input::CanTransmit { bytes });
        loop {
            match upstream.poll_link(now, index) {
                LinkOutput::Transmit(bytes) => {
                    all.moved = true;
                    self.tracer.frames(tap, || upstream.poll_report(index));
                    let length = bytes.len();
                    if connection.send(now, bytes.into()).is_err() {
                        upstream.handle_link(now, index, Input::Disconnected);
                    }
                    return Some(length);
                }
                LinkOutput::Up(hello) => {
                    all.moved = true;
                    link.up = true;
                    link.refusal = None;
                    self.events.push_back(LinkEvent::Up(index, hello));
                }
                LinkOutput::EchoReply(number) => {
                    all.moved = true;
                    if !self.tracer.is_mine(number) {
                        self.events.push_back(LinkEvent::Echo(index, number));
                    }
                }
                LinkOutput::Down(cause) => {
                    all.moved = true;
                    // What is queued (a reject, a goodbye) still goes out.
                    let bytes = connection.room(now);
                    upstream.handle_link(now, index, Input::CanTransmit { bytes });
                    while let LinkOutput::Transmit(bytes) = upstream.poll_link(now, index) {
                        self.tracer.frames(tap, || upstream.poll_report(index));
                        let _ = connection.send(now, bytes.into());
                    }
                    self.close_link(now, index, upstream, cause);
                    return None;
                }
                LinkOutput::Timeout(at) => {
                    all.timer = next_timer([all.timer, at]);
                    return None;
                }
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
            let why = format!("{}: {cause}", link.name());
            link.failed = link.failed.wrapping_add(1);
            if !passing && link.refusal.as_ref() == Some(&cause) {
                return;
            }
            link.refusal = (!passing).then_some(cause);
            LinkEvent::Failed(index, why, !passing)
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
                self.tracer.frames(Tap::link(index), || upstream.poll_report(index));
                let _ = connection.send(Instant::ZERO, bytes.into());
            }
            connection.linger();
        }
    }
}
