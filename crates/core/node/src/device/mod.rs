//! The device node: the link to one host, the function below it, and other connections: pending,
//! probes or rejected.

mod pending_connections;
mod saved;
#[cfg(test)]
mod tests;

use crate::path::{self, PathId};
use crate::push::Completions;
use bytes::Bytes;
use pcie::{Errors, Function};
use pending_connections::{AcceptedHost, Occupant, PendingConnections, Served, belongs, link_of};
pub use saved::SavedNode;
use std::collections::VecDeque;
use std::sync::Arc;
use switch::congestion::Rate;
use switch::downstream::{self, Downstream};
use switch::egress::Egress;
use switch::push_store::Store;
use switch::tunnel::{Cause, Input, MAX_PATHS, Report, Settings, Tunnel};
use wire::Instant;
use wire::earliest;
use wire::frame::{self, HostAfter, LinkConnection, MoveStatus, Moved};

/// An action for the owner of a device node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Write bytes to a path, which has room for them.
    Transmit {
        /// The path.
        path: PathId,
        /// Whole frames.
        bytes: Bytes,
    },
    /// Close this path after sending what was transmitted. Every accepted path gets this output,
    /// even if it is already closed. No later output is for this path.
    Close {
        /// The path.
        path: PathId,
        /// Whether to wait until all transmitted bytes have arrived, because the last frame is a
        /// Goodbye.
        linger: bool,
    },
    /// This path carries the link from now on, with a new session or the former one.
    Linked {
        /// The path.
        path: PathId,
        /// Whether the session of the former path goes on.
        goes_on: bool,
    },
    /// This path is a further connection of the host's link. Pass it to the node of this connection
    /// as a new path, with the bytes received so far. No later output is for this path.
    Further {
        /// The path.
        path: PathId,
        /// The number of the connection, from 1.
        number: u16,
        /// The bytes received over the path.
        greeting: Bytes,
    },
    /// Report this to the user.
    Event(Event),
    /// Nothing more now; poll after the next input (also room), or at this time.
    Timeout(Option<Instant>),
}

/// An event for the user of a device node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A host uses the device.
    HostUp(PathId),
    /// The path to the host is lost. The link stays up, and waits for another path.
    HostInterrupted(PathId, Cause),
    /// The session of the host goes on over this path.
    HostResumed(PathId),
    /// One of the host's paths is lost; another one carries the link.
    HostPathLost(PathId, Cause),
    /// A further path of the host carries the link.
    HostPathUp(PathId),
    /// This path of the host has taken over from a silent or lost one.
    HostFailedOver(PathId),
    /// The link to the host went down; the device has been reset. Has the path, if there was one.
    HostDown(Option<PathId>, Cause),
    /// A peer was rejected, or did not speak the protocol.
    Rejected(PathId, Cause),
    /// A probe requested to move the device to another group.
    Moved {
        /// The path of the probe.
        by: PathId,
        /// The group; 0: any host.
        group: u16,
        /// The answer.
        answer: Moved,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Disconnect {
    /// The host may no longer use the device.
    Ended(Cause),
    /// The node shuts down.
    Shutdown,
}

/// The host that uses the device.
#[derive(Debug)]
struct Host {
    /// The paths that carry the link, by their number in the tunnel; none while its session is
    /// interrupted.
    paths: [Option<HostPath>; MAX_PATHS],
    /// The name of the host, if it has proved its identity.
    peer: Option<Arc<str>>,
    group: u16,
    /// The name of the link, if it has several connections.
    link: Option<u128>,
    /// Set when the link ends once its tunnel is idle.
    end: Option<Disconnect>,
}

/// One path of the host.
#[derive(Debug)]
struct HostPath {
    id: PathId,
    room: usize,
    closed: bool,
}

impl Host {
    fn has_path(&self) -> bool {
        self.paths.iter().any(Option::is_some)
    }
}

/// A device node: a downstream port with the function `F` below it, used by at
/// most one host at a time.
#[derive(Debug)]
pub struct DeviceNode<F> {
    downstream: Downstream<F, Completions>,
    host: Option<Host>,
    /// The group of hosts that the device belongs to; 0: any.
    group: u16,
    /// The answer to a Move request.
    move_status: MoveStatus,
    pending: PendingConnections,
    egress: Egress,
    frame: usize,
    /// The connections that a link can have.
    connections: Option<LinkConnection>,
    shutting_down: bool,
    outputs: VecDeque<Output>,
}

impl<F: Function> DeviceNode<F> {
    /// A node that serves `function` to any host. The device cannot be moved.
    pub fn new(settings: Settings, function: F) -> Self {
        let frame = settings.max_frame + frame::HEADER;
        Self {
            downstream: Downstream::new(settings, function, Completions::default()),
            host: None,
            group: 0,
            move_status: MoveStatus::Fixed,
            pending: PendingConnections::new(settings),
            egress: Egress::new(1, frame, None),
            frame,
            connections: settings.connection,
            shutting_down: false,
            outputs: VecDeque::new(),
        }
    }

    /// The group of hosts that may attach; 0: any.
    pub fn group(&self) -> u16 {
        self.group
    }

    /// Restricts the node to hosts of this group (0: any), until the device is moved. With `None`,
    /// the node serves any host and the device cannot be moved.
    #[must_use]
    pub fn in_group(mut self, group: Option<u16>) -> Self {
        self.group = group.unwrap_or(0);
        self.move_status = if group.is_some() { MoveStatus::Done } else { MoveStatus::Fixed };
        self
    }

    /// Adapts the node to a switch as its function: it serves any host and cannot be moved.
    #[must_use]
    pub fn for_switch(mut self) -> Self {
        self.move_status = MoveStatus::Switch;
        self
    }

    /// Sets a rate limit for frames to the host.
    #[must_use]
    pub fn with_rate_limit(mut self, rate: Option<Rate>) -> Self {
        self.egress = Egress::new(1, self.frame, rate);
        self
    }

    /// Changes the rate limit for frames to the host.
    pub fn set_rate_limit(&mut self, rate: Option<Rate>) {
        self.egress.set_limit(rate);
    }

    /// The first of the paths that carry the link.
    pub fn link(&self) -> Option<PathId> {
        Some(self.host.as_ref()?.paths.iter().flatten().next()?.id)
    }

    /// The name of the host's link, if the link has several connections.
    pub fn link_name(&self) -> Option<u128> {
        self.host.as_ref()?.link
    }

    /// The path that has this number in the tunnel.
    pub fn path(&self, number: usize) -> Option<PathId> {
        Some(self.host.as_ref()?.paths.get(number)?.as_ref()?.id)
    }

    /// Whether a path carries the link.
    pub fn carries(&self, path: PathId) -> bool {
        let mut paths = self.host.iter().flat_map(|host| host.paths.iter().flatten());
        paths.any(|own| own.id == path)
    }

    /// Whether nothing waits to be sent to the host.
    pub fn has_sent_all(&self) -> bool {
        let Some(host) = &self.host else { return true };
        let room = host.paths.iter().flatten().any(|path| path.room > 0);
        !host.has_path() || room && self.tunnel().queue().is_empty()
    }

    /// When the rate limit admits the next frame; `None` if it holds back no frame.
    pub fn rate_limited_until(&self, now: Instant) -> Option<Instant> {
        self.egress.rate_limited_until(now)
    }

    /// Number of connections that closed, or were closed, without a Hello.
    pub fn without_hello(&self) -> u64 {
        self.pending.without_hello()
    }

    /// The link's end.
    pub fn tunnel(&self) -> &Tunnel {
        &self.downstream.tunnel
    }

    /// Errors counted on the links so far.
    pub fn errors(&self) -> &Errors {
        &self.downstream.errors
    }

    /// The attached function.
    pub fn function(&self) -> &F {
        self.downstream.function()
    }

    /// The attached function, for input that does not arrive over the link.
    pub fn function_mut(&mut self) -> &mut F {
        self.downstream.function_mut()
    }

    /// The bytes that the host pushed for the function.
    pub fn store(&self) -> &Store<Completions> {
        self.downstream.store()
    }

    /// Moves TLPs between link and function until none is left to move. [`poll`](Self::poll) starts
    /// with the same step.
    pub fn exchange(&mut self, now: Instant) {
        self.downstream.exchange(now);
    }

    /// As [`Tunnel::report_frames`].
    pub fn report_frames(&mut self, on: bool) {
        self.downstream.tunnel.report_frames(on);
    }

    /// As [`Tunnel::poll_report`].
    pub fn poll_report(&mut self) -> Option<Report> {
        self.downstream.tunnel.poll_report()
    }

    /// Takes an event of a path.
    pub fn handle(&mut self, now: Instant, path: PathId, input: path::Input) {
        if let path::Input::Accepted { signals_close, rights, peer } = input {
            let gone = self.pending.accept(now, path, (signals_close, rights, peer));
            self.outputs.extend(gone.map(|path| Output::Close { path, linger: false }));
            return;
        }
        let ends = self.host.as_ref().is_some_and(|host| host.end.is_some());
        let own =
            self.host.iter_mut().flat_map(|host| &mut host.paths).enumerate().find_map(
                |(number, own)| Some((number, own.as_mut().filter(|own| own.id == path)?)),
            );
        let Some((number, own)) = own else { return self.pending.handle(now, path, input) };
        let downstream = &mut self.downstream;
        match input {
            path::Input::Received(bytes) => {
                downstream.handle_path(now, number, Input::Received(bytes));
            }
            path::Input::TraceId(trace_id) => {
                downstream.handle_path(now, number, Input::TraceId(trace_id));
            }
            path::Input::Room(_) if own.closed => {}
            // A Goodbye needs no more room than before.
            path::Input::Room(bytes) => own.room = if ends { own.room.min(bytes) } else { bytes },
            path::Input::Refused(why) => self.end_link(Disconnect::Ended(Cause::Refused(why))),
            path::Input::Closed => (own.room, own.closed) = (0, true),
            _ => {}
        }
    }

    /// Sends Goodbye to the host and closes its path. The node does not reset its
    /// function, and accepts no other host.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
        self.end_link(Disconnect::Shutdown);
    }

    /// Ends the session of the host on this link, because another connection of the link has ended.
    pub fn end_session(&mut self, link: u128) {
        if self.link_name() == Some(link) {
            self.end_link(Disconnect::Ended(Cause::OtherConnection));
        }
    }

    fn end_link(&mut self, end: Disconnect) {
        match &mut self.host {
            // Without a path, nobody hears a Goodbye.
            Some(host) if !host.has_path() && end == Disconnect::Shutdown => self.host = None,
            Some(host) => {
                host.end.get_or_insert(end);
                self.downstream.tunnel.goodbye();
            }
            None => {}
        }
    }

    /// The next action; at last, when to poll again.
    pub fn poll(&mut self, now: Instant) -> Output {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return output;
            }
            let link = match self.poll_link(now) {
                downstream::Output::Timeout(at) => at,
                output => {
                    self.link_output(now, output);
                    continue;
                }
            };
            let (pending, again) =
                if self.shutting_down { (None, false) } else { self.serve_pending(now) };
            if self.outputs.is_empty() && !again {
                return Output::Timeout(earliest([link, pending, self.rate_limited_until(now)]));
            }
        }
    }

    /// The next action of the link. The rate limit does not delay a Goodbye.
    fn poll_link(&mut self, now: Instant) -> downstream::Output {
        let held = self.egress.is_rate_limited(now);
        let (mut closed, mut end) = (None, None);
        if let Some(host) = &self.host {
            end = host.end.clone();
            for (number, path) in host.paths.iter().enumerate() {
                let Some(path) = path else { continue };
                let bytes = if held && end.is_none() { 0 } else { path.room };
                self.downstream.handle_path(now, number, Input::CanTransmit { bytes });
                closed = closed.or(Some(number).filter(|_| path.closed));
            }
        }
        let output = self.downstream.poll(now);
        match (&output, end, closed) {
            (downstream::Output::Timeout(_), Some(Disconnect::Shutdown), _) => {
                self.close_link();
                output
            }
            (downstream::Output::Timeout(_), Some(Disconnect::Ended(cause)), _) => {
                self.downstream.tunnel.take_down(now, cause);
                self.downstream.poll(now)
            }
            (downstream::Output::Timeout(_), None, Some(path)) => {
                self.downstream.handle_path(now, path, Input::Disconnected);
                self.downstream.poll(now)
            }
            _ => output,
        }
    }

    fn close_link(&mut self) {
        let Some(Host { paths, end, .. }) = self.host.take() else { return };
        let linger = end.is_some();
        let close = |path: HostPath| Output::Close { path: path.id, linger };
        self.outputs.extend(paths.into_iter().flatten().map(close));
    }

    fn link_output(&mut self, now: Instant, output: downstream::Output) {
        let Some(host) = &mut self.host else { return };
        let id = |number: usize| host.paths[number].as_ref().map(|path| path.id);
        let event = match output {
            downstream::Output::Transmit(number, bytes) => {
                let Some(path) = &mut host.paths[number] else { return };
                path.room -= bytes.len();
                self.egress.sent(now, bytes.len());
                self.outputs.push_back(Output::Transmit { path: path.id, bytes });
                None
            }
            downstream::Output::Up(_) => id(0).map(Event::HostUp),
            downstream::Output::Resumed => {
                host.paths.iter().flatten().next().map(|path| Event::HostResumed(path.id))
            }
            downstream::Output::Joined(number) => id(number).map(Event::HostPathUp),
            downstream::Output::FailedOver(number) => id(number).map(Event::HostFailedOver),
            downstream::Output::PathLost(number, cause) => {
                let Some(HostPath { id, .. }) = host.paths[number].take() else { return };
                self.downstream.handle_path(now, number, Input::Disconnected);
                let interrupted = self.downstream.tunnel.is_interrupted();
                let event = if interrupted { Event::HostInterrupted } else { Event::HostPathLost };
                self.outputs.push_back(Output::Event(event(id, cause)));
                self.outputs.push_back(Output::Close { path: id, linger: false });
                None
            }
            downstream::Output::Down(cause) => {
                let path = host.paths.iter().flatten().next().map(|path| path.id);
                self.outputs.push_back(Output::Event(Event::HostDown(path, cause)));
                for number in 0..MAX_PATHS {
                    self.downstream.handle_path(now, number, Input::Disconnected);
                }
                self.close_link();
                None
            }
            _ => None,
        };
        self.outputs.extend(event.map(Output::Event));
    }

    /// Serves the pending connections: one may become the host, or may move the device. Returns
    /// when to call this again, and whether the link has to be polled first.
    fn serve_pending(&mut self, now: Instant) -> (Option<Instant>, bool) {
        let tunnel = &self.downstream.tunnel;
        let occupant = self.host.as_ref().map(|host| Occupant {
            session: tunnel.session(),
            peer: host.peer.clone(),
            interrupted: !host.has_path(),
            takes_further: tunnel.paths().is_some() && host.paths.iter().any(Option::is_none),
            link: host.link,
        });
        let silent = tunnel.most_silent_path();
        let served = self.pending.serve(now, occupant.as_ref(), self.group, &mut self.outputs);
        let again = served.is_some();
        match (served, &mut self.host) {
            (Some(Served::Host(chosen)), _) => self.attach(now, chosen),
            (Some(Served::Further(path, greeting, number)), _) => {
                self.outputs.push_back(Output::Further { path, number, greeting });
            }
            // The host has given its path up before this node has noticed the loss.
            (Some(Served::Returns), Some(host)) => {
                if let Some(path) = silent.and_then(|number| host.paths[number].as_mut()) {
                    (path.room, path.closed) = (0, true);
                }
            }
            (Some(Served::Replaces), _) => {
                self.downstream.tunnel.take_down(now, Cause::SessionGone)
            }
            _ => {}
        }
        if let Some((group, by, allowed)) = self.pending.requested_move() {
            let answer = match allowed {
                true => self.move_to(now, group),
                false => self.refuse_move(now),
            };
            self.pending.answer_move(answer);
            self.outputs.push_back(Output::Event(Event::Moved { by, group, answer }));
        }
        (self.pending.timer(), again)
    }

    /// Accepts a host, or a further path of the present host.
    fn attach(&mut self, now: Instant, chosen: AcceptedHost) {
        let AcceptedHost { path, greeting, group, room, peer } = chosen;
        let goes_on = self.host.is_some();
        let connections = self.connections;
        let host = self.host.get_or_insert_with(|| {
            let (paths, end) = Default::default();
            let link = connections.and_then(|own| link_of(&greeting, own));
            Host { paths, peer, group, link, end }
        });
        let number = host.paths.iter().position(Option::is_none).expect("a free path");
        host.paths[number] = Some(HostPath { id: path, room, closed: false });
        self.downstream.handle_path(now, number, Input::Connected);
        self.downstream.handle_path(now, number, Input::Received(greeting));
        self.outputs.push_back(Output::Linked { path, goes_on });
    }

    /// The answer to a probe that may not move the device.
    fn refuse_move(&self, now: Instant) -> Moved {
        let (from, to) = (self.group, self.group);
        let host = if self.host.is_some() { HostAfter::Stays } else { HostAfter::None };
        let awaited = self.pending.awaits(now, to);
        Moved { status: MoveStatus::Unauthorized, host, awaited, from, to }
    }

    /// Moves the device to another group at the request of a probe. Disconnects a host of another
    /// group and resets the function. Returns the answer to the probe.
    pub fn move_to(&mut self, now: Instant, group: u16) -> Moved {
        let (from, status) = (self.group, self.move_status);
        let to = if status == MoveStatus::Done { group } else { from };
        let host = match &self.host {
            None => HostAfter::None,
            Some(host) if belongs(host.group, to) => HostAfter::Stays,
            Some(_) => HostAfter::Disconnected,
        };
        self.group = to;
        if host == HostAfter::Disconnected {
            self.end_link(Disconnect::Ended(Cause::Moved));
        }
        Moved { status, host, awaited: self.pending.awaits(now, to), from, to }
    }
}
