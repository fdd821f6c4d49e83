//! The transmitter of a line: eight queues, strict priority, gates.
//!
//! A frame starts when the line is free, its gate is open for its whole
//! duration, and no higher queue has a frame that may start. The line is free
//! one gap after the last bit of the previous frame. A gate must stay open from
//! preamble to FCS, not during the gap.

use std::collections::VecDeque;

use bytes::BytesMut;
use tsn::{Gates, QUEUES};
use wire::{Duration, Instant};

use super::frame::{self, FCS, Frame, GAP, HEADER, PREAMBLE, Tag, Transmission};
use super::{Dropped, FrameStage, Rate};

/// How a port decides whether a frame still fits into an open window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// By the frame's own length (IEEE 802.1Q-2022, 8.6.8.4).
    #[default]
    FrameLength,
    /// As if each frame had this payload (bytes) and a tag, like equipment
    /// that knows only the MTU.
    MaximumFrame(usize),
}

/// From `at` on, a port sends at most `bits_per_second`, including preamble and
/// gap: it sends each frame at the line's rate and delays the next one (a
/// shaper with a burst of one frame).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStep {
    /// From when on.
    pub at: Instant,
    /// Bits a second, above 0.
    pub bits_per_second: u64,
}

/// A port's parameters.
#[derive(Clone, Debug)]
pub struct Config {
    /// The line's rate.
    pub rate: Rate,
    /// When each queue may send; `None`: always.
    pub gates: Option<Gates>,
    /// Whether a frame fits before its gate closes.
    pub guard: Guard,
    /// Frames that each queue holds.
    pub queue_frames: usize,
    /// Bytes (header to FCS) that each queue holds.
    pub queue_bytes: usize,
    /// The queue of each priority code point; a frame without tag has 0.
    pub queue_of_priority: [u8; QUEUES],
    /// Rate limits below the line's rate, in the order of time.
    pub rate_steps: Vec<RateStep>,
    /// Merges waiting raw frames of one link up to this payload (bytes); 0:
    /// never. Only without gates.
    pub merge: usize,
}

impl Config {
    /// A port with the priorities' own queues, without gates, with room for
    /// 1024 frames or 512 KiB in each queue.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            gates: None,
            guard: Guard::FrameLength,
            queue_frames: 1024,
            queue_bytes: 512 << 10,
            queue_of_priority: [0, 1, 2, 3, 4, 5, 6, 7],
            rate_steps: Vec::new(),
            merge: 0,
        }
    }
}

/// Input of a port.
#[derive(Clone, Debug)]
pub enum Input {
    /// A frame to send.
    Frame(Frame),
}

/// Output of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A transmission starts now; its end is known.
    Transmit(Transmission),
    /// Nothing before this time.
    Timeout(Option<Instant>),
}

/// Counters of a port. Frames in = `sent` + `merged` + all drops + those still
/// queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames given to the port.
    pub offered: u64,
    /// Transmissions begun.
    pub sent: u64,
    /// Bytes from preamble to FCS of these.
    pub sent_bytes: u64,
    /// Frames dropped because their queue was full.
    pub full: [u64; QUEUES],
    /// Frames dropped because no window of their queue is long enough.
    pub never_fits: u64,
    /// How long the line was busy with preamble to FCS.
    pub busy: Duration,
    /// Frames merged into the one before them; not in `sent`.
    pub merged: u64,
}

#[derive(Clone, Debug)]
struct Queued {
    frame: Frame,
    duration: Duration,
    /// When it could have started if only its gate mattered.
    gate_until: Instant,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    frames: VecDeque<Queued>,
    bytes: usize,
}

/// A port.
#[derive(Clone, Debug)]
pub struct Port {
    config: Config,
    queues: [Queue; QUEUES],
    /// Bit n: queue n is not empty.
    waiting: u8,
    /// When the line is free again.
    free_at: Instant,
    counters: Counters,
    occupancy: Occupancy,
    /// How long the frame that started last had waited here.
    waited: Duration,
    dropped: Dropped,
}

/// The queueing time of all frames in sum.
#[derive(Clone, Copy, Debug, Default)]
struct Occupancy {
    frames: u64,
    since: Instant,
    frame_ps: u128,
}

impl Occupancy {
    fn change(&mut self, now: Instant, change: i64) {
        self.frame_ps += u128::from(self.frames) * u128::from(now.since(self.since).as_ps());
        self.since = now;
        self.frames = self.frames.checked_add_signed(change).expect("frames are counted");
    }
}

impl Port {
    /// A port with empty queues.
    ///
    /// # Panics
    /// If the configuration names a queue that does not exist.
    pub fn new(config: Config) -> Self {
        assert!(config.queue_of_priority.iter().all(|&queue| usize::from(queue) < QUEUES));
        Self {
            config,
            queues: Default::default(),
            waiting: 0,
            free_at: Instant::ZERO,
            counters: Counters::default(),
            occupancy: Occupancy::default(),
            waited: Duration::ZERO,
            dropped: Dropped::default(),
        }
    }

    /// The line's rate.
    pub fn rate(&self) -> Rate {
        self.config.rate
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Frames queued.
    pub fn queued_frames(&self) -> usize {
        self.occupancy.frames as usize
    }

    /// Frames queued in `queue`.
    pub fn queued_frames_in(&self, queue: usize) -> usize {
        self.queues[queue].frames.len()
    }

    /// The queue of frames with this tag.
    pub fn queue_of(&self, tag: Option<Tag>) -> usize {
        let priority = tag.map_or(0, |tag| tag.pcp);
        usize::from(self.config.queue_of_priority[usize::from(priority)])
    }

    /// Frames queued, integrated over time until the last change, in frame
    /// picoseconds. Divided by the time it is the mean length of the queues,
    /// and by Little's law the frames' rate times their mean wait.
    pub fn occupancy(&self) -> u128 {
        self.occupancy.frame_ps
    }

    /// The same until `now`.
    pub fn occupancy_at(&self, now: Instant) -> u128 {
        let mut occupancy = self.occupancy;
        occupancy.change(now, 0);
        occupancy.frame_ps
    }

    /// Bytes queued in `queue`, header to FCS.
    pub fn queued_bytes(&self, queue: usize) -> usize {
        self.queues[queue].bytes
    }

    /// How long the frame that started last had waited here, gates included.
    pub fn last_wait(&self) -> Duration {
        self.waited
    }

    /// Frames of streams that it dropped.
    pub fn dropped(&mut self) -> &mut Dropped {
        &mut self.dropped
    }

    /// Drops all frames that wait.
    pub(super) fn clear(&mut self, now: Instant) {
        for index in 0..QUEUES {
            while self.waiting >> index & 1 != 0 {
                let queued = self.take(index, now);
                self.dropped.note(&queued.frame);
            }
        }
    }

    /// Takes a frame.
    pub fn handle(&mut self, now: Instant, input: Input) {
        let Input::Frame(frame) = input;
        self.counters.offered += 1;
        let index = self.queue_of(frame.tag);
        let duration = frame.duration(self.config.rate);
        let Some(gate_until) = self.gate_permits(index, now, duration) else {
            self.counters.never_fits += 1;
            self.dropped.note(&frame);
            return;
        };
        let queue = &mut self.queues[index];
        let bytes = queue.bytes + frame.length();
        if queue.frames.len() >= self.config.queue_frames || bytes > self.config.queue_bytes {
            self.counters.full[index] += 1;
            self.dropped.note(&frame);
            return;
        }
        queue.bytes = bytes;
        queue.frames.push_back(Queued { frame, duration, gate_until });
        self.occupancy.change(now, 1);
        self.waiting |= 1 << index;
    }

    /// The next transmission, or when to poll again.
    pub fn poll(&mut self, now: Instant) -> Output {
        if self.waiting == 0 {
            return Output::Timeout(None);
        }
        if now < self.free_at {
            return Output::Timeout(Some(self.free_at));
        }
        let mut wake: Option<Instant> = None;
        let waiting = self.waiting;
        for index in (0..QUEUES).rev().filter(|index| waiting >> index & 1 != 0) {
            match self.head_permitted(index, now) {
                Some(start) if start == now => return Output::Transmit(self.start(index, now)),
                Some(start) => wake = Some(wake.map_or(start, |wake| wake.min(start))),
                None => {}
            }
        }
        Output::Timeout(wake)
    }

    /// When the gate of `index` permits a transmission.
    fn gate_permits(&self, index: usize, now: Instant, duration: Duration) -> Option<Instant> {
        let Some(gates) = &self.config.gates else { return Some(now) };
        let needed = match self.config.guard {
            Guard::FrameLength => duration,
            Guard::MaximumFrame(payload) => {
                let longest = PREAMBLE + frame::length(HEADER + payload, true);
                duration.max(self.config.rate.duration(longest))
            }
        };
        gates.earliest_start(index, now, needed)
    }

    /// The same for the first frame of a queue. Windows of a drifting clock may
    /// be a picosecond shorter than the one that was checked first: a frame
    /// that no longer fits is dropped, since it would block the queue.
    fn head_permitted(&mut self, index: usize, now: Instant) -> Option<Instant> {
        loop {
            let duration = self.queues[index].frames.front()?.duration;
            if let Some(start) = self.gate_permits(index, now, duration) {
                return Some(start);
            }
            let queued = self.take(index, now);
            self.dropped.note(&queued.frame);
            self.counters.never_fits += 1;
        }
    }

    fn take(&mut self, index: usize, now: Instant) -> Queued {
        self.occupancy.change(now, -1);
        let queue = &mut self.queues[index];
        let queued = queue.frames.pop_front().expect("a frame waits");
        queue.bytes -= queued.frame.length();
        if queue.frames.is_empty() {
            self.waiting &= !(1 << index);
        }
        queued
    }

    /// When the rate step permits the next frame after one that starts now.
    fn shaped(&self, now: Instant, line: usize) -> Instant {
        let step = self.config.rate_steps.iter().rfind(|step| step.at <= now);
        step.map_or(now, |step| {
            let ps = (line + GAP) as u128 * 8_000_000_000_000;
            now + Duration::from_ps((ps / u128::from(step.bits_per_second)) as u64)
        })
    }

    fn start(&mut self, index: usize, now: Instant) -> Transmission {
        let Queued { mut frame, mut duration, gate_until } = self.take(index, now);
        if self.merge(index, now, &mut frame) {
            duration = frame.duration(self.config.rate);
        }
        self.waited = now.since(frame.latency.until());
        frame.latency.book(FrameStage::Gate, gate_until.min(now));
        frame.latency.book(FrameStage::Queue, now);
        let rate = self.config.rate;
        let end = now + duration;
        self.free_at = (end + rate.duration(GAP)).max(self.shaped(now, frame.line_length()));
        self.counters.sent += 1;
        self.counters.sent_bytes += frame.line_length() as u64;
        self.counters.busy = self.counters.busy + duration;
        Transmission { frame, start: now, end, rate }
    }
}

impl Port {
    /// Aggregation in the bridge before the bottleneck (J. Suzuki et al., Hot
    /// Interconnects 2014, related work, method 2): merges frames that wait
    /// behind `frame` with the same source and destination into it. The bridge
    /// does not interpret the payloads: it concatenates them, each with its own
    /// header, which has its length.
    fn merge(&mut self, index: usize, now: Instant, frame: &mut Frame) -> bool {
        let most = HEADER + self.config.merge;
        if self.config.merge == 0 || self.config.gates.is_some() || !is_raw(frame) {
            return false;
        }
        let mut bytes = BytesMut::new();
        let fits = |next: &Frame, length: usize| {
            is_raw(next)
                && next.bytes[..HEADER] == frame.bytes[..HEADER]
                && (next.tag, next.corrupt) == (frame.tag, frame.corrupt)
                && length + next.bytes.len() - HEADER <= most
        };
        while let Some(next) = self.queues[index].frames.front()
            && fits(&next.frame, bytes.len().max(frame.bytes.len()))
        {
            if bytes.is_empty() {
                bytes.extend_from_slice(&frame.bytes);
            }
            bytes.extend_from_slice(&self.take(index, now).frame.bytes[HEADER..]);
            self.counters.merged += 1;
        }
        if bytes.is_empty() {
            return false;
        }
        frame.bytes = bytes.freeze();
        true
    }
}

/// Whether a frame carries our raw transport.
fn is_raw(frame: &Frame) -> bool {
    frame.bytes[HEADER - 2..HEADER] == wire::raw::ETHERTYPE.to_be_bytes()
}

/// Largest rate, in bytes a second, of `useful` bytes in each frame of `payload`
/// bytes (IP packet): without headers, FCS, preamble and gap.
pub fn goodput(rate: Rate, payload: usize, useful: usize) -> u64 {
    let line = PREAMBLE + (HEADER + payload + FCS).max(frame::MINIMUM) + GAP;
    (u128::from(rate.bits_per_second()) / 8 * useful as u128 / line as u128) as u64
}
