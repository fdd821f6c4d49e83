//! Two ends and a network between them, in virtual time.

use bytes::Bytes;
use stats::random::Random;
use std::collections::{BTreeMap, VecDeque};
use switch::raw::{Cause, Endpoint, Input, Output, Settings};
use wire::{Duration, Instant};

/// Probabilities of the network's faults, in parts of a thousand.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    pub lost: u64,
    pub repeated: u64,
    pub late: u64,
    pub corrupt: u64,
}

/// The CRC of IEEE 802.3, 3.2.9, which detects corruption.
fn fcs(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc));
    !bytes.iter().fold(!0, byte)
}

pub struct Network {
    pub now: Instant,
    pub ends: [Endpoint; 2],
    pub rng: Random,
    pub faults: Faults,
    /// Delay from one end to the other. A late frame takes up to ten times as long.
    pub latency: Duration,
    /// Line time of a byte in picoseconds.
    pub byte: u64,
    /// Whether no frame passes.
    pub cut: bool,
    line_free: [Instant; 2],
    /// Frames in transit by arrival time and number: receiver and bytes.
    flying: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    number: u64,
    /// Segments to send, by end.
    pub waiting: [VecDeque<Vec<u8>>; 2],
    pub delivered: [Vec<Bytes>; 2],
    pub connected: [u32; 2],
    pub down: [Option<Cause>; 2],
    /// Digest of all frames sent and their times.
    pub digest: u64,
    pub frames: u64,
}

impl Network {
    pub fn new(settings: [Settings; 2], seed: u64) -> Self {
        let mut network = Self {
            now: Instant::from_ns(1_000),
            ends: settings.map(Endpoint::new),
            rng: Random::new(seed),
            faults: Faults::default(),
            latency: Duration::from_us(3),
            byte: 800,
            cut: false,
            line_free: Default::default(),
            flying: BTreeMap::new(),
            number: 0,
            waiting: Default::default(),
            delivered: Default::default(),
            connected: [0; 2],
            down: [None; 2],
            digest: 0,
            frames: 0,
        };
        network.handle(1, Input::Accept);
        network.handle(0, Input::Open);
        network
    }

    pub fn handle(&mut self, end: usize, input: Input) {
        self.ends[end].handle(self.now, input);
    }

    /// Queues `count` segments of random sizes at an end.
    pub fn queue(&mut self, end: usize, count: usize) {
        for _ in 0..count {
            let length = self.rng.within(1..=1488) as usize;
            let number = self.rng.bits();
            self.waiting[end].push_back((0..length).map(|n| number as u8 ^ n as u8).collect());
        }
    }

    /// Runs until no segment waits and no frame is in transit, or until `limit` has passed.
    pub fn run(&mut self, limit: Duration) {
        let until = self.now + limit;
        loop {
            let wakes = [0, 1].map(|end| self.turn(end));
            let frame = self.flying.keys().next().map(|(at, _)| *at);
            let quiet = self.ends.iter().all(Endpoint::is_quiet);
            if quiet && frame.is_none() && self.waiting.iter().all(VecDeque::is_empty) {
                return;
            }
            let next = wakes.into_iter().flatten().chain(frame).min();
            match next {
                Some(at) if at <= until => {
                    assert!(at > self.now || frame == Some(at), "time stands still at {at}");
                    self.now = self.now.max(at);
                }
                _ => {
                    self.now = until;
                    return;
                }
            }
            while let Some(entry) = self.flying.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let (end, bytes) = entry.remove();
                self.ends[end].handle(self.now, Input::Received(bytes.into()));
            }
        }
    }

    /// Runs one end until it is idle.
    fn turn(&mut self, end: usize) -> Option<Instant> {
        loop {
            // The interface queues up to 4 frames.
            let backlog = self.line_free[end].since(self.now).as_ps() / (1538 * self.byte);
            let frames = 4usize.saturating_sub(backlog as usize);
            self.ends[end].handle(self.now, Input::CanTransmit { frames });
            while let Some(segment) = self.waiting[end].front() {
                if self.ends[end].room(self.now) < segment.len() {
                    break;
                }
                let segment = self.waiting[end].pop_front().expect("looked at");
                self.ends[end].send(self.now, segment);
            }
            match self.ends[end].poll(self.now) {
                Output::Transmit(frame) => self.carry(end, frame),
                Output::Connected => self.connected[end] += 1,
                Output::Delivered(segment) => self.delivered[end].push(segment),
                Output::Down(cause) => self.down[end] = Some(cause),
                Output::Timeout(at) => {
                    let more = self.waiting[end].front().map(Vec::len);
                    if more.is_none_or(|length| self.ends[end].room(self.now) < length) {
                        let line = Some(self.line_free[end]).filter(|at| *at > self.now);
                        return [at, line].into_iter().flatten().min();
                    }
                }
            }
        }
    }

    fn happens(&mut self, permille: u64) -> bool {
        self.rng.below(1000) < permille
    }

    fn carry(&mut self, from: usize, mut frame: Vec<u8>) {
        frame.resize(frame.len().max(46), 0);
        self.frames += 1;
        let sum = fcs(&frame);
        self.digest = self.digest.rotate_left(7) ^ self.now.as_ps() ^ u64::from(sum) << 32;
        let free = self.line_free[from].max(self.now);
        self.line_free[from] = free + Duration::from_ps((frame.len() as u64 + 38) * self.byte);
        let lost = self.happens(self.faults.lost) || self.cut;
        let copies = 1 + usize::from(self.happens(self.faults.repeated));
        for _ in 0..if lost { 0 } else { copies } {
            let mut at = self.line_free[from] + self.latency;
            if self.happens(self.faults.late) {
                at += Duration::from_ps(self.rng.below(10 * self.latency.as_ps()));
            }
            let mut frame = frame.clone();
            if self.happens(self.faults.corrupt) {
                let bit = self.rng.below(8 * frame.len() as u64) as usize;
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            if fcs(&frame) == sum {
                self.number += 1;
                self.flying.insert((at, self.number), (1 - from, frame));
            }
        }
    }
}
