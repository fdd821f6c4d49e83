//! The transmitter of a line: eight queues, and the selection of the next frame.
//!
//! - [`config`]: the parameters;
//! - `admission`: the queue of a frame, and the time from which the frame may leave;
//! - `queues`: the waiting frames;
//! - `selection`: the next frame: gates, credit, eligibility, weights, hold;
//! - `shaper`, `credit`: the time from which a class may send;
//! - `line`: begins, suspends, resumes and ends transmissions;
//! - `limit`, `merge`: a rate limit, and merging of waiting frames.
//!
//! A frame starts when the line is free, its gate is open for its whole duration, its shaper
//! permits it and no higher class has a frame that may start (IEEE 802.1Q-2022, 8.6.8). The line is
//! free one gap after the last bit of the previous frame. A gate must stay open from preamble to
//! FCS, not during the gap.
//!
//! With active preemption, express frames that may start leave before preemptable frames of any
//! class (IEEE 802.3-2022, 99.4.7). An express frame that may start, or a hold request, interrupts
//! a preemptable frame as soon as both parts of the frame are long enough. The second part follows
//! when no express frame may start and no hold applies. The port does not check the gate of the
//! second part.

mod admission;
mod check;
pub mod config;
mod counters;
mod credit;
mod limit;
mod line;
mod merge;
mod queues;
mod selection;
mod shaper;

pub use admission::{Admission, Reception, SchedulerGroups};
pub use config::{
    Algorithm, Ats, Class, Committed, Config, Counted, CreditBased, Guard, Preemption, RateStep,
};
pub use counters::Counters;
pub use credit::CreditCourse;
pub use line::{Resume, Suspend};
pub use shaper::{NewShaper, Shaper, Transmits};

use tsn::gates::Hold;
use tsn::preemption::{CONTINUATION_PREAMBLE, MCRC, Verification, verification};
use tsn::{Clock, QUEUES, StepPolicy};
use wire::{Duration, Instant};

use super::frame::{Control, FCS, Frame, GAP, HEADER, MINIMUM, PREAMBLE, Tag, Transmission};
use super::{Dropped, FrameStage, LineEvent, Rate};
use admission::Admissions;
use line::Line;
use queues::{Queued, Queues};
use selection::Selection;

/// Input of a port.
#[derive(Clone, Debug)]
pub enum Input {
    /// A frame to send, with the result of [`Port::admit`].
    Frame(Frame, Admission),
    /// A packet of the partner's MAC.
    Control(Control),
}

/// Output of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A line event happens now.
    Line(LineEvent),
    /// No output before this time.
    Timeout(Option<Instant>),
}

/// A port.
#[derive(Debug)]
pub struct Port {
    config: Config,
    admissions: Admissions,
    queues: Queues,
    selection: Selection,
    line: Line,
    /// Present if the port supports preemption.
    verification: Option<Verification>,
    counters: Counters,
    /// How long the frame that started last had waited at this port.
    waited: Duration,
    /// The class of the frame that started last.
    started: usize,
    dropped: Dropped,
}

impl Port {
    /// A port with empty queues.
    ///
    /// # Panics
    /// If the configuration names a queue that does not exist.
    pub fn new(config: Config) -> Self {
        assert!(config.queue_of_priority.iter().all(|&queue| usize::from(queue) < QUEUES));
        Self {
            selection: Selection::new(&config),
            line: Line::new(config.rate),
            verification: config.preemption.map(|preemption| Verification::new(preemption.verify)),
            config,
            admissions: Admissions::default(),
            queues: Queues::default(),
            counters: Counters::default(),
            waited: Duration::ZERO,
            started: 0,
            dropped: Dropped::default(),
        }
    }

    /// The parameters of the port.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The line's rate.
    pub fn rate(&self) -> Rate {
        self.config.rate
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Frames queued.
    pub fn queued_frames(&self) -> usize {
        self.queues.frames()
    }

    /// Frames queued in `queue`.
    pub fn queued_frames_in(&self, queue: usize) -> usize {
        self.queues.frames_of(queue)
    }

    /// Frames queued in `queue` that are eligible at `at`.
    pub fn eligible_frames_in(&self, queue: usize, at: Instant) -> usize {
        self.queues.eligible_of(queue, self.config.clock.local(at))
    }

    /// The queues of frames with this tag: twice the same queue, or the two queues of a pair with
    /// cyclic queuing and forwarding.
    pub fn queues_of(&self, tag: Option<Tag>) -> [usize; 2] {
        let class = admission::class_of(&self.config, tag);
        let pair = self.config.cqf.iter().find(|pair| pair.classes.contains(&(class as u8)));
        pair.map_or([class; 2], |pair| pair.classes.map(usize::from))
    }

    /// Frames queued, integrated over time until the last change, in frame picoseconds. This value
    /// divided by the time is the mean number of queued frames, and divided by the number of frames
    /// is their mean wait (Little's law).
    pub fn occupancy(&self) -> u128 {
        self.queues.occupancy_so_far()
    }

    /// Frames queued, integrated over time until `now`; see [`occupancy`](Self::occupancy).
    pub fn occupancy_at(&self, now: Instant) -> u128 {
        self.queues.occupancy(now)
    }

    /// Bytes queued in `queue`, from header to FCS.
    pub fn queued_bytes(&self, queue: usize) -> usize {
        self.queues.bytes_of(queue)
    }

    /// The most frames, and the most bytes, that were queued at once in `queue`.
    pub fn most_queued(&self, queue: usize) -> (usize, usize) {
        self.queues.most_of(queue)
    }

    /// How long the frame that started last had waited at this port, including for its gate.
    pub fn last_wait(&self) -> Duration {
        self.waited
    }

    /// The class of the frame that started last.
    pub fn last_class(&self) -> usize {
        self.started
    }

    /// Frames of streams that the port dropped.
    pub fn dropped(&mut self) -> &mut Dropped {
        &mut self.dropped
    }

    /// The lowest and the highest credit of a class so far, in picobits; `None` without a
    /// credit-based shaper.
    pub fn credit_extremes(&self, class: usize) -> Option<[i128; 2]> {
        self.selection.credit_extremes(class)
    }

    /// The credit of a class at `now`, in bits; `None` without a credit-based shaper.
    pub fn credit(&mut self, class: usize, now: Instant) -> Option<f64> {
        self.selection.advance(&self.config, &self.queues, class, now);
        self.selection.credit(class)
    }

    /// The credit of a class over time, from its last update until a frame of the class arrives,
    /// starts or stops. `None` without a credit-based shaper.
    pub fn credit_course(&self, class: usize) -> Option<CreditCourse> {
        self.selection.credit_course(&self.queues, class)
    }

    /// Replaces the node's clock at `now`. `stepped` is the reaction of the gates to a step; `None`
    /// if only the rate of the clock changes.
    pub fn set_clock(&mut self, now: Instant, clock: Clock, stepped: Option<StepPolicy>) {
        for class in 0..QUEUES {
            self.selection.advance(&self.config, &self.queues, class, now);
        }
        self.config.clock = clock;
        if let Some(gates) = &mut self.config.gates {
            match stepped {
                Some(policy) => gates.step_clock(now, clock, policy),
                None => gates.set_clock(clock),
            }
        }
        self.selection.clock_changed(&self.config);
    }

    /// Drops all waiting frames and the rest of an interrupted frame, and resets the schedulers.
    pub(super) fn clear(&mut self, now: Instant) {
        for class in 0..QUEUES {
            while let Some(queued) = self.queues.take(class, now) {
                self.dropped.note(&queued.frame);
            }
        }
        self.line.clear();
        self.admissions = Admissions::default();
    }

    /// Determines the queue of a frame that reached the node by `reception`, and the time from
    /// which the frame may leave. `None`: the frame is dropped. If given, the internal priority
    /// `ipv` selects the queue (IEEE 802.1Q-2022, 8.6.5.4).
    pub fn admit(
        &mut self,
        groups: &mut SchedulerGroups,
        reception: Reception,
        (frame, ipv): (&Frame, Option<u8>),
    ) -> Option<Admission> {
        let (config, counters) = (&self.config, &mut self.counters);
        let admission = self.admissions.admit(config, groups, reception, (frame, ipv), counters);
        if admission.is_none() {
            self.counters.offered += 1;
            self.dropped.note(frame);
        }
        admission
    }

    /// Sets whether the link is up. Returns whether this is a change, always false for a port
    /// without preemption. After a link was down, the port verifies again (IEEE 802.3-2022, figure
    /// 99-8, link_fail). The port sends frames even if the link is down; they are lost.
    pub fn set_link(&mut self, is_up: bool) -> bool {
        let Some(verification) = &mut self.verification else { return false };
        if verification.is_link_up() == is_up {
            return false;
        }
        if is_up {
            verification.link_up();
        } else {
            verification.link_down();
        }
        self.selection.preempts = verification.is_active();
        true
    }

    /// Handles a frame to send, or a packet of the partner's MAC.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Frame(mut frame, admission) => {
                frame.security = self.config.security;
                self.enqueue(now, frame, admission);
            }
            Input::Control(control) => self.hear(control),
        }
    }

    /// Handles a packet of the partner's MAC. A MAC without preemption ignores it.
    fn hear(&mut self, control: Control) {
        let Some(verification) = &mut self.verification else { return };
        match control {
            Control::Verify => verification.handle_verify(),
            Control::Respond => verification.handle_respond(),
        }
        self.selection.preempts = verification.is_active();
    }

    fn enqueue(&mut self, now: Instant, frame: Frame, admission: Admission) {
        let Admission { class, eligible, is_own } = admission;
        self.counters.offered += 1;
        let duration = frame.duration(self.config.rate);
        let Some(gate_until) = selection::gate_permits(&self.config, class, now, duration) else {
            self.counters.never_fits += 1;
            self.dropped.note(&frame);
            return;
        };
        let limits = &self.config.classes[class];
        if !self.queues.has_room(class, frame.length(), is_own, limits) {
            self.counters.full[class] += 1;
            self.dropped.note(&frame);
            return;
        }
        self.selection.advance(&self.config, &self.queues, class, now);
        self.queues.put(class, now, Queued { frame, duration, gate_until, eligible, is_own });
    }

    /// The next line event, or when to poll again.
    pub fn poll(&mut self, now: Instant) -> Output {
        if now < self.line.free_at() {
            return self.poll_busy(now);
        }
        self.poll_free(now)
    }

    /// Checks for an interruption while a frame or its gap occupies the line.
    fn poll_busy(&mut self, now: Instant) -> Output {
        let free_at = self.line.free_at();
        let waits = self.queues.waiting() != 0
            || self.line.suspended().is_some()
            || self.verification.as_ref().is_some_and(Verification::is_pending);
        let at_end = waits.then_some(free_at);
        let Some(preemption) = self.selection.active_preemption(&self.config) else {
            return Output::Timeout(at_end);
        };
        let Some(cut) = self.line.next_cut(now, preemption.fragment) else {
            return Output::Timeout(at_end);
        };
        let hold = self.selection.hold(&self.config, now);
        let start = self.line.free_after_cut(cut);
        let change = hold.until().filter(|change| *change < free_at);
        let mut wake = [at_end, change].into_iter().flatten().min();
        if matches!(hold, Hold::Held { .. }) || self.express_may_start(now, start, &mut wake) {
            if cut > now {
                return Output::Timeout(Some(cut));
            }
            return Output::Line(LineEvent::Suspend(self.suspend(now)));
        }
        Output::Timeout(wake)
    }

    /// Whether an express frame may start now and also at `start`, after the interruption. If not,
    /// `wake` is lowered to the time of the next check.
    fn express_may_start(
        &mut self,
        now: Instant,
        start: Instant,
        wake: &mut Option<Instant>,
    ) -> bool {
        let express = self.selection.express(&self.config) & self.queues.waiting();
        for class in classes(express) {
            let Some(available) = self.head_start(class, now) else { continue };
            if available > now {
                *wake = Some(wake.map_or(available, |wake| wake.min(available)));
            } else if self.queues.head(class).is_some_and(|head| {
                selection::gate_permits(&self.config, class, start, head.duration) == Some(start)
            }) {
                return true;
            }
        }
        false
    }

    fn poll_free(&mut self, now: Instant) -> Output {
        let suspended = self.line.suspended();
        let waiting = self.queues.waiting();
        if waiting == 0 && suspended.is_none() {
            return self.send_control(now);
        }
        let hold = self.selection.hold(&self.config, now);
        let held = matches!(hold, Hold::Held { .. });
        let asks = suspended.is_none()
            && self.verification.as_ref().is_some_and(|verification| verification.is_due(now));
        let candidates = match &self.config.preemption {
            Some(preemption) if held || asks || suspended.is_some() => waiting & preemption.express,
            _ => waiting,
        };
        let mut wake = None;
        // The MAC merge sublayer sends express frames of any class first.
        let express = self.selection.express(&self.config);
        for classes in [candidates & express, candidates & !express] {
            if let Some(class) = self.select(classes, now, &mut wake) {
                return self.start(class, now);
            }
        }
        if asks {
            return self.send_control(now);
        }
        if suspended.is_some() && !held {
            return Output::Line(LineEvent::Resume(self.resume(now)));
        }
        // When the hold ends, preemptable frames may start.
        let released = if held { hold.until() } else { None };
        Output::Timeout([wake, released].into_iter().flatten().min())
    }

    /// The class in `mask` whose first frame starts now. If there is none, `wake` is lowered to the
    /// time of the next check.
    fn select(&mut self, mask: u8, now: Instant, wake: &mut Option<Instant>) -> Option<usize> {
        let mut turns = self.selection.takes_turns().then_some([None; QUEUES]);
        for class in classes(mask) {
            let Some(start) = self.head_start(class, now) else { continue };
            if start > now {
                *wake = Some(wake.map_or(start, |wake| wake.min(start)));
            } else if matches!(self.config.classes[class].algorithm, Algorithm::Ets { .. }) {
                let length = self.queues.head(class).map(|head| head.frame.line_length() + GAP);
                turns.iter_mut().for_each(|turns| turns[class] = length);
            } else {
                return Some(class);
            }
        }
        turns.and_then(|turns| self.selection.turn(turns))
    }

    /// Sends a due Verify or Respond to the partner's MAC.
    fn send_control(&mut self, now: Instant) -> Output {
        let Some(verification) = &mut self.verification else { return Output::Timeout(None) };
        let control = match verification.poll(now) {
            verification::Output::SendVerify => Control::Verify,
            verification::Output::SendRespond => Control::Respond,
            verification::Output::Timeout(at) => return Output::Timeout(at),
        };
        let frame = Frame::control(control, now);
        let rate = self.config.rate;
        let end = self.line.begin(now, 0, frame.length(), false);
        self.counters.control += 1;
        self.counters.busy = self.counters.busy + (end - now);
        Output::Line(LineEvent::Transmit(Transmission {
            frame,
            start: now,
            end,
            rate,
            preemptable: false,
            class: 0,
        }))
    }

    /// When the first frame of a class may start. Frames that no longer fit any window are dropped,
    /// because they would block the queue: windows can become shorter by a drifting clock or by
    /// another gate control list.
    fn head_start(&mut self, class: usize, now: Instant) -> Option<Instant> {
        loop {
            self.queues.head(class)?;
            if let Some(start) = self.selection.start(&self.config, &self.queues, class, now) {
                return Some(start);
            }
            self.selection.advance(&self.config, &self.queues, class, now);
            let queued = self.queues.take(class, now)?;
            self.dropped.note(&queued.frame);
            self.counters.never_fits += 1;
        }
    }

    fn start(&mut self, class: usize, now: Instant) -> Output {
        self.selection.advance(&self.config, &self.queues, class, now);
        let queued = self.queues.take(class, now).expect("a frame waits");
        let Queued { mut frame, gate_until, .. } = queued;
        if self.config.merge > 0 && self.config.gates.is_none() {
            self.counters.merged +=
                merge::merge(&mut self.queues, class, now, &mut frame, self.config.merge);
        }
        (self.waited, self.started) = (now.since(frame.latency.until()), class);
        frame.latency.book(FrameStage::Gate, gate_until.min(now));
        if let Some((from, until)) = self.selection.shaped(class) {
            let from = from.max(frame.latency.until()).min(now);
            frame.latency.book(FrameStage::Queue, from);
            frame.latency.book(FrameStage::Shaper, until.min(now).max(from));
        }
        frame.latency.book(FrameStage::Queue, now);
        let preemptable = !self.selection.is_express(&self.config, class);
        let end = self.line.begin(now, class, frame.length(), preemptable);
        self.line.delay(limit::next_start(&self.config.rate_steps, now, frame.line_length() + GAP));
        self.selection.begins(&self.config, class, now, end, frame.line_length() + GAP);
        self.counters.sent += 1;
        self.counters.sent_bytes += frame.line_length() as u64;
        self.counters.busy = self.counters.busy + (end - now);
        let rate = self.config.rate;
        Output::Line(LineEvent::Transmit(Transmission {
            frame,
            start: now,
            end,
            rate,
            preemptable,
            class,
        }))
    }

    fn suspend(&mut self, now: Instant) -> Suspend {
        let (class, suspend) = self.line.suspend(now);
        self.selection.advance(&self.config, &self.queues, class, now);
        self.selection.stops(class, now);
        self.counters.suspended += 1;
        self.counters.sent_bytes += MCRC as u64;
        self.counters.busy = self.counters.busy - (suspend.planned - suspend.end);
        suspend
    }

    fn resume(&mut self, now: Instant) -> Resume {
        let (class, resume) = self.line.resume(now);
        self.selection.advance(&self.config, &self.queues, class, now);
        let own = now + self.line.duration(CONTINUATION_PREAMBLE);
        self.selection.goes_on(&self.config, class, own, resume.end);
        self.counters.sent_bytes += CONTINUATION_PREAMBLE as u64;
        self.counters.busy = self.counters.busy + (resume.end - resume.start);
        let closes = self.config.gates.as_ref().and_then(|gates| {
            if gates.is_open(class, now) { gates.next_change(class, now) } else { Some(now) }
        });
        self.counters.overrun += u64::from(closes.is_some_and(|closes| closes < resume.end));
        resume
    }
}

/// The classes of a mask, highest first.
fn classes(mask: u8) -> impl Iterator<Item = usize> {
    (0..QUEUES).rev().filter(move |class| mask >> class & 1 != 0)
}

/// The largest rate of useful bytes, in bytes per second, on a line that carries only frames with a
/// payload (IP packet) of `payload` bytes, of which `useful` bytes count.
pub fn goodput(rate: Rate, payload: usize, useful: usize) -> u64 {
    let line = PREAMBLE + (HEADER + payload + FCS).max(MINIMUM) + GAP;
    (u128::from(rate.bits_per_second()) / 8 * useful as u128 / line as u128) as u64
}
