//! One end of a link: a byte stream that is a frame stream that is two
//! directions of TLPs under credit.
//!
//! A [`Session`] is what both ends agree on about TLPs, a [`Path`] is the
//! connection that brings it there. [`Tunnel`] puts one of each together: a
//! lost path ends the session.
//!
//! A state machine: [`Tunnel::handle`], then [`Tunnel::poll`] until it yields
//! [`Output::Timeout`]. TLPs go in by [`Tunnel::push`] and come out by
//! [`Tunnel::pop`], which is what returns credits to the far side.

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

use crate::aggregate::{Aggregate, Policy};
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
use wire::tlp::{Class, Tlp};

/// Control frames that wait to be sent, and questions that wait for an answer,
/// before the far side is too fast, or too slow.
const MAX_WAITING: usize = 64;

/// See the module.
#[derive(Debug)]
pub struct Tunnel {
    settings: Settings,
    path: Path,
    session: Session,
    outputs: VecDeque<Output>,
    /// Posted TLPs that waited to be sent when the link went down.
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
            Input::Mark(mark) => self.path.marks.push_back(mark),
            Input::Received(bytes) => {
                self.path.heard(now);
                self.account.counters.bytes_received += bytes.len() as u64;
                if let Err(cause) = self.received(bytes) {
                    self.close(cause);
                }
            }
            Input::CanTransmit { bytes } => self.path.room = bytes,
            Input::Disconnected => {
                self.close(Cause::Disconnected);
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

    /// The session ends with its path; says how many posted TLPs waited to be
    /// sent.
    fn end(&mut self) -> u64 {
        let posted = self.session.end(&mut self.account);
        self.account.reports.dropped(self.path.marks.drain(..));
        posted
    }

    /// Gives the link up: what still has to be sent is sent, nothing more is
    /// taken.
    fn close(&mut self, cause: Cause) {
        if self.path.close() {
            self.posted_lost = self.end();
            self.outputs.push_back(Output::Down(cause));
        }
    }

    fn received(&mut self, bytes: Bytes) -> Result<(), Cause> {
        if !self.path.is_open() {
            return Ok(());
        }
        let mut bytes = self.path.join(bytes)?;
        while let Some((header, begin, payload)) = self.path.cut(&mut bytes)? {
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
            let marks = &mut self.path.marks;
            return self.session.take(header, payload, marks, report, &mut self.account);
        }
        let control = self.path.decode(header.kind, &payload)?;
        let output = if !self.path.is_up() {
            let hello = self.path.greeted(control)?;
            self.session.begin(hello.credits);
            self.account.counters.connections += 1;
            Some(Output::Up(hello))
        } else if session::has(&control) {
            self.session.control(control, &mut self.account)?
        } else {
            self.path.control(control, self.outputs.len())?
        };
        self.outputs.extend(output);
        Ok(())
    }

    /// The next thing this end wants. While the network has room, each call
    /// makes one frame of TLPs at most; frames are put behind what is in `out`.
    pub fn poll(&mut self, now: Instant, out: &mut BytesMut) -> Output {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        self.watch(now);
        if self.is_up() {
            self.session.speak(self.path.control.is_empty());
        }
        let length = self.path.transmit(now, &mut self.session, &mut self.account, out);
        if length > 0 {
            return Output::Transmit(length);
        }
        self.outputs.pop_front().unwrap_or_else(|| Output::Timeout(self.deadline(now)))
    }

    /// Loss of the link, and signs of life.
    fn watch(&mut self, now: Instant) {
        if !self.path.is_open() {
            return;
        }
        self.session.watch(now);
        if now >= self.path.lost_at() {
            self.close(Cause::Lost);
        } else if self.session.stuck_at().is_some_and(|at| now >= at) {
            self.close(Cause::Stuck);
        } else if now >= self.path.keepalive_at() && self.is_quiet() {
            self.path.say(Control::Acknowledge);
        }
    }

    /// Whether no control frame waits for room.
    fn is_quiet(&self) -> bool {
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
        // What waits for room is a sign of life to come.
        let (keepalive, leaves) = match self.is_quiet() {
            true => (Some(self.path.keepalive_at()), self.session.departs_at(now, self.path.room)),
            false => (None, None),
        };
        [lost, stuck, keepalive, leaves].into_iter().flatten().min()
    }

    /// Whether TLPs flow.
    pub fn is_up(&self) -> bool {
        self.path.is_up()
    }

    /// Which classes of TLPs [`push`](Self::push) takes now; none while the
    /// link is down.
    pub fn ready(&self) -> Ready {
        if self.is_up() { self.session.queue.ready() } else { Ready::NONE }
    }

    /// Queues a TLP for the far side. Dropped if the link is down.
    pub fn push(&mut self, tlp: Tlp) {
        match self.is_up() {
            true => self.session.queue.push(tlp),
            false => self.account.reports.dropped(std::iter::once(tlp.mark)),
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

    /// Takes a received TLP of a class in `ready`, in PCIe order; its credits
    /// go back to the far side. Nothing while a reset that the far side wants
    /// is not done.
    pub fn pop(&mut self, ready: Ready) -> Option<Tlp> {
        self.session.pop(ready)
    }

    /// Asks the far side for a hot reset; everything queued is forgotten, and
    /// what the far side sent before it was reset will be too.
    pub fn reset(&mut self) {
        if self.is_up() {
            self.session.reset(&mut self.account);
        }
    }

    /// The reset that [`Output::Reset`] asked for is done.
    pub fn reset_done(&mut self) {
        if self.is_up() {
            self.session.reset_done(&mut self.account);
        }
    }

    /// Sends an echo request, if the link is up and the far side still reads.
    pub fn echo(&mut self, number: u64) {
        if self.path.control.len() < MAX_WAITING {
            self.path.say(Control::Echo(number));
        }
    }

    /// Asks a device to belong to a group from now on, if the link is up; an
    /// [`Output::Moved`] follows. Only a probe may.
    pub fn move_to(&mut self, group: u16) {
        self.path.say(Control::Move(group));
    }

    /// Answers an [`Output::Move`].
    pub fn answer_move(&mut self, moved: Moved) {
        self.path.say(Control::Moved(moved));
    }

    /// Tells the far side that the link ends on purpose.
    pub fn goodbye(&mut self) {
        self.path.say(Control::Goodbye);
    }

    /// Turns the far side away, whatever it says: this end is in use.
    pub fn reject_peer(&mut self, reason: Reject) {
        if self.path.reject_peer(reason) {
            self.close(Cause::Rejected(reason));
        }
    }

    /// Whether each [`Output::Transmit`] is to have segments of its own
    /// ([`Policy::PerTlp`]).
    pub fn sends_records(&self) -> bool {
        self.settings.aggregation == Policy::PerTlp
    }

    /// How many posted TLPs waited to be sent when the link went down; 0 when
    /// asked again.
    pub fn take_posted_lost(&mut self) -> u64 {
        std::mem::take(&mut self.posted_lost)
    }

    /// Whether [`poll_report`](Self::poll_report) tells from now on what this
    /// end does. Who asks for it takes all reports after each input and output.
    pub fn report_frames(&mut self, on: bool) {
        self.account.reports.set(on);
    }

    /// The next thing that this end did.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.account.reports.pop()
    }

    /// What was carried on all connections so far.
    pub fn counters(&self) -> Counters {
        self.account.counters
    }

    /// The queue of TLPs to send.
    pub fn queue(&self) -> &Aggregate {
        &self.session.queue
    }
}
