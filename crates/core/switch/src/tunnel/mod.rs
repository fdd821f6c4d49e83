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
mod lease;
mod path;
mod receiver;
mod replay;
mod report;
mod resets;
mod saved;
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
use lease::{Given, Held};
use path::Path;
use pcie::Ready;
pub use report::Report;
pub use saved::{Place, SavedSession};
use session::Session;
pub use settings::Settings;
use std::collections::VecDeque;
use wire::frame::{Control, FrameReport, Header, Hello, Kind, Moved, Paths, Reject};
use wire::tlp::{Class, Tlp, TraceId};
use wire::{Duration, Instant, earliest};

/// The maximum number of queued control frames, and the maximum number of unanswered requests of
/// the far side. A far side that exceeds this number violates the protocol.
const MAX_PENDING: usize = 64;

/// The maximum number of paths of a session at the same time.
pub const MAX_PATHS: usize = 2;
/// The interval of keepalives of a session with several paths.
const KEEPALIVE: Duration = Duration::from_ms(15);
/// The silence of a busy path after which another one takes over.
const SUSPICIOUS: Duration = Duration::from_ms(50);

/// The lease of a device that hosts reach over several links ([`Settings::lease`]). With the time that
/// hosts add, less than the silence after which they notice a loss.
pub const LEASE: Duration = Duration::from_ms(600);

/// One end of a link.
#[derive(Debug)]
pub struct Tunnel {
    settings: Settings,
    paths: [Path; MAX_PATHS],
    /// The path that sends next.
    turn: usize,
    session: Session,
    /// Number of sessions so far.
    sessions: u32,
    /// When the link came up last.
    up_since: Instant,
    /// Set while the session has no path that carries it.
    interrupted: Option<Interruption>,
    /// Buffer for frames.
    frames: BytesMut,
    outputs: VecDeque<Output>,
    /// Number of posted TLPs that were queued when the link went down.
    posted_lost: u64,
    /// The lease of this end, if it is a device, and of the far side.
    held: Held,
    given: Given,
    account: Account,
}

/// A session without a path.
#[derive(Debug)]
struct Interruption {
    cause: Cause,
    /// When the session ends, unless the far side's lease ends later.
    until: Instant,
    /// Whether no path may carry the session on.
    over: bool,
}

impl Tunnel {
    /// An end without a connection.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            paths: std::array::from_fn(|_| Path::new(settings)),
            turn: 0,
            session: Session::new(settings, 0),
            sessions: 0,
            up_since: Instant::ZERO,
            interrupted: None,
            frames: BytesMut::new(),
            outputs: VecDeque::new(),
            posted_lost: 0,
            held: Held::new(settings.lease),
            given: Given::default(),
            account: Account::default(),
        }
    }

    /// Takes an input of the only path.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.handle_path(now, 0, input);
    }

    /// Takes an input of a path, below [`MAX_PATHS`].
    pub fn handle_path(&mut self, now: Instant, path: usize, input: Input) {
        match input {
            Input::Connected => self.connected(now, path),
            Input::TraceId(trace_id) => self.paths[path].trace_ids.push_back(trace_id),
            Input::Received(bytes) => {
                self.paths[path].heard(now);
                self.account.counters.bytes_received += bytes.len() as u64;
                if let Err(cause) = self.received(now, path, bytes) {
                    self.fail(now, path, cause);
                }
            }
            Input::CanTransmit { bytes } => self.paths[path].room = bytes,
            Input::Disconnected => {
                let greeted = self.paths[path].is_up();
                let cause = if greeted { Cause::Disconnected } else { Cause::ClosedUngreeted };
                self.fail(now, path, cause);
                self.paths[path].disconnected();
            }
        }
    }

    fn connected(&mut self, now: Instant, path: usize) {
        let goes_on = self.session.survives().is_some() || self.is_over();
        if !goes_on {
            self.end();
            self.sessions = self.sessions.wrapping_add(1);
            self.session = Session::new(self.settings, self.sessions);
            self.outputs.clear();
            self.posted_lost = 0;
        }
        let greeting = self.session.greeting(goes_on);
        self.paths[path] = Path::connected(self.settings, greeting, now);
        if self.is_over() {
            self.paths[path].abandon();
            self.outputs.push_back(Output::PathLost(path, Cause::Disconnected));
        }
    }

    /// Handles the failure of a path: the session goes on over the other one or is interrupted, if
    /// it survives. Else takes the link down.
    fn fail(&mut self, now: Instant, path: usize, cause: Cause) {
        if !self.paths[path].is_open() {
            return;
        }
        let carried = self.paths[path].is_up() && self.interrupted.is_none();
        let goes_on = match self.session.survives() {
            None => false,
            Some(_) if carried => cause.is_of_connection(),
            Some(_) => self.interrupted.is_none() || !cause.ends_session(),
        };
        if !goes_on {
            return self.end_session(now, cause);
        }
        self.paths[path].abandon();
        if carried {
            self.take_over(now, path, &cause);
        }
        self.outputs.push_back(Output::PathLost(path, cause));
    }

    /// Another path takes over from the lost `path`, or the session is interrupted.
    fn take_over(&mut self, now: Instant, path: usize, cause: &Cause) {
        match ((0..MAX_PATHS).find(|other| self.paths[*other].is_up()), self.session.survives()) {
            (Some(other), _) if self.session.active == path => match self.session.paths {
                Some(Paths::Both) => self.session.active = other,
                _ => self.activate(other),
            },
            (None, Some(span)) => {
                self.session.interrupt();
                let (cause, until) = (cause.clone(), now + span);
                self.interrupted = Some(Interruption { cause, until, over: false });
            }
            _ => {}
        }
    }

    fn activate(&mut self, path: usize) {
        self.session.activate(path);
        self.account.counters.failovers += 1;
        self.outputs.push_back(Output::FailedOver(path));
    }

    /// Ends the session. Returns the number of posted TLPs that were still queued.
    fn end(&mut self) -> u64 {
        let posted = self.session.end(&mut self.account);
        for path in &mut self.paths {
            self.account.reports.dropped(path.trace_ids.drain(..));
        }
        posted
    }

    /// Takes the link down: the queued control frames are still sent, but input is ignored.
    fn close(&mut self, cause: Cause) {
        let closed = self.paths.iter_mut().fold(false, |any, path| path.close() | any);
        if closed | self.interrupted.take().is_some() {
            self.posted_lost = self.end();
            self.outputs.push_back(Output::Down(cause));
        }
    }

    fn received(&mut self, now: Instant, path: usize, mut bytes: Bytes) -> Result<(), Cause> {
        if !self.paths[path].is_open() {
            return Ok(());
        }
        while let Some((header, begin, payload)) = self.paths[path].next_frame(&mut bytes)? {
            let reports = &self.account.reports;
            let mut report = reports.begin(false, header, begin, &payload);
            let taken = self.frame(now, path, header, payload, report.as_mut());
            self.account.reports.add(path, report);
            taken?;
        }
        Ok(())
    }

    fn frame(
        &mut self,
        now: Instant,
        path: usize,
        header: Header,
        payload: Bytes,
        report: Option<&mut FrameReport>,
    ) -> Result<(), Cause> {
        let (up, surviving) = (self.paths[path].is_up(), self.session.survives().is_some());
        // The greeting of a session that goes on has its own field.
        if up || !surviving {
            self.session.acknowledge(header.acknowledged)?;
        }
        if header.kind == Kind::Tlps {
            if !up {
                return Err(Cause::Violation("TLPs before the greeting"));
            }
            let trace_ids = &mut self.paths[path].trace_ids;
            return self.session.receive(header, payload, trace_ids, report, &mut self.account);
        }
        let control = self.paths[path].decode(header.kind, &payload)?;
        let output = if !up {
            let hello = self.paths[path].greeted(control)?;
            Some(self.greeted(now, path, hello)?)
        } else if session::handles(&control) {
            self.session.control(control, &mut self.account)?
        } else {
            if matches!(control, Control::Echo(_)) {
                self.given.asked(now);
            }
            self.paths[path].control(control, self.outputs.len())?
        };
        match output {
            Some(Output::EchoReply(number)) if self.settings.lease > Duration::ZERO => {
                self.held.answered(number);
            }
            output => self.outputs.extend(output),
        }
        Ok(())
    }

    /// Begins a session, or goes on with the present one.
    fn greeted(&mut self, now: Instant, path: usize, hello: Hello) -> Result<Output, Cause> {
        let counters = &mut self.account.counters;
        let output = if self.interrupted.is_some() {
            self.session.resume(path, &hello)?;
            self.interrupted = None;
            counters.resumed += 1;
            Output::Resumed
        } else if self.session.survives().is_some() {
            self.session.join(path, &hello)?;
            Output::Joined(path)
        } else if hello.session.is_some_and(|session| session.expected.is_some()) {
            // A device that has no session to go on with is to reject such a Hello before.
            return Err(Cause::SessionGone);
        } else {
            self.session.begin(&hello);
            self.held.begin();
            self.given = Given::begin(hello.lease_ms);
            self.session.active = path;
            self.up_since = now;
            counters.connections += 1;
            Output::Up(hello)
        };
        if self.session.paths.is_some() {
            self.paths[path].set_keepalive(KEEPALIVE.min(self.settings.keepalive));
        }
        Ok(output)
    }

    /// The next output. Each call builds at most one frame of TLPs.
    pub fn poll(&mut self, now: Instant) -> Output {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        self.check_timers(now);
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        self.queue_acknowledgement();
        for step in 0..MAX_PATHS {
            let number = (self.turn + step) % MAX_PATHS;
            if self.paths[number].is_idle() {
                continue;
            }
            let (path, session) = (&mut self.paths[number], &mut self.session);
            let length = path.transmit(now, session, number, &mut self.account, &mut self.frames);
            if length > 0 {
                self.turn = (number + 1) % MAX_PATHS;
                let bytes = self.frames.split().freeze();
                self.session.keep(number, &bytes);
                return Output::Transmit(number, bytes);
            }
        }
        self.outputs.pop_front().unwrap_or_else(|| Output::Timeout(self.deadline(now)))
    }

    /// Queues credits or an acknowledgement, if due. If both paths carry everything, both carry these
    /// too.
    fn queue_acknowledgement(&mut self) {
        let Some(up) = self.paths.iter().find(|path| path.is_up()) else { return };
        self.session.queue_acknowledgement(up.control.is_empty());
        if self.session.paths != Some(Paths::Both) {
            return;
        }
        for control in self.session.take_receipts() {
            for path in self.paths.iter_mut().filter(|path| path.is_up()) {
                path.control.retain(|waiting| waiting.kind() != control.kind());
                path.control.push_back(control);
            }
        }
    }

    /// Checks for lost paths and a stuck link, and queues keepalives.
    fn check_timers(&mut self, now: Instant) {
        if let Some(Interruption { cause, .. }) =
            self.interrupted.as_ref().filter(|interruption| now >= interruption.until)
            && now >= self.given.until(now)
        {
            self.close(cause.clone());
        }
        for path in 0..MAX_PATHS {
            if self.paths[path].is_open() && now >= self.paths[path].lost_at() {
                let up = self.paths[path].is_up();
                self.fail(now, path, if up { Cause::Lost } else { Cause::Ungreeted });
            }
        }
        if self.paths.iter().all(|path| !path.is_up()) {
            return;
        }
        self.session.check_stuck(now);
        if self.session.stuck_at().is_some_and(|at| now >= at) {
            if !self.session.waits_for_network() {
                return self.end_session(now, Cause::Stuck);
            }
            for path in 0..MAX_PATHS {
                if self.paths[path].is_up() && self.session.is_sent_by(path) {
                    self.fail(now, path, Cause::Lost);
                }
            }
            return;
        }
        self.check_active(now);
        self.ask_for_lease(now);
        for path in 0..MAX_PATHS {
            if now >= self.paths[path].keepalive_at() && self.has_no_control(path) {
                self.paths[path].queue_control(Control::Acknowledge);
            }
        }
    }

    /// Lets another path take over if the active one is suspiciously silent.
    fn check_active(&mut self, now: Instant) {
        let active = self.session.active;
        let heard = |path: usize| {
            let path = &self.paths[path];
            path.is_up() && now < path.last_heard() + SUSPICIOUS
        };
        let other = (0..MAX_PATHS).find(|other| *other != active && heard(*other));
        if let Some(other) = other
            && self.session.paths == Some(Paths::Active)
            && self.session.is_busy()
            && !heard(active)
        {
            self.activate(other);
        }
    }

    /// Whether no control frame is queued for a path.
    fn has_no_control(&self, path: usize) -> bool {
        let sends = self.session.is_sent_by(path);
        self.paths[path].control.is_empty() && (!sends || self.session.control.is_empty())
    }

    fn deadline(&mut self, now: Instant) -> Option<Instant> {
        let ends = |one: &Interruption, lease: &mut Given| one.until.max(lease.until(now));
        let mut all = self.interrupted.as_ref().map(|one| ends(one, &mut self.given));
        let mut add = |at: Option<Instant>| all = earliest([all, at]);
        for number in 0..MAX_PATHS {
            let path = &self.paths[number];
            if path.is_open() {
                add(Some(path.lost_at()));
            }
            if !path.is_up() {
                continue;
            }
            // A queued control frame serves as keepalive as soon as there is room.
            if self.has_no_control(number) {
                add(Some(self.paths[number].keepalive_at()));
                let room = self.paths[number].room;
                if self.session.is_sent_by(number) {
                    add(self.session.departs_at(now, room));
                }
            }
        }
        let asks = self.settings.lease > Duration::ZERO && self.paths.iter().any(Path::is_up);
        add(Some(self.held.due).filter(|_| asks));
        add(self.session.stuck_at().filter(|_| self.interrupted.is_none()));
        let active = &self.paths[self.session.active];
        let watched = self.session.paths == Some(Paths::Active) && active.is_up();
        add(Some(active.last_heard() + SUSPICIOUS).filter(|at| watched && *at > now));
        all
    }

    /// Whether the link is up. It also is while its session is interrupted.
    pub fn is_up(&self) -> bool {
        self.interrupted.is_some() || self.paths.iter().any(Path::is_up)
    }

    /// When the link came up, if it is up.
    pub fn up_since(&self) -> Option<Instant> {
        self.is_up().then_some(self.up_since)
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

    /// How the session uses several paths; `None`: it has one.
    pub fn paths(&self) -> Option<Paths> {
        self.session.paths
    }

    /// The path that is up and was silent for longest.
    pub fn most_silent_path(&self) -> Option<usize> {
        let up = (0..MAX_PATHS).filter(|path| self.paths[*path].is_up());
        up.min_by_key(|path| self.paths[*path].last_heard())
    }

    /// A path that is up; else the first one.
    fn any_path(&mut self) -> &mut Path {
        let up = self.paths.iter().position(Path::is_up).unwrap_or(0);
        &mut self.paths[up]
    }

    /// Sends an echo request if the link is up and few control frames are queued.
    pub fn echo(&mut self, number: u64) {
        let path = self.any_path();
        if path.control.len() < MAX_PENDING {
            path.queue_control(Control::Echo(number));
        }
    }

    /// Requests that the device belong to `group`, if the link is up. An [`Output::Moved`] follows.
    /// Only probes may call this.
    pub fn move_to(&mut self, group: u16) {
        self.any_path().queue_control(Control::Move(group));
    }

    /// Answers an [`Output::Move`].
    pub fn answer_move(&mut self, moved: Moved) {
        self.any_path().queue_control(Control::Moved(moved));
    }

    /// Announces to the far side that this end closes the link.
    pub fn goodbye(&mut self) {
        self.paths.iter_mut().for_each(|path| path.queue_control(Control::Goodbye));
    }

    /// Rejects the far side, if its Hello was not received yet.
    pub fn reject_peer(&mut self, reason: Reject) {
        if self.paths[0].reject_peer(reason) {
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

    /// Bytes of sent frames that are kept until the far side acknowledges them, and whether no TLPs
    /// leave before.
    pub fn kept(&self) -> (usize, bool) {
        (self.session.kept(), self.session.is_full())
    }

    /// The aggregation queue of TLPs to send.
    pub fn queue(&self) -> &Aggregate {
        &self.session.queue
    }
}
