//! The device node: the link to one host, what is attached below it, and
//! whoever else connects.

mod pending_connections;
#[cfg(test)]
mod tests;

use crate::path::{self, PathId};
use bytes::{Bytes, BytesMut};
use pcie::{Errors, Function};
use pending_connections::{PendingConnections, belongs};
use std::collections::VecDeque;
use switch::congestion::Rate;
use switch::downstream::{self, Downstream};
use switch::egress::Egress;
use switch::tunnel::{Cause, Input, Report, Settings, Tunnel};
use switch::upstream::next_timer;
use wire::Instant;
use wire::frame::{self, HostAfter, MoveStatus, Moved};

/// What a device node wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes for a path, not more than it has room for.
    Transmit {
        /// Which.
        path: PathId,
        /// What: whole frames.
        bytes: Bytes,
    },
    /// Close this path once what was transmitted has gone. Each path that was
    /// accepted is closed, also one that is gone; it is not named again.
    Close {
        /// Which.
        path: PathId,
        /// Whether it is worth a moment to see that what was transmitted
        /// arrives: the far side is told goodbye.
        linger: bool,
    },
    /// This path carries the link from now on.
    Linked(PathId),
    /// Something that the user should know.
    Event(Event),
    /// Nothing more now; call again after an input, of which room is one, or at
    /// this time.
    Timeout(Option<Instant>),
}

/// What a device node tells its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A host uses the device.
    HostUp(PathId),
    /// The host is gone; the device has been reset.
    HostDown(PathId, Cause),
    /// Somebody was turned away, or did not speak the protocol.
    Rejected(PathId, Cause),
    /// Somebody asked for the device to belong to another group.
    Moved {
        /// Who.
        by: PathId,
        /// The group; 0: any host.
        group: u16,
        /// What was answered.
        answer: Moved,
    },
}

/// How the link to a host ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disconnect {
    /// Its path is gone.
    Closed,
    /// The device belongs to another group now.
    Moved,
    /// The node ends.
    Shutdown,
}

/// The host that is served.
#[derive(Debug)]
struct Host {
    path: PathId,
    group: u16,
    room: usize,
    /// Set when the link ends as soon as nothing is left to do for it.
    end: Option<Disconnect>,
}

/// See the module.
#[derive(Debug)]
pub struct DeviceNode<F> {
    downstream: Downstream<F>,
    host: Option<Host>,
    /// The group of hosts that the device belongs to; 0: any.
    group: u16,
    /// What a move to another is answered.
    move_status: MoveStatus,
    pending: PendingConnections,
    egress: Egress,
    frame: usize,
    /// Frames are made here, in the same memory again when those before are
    /// gone.
    frames: BytesMut,
    /// The node ends.
    shutting_down: bool,
    outputs: VecDeque<Output>,
}

impl<F: Function> DeviceNode<F> {
    /// A node that serves `function` to any host and cannot be moved.
    pub fn new(settings: Settings, function: F) -> Self {
        let frame = settings.max_frame + frame::HEADER;
        Self {
            downstream: Downstream::new(settings, function),
            host: None,
            group: 0,
            move_status: MoveStatus::Fixed,
            pending: PendingConnections::new(settings),
            egress: Egress::new(1, frame, None),
            frame,
            frames: BytesMut::new(),
            shutting_down: false,
            outputs: VecDeque::new(),
        }
    }

    /// The same for hosts of this group, any with 0, until it is moved to
    /// another. Without a group a node serves any host and cannot be moved.
    #[must_use]
    pub fn in_group(mut self, group: Option<u16>) -> Self {
        self.group = group.unwrap_or(0);
        self.move_status = if group.is_some() { MoveStatus::Done } else { MoveStatus::Fixed };
        self
    }

    /// The same as a switch node: it serves any host and cannot be moved.
    #[must_use]
    pub fn for_switch(mut self) -> Self {
        self.move_status = MoveStatus::Switch;
        self
    }

    /// The same with a limit to what goes out to its host.
    #[must_use]
    pub fn with_rate_limit(mut self, rate: Option<Rate>) -> Self {
        self.egress = Egress::new(1, self.frame, rate);
        self
    }

    /// The path that carries the link.
    pub fn link(&self) -> Option<PathId> {
        self.host.as_ref().map(|host| host.path)
    }

    /// Whether nothing waits to be sent to the host.
    pub fn has_sent_all(&self) -> bool {
        let Some(host) = &self.host else { return true };
        host.room > 0 && self.tunnel().queue().is_empty()
    }

    /// When the rate limit lets the next frame go, if it holds it back.
    pub fn held_until(&self, now: Instant) -> Option<Instant> {
        self.egress.held_until(now)
    }

    /// How many connections went, or had to go, without a greeting.
    pub fn without_hello(&self) -> u64 {
        self.pending.without_hello()
    }

    /// The link's end.
    pub fn tunnel(&self) -> &Tunnel {
        self.downstream.tunnel()
    }

    /// What went wrong on the links so far.
    pub fn errors(&self) -> &Errors {
        self.downstream.errors()
    }

    /// What is attached.
    pub fn function(&self) -> &F {
        self.downstream.function()
    }

    /// What is attached, for the input that does not come over the link.
    pub fn function_mut(&mut self) -> &mut F {
        self.downstream.function_mut()
    }

    /// TLPs between link and function until nothing moves, as
    /// [`poll`](Self::poll) does it first.
    pub fn exchange(&mut self, now: Instant) {
        self.downstream.exchange(now);
    }

    /// As [`Tunnel::report_frames`].
    pub fn report_frames(&mut self, on: bool) {
        self.downstream.report_frames(on);
    }

    /// As [`Tunnel::poll_report`].
    pub fn poll_report(&mut self) -> Option<Report> {
        self.downstream.poll_report()
    }

    /// Takes what happened to a path.
    pub fn handle(&mut self, now: Instant, path: PathId, input: path::Input) {
        if let path::Input::Accepted { signals_close } = input {
            let gone = self.pending.accept(now, path, signals_close);
            self.outputs.extend(gone.map(|path| Output::Close { path, linger: false }));
            return;
        }
        let host = self.host.as_mut().filter(|host| host.path == path);
        let Some(host) = host else { return self.pending.handle(now, path, input) };
        match input {
            path::Input::Received(bytes) => self.downstream.handle(now, Input::Received(bytes)),
            path::Input::Mark(mark) => self.downstream.handle(now, Input::Mark(mark)),
            path::Input::Room(bytes) if host.end.is_none() => host.room = bytes,
            // A goodbye needs no more than there was.
            path::Input::Room(bytes) => host.room = host.room.min(bytes),
            path::Input::Closed => {
                (host.room, host.end) = (0, host.end.or(Some(Disconnect::Closed)))
            }
            _ => {}
        }
    }

    /// Tells the host that the link ends on purpose, and closes its path. The
    /// node ends: what is attached is not reset, and takes no other host.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
        self.end_link(Disconnect::Shutdown);
    }

    fn end_link(&mut self, end: Disconnect) {
        if let Some(host) = &mut self.host {
            host.end = host.end.or(Some(end));
            self.downstream.goodbye();
        }
    }

    /// The next thing to do; at last when to be called again.
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
            let pending = if self.shutting_down { None } else { self.serve_pending(now) };
            if self.outputs.is_empty() {
                return Output::Timeout(next_timer([link, pending, self.held_until(now)]));
            }
        }
    }

    /// The next thing that the link wants. Says goodbye whatever the limit.
    fn poll_link(&mut self, now: Instant) -> downstream::Output {
        let held = self.egress.is_held(now);
        let may = |host: &&Host| !held || host.end.is_some();
        let bytes = self.host.as_ref().filter(may).map_or(0, |host| host.room);
        self.downstream.handle(now, Input::CanTransmit { bytes });
        let output = self.downstream.poll(now, &mut self.frames);
        let end = self.host.as_ref().and_then(|host| host.end);
        match (&output, end) {
            (downstream::Output::Timeout(_), Some(Disconnect::Shutdown)) => {
                self.close_link();
                output
            }
            (downstream::Output::Timeout(_), Some(_)) => {
                self.downstream.handle(now, Input::Disconnected);
                self.downstream.poll(now, &mut self.frames)
            }
            _ => output,
        }
    }

    fn close_link(&mut self) {
        let Some(Host { path, end, .. }) = self.host.take() else { return };
        let linger = matches!(end, Some(Disconnect::Moved | Disconnect::Shutdown));
        self.outputs.push_back(Output::Close { path, linger });
    }

    fn link_output(&mut self, now: Instant, output: downstream::Output) {
        let Some(host) = &mut self.host else { return };
        let path = host.path;
        match output {
            downstream::Output::Transmit(length) => {
                host.room -= length;
                self.egress.sent(now, length);
                let bytes = self.frames.split().freeze();
                self.outputs.push_back(Output::Transmit { path, bytes });
            }
            downstream::Output::Up(_) => {
                self.outputs.push_back(Output::Event(Event::HostUp(path)));
            }
            downstream::Output::Down(cause) => {
                let cause = if host.end == Some(Disconnect::Moved) { Cause::Moved } else { cause };
                self.outputs.push_back(Output::Event(Event::HostDown(path, cause)));
                self.downstream.handle(now, Input::Disconnected);
                self.close_link();
            }
            downstream::Output::Timeout(_) => {}
        }
    }

    /// Looks at who else is there: a host may be among them, or somebody who
    /// moves the device. Yields when to look again.
    fn serve_pending(&mut self, now: Instant) -> Option<Instant> {
        let wanted = self.host.is_none();
        if let Some(chosen) = self.pending.serve(now, wanted, self.group, &mut self.outputs) {
            let path = chosen.path;
            self.downstream.handle(now, Input::Connected);
            self.downstream.handle(now, Input::Received(chosen.greeting));
            self.host = Some(Host { path, group: chosen.group, room: chosen.room, end: None });
            self.outputs.push_back(Output::Linked(path));
        }
        if let Some((group, by)) = self.pending.requested_move() {
            let answer = self.move_to(now, group);
            self.pending.answer_move(answer);
            self.outputs.push_back(Output::Event(Event::Moved { by, group, answer }));
        }
        self.pending.timer()
    }

    /// The device is to belong to another group, as a probe may ask: a host
    /// that does not is left, and the function reset. Yields what a probe is
    /// answered.
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
            self.end_link(Disconnect::Moved);
        }
        Moved { status, host, awaited: self.pending.awaits(now, to), from, to }
    }
}
