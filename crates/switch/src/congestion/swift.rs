//! Swift: additive increase while the round trip is below a target,
//! multiplicative decrease in proportion to how far it is above.
//!
//! Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control
//! in the Datacenter", SIGCOMM 2020: section 3.2 (algorithm 1), 3.4 (windows
//! below one frame), 3.5 (scaling of the target by the number of flows).
//!
//! Why this one: it needs timestamps of the end hosts only, so it works over
//! ordinary switches that mark nothing (DCTCP and DCQCN need ECN, HPCC needs
//! telemetry); it bounds the queue, and states the bound in microseconds; it
//! goes on below one frame a round trip, which is where many devices that
//! answer one host end up; it is fair without knowing the number of flows.
//!
//! Different from the paper:
//! - Fabric and endpoint delay are not told apart (3.3): the carrier's
//!   acknowledgements tell how long the far end waited, the rest is one delay.
//! - The target does not count hops; it is given, or stands above the least
//!   round trip measured.
//! - Loss: the paper halves the window for any. Here loss below 2 % while the
//!   delay is below the target costs nothing, since it then comes from the
//!   wire and not from a queue. 2 % is what BBR takes for such loss
//!   (draft-cardwell-iccrg-bbr-congestion-control-02, 4.5.10.2,
//!   `BBRLossThresh`).
//! - The window counts bytes, and grows only if it held the sender back.

use super::Acknowledged;
use wire::{Duration, Instant};

/// The round trip at which Swift neither grows nor shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This. It must be more than the round trip of a largest frame through
    /// empty queues; the paper's way. All flows that share a queue should have
    /// the same.
    RoundTrip(Duration),
    /// This much above the least round trip measured in the last 10 to 20 s.
    /// Flows that come later to a standing queue take it for distance, and
    /// get more than their share.
    Above(Duration),
}

/// Parameters. The defaults are the paper's where it names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwiftConfig {
    /// The delay aimed at.
    pub target: Target,
    /// Frames of the largest size that the window grows by in a round trip,
    /// in hundredths ("ai").
    pub increase_percent: u32,
    /// Share of the excess delay that the window shrinks by, in hundredths
    /// ("beta").
    pub decrease_percent: u32,
    /// The most that it shrinks by at once, in hundredths ("max_mdf").
    pub max_decrease_percent: u32,
    /// What a flow with [`Self::FEW`] frames of window adds to the target
    /// ("fs_range"). Small windows get large targets, so that many flows do
    /// not fight and unequal ones become equal.
    pub scaling: Duration,
    /// The window at the start, in frames of the largest size.
    pub start: u32,
}

impl Default for SwiftConfig {
    fn default() -> Self {
        Self {
            target: Target::Above(Duration::from_us(15)),
            increase_percent: 100,
            decrease_percent: 80,
            max_decrease_percent: 50,
            scaling: Duration::from_us(60),
            start: 10,
        }
    }
}

impl SwiftConfig {
    /// Hundredths of a frame of window at which [`Self::scaling`] counts in
    /// full ("fs_min_cwnd", 0.1).
    pub const FEW: u64 = 10;
    /// and from which it does not count ("fs_max_cwnd", 100).
    pub const MANY: u64 = 10_000;
}

/// Fractions of a byte that the window counts in.
const FRACTION: u64 = 1 << 10;

/// What parts of the window are counted in.
const WHOLE: u64 = 1 << 10;

/// The largest window, in frames.
const MAX_FRAMES: u64 = 4096;

/// The smallest window, as a part of a frame.
const MIN_WINDOW_DIVISOR: u64 = 128;

/// Timeouts in a row after which the window is the smallest
/// ("RETX_RESET_THRESHOLD").
const TIMEOUTS: u32 = 5;

/// Loss above this is congestion, in parts of 1024: 2 %.
const LOSS_THRESHOLD: u32 = 20;

/// Frames over which loss is averaged.
const LOSS_MEMORY: u32 = 256;

/// How long a least round trip counts for sure.
const EPOCH: Duration = Duration::from_ms(10_000);

/// Classes of frame size that have a least round trip each: a short frame is
/// faster on every line.
const CLASSES: usize = 4;

/// See the module.
#[derive(Clone, Debug)]
pub struct Swift {
    config: SwiftConfig,
    /// Bytes of wire of the largest frame.
    frame: u64,
    /// Bytes of wire times [`FRACTION`].
    window: u64,
    round_trip: Duration,
    /// Whether the last round trip was above its target.
    above: bool,
    last_decrease: Instant,
    not_before: Instant,
    /// Lost frames of the last 256 or so, in parts of 1024 * 1024.
    loss: u32,
    /// Of this epoch and the last, by class.
    least: [[Duration; CLASSES]; 2],
    epoch: Instant,
}

const UNKNOWN: Duration = Duration::from_ps(u64::MAX);

impl Swift {
    /// For frames of at most `frame` bytes of wire.
    pub fn new(config: SwiftConfig, frame: u64) -> Self {
        Self {
            config,
            frame,
            window: u64::from(config.start.max(1)) * frame * FRACTION,
            round_trip: Duration::ZERO,
            above: false,
            last_decrease: Instant::ZERO,
            not_before: Instant::ZERO,
            loss: 0,
            least: [[UNKNOWN; CLASSES]; 2],
            epoch: Instant::ZERO,
        }
    }

    /// Bytes of wire that may be on the way.
    pub fn window(&self) -> u64 {
        self.window / FRACTION
    }

    /// Whether a frame of `bytes` may go now.
    pub fn may_send(&self, now: Instant, in_flight: u64, bytes: u64) -> bool {
        now >= self.not_before && (in_flight == 0 || in_flight + bytes <= self.window())
    }

    /// When the next frame may go: paced below one frame of window.
    pub fn not_before(&self) -> Instant {
        self.not_before
    }

    /// A data frame went.
    pub fn sent(&mut self, now: Instant, bytes: u64) {
        // Section 3.4: below one frame a round trip, frames are paced.
        if self.window() < self.frame {
            let pause = scale(self.round_trip, bytes * FRACTION, self.window.max(1));
            self.not_before = now + pause;
        }
    }

    /// Algorithm 1, "On Receiving ACK".
    pub fn acknowledged(&mut self, now: Instant, what: Acknowledged) {
        for _ in 0..what.frames {
            self.loss -= self.loss / LOSS_MEMORY;
        }
        let Some((delay, bytes)) = what.round_trip else { return self.grow(what) };
        self.round_trip = delay;
        self.learn(now, delay, bytes);
        let target = self.target(bytes);
        self.above = delay >= target;
        if self.above {
            let excess = u128::from((delay - target).as_ps()) * u128::from(WHOLE);
            let beta = u128::from(self.config.decrease_percent);
            let part = excess * beta / 100 / u128::from(delay.as_ps().max(1));
            self.shrink(now, part as u64);
        } else {
            self.grow(what);
        }
    }

    /// A frame was lost, as frames behind it tell: "On Fast Recovery".
    pub fn lost(&mut self, now: Instant) {
        self.loss += ((1 << 20) - self.loss) / LOSS_MEMORY;
        if self.above || self.loss > LOSS_THRESHOLD << 10 {
            self.shrink(now, WHOLE);
        }
    }

    /// "On Retransmit Timeout", the `count`th in a row.
    pub fn timed_out(&mut self, now: Instant, count: u32) {
        if count >= TIMEOUTS {
            self.window = self.smallest();
            self.last_decrease = now;
        } else {
            self.shrink(now, WHOLE);
        }
    }

    fn grow(&mut self, what: Acknowledged) {
        if self.above || !what.limited {
            return;
        }
        let frame = self.frame * FRACTION;
        let acked = what.bytes * FRACTION * u64::from(self.config.increase_percent) / 100;
        let grown = if self.window >= frame {
            (u128::from(acked) * u128::from(frame) / u128::from(self.window)) as u64
        } else {
            acked
        };
        self.window = (self.window + grown).min(MAX_FRAMES * frame);
    }

    /// By `part` of [`WHOLE`], at most once a round trip.
    fn shrink(&mut self, now: Instant, part: u64) {
        if now.since(self.last_decrease) < self.round_trip {
            return;
        }
        let most = u64::from(self.config.max_decrease_percent) * WHOLE / 100;
        let left = self.window * (WHOLE - part.min(most)) / WHOLE;
        self.window = left.max(self.smallest());
        self.last_decrease = now;
    }

    fn smallest(&self) -> u64 {
        self.frame * FRACTION / MIN_WINDOW_DIVISOR
    }

    fn class(&self, bytes: u64) -> usize {
        ((bytes * CLASSES as u64).saturating_sub(1) / self.frame.max(1)).min(CLASSES as u64 - 1)
            as usize
    }

    fn learn(&mut self, now: Instant, delay: Duration, bytes: u64) {
        if now.since(self.epoch) >= EPOCH {
            self.epoch = now;
            self.least = [[UNKNOWN; CLASSES], self.least[0]];
        }
        let class = self.class(bytes);
        self.least[0][class] = self.least[0][class].min(delay);
    }

    /// Section 3.5: the base, and more for small windows:
    /// `alpha / sqrt(cwnd) + beta`, between nothing and the whole of
    /// `scaling`.
    fn target(&self, bytes: u64) -> Duration {
        let class = self.class(bytes);
        let base = match self.config.target {
            Target::RoundTrip(fixed) => fixed,
            Target::Above(queue) => self.least[0][class].min(self.least[1][class]) + queue,
        };
        // Square roots of hundredths of frames, a hundredfold.
        let root = |hundredths: u64| (hundredths * 10_000).isqrt().max(1);
        let window = (u128::from(self.window) * 100 / u128::from(self.frame * FRACTION)) as u64;
        let window = window.clamp(SwiftConfig::FEW, SwiftConfig::MANY);
        let inverse = |hundredths: u64| 1_000_000_000 / root(hundredths);
        let most = inverse(SwiftConfig::MANY);
        let part = inverse(window) - most;
        base + scale(self.config.scaling, part, inverse(SwiftConfig::FEW) - most)
    }
}

/// `span * times / part`.
fn scale(span: Duration, times: u64, part: u64) -> Duration {
    let ps = u128::from(span.as_ps()) * u128::from(times) / u128::from(part);
    Duration::from_ps(ps.try_into().unwrap_or(u64::MAX))
}
