//! One end of a link: carries TLPs in both directions, with credit-based flow
//! control, in frames over a byte stream.
//!
//! A `Session` is the state of TLPs that both ends share. A `Path` is one connection. [`Tunnel`]
//! combines one session and its present path. If both ends agree ([`Settings::survive`]), the link
//! stays up when its path is lost: TLPs wait, and a further path carries the session on, with every
//! TLP exactly once and in order. Otherwise a lost path ends the session.
//!
//! A state machine: call [`Tunnel::handle`], then [`Tunnel::poll`] until it returns
//! [`Output::Timeout`]. [`Tunnel::push`] sends TLPs. [`Tunnel::pop`] takes received TLPs and
//! returns their credits to the far side.

mod account;
mod cause;
mod frames;
mod io;
mod path;
mod receiver;
mod replay;
mod report;
mod resets;
mod session;
mod settings;
#[cfg(test)]
mod tests;

use crate::aggregate::Aggregate;
use account::Account;
pub use account::Counters;
use bytes::{Bytes, BytesMut};
pub use cause::Cause;
pub use io::{Input, Output};
use path::Path;
use pcie::Ready;
pub use report::Report;
use session::Session;
pub use settings::Settings;
use std::collections::VecDeque;
use wire::frame::{Control, FrameReport, Header, Hello, Kind, Moved, Reject};
use wire::tlp::{Class, Tlp, TraceId};
use wire::{Instant, earliest};

/// The maximum number of queued control frames, and the maximum number of unanswered requests of
/// the far side. A far side that exceeds this number violates the protocol.
const MAX_PENDING: usize = 64;

/// One end of a link.
#[derive(Debug)]
pub struct Tunnel {
    settings: Settings,
    path: Path,
    session: Session,
    /// Number of sessions so far.
    sessions: u32,
    /// Set while the session has no path that carries it.
    interrupted: Option<Interruption>,
    /// Buffer for frames.
    frames: BytesMut,
    outputs: VecDeque<Output>,
    /// Number of posted TLPs that were queued when the link went down.
    posted_lost: u64,
    account: Account,
}

/// A session without a path.
#[derive(Debug)]
struct Interruption {
    cause: Cause,
    /// When the session ends.
    until: Instant,
}

impl Tunnel {
    /// An end without a connection.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            path: Path::new(settings),
            session: Session::new(settings, 0),
            sessions: 0,
            interrupted: None,
            frames: BytesMut::new(),
            outputs: VecDeque::new(),
            posted_lost: 0,
            account: Account::default(),
        }
    }

    /// Takes an input.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Connected => self.connected(now),
            Input::TraceId(trace_id) => self.path.trace_ids.push_back(trace_id),
            Input::Received(bytes) => {
                self.path.heard(now);
                self.account.counters.bytes_received += bytes.len() as u64;
                if let Err(cause) = self.received(bytes) {
                    self.fail(now, cause);
                }
            }
            Input::CanTransmit { bytes } => self.path.room = bytes,
            Input::Disconnected => {
                let greeted = self.path.is_up();
                self.fail(now, if greeted { Cause::Disconnected } else { Cause::ClosedUngreeted });
                self.path.disconnected();
            }
        }
    }

    fn connected(&mut self, now: Instant) {
        let goes_on = self.interrupted.is_some();
        if !goes_on {
            self.end();
            self.sessions = self.sessions.wrapping_add(1);
            self.session = Session::new(self.settings, self.sessions);
            self.outputs.clear();
            self.posted_lost = 0;
        }
        self.path = Path::connected(self.settings, self.session.greeting(goes_on), now);
    }

    /// Handles the failure of the path: interrupts the session if it survives, else takes the link
    /// down.
    fn fail(&mut self, now: Instant, cause: Cause) {
        match (&self.interrupted, self.session.survives()) {
            _ if !self.path.is_open() => {}
            (Some(_), _) if !cause.ends_session() => {
                self.path.abandon();
                self.outputs.push_back(Output::Interrupted(cause));
            }
            (None, Some(span)) if self.path.is_up() && cause.is_of_connection() => {
                self.path.abandon();
                self.session.interrupt();
                self.interrupted = Some(Interruption { cause: cause.clone(), until: now + span });
                self.outputs.push_back(Output::Interrupted(cause));
            }
            _ => self.close(cause),
        }
    }

    /// Takes the link down, and ends its session even if it survives connections.
    pub fn take_down(&mut self, cause: Cause) {
        self.close(cause);
    }

    /// Ends the session. Returns the number of posted TLPs that were still queued.
    fn end(&mut self) -> u64 {
        let posted = self.session.end(&mut self.account);
        self.account.reports.dropped(self.path.trace_ids.drain(..));
        posted
    }

    /// Takes the link down: the queued control frames are still sent, but input is ignored.
    fn close(&mut self, cause: Cause) {
        if self.path.close() | self.interrupted.take().is_some() {
            self.posted_lost = self.end();
            self.outputs.push_back(Output::Down(cause));
        }
    }

    fn received(&mut self, mut bytes: Bytes) -> Result<(), Cause> {
        if !self.path.is_open() {
            return Ok(());
        }
        while let Some((header, begin, payload)) = self.path.next_frame(&mut bytes)? {
            let reports = &self.account.reports;
            let mut report = reports.begin(false, header, begin, &payload);
            let taken = self.frame(header, payload, report.as_mut());
            self.account.reports.add(report);
            taken?;
        }
        Ok(())
    }

    fn frame(
        &mut self,
        header: Header,
        payload: Bytes,
        report: Option<&mut FrameReport>,
    ) -> Result<(), Cause> {
        // The greeting of a session that goes on has its own field.
        if self.interrupted.is_none() {
            self.session.acknowledge(header.acknowledged)?;
        }
        if header.kind == Kind::Tlps {
            if !self.path.is_up() {
                return Err(Cause::Violation("TLPs before the greeting"));
            }
            let trace_ids = &mut self.path.trace_ids;
            return self.session.receive(header, payload, trace_ids, report, &mut self.account);
        }
        let control = self.path.decode(header.kind, &payload)?;
        let output = if !self.path.is_up() {
            let hello = self.path.greeted(control)?;
            Some(self.greeted(hello)?)
        } else if session::handles(&control) {
            self.session.control(control, &mut self.account)?
        } else {
            self.path.control(control, self.outputs.len())?
        };
        self.outputs.extend(output);
        Ok(())
    }

    /// Begins a session, or goes on with an interrupted one.
    fn greeted(&mut self, hello: Hello) -> Result<Output, Cause> {
        let counters = &mut self.account.counters;
        if self.interrupted.is_some() {
            self.session.resume(&hello)?;
            self.interrupted = None;
            counters.resumed += 1;
            return Ok(Output::Resumed);
        }
        // A device that has no session to go on with is to reject such a Hello before.
        if hello.session.is_some_and(|session| session.expected.is_some()) {
            return Err(Cause::SessionGone);
        }
        self.session.begin(&hello);
        counters.connections += 1;
        Ok(Output::Up(hello))
    }

    /// The next output. Each call builds at most one frame of TLPs.
    pub fn poll(&mut self, now: Instant) -> Output {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        self.check_timers(now);
        if self.path.is_up() {
            self.session.queue_acknowledgement(self.path.control.is_empty());
        }
        let length =
            self.path.transmit(now, &mut self.session, &mut self.account, &mut self.frames);
        if length > 0 {
            let bytes = self.frames.split().freeze();
            self.session.keep(&bytes);
            return Output::Transmit(bytes);
        }
        self.outputs.pop_front().unwrap_or_else(|| Output::Timeout(self.deadline(now)))
    }

    /// Checks for a lost or stuck link, and queues keepalives.
    fn check_timers(&mut self, now: Instant) {
        if let Some(Interruption { cause, .. }) =
            self.interrupted.as_ref().filter(|interruption| now >= interruption.until)
        {
            self.close(cause.clone());
        }
        if !self.path.is_open() {
            return;
        }
        if self.interrupted.is_none() {
            self.session.check_stuck(now);
        }
        if now >= self.path.lost_at() {
            self.fail(now, if self.path.is_up() { Cause::Lost } else { Cause::Ungreeted });
        } else if self.session.stuck_at().is_some_and(|at| now >= at) {
            self.close(Cause::Stuck);
        } else if now >= self.path.keepalive_at() && self.has_no_control() {
            self.path.queue_control(Control::Acknowledge);
        }
    }

    /// Whether no control frame is queued.
    fn has_no_control(&self) -> bool {
        self.path.control.is_empty() && self.session.control.is_empty()
    }

    fn deadline(&mut self, now: Instant) -> Option<Instant> {
        let until = self.interrupted.as_ref().map(|interruption| interruption.until);
        if !self.path.is_open() {
            return until;
        }
        let lost = Some(self.path.lost_at());
        if !self.path.is_up() {
            return earliest([lost, until]);
        }
        let stuck = self.session.stuck_at();
        // A queued control frame serves as keepalive as soon as there is room.
        let (keepalive, leaves) = match self.has_no_control() {
            true => (Some(self.path.keepalive_at()), self.session.departs_at(now, self.path.room)),
            false => (None, None),
        };
        [lost, stuck, keepalive, leaves].into_iter().flatten().min()
    }

    /// Whether the link is up. It also is while its session is interrupted.
    pub fn is_up(&self) -> bool {
        self.path.is_up() || self.interrupted.is_some()
    }

    /// Whether the session waits for another connection.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.is_some()
    }

    /// The name of the session, if it survives its connections.
    pub fn session(&self) -> Option<u128> {
        self.session.id()
    }

    /// The classes of TLPs that [`push`](Self::push) takes now; none while the link is down.
    pub fn ready(&self) -> Ready {
        if self.is_up() { self.session.queue.ready() } else { Ready::NONE }
    }

    /// Queues a TLP for the far side. Drops the TLP if the link is down.
    pub fn push(&mut self, tlp: Tlp) {
        match self.is_up() {
            true => self.session.queue.push(tlp),
            false => self.account.reports.dropped(std::iter::once(tlp.trace_id)),
        }
    }

    /// Whether TLPs wait for [`pop`](Self::pop).
    pub fn has_received(&self) -> bool {
        self.session.has_received()
    }

    /// The first received TLP of a class.
    pub fn front(&self, class: Class) -> Option<&Tlp> {
        self.session.front(class)
    }

    /// Takes a received TLP of a class in `ready`, in PCIe order, and returns its
    /// credits to the far side. `None` while a requested reset is not done.
    pub fn pop(&mut self, ready: Ready) -> Option<Tlp> {
        self.session.pop(ready)
    }

    /// Requests a hot reset of the far side. Drops all queued TLPs, and the TLPs that the far side
    /// sends before its reset.
    pub fn reset(&mut self) {
        if self.is_up() {
            self.session.reset(&mut self.account);
        }
    }

    /// Answers an [`Output::Reset`] after the reset is done.
    pub fn reset_done(&mut self) {
        if self.is_up() {
            self.session.reset_done(&mut self.account);
        }
    }

    /// Sends an echo request if the link is up and few control frames are queued.
    pub fn echo(&mut self, number: u64) {
        if self.path.control.len() < MAX_PENDING {
            self.path.queue_control(Control::Echo(number));
        }
    }

    /// Requests that the device belong to `group`, if the link is up. An [`Output::Moved`] follows.
    /// Only probes may call this.
    pub fn move_to(&mut self, group: u16) {
        self.path.queue_control(Control::Move(group));
    }

    /// Answers an [`Output::Move`].
    pub fn answer_move(&mut self, moved: Moved) {
        self.path.queue_control(Control::Moved(moved));
    }

    /// Announces to the far side that this end closes the link.
    pub fn goodbye(&mut self) {
        self.path.queue_control(Control::Goodbye);
    }

    /// Rejects the far side, if its Hello was not received yet.
    pub fn reject_peer(&mut self, reason: Reject) {
        if self.path.reject_peer(reason) {
            self.close(Cause::Rejected(reason));
        }
    }

    /// Whether each [`Output::Transmit`] needs its own TCP segments, as with
    /// [`PerTlp`](crate::aggregate::Policy::PerTlp).
    pub fn sends_records(&self) -> bool {
        self.queue().sends_singly()
    }

    /// Returns the number of posted TLPs that were queued when the link went down, and sets it to
    /// 0.
    pub fn take_posted_lost(&mut self) -> u64 {
        std::mem::take(&mut self.posted_lost)
    }

    /// Enables or disables [`poll_report`](Self::poll_report). If enabled, take all reports after
    /// each input and output.
    pub fn report_frames(&mut self, on: bool) {
        self.account.reports.set(on);
    }

    /// The next report, oldest first; `None` if none is left.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.account.reports.pop()
    }

    /// Reports that the TLPs with these trace IDs were dropped behind the tunnel.
    pub(crate) fn report_dropped(&mut self, trace_ids: impl Iterator<Item = TraceId>) {
        self.account.reports.dropped(trace_ids);
    }

    /// Counters over all connections.
    pub fn counters(&self) -> Counters {
        self.account.counters
    }

    /// The aggregation queue of TLPs to send.
    pub fn queue(&self) -> &Aggregate {
        &self.session.queue
    }
}
