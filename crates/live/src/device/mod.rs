//! A shell around [`node::DeviceNode`]: a listener, its connections, and the
//! I/O of what is attached.

mod news;

use crate::Wanted;
use crate::attached::{Attached, Report};
use crate::clock::Clock;
use crate::limiter::Rest;
use crate::net::{Address, Carrier, Incoming};
use crate::poller::Poller;
use crate::trace::{Tapped, Tracer};
use bytes::Bytes;
use news::News;
use node::PathId;
use node::device::{Event, Output};
use node::path::Input;
use std::io;
use std::os::fd::BorrowedFd;
use switch::tunnel::{Cause, Settings};
use wire::frame::Moved;
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

/// One connection.
struct Path {
    id: PathId,
    carrier: Carrier,
    /// Whether it is watched for room, too.
    watched: bool,
}

/// What is inside the shell.
pub type Inner<A> = node::DeviceNode<Tapped<A, Tracer>>;

/// See the module.
pub struct DeviceNode<A> {
    clock: Clock,
    poller: Poller,
    listener: Incoming,
    paths: Vec<Path>,
    /// How many there have been.
    accepted: u64,
    node: Inner<A>,
    news: News,
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
        listener: impl Into<Incoming>,
        settings: Settings,
        mut attached: A,
    ) -> io::Result<Self> {
        let listener = listener.into();
        poller.add_seldom(&listener)?;
        attached.watch(&poller)?;
        attached.begin();
        let tracer = attached.tracer();
        let tapped = Tapped { inner: attached, watch: tracer.clone() };
        let mut node = node::DeviceNode::new(settings, tapped);
        node.report_frames(tracer.is_on());
        Ok(Self {
            clock,
            poller,
            listener,
            paths: Vec::new(),
            accepted: 0,
            node,
            news: News::default(),
            tracer,
        })
    }

    /// The same with a node that is changed like this.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(Inner<A>) -> Inner<A>) -> Self {
        self.node = change(self.node);
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
        &mut self.node.function_mut().inner
    }

    /// One look at everything that does not concern a host: before
    /// [`run`](Self::run), for what has to be ready first. Waits a little if
    /// nothing happened.
    ///
    /// # Errors
    /// As [`Attached::service`].
    pub fn prepare(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        self.poller.refresh(now)?;
        let active = self.node.function_mut().inner.service(now, &self.poller)?;
        self.poller.turn_over();
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
        self.poller.add_seldom(wake)?;
        let ran = self.serve_until(wake, &mut wanted, &mut tell);
        self.news.lines.tell_last(self.clock.now(), &mut tell);
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
        while let Some(news) = self.attached_mut().news() {
            tell(DeviceEvent::Attached(news));
        }
    }

    /// What was counted since the start, over all connections of its hosts.
    pub fn report(&self) -> Report {
        let (counters, errors) = (self.node.tunnel().counters(), self.node.errors());
        let mut lines = vec![("link".to_owned(), format!("{counters}; errors: {errors}"))];
        lines.extend(self.node.function().inner.report());
        lines.push(("connections".to_owned(), self.news.report(self.node.silent())));
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
        self.poller.wait(&self.clock, switch::upstream::next_timer([timer, until]))
    }

    /// Whether the host has had everything that it asked for.
    fn is_drained(&mut self) -> bool {
        self.node.link().is_none() || self.attached_mut().drain() && self.node.has_sent_all()
    }

    /// One look at everything without a wait, as [`run`](Self::run) does again
    /// and again; whether anything happened, and when to look again.
    ///
    /// # Errors
    /// As [`Attached::service`].
    pub fn turn(
        &mut self,
        tell: &mut impl FnMut(DeviceEvent),
    ) -> io::Result<(bool, Option<Instant>)> {
        let now = self.clock.now();
        let mut news = std::mem::take(&mut self.news);
        news.lines.tell_rest(now, tell);
        let turned = self.look(now, &mut |event| news.pass(now, event, tell));
        let timer = news.lines.timer();
        self.news = news;
        turned.map(|(moved, next)| (moved, switch::upstream::next_timer([next, timer])))
    }

    /// What has come goes in before the node is asked what it wants.
    fn look(
        &mut self,
        now: Instant,
        tell: &mut impl FnMut(DeviceEvent),
    ) -> io::Result<(bool, Option<Instant>)> {
        self.poller.refresh(now)?;
        let mut moved = self.accept(now)?;
        moved |= self.receive(now);
        let (acted, mut timer) = self.act(now, tell);
        let active = self.node.function_mut().inner.service(now, &self.poller)?;
        if active.moved {
            (_, timer) = self.act(now, tell);
        }
        self.poller.turn_over();
        moved |= active.moved | acted;
        self.pass_on_news(tell);
        self.watch_for_room()?;
        let carriers = self.paths.iter().map(|path| path.carrier.timer());
        let timers = [active.timer, timer, self.tracer.tick(now, !moved)];
        Ok((moved, switch::upstream::next_timer(carriers.chain(timers))))
    }

    fn accept(&mut self, now: Instant) -> io::Result<bool> {
        if !self.poller.take(&self.listener) {
            return Ok(false);
        }
        let mut moved = false;
        while let Some(carrier) = self.listener.accept(now) {
            self.poller.add(&carrier, false)?;
            let id = PathId(self.accepted);
            self.accepted += 1;
            self.node.handle(now, id, Input::Accepted { signals_close: carrier.signals_close() });
            self.paths.push(Path { id, carrier, watched: false });
            moved = true;
        }
        Ok(moved)
    }

    /// Takes what the connections have that are ready; whether there was
    /// anything.
    fn receive(&mut self, now: Instant) -> bool {
        let (node, tracer) = (&mut self.node, &self.tracer);
        let mut moved = false;
        for Path { id, carrier, .. } in &mut self.paths {
            let ready = self.poller.take(&*carrier);
            let mut gone = ready
                && carrier.receive(now, |bytes| {
                    moved = true;
                    node.handle(now, *id, Input::Received(bytes));
                    tracer.frames(Tap::UPLINK, || node.poll_report());
                });
            moved |= carrier.take_room_changed();
            gone |= carrier.flush(now).is_err();
            node.handle(now, *id, Input::Room(carrier.room(now)));
            if gone {
                moved = true;
                node.handle(now, *id, Input::Gone);
            }
        }
        moved
    }

    /// Does what the node wants; whether it wanted anything, and when to ask
    /// it again.
    fn act(&mut self, now: Instant, tell: &mut impl FnMut(DeviceEvent)) -> (bool, Option<Instant>) {
        let mut acted = false;
        loop {
            match self.node.poll(now) {
                Output::Transmit { path, bytes } => self.transmit(now, path, bytes),
                Output::Close { path, linger } => {
                    let mut closed = self.paths.swap_remove(self.index(path));
                    if linger {
                        closed.carrier.linger();
                    }
                }
                Output::Linked(path) => {
                    self.tracer.connected(Tap::UPLINK);
                    self.record();
                    if self.node.tunnel().sends_records() {
                        let index = self.index(path);
                        self.paths[index].carrier.send_as_records();
                    }
                }
                Output::Event(event) => tell(self.named(event)),
                Output::Timeout(at) => return (acted, at),
            }
            acted = true;
        }
    }

    /// Notes what the link's end did.
    fn record(&mut self) {
        self.tracer.frames(Tap::UPLINK, || self.node.poll_report());
    }

    fn transmit(&mut self, now: Instant, path: PathId, bytes: Bytes) {
        if self.node.link() == Some(path) {
            self.record();
        }
        let index = self.index(path);
        let carrier = &mut self.paths[index].carrier;
        let next = match carrier.send(now, bytes) {
            Ok(()) => Input::Room(carrier.room(now)),
            Err(_) => Input::Gone,
        };
        self.node.handle(now, path, next);
    }

    /// The event with the peer's name.
    fn named(&self, event: Event) -> DeviceEvent {
        let peer = |path| self.paths[self.index(path)].carrier.peer();
        match event {
            Event::HostUp(path) => DeviceEvent::HostUp(peer(path)),
            Event::HostDown(path, cause) => {
                self.tracer.down(Tap::UPLINK, &cause);
                DeviceEvent::HostDown(peer(path), cause)
            }
            Event::TurnedAway(path, cause) => DeviceEvent::TurnedAway(peer(path), cause),
            Event::Moved { by, group, answer } => {
                DeviceEvent::Moved { by: peer(by), group, answer }
            }
        }
    }

    /// The place of a path that the node has not closed.
    fn index(&self, path: PathId) -> usize {
        let index = self.paths.iter().position(|open| open.id == path);
        index.expect("the node names open paths only")
    }

    /// Watches connections for room as long as they have none.
    fn watch_for_room(&mut self) -> io::Result<()> {
        for path in &mut self.paths {
            if path.watched != path.carrier.is_full() {
                path.watched = !path.watched;
                self.poller.modify(&path.carrier, path.watched)?;
            }
        }
        Ok(())
    }

    /// Tells the host, makes data durable.
    fn close(&mut self) -> io::Result<()> {
        self.node.leave();
        let _ = self.act(self.clock.now(), &mut |_| {});
        self.attached_mut().close()
    }
}
