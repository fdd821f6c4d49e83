//! The device node: a listener, the link to one host, and what is attached.

mod news;
mod visitors;

use crate::attached::{Attached, Report};
use crate::clock::Clock;
use crate::limiter::Rest;
use crate::links::FRAME;
use crate::net::{Address, Carrier, Incoming};
use crate::poller::Poller;
use crate::trace::{Tapped, Tracer};
use crate::wanted::Wanted;
use news::News;
use std::io;
use std::os::fd::BorrowedFd;
use switch::congestion::Rate;
use switch::downstream::{Downstream, Output};
use switch::egress::Egress;
use switch::tunnel::{Cause, Input, Settings};
use visitors::Visitors;
use wire::frame::{HostAfter, MoveStatus, Moved};
use wire::trace::Tap;
use wire::{Duration, Instant};

/// What a device node tells its user.
#[derive(Clone, Debug)]
pub enum DeviceEvent {
    /// A host uses the device.
    HostUp(Address),
    /// The host is gone; the device has been reset.
    HostDown(Address, Cause),
    /// Somebody was turned away, or did not speak the protocol.
    TurnedAway(Address, Cause),
    /// Somebody asked for the device to belong to another group.
    Moved {
        /// Who.
        by: Address,
        /// The group; 0: any host.
        group: u16,
        /// What was answered.
        answer: Moved,
    },
    /// What was not told, for there was too much of it.
    More(Rest<Self>),
    /// Something about what is attached.
    Attached(String),
    /// What was counted, as asked for.
    Report(Report),
}

/// How long work already taken may go on after the node was asked to stop.
const DRAIN: Duration = Duration::from_ms(1_000);
/// A node that does not sleep looks for new connections this often: looking
/// costs as much as a small message.
const ACCEPT: Duration = Duration::from_ms(1);

/// See the module.
pub struct DeviceNode<A> {
    clock: Clock,
    poller: Poller,
    listener: Incoming,
    downstream: Downstream<Tapped<A>>,
    host: Option<(Carrier, bool)>,
    /// The group of that host.
    host_group: u16,
    /// The group of hosts that the device belongs to; 0: any.
    group: u16,
    /// What a move to another is answered.
    on_move: MoveStatus,
    visitors: Visitors,
    news: News,
    accept_at: Instant,
    settings: Settings,
    tracer: Tracer,
    egress: Egress,
}

impl<A: Attached> DeviceNode<A> {
    /// A node that listens and serves `attached`.
    ///
    /// # Errors
    /// If the kernel refuses to watch something.
    pub fn new(
        clock: Clock,
        poller: Poller,
        listener: impl Into<Incoming>,
        settings: Settings,
        mut attached: A,
    ) -> io::Result<Self> {
        let listener = listener.into();
        poller.add(&listener, false)?;
        attached.watch(&poller)?;
        attached.begin();
        let tracer = attached.tracer();
        let tapped = Tapped::new(attached, tracer.clone());
        Ok(Self {
            clock,
            poller,
            listener,
            downstream: Downstream::new(settings, tapped),
            host: None,
            host_group: 0,
            group: 0,
            on_move: MoveStatus::Fixed,
            visitors: Visitors::default(),
            news: News::default(),
            accept_at: Instant::ZERO,
            settings,
            tracer,
            egress: Egress::new(1, FRAME, None),
        })
    }

    /// The same for hosts of this group, any with 0, until it is moved to
    /// another. Without a group a node serves any host and cannot be moved.
    #[must_use]
    pub fn in_group(mut self, group: Option<u16>) -> Self {
        self.group = group.unwrap_or(0);
        self.on_move = if group.is_some() { MoveStatus::Done } else { MoveStatus::Fixed };
        self
    }

    /// The same as a switch node: it serves any host and cannot be moved.
    #[must_use]
    pub fn of_a_switch(mut self) -> Self {
        self.on_move = MoveStatus::Switch;
        self
    }

    /// The same with a limit to what goes out to its host.
    #[must_use]
    pub fn limited(mut self, rate: Option<Rate>) -> Self {
        self.egress = Egress::new(1, FRAME, rate);
        self
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As `getsockname(2)`.
    pub fn address(&self) -> io::Result<Address> {
        self.listener.address()
    }

    /// What is attached.
    pub fn attached_mut(&mut self) -> &mut A {
        &mut self.downstream.function_mut().inner
    }

    /// One look at everything that does not concern a host: before
    /// [`run`](Self::run), for what has to be ready first. Waits a little if
    /// nothing happened.
    ///
    /// # Errors
    /// As [`Attached::service`].
    pub fn prepare(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        let active = self.downstream.function_mut().service(now, &self.poller)?;
        if !active.moved {
            let soon = now + Duration::from_ms(20);
            self.poller
                .wait(&self.clock, switch::upstream::next_timer([active.timer, Some(soon)]))?;
        }
        Ok(())
    }

    /// Its clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Serves until `wanted` says otherwise; `wake` becomes readable when it
    /// does. Ends in order: commands under way are finished, the host is told,
    /// data are durable.
    ///
    /// # Errors
    /// If data could not be made durable, or the kernel refuses to wait.
    pub fn run(
        &mut self,
        wake: BorrowedFd<'_>,
        mut wanted: impl FnMut() -> Wanted,
        mut tell: impl FnMut(DeviceEvent),
    ) -> io::Result<()> {
        self.poller.add(wake, false)?;
        let ran = self.serve_until(wake, &mut wanted, &mut tell);
        self.news.tell_last(self.clock.now(), &mut tell);
        ran?;
        let closed = self.close();
        self.pass_on_news(&mut tell);
        closed
    }

    /// Serves until it is to stop and commands under way are finished.
    fn serve_until(
        &mut self,
        wake: BorrowedFd<'_>,
        wanted: &mut impl FnMut() -> Wanted,
        tell: &mut impl FnMut(DeviceEvent),
    ) -> io::Result<()> {
        loop {
            match wanted() {
                Wanted::Serve => {}
                Wanted::Report => tell(DeviceEvent::Report(self.report())),
                Wanted::Stop => break,
            }
            self.step(None, tell)?;
        }
        self.poller.remove(wake);
        let until = self.clock.now() + DRAIN;
        while !self.is_drained() && self.clock.now() < until {
            self.step(Some(until), tell)?;
        }
        Ok(())
    }

    /// What is attached has something to say.
    fn pass_on_news(&mut self, tell: &mut impl FnMut(DeviceEvent)) {
        while let Some(news) = self.downstream.function_mut().news() {
            tell(DeviceEvent::Attached(news));
        }
    }

    /// What was counted since the start, over all connections of its hosts.
    pub fn report(&self) -> Report {
        let (counters, errors) = (self.downstream.tunnel().counters(), self.downstream.errors());
        let mut lines = vec![("link".to_owned(), format!("{counters}; errors: {errors}"))];
        lines.extend(self.downstream.function().report());
        lines.push(("connections".to_owned(), self.news.report(self.visitors.silent())));
        lines
    }

    /// One look at everything, then a wait if nothing happened.
    fn step(
        &mut self,
        until: Option<Instant>,
        tell: &mut impl FnMut(DeviceEvent),
    ) -> io::Result<()> {
        let (moved, timer) = self.turn(tell)?;
        if moved {
            self.poller.busy(self.clock.now());
            return Ok(());
        }
        if self.poller.wait(&self.clock, switch::upstream::next_timer([timer, until]))? {
            self.accept_at = Instant::ZERO;
        }
        Ok(())
    }

    /// Whether the host has had everything that it asked for.
    fn is_drained(&mut self) -> bool {
        let now = self.clock.now();
        let Some((connection, _)) = &mut self.host else { return true };
        let sent = connection.room(now) > 0;
        let done = self.downstream.function_mut().drain();
        done && sent && self.downstream.tunnel().queue().is_empty()
    }

    /// One look at everything; whether anything happened, and when to look
    /// again.
    fn turn(&mut self, tell: &mut impl FnMut(DeviceEvent)) -> io::Result<(bool, Option<Instant>)> {
        let now = self.clock.now();
        let mut news = std::mem::take(&mut self.news);
        news.tell_rest(now, tell);
        let turned = self.look(now, &mut |event| news.pass(now, event, tell));
        let timer = news.timer();
        self.news = news;
        turned.map(|(moved, next)| (moved, switch::upstream::next_timer([next, timer])))
    }

    fn look(
        &mut self,
        now: Instant,
        tell: &mut impl FnMut(DeviceEvent),
    ) -> io::Result<(bool, Option<Instant>)> {
        let mut moved = self.carry(now, tell)?;
        let active = self.downstream.function_mut().service(now, &self.poller)?;
        moved |= active.moved;
        moved |= self.accept(now)?;
        let wanted = self.host.is_none();
        if let Some(mut host) = self.visitors.service(now, wanted, self.group, tell) {
            self.tracer.connected(Tap::UPLINK);
            self.downstream.report_frames(self.tracer.is_on());
            self.downstream.handle(now, Input::Connected);
            self.downstream.handle(now, Input::Received(host.greeting));
            self.tracer.frames(Tap::UPLINK, || self.downstream.poll_report());
            if self.downstream.tunnel().is_record_by_record() {
                host.connection.keep_records();
            }
            self.host_group = host.group;
            self.host = Some((host.connection, false));
            moved = true;
        }
        if let Some((group, by)) = self.visitors.wants_move() {
            let answer = self.move_to(now, group, by, tell)?;
            self.visitors.answer_move(answer);
            moved = true;
        }
        let link = match self.downstream.poll(now) {
            Output::Timeout(at) => at,
            // Something is there to be carried in the next turn.
            output => {
                self.output(now, output, tell)?;
                moved = true;
                None
            }
        };
        self.pass_on_news(tell);
        let carrier = self.host.as_ref().and_then(|(connection, _)| connection.timer());
        let visitors = self.visitors.timer();
        let held = self.egress.held_until(now);
        let timers = [active.timer, link, carrier, visitors, self.tracer.tick(now, !moved), held];
        Ok((moved, switch::upstream::next_timer(timers)))
    }

    /// The device is to belong to another group: a host that does not is left,
    /// and the function reset.
    fn move_to(
        &mut self,
        now: Instant,
        group: u16,
        by: Address,
        tell: &mut impl FnMut(DeviceEvent),
    ) -> io::Result<Moved> {
        let from = self.group;
        let status = self.on_move;
        let to = if status == MoveStatus::Done { group } else { from };
        let host = match self.host {
            None => HostAfter::None,
            Some(_) if visitors::belongs(self.host_group, to) => HostAfter::Stays,
            Some(_) => HostAfter::Disconnected,
        };
        let awaited = self.visitors.awaits(now, to);
        let answer = Moved { status, host, awaited, from, to };
        self.group = to;
        tell(DeviceEvent::Moved { by, group, answer });
        if host == HostAfter::Disconnected {
            self.leave(now);
            self.downstream.handle(now, Input::Disconnected);
            let output = match self.downstream.poll(now) {
                Output::Down(_) => Output::Down(Cause::Moved),
                output => output,
            };
            self.output(now, output, tell)?;
        }
        Ok(answer)
    }

    /// Tells the host that the link ends on purpose.
    fn leave(&mut self, now: Instant) {
        self.downstream.goodbye();
        let Some((connection, _)) = &mut self.host else { return };
        self.downstream.handle(now, Input::CanTransmit { bytes: 1 << 20 });
        while let Output::Transmit(bytes) = self.downstream.poll(now) {
            self.tracer.frames(Tap::UPLINK, || self.downstream.poll_report());
            if connection.send(now, bytes.into()).is_err() {
                break;
            }
        }
        connection.linger();
    }

    fn accept(&mut self, now: Instant) -> io::Result<bool> {
        if now < self.accept_at {
            return Ok(false);
        }
        self.accept_at = now + ACCEPT;
        let mut moved = false;
        while let Some(connection) = self.listener.accept(now) {
            self.poller.add(&connection, false)?;
            self.visitors.welcome(now, connection, self.settings);
            moved = true;
        }
        Ok(moved)
    }

    /// Bytes between the host's connection and the tunnel.
    fn carry(&mut self, now: Instant, tell: &mut impl FnMut(DeviceEvent)) -> io::Result<bool> {
        let Some((connection, _)) = &mut self.host else { return Ok(false) };
        let (downstream, tracer) = (&mut self.downstream, &self.tracer);
        let mut moved = false;
        let mut gone = connection.receive(now, |bytes| {
            moved = true;
            downstream.handle(now, Input::Received(bytes));
            tracer.frames(Tap::UPLINK, || downstream.poll_report());
        });
        moved |= connection.take_stirred();
        gone |= connection.flush(now).is_err();
        while let Some((connection, _)) = &mut self.host {
            let held = self.egress.is_held(now);
            let bytes = if held { 0 } else { connection.room(now) };
            self.downstream.handle(now, Input::CanTransmit { bytes });
            match self.downstream.poll(now) {
                Output::Timeout(_) => break,
                output => {
                    moved = true;
                    gone |= self.output(now, output, tell)?;
                }
            }
        }
        if gone && self.host.is_some() {
            self.downstream.handle(now, Input::Disconnected);
            let output = self.downstream.poll(now);
            self.output(now, output, tell)?;
            moved = true;
        }
        if let Some((connection, watched)) = &mut self.host
            && *watched != connection.is_full()
        {
            *watched = !*watched;
            self.poller.modify(&*connection, *watched)?;
        }
        Ok(moved)
    }

    /// Does what the tunnel wants; whether the connection turned out gone.
    fn output(
        &mut self,
        now: Instant,
        output: Output,
        tell: &mut impl FnMut(DeviceEvent),
    ) -> io::Result<bool> {
        match (output, &mut self.host) {
            (Output::Transmit(bytes), Some((connection, _))) => {
                self.tracer.frames(Tap::UPLINK, || self.downstream.poll_report());
                self.egress.sent(now, bytes.len());
                return Ok(connection.send(now, bytes.into()).is_err());
            }
            (Output::Up(_), Some((connection, _))) => tell(DeviceEvent::HostUp(connection.peer())),
            (Output::Down(cause), Some((connection, _))) => {
                self.tracer.down(Tap::UPLINK, &cause);
                tell(DeviceEvent::HostDown(connection.peer(), cause));
                self.downstream.handle(now, Input::Disconnected);
                self.host = None;
            }
            _ => {}
        }
        Ok(false)
    }

    /// Tells the host, makes data durable.
    fn close(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        self.leave(now);
        self.downstream.function_mut().close()
    }
}
