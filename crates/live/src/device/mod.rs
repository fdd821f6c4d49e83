//! The device node: a listener, the link to one host, and what is attached.

mod visitors;

use crate::attached::{Attached, Report};
use crate::clock::Clock;
use crate::links::receive;
use crate::net::{Connection, Listener};
use crate::poller::Poller;
use crate::trace::{Tapped, Tracer};
use crate::wanted::Wanted;
use bytes::Bytes;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use switch::downstream::{Downstream, Output};
use switch::tunnel::{Cause, Input, Settings};
use visitors::Visitors;
use wire::trace::Tap;
use wire::{Duration, Instant};

/// What a device node tells its user.
#[derive(Clone, Debug)]
pub enum DeviceEvent {
    /// A host uses the device.
    HostUp(SocketAddr),
    /// The host is gone; the device has been reset.
    HostDown(SocketAddr, Cause),
    /// Somebody was turned away, or did not speak the protocol.
    TurnedAway(SocketAddr, Cause),
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
    listener: Listener,
    downstream: Downstream<Tapped<A>>,
    host: Option<(Connection, bool)>,
    visitors: Visitors,
    accept_at: Instant,
    settings: Settings,
    tracer: Tracer,
}

impl<A: Attached> DeviceNode<A> {
    /// A node that listens and serves `attached`.
    ///
    /// # Errors
    /// If the kernel refuses to watch something.
    pub fn new(
        clock: Clock,
        poller: Poller,
        listener: Listener,
        settings: Settings,
        attached: A,
    ) -> io::Result<Self> {
        poller.add(&listener, false)?;
        attached.watch(&poller)?;
        let tracer = attached.tracer();
        let tapped = Tapped::new(attached, tracer.clone());
        Ok(Self {
            clock,
            poller,
            listener,
            downstream: Downstream::new(settings, tapped),
            host: None,
            visitors: Visitors::default(),
            accept_at: Instant::ZERO,
            settings,
            tracer,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As `getsockname(2)`.
    pub fn address(&self) -> io::Result<SocketAddr> {
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
        loop {
            match wanted() {
                Wanted::Serve => {}
                Wanted::Report => tell(DeviceEvent::Report(self.report())),
                Wanted::Stop => break,
            }
            self.step(None, &mut tell)?;
        }
        self.poller.remove(wake);
        let until = self.clock.now() + DRAIN;
        while !self.is_drained() && self.clock.now() < until {
            self.step(Some(until), &mut tell)?;
        }
        self.close()
    }

    /// What was counted: of the link since its host came, of the rest since
    /// the start.
    pub fn report(&self) -> Report {
        let (counters, errors) = (self.downstream.tunnel().counters(), self.downstream.errors());
        let mut lines = vec![("link".to_owned(), format!("{counters}; errors: {errors}"))];
        lines.extend(self.downstream.function().report());
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
        let Some((connection, _)) = &mut self.host else { return true };
        let sent = connection.room() > 0;
        let done = self.downstream.function_mut().drain();
        done && sent && self.downstream.tunnel().queue().is_empty()
    }

    /// One look at everything.
    fn turn(&mut self, tell: &mut impl FnMut(DeviceEvent)) -> io::Result<(bool, Option<Instant>)> {
        let now = self.clock.now();
        let mut moved = self.carry(now, tell)?;
        let active = self.downstream.function_mut().service(now, &self.poller)?;
        moved |= active.moved;
        moved |= self.accept(now)?;
        if let Some((connection, greeting)) = self.visitors.service(now, self.host.is_none(), tell)
        {
            self.tracer.connected(Tap::UPLINK);
            self.tracer.stream(Tap::UPLINK, false, &greeting);
            self.downstream.handle(now, Input::Connected);
            self.downstream.handle(now, Input::Received(greeting));
            self.host = Some((connection, false));
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
        while let Some(news) = self.downstream.function_mut().news() {
            tell(DeviceEvent::Attached(news));
        }
        let timers = [active.timer, link, self.visitors.timer(), self.tracer.tick(now, !moved)];
        Ok((moved, switch::upstream::next_timer(timers)))
    }

    fn accept(&mut self, now: Instant) -> io::Result<bool> {
        if now < self.accept_at {
            return Ok(false);
        }
        self.accept_at = now + ACCEPT;
        let mut moved = false;
        while let Some(connection) = self.listener.accept() {
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
        let mut gone = receive(connection, |bytes| {
            moved = true;
            tracer.stream(Tap::UPLINK, false, &bytes);
            downstream.handle(now, Input::Received(bytes));
        });
        gone |= connection.flush().is_err();
        while let Some((connection, _)) = &mut self.host {
            let bytes = connection.room();
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
                let bytes = Bytes::from(bytes);
                self.tracer.stream(Tap::UPLINK, true, &bytes);
                return Ok(connection.send(bytes).is_err());
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
        self.downstream.goodbye();
        if let Some((connection, _)) = &mut self.host {
            self.downstream.handle(now, Input::CanTransmit { bytes: 1 << 20 });
            while let Output::Transmit(bytes) = self.downstream.poll(now) {
                let bytes = Bytes::from(bytes);
                self.tracer.stream(Tap::UPLINK, true, &bytes);
                if connection.send(bytes).is_err() {
                    break;
                }
            }
        }
        self.downstream.function_mut().close()
    }
}
