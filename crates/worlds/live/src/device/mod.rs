//! The I/O around [`node::DeviceNode`]: listeners, their connections, and the I/O of the
//! attached function.

mod accept;
mod connections;
mod event_limits;
mod named;
mod serve;
mod session;

use crate::attached::{Attached, Notice};
use crate::budget::Budget;
use crate::clock::Clock;
use crate::limiter::Suppressed;
use crate::links::room_after;
use crate::net::{Carrier, CarrierListener, Remote};
use crate::poller::Poller;
use crate::status::{LinkStatus, PeerStatus, Report, Status, counts};
use crate::trace::{Tapped, Tracer};
use accept::{Read, read};
use bytes::Bytes;
use connections::Connections;
pub use connections::FurtherConnection;
use event_limits::EventLimits;
use node::PathId;
use node::device::{Output, SavedNode};
use node::faults::{Condition, Fault, FaultKind, Faults};
use node::path::Input;
pub use serve::serve;
pub use session::NodeSession;
use std::io;
use switch::tunnel::{Cause, Settings};
use wire::frame::Moved;
use wire::trace::Tap;
use wire::{Duration, Instant};

/// An event that a device node reports to its user.
#[derive(Clone, Debug)]
pub enum DeviceEvent {
    /// A peer has proved its identity.
    Authenticated(Remote),
    /// A host uses the device.
    HostUp(Remote),
    /// The connection to the host is lost. The link stays up and waits for another connection.
    HostInterrupted(Remote, Cause),
    /// The host goes on over another connection.
    HostResumed(Remote),
    /// One of the host's paths is lost; another one carries the link.
    HostPathLost(Remote, Cause),
    /// A further path of the host.
    HostPathUp(Remote),
    /// This path has taken over from another one.
    HostFailedOver(Remote),
    /// The host is gone; the device has been reset. `None`: the host of an earlier process, which has
    /// not connected again.
    HostDown(Option<Remote>, Cause),
    /// A peer was rejected, or did not use the protocol.
    TurnedAway(Remote, Cause),
    /// A peer requested to move the device to another group.
    Moved {
        /// The peer.
        by: Remote,
        /// The group; 0 admits any host.
        group: u16,
        /// The answer.
        answer: Moved,
    },
    /// A fault began to act.
    Fault(Fault),
    /// A count of events that were not reported one by one.
    Suppressed(Suppressed<Self>),
    /// A message of the attached function.
    Attached(Notice),
    /// The counters, as requested.
    Report(Report),
    /// The state, for the request with this number.
    Status(u64, Box<Status>),
}

/// Connections other than the host's may take 1/`SHARE` of the thread's time.
const SHARE: u64 = 5;
/// Charged time per measured time. Only receiving is measured; sending the answers costs up to four
/// times as much again.
const FACTOR: u64 = 5;
/// The most charged time at once.
const BURST: Duration = Duration::from_ms(50);
/// The shortest pause, because its begin and end cost system calls.
const PAUSE: Duration = Duration::from_ms(4);

/// One connection.
struct Path {
    id: PathId,
    carrier: Carrier,
    /// Whether nothing was read; TLS may have decrypted bytes before.
    fresh: bool,
    /// Room at the last check.
    room: usize,
    /// Whether the connection is also watched for output.
    watched: bool,
}

/// The state machine inside.
pub type Inner<A> = node::DeviceNode<Tapped<A, Tracer>>;

/// A device node: listeners, their connections, and the attached function.
pub struct DeviceNode<A> {
    clock: Clock,
    poller: Poller,
    listeners: Vec<CarrierListener>,
    paths: Vec<Path>,
    /// Connections accepted so far.
    accepted: u64,
    /// The host, for messages after the loss of its connection.
    last_host: Option<Remote>,
    node: Inner<A>,
    limits: EventLimits,
    /// The work that connections other than the host's may cause.
    budget: Budget,
    /// Until then neither the listeners nor connections other than the host's are watched.
    paused: Option<Instant>,
    tracer: Tracer,
    faults: Faults,
    /// The condition that faults leave, and when it may change.
    condition: (Condition, Option<Instant>),
    /// Watches only the descriptor that wakes the node, while a fault stops the node; `None`
    /// without faults.
    idle: Option<Poller>,
    /// The time until which no work is due unless a descriptor is ready; `None` after an event that
    /// may lead to more work.
    settled: Option<Settled>,
    /// Where the session is stored, if another process may go on with it.
    session: Option<NodeSession>,
    /// Frames that leave when the session is stored.
    outgoing: Vec<(PathId, Bytes)>,
    /// The nodes of the link's other connections.
    connections: Connections,
    /// The name of the link, if it has several connections.
    link: Option<u128>,
    /// The end of the lease that the function has.
    lease: Option<Instant>,
}

/// No work is due until this time.
struct Settled(Option<Instant>);

impl<A: Attached> DeviceNode<A> {
    /// A node that listens and serves `attached`.
    ///
    /// # Errors
    /// If the kernel refuses to watch a descriptor.
    pub fn new(
        clock: Clock,
        poller: Poller,
        listener: impl Into<CarrierListener>,
        settings: Settings,
        attached: A,
    ) -> io::Result<Self> {
        Self::over(clock, poller, vec![listener.into()], settings, attached)
    }

    fn over(
        clock: Clock,
        poller: Poller,
        listeners: Vec<CarrierListener>,
        settings: Settings,
        mut attached: A,
    ) -> io::Result<Self> {
        listeners.iter().try_for_each(|listener| poller.add_without_spin(listener))?;
        attached.watch(&poller)?;
        attached.begin();
        let tracer = attached.tracer();
        let tapped = Tapped { inner: attached, observer: tracer.clone() };
        let mut node = node::DeviceNode::new(settings, tapped);
        node.report_frames(tracer.is_on());
        Ok(Self {
            clock,
            poller,
            listeners,
            paths: Vec::new(),
            accepted: 0,
            last_host: None,
            node,
            limits: EventLimits::default(),
            budget: Budget::new(SHARE, BURST),
            paused: None,
            tracer,
            faults: Faults::default(),
            condition: Default::default(),
            idle: None,
            settled: None,
            session: None,
            outgoing: Vec::new(),
            connections: Connections::One,
            link: None,
            lease: None,
        })
    }

    /// Stores the node's session in `session`. With `goes_on`, the node continues the session of an
    /// earlier process.
    ///
    /// # Errors
    /// If the earlier session is damaged.
    pub fn with_session(
        mut self,
        session: NodeSession,
        goes_on: Option<SavedNode>,
    ) -> io::Result<Self> {
        if let Some(saved) = goes_on {
            session.restore(self.clock.now(), &mut self.node, saved)?;
        }
        self.session = Some(session);
        Ok(self)
    }

    /// Adds faults of the node and its link.
    #[must_use]
    pub fn with_faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// Changes the state machine with `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(Inner<A>) -> Inner<A>) -> Self {
        self.node = change(self.node);
        self
    }

    /// The attached function.
    pub fn attached_mut(&mut self) -> &mut A {
        self.settled = None;
        &mut self.node.function_mut().inner
    }

    /// Makes one turn without hosts, before [`run`](Self::run), for an attached function that must
    /// be ready first. Waits a little if nothing happened.
    ///
    /// # Errors
    /// As [`Attached::service`].
    pub fn prepare(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        self.poller.refresh(now)?;
        let active = self.node.function_mut().inner.service(now, &self.poller)?;
        self.poller.end_turn();
        if !active.moved {
            let soon = now + Duration::from_ms(20);
            self.poller.wait(&self.clock, wire::earliest([active.timer, Some(soon)]))?;
        }
        Ok(())
    }

    /// The clock of the node.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Reports messages of the attached function.
    fn forward_notices(&mut self, emit: &mut impl FnMut(DeviceEvent)) {
        while let Some(notice) = self.attached_mut().take_notice() {
            emit(DeviceEvent::Attached(notice));
        }
    }

    /// The counters since the start, over all connections of its hosts.
    pub fn report(&self) -> Report {
        let gates = self.listeners.iter().filter_map(CarrierListener::gate);
        self.status().report(gates)
    }

    /// The state of the node.
    pub fn status(&self) -> Status {
        let (now, tunnel) = (self.clock.now(), self.node.tunnel());
        let mut link = LinkStatus::new(now, "uplink".to_owned(), tunnel);
        link.errors = counts(self.node.errors().list());
        link.group = Some(self.node.group());
        let peer =
            |host: &Remote| PeerStatus::new(host.address.to_string(), host.identity.as_ref());
        link.peer = self.last_host.as_ref().map(peer);
        link.push = counts(self.node.store().counters().list());
        link.rejected = counts(self.limits.counts(self.node.without_hello()));
        let carrier = self.paths.iter().find(|path| self.node.carries(path.id));
        carrier.iter().for_each(|path| link.connected_by(&path.carrier));
        let mut status = Status::default();
        self.node.function().inner.add_status(now, &mut link, &mut status);
        status.links.insert(0, link);
        status
    }

    /// One turn without a wait, as [`run`](Self::run) repeats it; returns whether anything
    /// happened, and when to call again.
    ///
    /// # Errors
    /// As [`Attached::service`].
    pub fn turn(
        &mut self,
        emit: &mut impl FnMut(DeviceEvent),
    ) -> io::Result<(bool, Option<Instant>)> {
        let now = self.clock.now();
        let mut limits = std::mem::take(&mut self.limits);
        limits.events.report_suppressed(now, emit);
        let turned = self.process(now, &mut |event| limits.pass(now, event, emit));
        let timer = limits.events.timer();
        self.limits = limits;
        turned.map(|(moved, next)| (moved, wire::earliest([next, timer, self.condition.1])))
    }

    /// Updates the condition of the node, and reports faults that begin.
    fn update_condition(&mut self, now: Instant, emit: &mut impl FnMut(DeviceEvent)) {
        let before = std::mem::replace(&mut self.condition, self.faults.condition(now));
        if before != self.condition {
            self.settled = None;
        }
        while let Some((_, fault)) = self.faults.poll_begun() {
            let tap = if fault.kind == FaultKind::Stop { Tap::FUNCTION } else { Tap::UPLINK };
            self.tracer.fault(tap, &fault);
            emit(DeviceEvent::Fault(fault));
        }
    }

    /// One turn: input goes to the node before its output is polled.
    fn process(
        &mut self,
        now: Instant,
        emit: &mut impl FnMut(DeviceEvent),
    ) -> io::Result<(bool, Option<Instant>)> {
        self.update_condition(now, emit);
        if self.condition.0 == Condition::Stopped {
            return Ok((false, self.tracer.tick(now, true)));
        }
        self.resume(now)?;
        self.poller.refresh(now)?;
        let mut moved = false;
        moved |= self.handle_messages(now)?;
        let has_room = self.receive(now, &mut moved);
        // New connections come last, so that a flood of them leaves time for the others.
        moved |= self.accept(now, emit)?;
        if self.condition.0 == Condition::LinkDown {
            for path in &self.paths {
                self.node.handle(now, path.id, Input::Closed);
            }
        }
        self.pause(now);
        if let Some(Settled(until)) = &self.settled
            && !moved
            && !has_room
            && !self.poller.has_ready()
            && until.is_none_or(|at| at > now)
        {
            self.poller.end_turn();
            let until = wire::earliest([*until, self.paused]);
            return Ok((false, wire::earliest([until, self.tracer.tick(now, true)])));
        }
        self.pass_lease();
        let (acted, mut timer) = self.perform(now, emit)?;
        let active = self.node.function_mut().inner.service(now, &self.poller)?;
        if active.moved {
            (_, timer) = self.perform(now, emit)?;
        }
        self.poller.end_turn();
        moved |= active.moved | acted;
        self.forward_notices(emit);
        self.watch_for_room()?;
        let carriers = self.paths.iter().map(|path| path.carrier.timer());
        let until = wire::earliest(carriers.chain([active.timer, timer, self.paused]));
        self.settled = (!active.moved).then_some(Settled(until));
        Ok((moved, wire::earliest([until, self.tracer.tick(now, !moved)])))
    }

    /// Passes a change of the lease to the function.
    fn pass_lease(&mut self) {
        let lease = self.node.tunnel().lease();
        if let Some(until) = lease.filter(|_| lease != self.lease) {
            self.lease = lease;
            self.node.function_mut().inner.set_lease(until);
        }
    }

    /// Reads from the ready connections; sets `moved` if there was input. Returns whether the room
    /// of a connection changed.
    fn receive(&mut self, now: Instant, moved: &mut bool) -> bool {
        let (node, tracer, budget) = (&mut self.node, &self.tracer, &mut self.budget);
        let mut other_room = false;
        for Path { id, carrier, fresh, room, .. } in &mut self.paths {
            // Without a host there is nobody to protect, and `farlane ping` measures undisturbed.
            let is_limited = node.link().is_some() && !node.carries(*id);
            let may_read = !is_limited || budget.is_left(now);
            let ready = may_read && self.poller.take_ready(&*carrier) | std::mem::take(fresh);
            let start = (ready && is_limited).then(|| self.clock.now());
            let read = if ready { read(now, *id, carrier, node, tracer) } else { Read::default() };
            let mut gone = read.gone;
            *moved |= read.any;
            if let Some(start) = start {
                budget.charge((self.clock.now() - start).as_ns() * FACTOR);
            }
            *moved |= carrier.take_room_changed();
            gone |= carrier.flush(now).is_err();
            let before = std::mem::replace(room, carrier.room(now));
            other_room |= before != *room;
            node.handle(now, *id, Input::Room(*room));
            if gone {
                *moved = true;
                // The session of a host whose key was withdrawn ends.
                let input = match carrier.is_refused() {
                    true => Input::Refused(carrier.take_failure().unwrap_or_default()),
                    false => Input::Closed,
                };
                node.handle(now, *id, input);
            }
        }
        other_room
    }

    /// Executes the node's actions; returns whether there was any, and when to poll again.
    fn perform(
        &mut self,
        now: Instant,
        emit: &mut impl FnMut(DeviceEvent),
    ) -> io::Result<(bool, Option<Instant>)> {
        let mut acted = false;
        loop {
            match self.node.poll(now) {
                Output::Transmit { path, bytes } => match self.session {
                    None => self.transmit(now, path, bytes),
                    Some(_) => self.outgoing.push((path, bytes)),
                },
                Output::Close { path, linger } => {
                    self.release(now)?;
                    let mut closed = self.paths.swap_remove(self.index(path));
                    if linger {
                        closed.carrier.linger();
                    }
                }
                Output::Linked { path, goes_on } => {
                    // A further path changes nothing that the trace shows.
                    if self.node.tunnel().session().is_none() || self.node.link() == Some(path) {
                        self.tracer.connected(Tap::UPLINK, goes_on);
                    }
                    self.tracer.frames(Tap::UPLINK, || self.node.poll_report());
                    if !goes_on {
                        self.session_begun();
                    }
                    let index = self.index(path);
                    let Path { carrier, watched, .. } = &mut self.paths[index];
                    carrier.limit_reads(None);
                    if !goes_on {
                        let name = carrier.identity().map(|host| host.name.clone());
                        self.node.function_mut().inner.bind_host(name.as_deref());
                    }
                    if self.paused.is_some() {
                        // If this fails, the link is lost and the host connects again.
                        let _ = self.poller.add(&*carrier, false);
                        *watched = false;
                    }
                    if self.node.tunnel().sends_records() {
                        carrier.send_as_records();
                    }
                }
                Output::Further { path, number, greeting } => {
                    self.hand_over(path, number, greeting);
                }
                Output::Event(event) => {
                    let event = self.named(event);
                    if matches!(event, DeviceEvent::HostDown(..)) {
                        self.session_ended();
                    }
                    emit(event);
                }
                Output::Timeout(_) if self.must_save() => self.release(now)?,
                Output::Timeout(at) => {
                    if self.node.tunnel().session().is_none()
                        && let Some(session) = &mut self.session
                    {
                        session.clear();
                    }
                    return Ok((acted, at));
                }
            }
            acted = true;
        }
    }

    /// Whether something waits until the session is stored.
    fn must_save(&self) -> bool {
        let waits = || self.node.function().inner.waits_for_save();
        self.session.is_some() && (!self.outgoing.is_empty() || waits())
    }

    /// Stores the session, then sends what was held back for that.
    fn release(&mut self, now: Instant) -> io::Result<()> {
        if let Some(session) = &mut self.session {
            let waits = self.node.function().inner.waits_for_save();
            session.store(&mut self.node)?;
            if waits {
                // It goes on in the next poll.
                self.node.function_mut();
            }
        }
        for (path, bytes) in std::mem::take(&mut self.outgoing) {
            self.transmit(now, path, bytes);
        }
        Ok(())
    }

    fn transmit(&mut self, now: Instant, path: PathId, bytes: Bytes) {
        if self.node.carries(path) {
            self.tracer.frames(Tap::UPLINK, || self.node.poll_report());
        }
        let index = self.index(path);
        let Path { carrier, room, .. } = &mut self.paths[index];
        let sent = carrier.send(now, bytes);
        if sent.is_err() {
            // What arrived before says more than the error, such as a Goodbye.
            read(now, path, carrier, &mut self.node, &self.tracer);
        }
        let input = room_after(now, carrier, sent);
        if let Input::Room(bytes) = input {
            *room = bytes;
        }
        self.node.handle(now, path, input);
    }

    /// The index of a path that the node has not closed.
    fn index(&self, path: PathId) -> usize {
        let index = self.paths.iter().position(|open| open.id == path);
        index.expect("the node names open paths only")
    }

    /// Stops watching the listeners and connections other than the host's once their budget is used
    /// up: epoll would report them again at once.
    fn pause(&mut self, now: Instant) {
        if self.paused.is_some() || self.budget.is_left(now) {
            return;
        }
        self.paused = Some(self.budget.resumes() + PAUSE);
        self.settled = None;
        self.listeners.iter().for_each(|listener| self.poller.remove(listener));
        for path in self.paths.iter().filter(|path| !self.node.carries(path.id)) {
            self.poller.remove(&path.carrier);
        }
    }

    /// Watches all connections again after a pause.
    fn resume(&mut self, now: Instant) -> io::Result<()> {
        if self.paused.is_none_or(|until| now < until) {
            return Ok(());
        }
        self.paused = None;
        for listener in &self.listeners {
            self.poller.add_without_spin(listener)?;
        }
        for path in self.paths.iter_mut().filter(|path| !self.node.carries(path.id)) {
            path.watched = false;
            self.poller.add(&path.carrier, false)?;
        }
        Ok(())
    }

    /// Watches full connections for output.
    fn watch_for_room(&mut self) -> io::Result<()> {
        for path in &mut self.paths {
            let is_watched = self.paused.is_none() || self.node.carries(path.id);
            if is_watched && path.watched != path.carrier.is_full() {
                path.watched = !path.watched;
                self.poller.modify(&path.carrier, path.watched)?;
            }
        }
        Ok(())
    }
}
