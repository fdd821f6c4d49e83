//! One end of a link: carries TLPs in both directions, with credit-based flow
//! control, in frames over a byte stream.
//!
//! A `Session` is the state of TLPs that both ends share. A `Path` is one connection. [`Tunnel`]
//! combines one session and one path: a lost path ends the session.
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
use wire::Instant;
use wire::frame::{Control, FrameReport, Header, Kind, Moved, Reject};
use wire::tlp::{Class, Tlp, TraceId};

/// The maximum number of queued control frames, and the maximum number of unanswered requests of
/// the far side. A far side that exceeds this number violates the protocol.
const MAX_PENDING: usize = 64;

/// One end of a link.
#[derive(Debug)]
pub struct Tunnel {
    settings: Settings,
    path: Path,
    session: Session,
    outputs: VecDeque<Output>,
    /// Number of posted TLPs that were queued when the link went down.
    posted_lost: u64,
    account: Account,
}

impl Tunnel {
    /// An end without a connection.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            path: Path::new(settings),
            session: Session::new(settings),
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
                    self.close(cause);
                }
            }
            Input::CanTransmit { bytes } => self.path.room = bytes,
            Input::Disconnected => {
                let greeted = self.path.is_up();
                self.close(if greeted { Cause::Disconnected } else { Cause::ClosedUngreeted });
                self.path.disconnected();
            }
        }
    }

    fn connected(&mut self, now: Instant) {
        self.end();
        self.path = Path::connected(self.settings, now);
        self.session = Session::new(self.settings);
        self.outputs.clear();
        self.posted_lost = 0;
    }

    /// Ends the session. Returns the number of posted TLPs that were still queued.
    fn end(&mut self) -> u64 {
        let posted = self.session.end(&mut self.account);
        self.account.reports.dropped(self.path.trace_ids.drain(..));
        posted
    }

    /// Takes the link down: the queued control frames are still sent, but input is ignored.
    fn close(&mut self, cause: Cause) {
        if self.path.close() {
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
        self.session.acknowledge(header.acknowledged)?;
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
            self.session.begin(hello.credits);
            self.account.counters.connections += 1;
            Some(Output::Up(hello))
        } else if session::handles(&control) {
            self.session.control(control, &mut self.account)?
        } else {
            self.path.control(control, self.outputs.len())?
        };
        self.outputs.extend(output);
        Ok(())
    }

    /// The next output; appends frames to `out`. Each call builds at most one frame of TLPs.
    pub fn poll(&mut self, now: Instant, out: &mut BytesMut) -> Output {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        self.check_timers(now);
        if self.is_up() {
            self.session.queue_acknowledgement(self.path.control.is_empty());
        }
        let length = self.path.transmit(now, &mut self.session, &mut self.account, out);
        if length > 0 {
            return Output::Transmit(length);
        }
        self.outputs.pop_front().unwrap_or_else(|| Output::Timeout(self.deadline(now)))
    }

    /// Checks for a lost or stuck link, and queues keepalives.
    fn check_timers(&mut self, now: Instant) {
        if !self.path.is_open() {
            return;
        }
        self.session.check_stuck(now);
        if now >= self.path.lost_at() {
            self.close(if self.path.is_up() { Cause::Lost } else { Cause::Ungreeted });
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
        if !self.path.is_open() {
            return None;
        }
        let lost = Some(self.path.lost_at());
        if !self.is_up() {
            return lost;
        }
        let stuck = self.session.stuck_at();
        // A queued control frame serves as keepalive as soon as there is room.
        let (keepalive, leaves) = match self.has_no_control() {
            true => (Some(self.path.keepalive_at()), self.session.departs_at(now, self.path.room)),
            false => (None, None),
        };
        [lost, stuck, keepalive, leaves].into_iter().flatten().min()
    }

    /// Whether the link is up.
    pub fn is_up(&self) -> bool {
        self.path.is_up()
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
