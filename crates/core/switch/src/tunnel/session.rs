//! The session of a link: sequence numbers, credits and resets of TLPs. The session does not depend
//! on a connection: any path can carry its frames, and a further path can carry it on.

use super::account::Account;
use super::frames::Frames;
use super::path::Greeting;
use super::receiver::Receiver;
use super::replay::{Kept, Replay};
use super::resets::{ReceivedResets, RequestedResets, Step};
use super::{Cause, MAX_PATHS, Output, Settings};
use crate::aggregate::{Aggregate, Departure};
use bytes::{Buf, Bytes};
use pcie::Ready;
use std::collections::VecDeque;
use wire::frame::{
    Control, FrameReport, Grant, HEADER, Header, Hello, Kind, Paths, Role, Survival,
};
use wire::tlp::{Class, Tlp, TraceId};
use wire::{Duration, Instant};

/// Number of received frames after which an acknowledgement is sent.
const ACKNOWLEDGE_AFTER: u32 = 64;
/// The share of the bytes that the far side can keep after which an acknowledgement is sent.
const ACKNOWLEDGE_SHARE: usize = 8;
/// How much longer a device keeps a session than its host: it may notice the loss earlier.
pub(super) const DEVICE_WAITS: Duration = Duration::from_ms(2_000);

/// Whether a control frame is handled by the session, not by the path.
pub(super) fn handles(control: &Control) -> bool {
    matches!(control.kind(), Kind::Credits | Kind::Acknowledge | Kind::Reset | Kind::ResetDone)
}

/// The session of a link.
#[derive(Debug)]
pub(super) struct Session {
    settings: Settings,
    pub queue: Aggregate,
    pub receiver: Receiver,
    /// Control frames to send, which TLPs must not overtake.
    pub control: VecDeque<Control>,
    pub next_sequence: u32,
    pub expected: u32,
    pub acknowledged: u32,
    unacknowledged_frames: u32,
    unacknowledged_bytes: usize,
    /// Name of the session; 0 on a device before the greeting.
    pub id: u128,
    /// How long the session survives without a connection, once both ends have agreed.
    pub survives: Option<Duration>,
    /// How the session uses several paths, once both ends have agreed.
    pub paths: Option<Paths>,
    /// The path that sends the TLPs, unless all paths do.
    pub active: usize,
    /// What may have to be sent again.
    pub replay: Replay,
    /// The frame of TLPs that was built last and is not yet kept.
    built: Option<BuiltFrame>,
    /// The time since which posted requests or completions are queued, but no frame of TLPs is
    /// sent.
    stuck: Option<Instant>,
    /// Resets that this end requested. Until they are answered, received TLPs are dropped.
    pub requested_resets: RequestedResets,
    /// Resets that the far side requested. TLPs that are received after a reset wait until the
    /// reset is done.
    pub received_resets: ReceivedResets,
}

/// A frame of TLPs that was built.
#[derive(Debug)]
struct BuiltFrame {
    sequence: u32,
    /// Length of its payload in bytes.
    length: usize,
    /// Trace ID and length in bytes of each TLP.
    trace_ids: Vec<(TraceId, usize)>,
}

impl Session {
    /// A session without credits, which sends no TLPs: number `number` of this end.
    pub(super) fn new(settings: Settings, number: u32) -> Self {
        let id = match settings.role {
            Role::Host => settings.secret >> 32 << 32 | u128::from(number),
            _ => 0,
        };
        Self {
            settings,
            queue: Aggregate::new(settings.aggregation, Default::default()),
            receiver: Receiver::new(settings.window),
            control: VecDeque::new(),
            next_sequence: 0,
            expected: 0,
            acknowledged: 0,
            unacknowledged_frames: 0,
            unacknowledged_bytes: 0,
            id,
            survives: None,
            paths: None,
            active: 0,
            replay: Replay::default(),
            built: None,
            stuck: None,
            requested_resets: RequestedResets::default(),
            received_resets: ReceivedResets::default(),
        }
    }

    /// Begins with the Hello of the far side.
    pub(super) fn begin(&mut self, hello: &Hello) {
        self.queue = Aggregate::new(self.settings.aggregation, hello.credits)
            .with_overhead(self.settings.tlp_overhead);
        let Some(theirs) = hello.session else { return };
        let agreed = self.settings.survive.min(Duration::from_ms(theirs.survive_ms.into()));
        self.survives = (agreed > Duration::ZERO).then(|| match self.settings.role {
            Role::Device => agreed + DEVICE_WAITS,
            _ => agreed,
        });
        self.paths = match self.settings.role {
            Role::Device => hello.paths,
            _ => self.settings.paths.filter(|_| hello.paths.is_some()),
        };
        self.paths.take_if(|_| self.survives.is_none());
        if self.settings.role == Role::Device {
            self.id = theirs.id;
        }
    }

    /// Whether this path sends the TLPs.
    pub(super) fn is_sent_by(&self, path: usize) -> bool {
        self.paths == Some(Paths::Both) || path == self.active
    }

    /// Makes `path` the one that sends the TLPs, from the first unacknowledged frame on.
    pub(super) fn activate(&mut self, path: usize) {
        self.active = path;
        self.replay.rewind(path);
        self.stuck = None;
        // Those that the former path sent may be lost.
        let limits = self.receiver.limits();
        self.replace_control(Control::Credits(limits));
    }

    /// Begins to use a further path.
    pub(super) fn join(&mut self, path: usize, hello: &Hello) -> Result<(), Cause> {
        self.check_name(hello)?;
        self.replay.rewind(path);
        self.grant(hello.credits)
    }

    /// Whether something waits for the far side.
    pub(super) fn is_busy(&self) -> bool {
        !self.replay.is_empty() || !self.queue.is_empty()
    }

    /// What this end says in its Hello, for a session that `goes_on` or begins.
    pub(super) fn greeting(&mut self, goes_on: bool) -> Greeting {
        let survive_ms = (self.settings.survive.as_ns() / 1_000_000) as u32;
        let expected = goes_on.then_some(self.expected);
        let session = Survival { id: self.id, survive_ms, expected };
        // A device only states that it can.
        let paths = match self.settings.role {
            Role::Device => Some(Paths::Active),
            _ => self.settings.paths,
        };
        let survives = survive_ms > 0;
        Greeting {
            session: survives.then_some(session),
            paths: paths.filter(|_| survives),
            credits: self.receiver.limits(),
        }
    }

    /// Name of the session, if it survives its connections.
    pub(super) fn id(&self) -> Option<u128> {
        self.survives.map(|_| self.id)
    }

    /// How long the session survives without a connection.
    pub(super) fn survives(&self) -> Option<Duration> {
        self.survives
    }

    /// Waits for another connection.
    pub(super) fn interrupt(&mut self) {
        (0..MAX_PATHS).for_each(|path| self.replay.rewind(path));
        self.stuck = None;
    }

    /// Goes on over a new connection, with the Hello of the far side.
    pub(super) fn resume(&mut self, path: usize, hello: &Hello) -> Result<(), Cause> {
        self.check_name(hello)?;
        self.active = path;
        self.grant(hello.credits)
    }

    /// Checks that a Hello carries this session on, and takes its acknowledgement.
    fn check_name(&mut self, hello: &Hello) -> Result<(), Cause> {
        let Some(Survival { id, expected: Some(expected), .. }) = hello.session else {
            return Err(Cause::SessionGone);
        };
        if self.settings.role == Role::Device && id != self.id {
            return Err(Cause::SessionGone);
        }
        self.acknowledge(expected)
    }

    fn grant(&mut self, limits: [Grant; 3]) -> Result<(), Cause> {
        // What comes over the slower path may be older.
        match self.queue.grant(limits) || self.paths.is_some() {
            true => Ok(()),
            false => Err(Cause::Violation("a credit limit below an earlier one")),
        }
    }

    /// Adds `by` to all sequence numbers and credits, as a long run of traffic would. Call this at
    /// both ends.
    #[cfg(test)]
    pub fn age(&mut self, by: u32) {
        for number in [&mut self.next_sequence, &mut self.expected, &mut self.acknowledged] {
            *number = number.wrapping_add(by);
        }
        self.queue.age(by);
        self.receiver.age(by);
    }

    /// Drops all TLPs. Returns the number of posted TLPs that were queued to be sent.
    pub(super) fn end(&mut self, account: &mut Account) -> u64 {
        self.survives = None;
        account.reports.dropped(self.replay.trace_ids());
        self.replay.clear();
        self.drop_all(account)
    }

    fn drop_all(&mut self, account: &mut Account) -> u64 {
        self.drop_received(account);
        self.drop_queued(account) as u64
    }

    fn drop_queued(&mut self, account: &mut Account) -> usize {
        account.reports.dropped(self.queue.trace_ids());
        self.queue.clear()
    }

    fn drop_received(&mut self, account: &mut Account) {
        account.reports.dropped(self.receiver.trace_ids());
        self.receiver.clear();
    }

    /// Whether TLPs wait for [`pop`](Self::pop).
    pub(super) fn has_received(&self) -> bool {
        !self.receiver.is_empty()
    }

    pub(super) fn front(&self, class: Class) -> Option<&Tlp> {
        self.receiver.front(class)
    }

    /// Takes a received TLP, unless a requested reset is not done.
    pub(super) fn pop(&mut self, ready: Ready) -> Option<Tlp> {
        if self.received_resets.is_pending() { None } else { self.receiver.pop(ready) }
    }

    /// The number of the frame that is expected next.
    pub(super) fn expected(&self) -> u32 {
        self.expected
    }

    /// As [`Tunnel::reset`](super::Tunnel::reset).
    pub(super) fn reset(&mut self, account: &mut Account) {
        self.drop_all(account);
        // A Reset that is still queued counts for both requests.
        if !self.control.iter().any(|control| control.kind() == Kind::Reset) {
            self.control.push_back(Control::Reset(self.requested_resets.next()));
        }
    }

    /// As [`Tunnel::reset_done`](super::Tunnel::reset_done).
    pub(super) fn reset_done(&mut self, account: &mut Account) {
        self.drop_queued(account);
        if let Some(number) = self.received_resets.done() {
            self.replace_control(Control::ResetDone(number));
        }
    }

    /// Queues a control frame, and removes queued frames of the same kind. So the queue does not
    /// grow if the far side does not read.
    fn replace_control(&mut self, control: Control) {
        self.control.retain(|waiting| waiting.kind() != control.kind());
        self.control.push_back(control);
    }

    /// Handles an acknowledgement: the far side has received all frames with numbers below
    /// `number`.
    pub(super) fn acknowledge(&mut self, number: u32) -> Result<(), Cause> {
        let ahead = number.wrapping_sub(self.acknowledged);
        if self.paths.is_some() && ahead >= 1 << 31 {
            return Ok(());
        }
        if ahead > self.next_sequence.wrapping_sub(self.acknowledged) {
            return Err(Cause::Violation("an acknowledgement of frames that were never sent"));
        }
        self.acknowledged = number;
        self.replay.acknowledge(number);
        Ok(())
    }

    /// Handles a control frame of the session.
    pub(super) fn control(
        &mut self,
        control: Control,
        account: &mut Account,
    ) -> Result<Option<Output>, Cause> {
        match control {
            Control::Credits(limits) => self.grant(limits).map(|()| None),
            Control::Reset(_) if self.settings.role != Role::Device => {
                Err(Cause::Violation("a reset from the device"))
            }
            Control::Reset(number) => Ok(self.receive_reset(number, account)),
            Control::ResetDone(number) => {
                self.requested_resets.done(number).map(|()| None).map_err(Cause::Violation)
            }
            _ => Ok(None),
        }
    }

    fn receive_reset(&mut self, number: u32, account: &mut Account) -> Option<Output> {
        match self.received_resets.receive(number) {
            Step::Reset { first } => {
                self.drop_received(account);
                return first.then_some(Output::Reset);
            }
            Step::Answer => self.replace_control(Control::ResetDone(number)),
            Step::Ignore => {}
        }
        None
    }

    /// Receives a frame of TLPs and assigns `trace_ids` to them in order.
    pub(super) fn receive(
        &mut self,
        header: Header,
        mut payload: Bytes,
        trace_ids: &mut VecDeque<TraceId>,
        mut report: Option<&mut FrameReport>,
        account: &mut Account,
    ) -> Result<(), Cause> {
        let behind = self.expected.wrapping_sub(header.sequence);
        if self.paths.is_some() && (1..1 << 31).contains(&behind) {
            // Another path was faster.
            account.counters.copies += 1;
            while !trace_ids.is_empty() && payload.has_remaining() {
                Tlp::decode(&mut payload).map_err(Cause::Tlp)?;
                trace_ids.pop_front();
            }
            return Ok(());
        }
        if header.sequence != self.expected {
            return Err(Cause::Violation("a frame out of sequence"));
        }
        self.expected = self.expected.wrapping_add(1);
        self.unacknowledged_frames += 1;
        self.unacknowledged_bytes += payload.len();
        account.counters.frames_received += 1;
        if payload.is_empty() {
            return Err(Cause::Violation("a frame without TLPs"));
        }
        let whole = payload.clone();
        let most = usize::from(self.settings.max_payload);
        while payload.has_remaining() {
            let at = whole.len() - payload.len();
            let mut tlp = Tlp::decode(&mut payload).map_err(Cause::Tlp)?;
            tlp.trace_id = trace_ids.pop_front().unwrap_or_default();
            if tlp.data.len() > most {
                return Err(Cause::Violation("a TLP above the agreed maximum payload"));
            }
            // With trace IDs, each packet stays separate.
            if trace_ids.is_empty() {
                tlp.extend_run(&whole, &mut payload, most);
            }
            if let Some(report) = &mut report {
                let mut packets = &whole[at..];
                for length in tlp.wire_lengths() {
                    let (packet, behind) = packets.split_at(length);
                    report.add_tlp(tlp.trace_id, packet);
                    packets = behind;
                }
            }
            account.counters.tlps_received += tlp.packets() as u64;
            if !self.receiver.push(tlp) {
                return Err(Cause::Violation("a TLP beyond the granted credits"));
            }
        }
        if self.requested_resets.is_pending() {
            // The far side sent these TLPs before its reset.
            self.drop_received(account);
        }
        Ok(())
    }

    /// Queues credits or an acknowledgement, if due. `no_control` states that the path has no
    /// queued control frame, which would carry the acknowledgement.
    pub(super) fn queue_acknowledgement(&mut self, no_control: bool) {
        if let Some(limits) = self.receiver.update(self.settings.max_payload) {
            self.replace_control(Control::Credits(limits));
        } else if (self.unacknowledged_frames >= ACKNOWLEDGE_AFTER
            || self.unacknowledged_bytes >= self.settings.keep / ACKNOWLEDGE_SHARE)
            && !self.queue.has_sendable()
            && self.control.is_empty()
            && no_control
        {
            self.control.push_back(Control::Acknowledge);
        }
    }

    /// Takes the queued credits and acknowledgements.
    pub(super) fn take_receipts(&mut self) -> VecDeque<Control> {
        let is_receipt =
            |control: &Control| matches!(control.kind(), Kind::Credits | Kind::Acknowledge);
        let (receipts, rest) = self.control.drain(..).partition(is_receipt);
        self.control = rest;
        receipts
    }

    /// Builds control frames, then one frame of TLPs, while there is room. Returns a frame of TLPs to
    /// send again, if there is one: it comes before all others, and the path may divide it.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        path: usize,
        frames: &mut Frames,
    ) -> Option<Bytes> {
        if !self.is_sent_by(path) {
            return None;
        }
        while let Some(kept) = self.replay.next(path) {
            match kept {
                _ if frames.is_complete() => return None,
                Kept::Frame { sequence, payload, trace_ids } => {
                    let again = frames.again(*sequence, payload, trace_ids);
                    self.replay.sent(path);
                    self.stuck = None;
                    return Some(again);
                }
                Kept::Control(control) => {
                    if !frames.control(&mut VecDeque::from([*control]), |_| {}) {
                        return None;
                    }
                    self.replay.sent(path);
                }
            }
        }
        let (keeps, replay) = (self.survives.is_some(), &mut self.replay);
        let all = frames.control(&mut self.control, |control| {
            if keeps && matches!(control.kind(), Kind::Reset | Kind::ResetDone) {
                replay.keep(path, Kept::Control(control));
            }
        });
        // TLPs must not overtake a reset.
        if !all || frames.is_complete() || self.is_full() {
            return None;
        }
        let room = frames.tlp_room(self.settings.max_frame);
        if self.queue.departure(now, room) == Departure::Now {
            let before = frames.length();
            let trace_ids = frames.tlps(self.next_sequence, &mut self.queue, room);
            let length = frames.length() - before - HEADER;
            self.built =
                keeps.then_some(BuiltFrame { sequence: self.next_sequence, length, trace_ids });
            self.next_sequence = self.next_sequence.wrapping_add(1);
            self.stuck = None;
        }
        None
    }

    /// Keeps the frame of TLPs with which the sent `bytes` end, if it may have to be sent again.
    pub(super) fn keep(&mut self, path: usize, bytes: &Bytes) {
        let Some(BuiltFrame { sequence, length, trace_ids }) = self.built.take() else { return };
        let payload = bytes.slice(bytes.len() - length..);
        self.replay.keep(path, Kept::Frame { sequence, payload, trace_ids });
    }

    /// Whether no TLPs leave before an acknowledgement.
    pub(super) fn is_full(&self) -> bool {
        self.replay.is_full(self.settings.keep)
    }

    /// Bytes of sent frames that are kept.
    pub(super) fn kept(&self) -> usize {
        self.replay.bytes()
    }

    /// Records that the last sent frames acknowledge all received frames.
    pub(super) fn transmitted(&mut self) {
        (self.unacknowledged_frames, self.unacknowledged_bytes) = (0, 0);
    }

    /// The time at which TLPs that wait for aggregation leave, if the path takes `room` bytes.
    pub(super) fn departs_at(&mut self, now: Instant, room: usize) -> Option<Instant> {
        if self.is_full() {
            return None;
        }
        match self.queue.departure(now, super::frames::tlp_room(room, self.settings.max_frame)) {
            Departure::At(at) => Some(at),
            Departure::Now | Departure::Later => None,
        }
    }

    /// Records since when the far side accepts no TLPs. Only hosts check this, because a stuck
    /// device would block the traffic to other devices. A device does not check, because a host may
    /// have paused guests.
    pub(super) fn check_stuck(&mut self, now: Instant) {
        let waits = self.settings.role == Role::Host && self.queue.has_posted_or_completions();
        self.stuck = if waits { self.stuck.or(Some(now)) } else { None };
    }

    /// Whether TLPs wait for the network, and the session survives another connection. A far side
    /// that is stuck acknowledges everything that it has received.
    pub(super) fn waits_for_network(&self) -> bool {
        self.survives.is_some() && (!self.replay.is_empty() || self.queue.has_sendable())
    }

    /// The time from which the far side counts as stuck; `None` if no posted TLP or completion
    /// waits for the far side, and always on a device.
    pub(super) fn stuck_at(&self) -> Option<Instant> {
        self.stuck.map(|since| since + self.settings.loss_limit)
    }
}
