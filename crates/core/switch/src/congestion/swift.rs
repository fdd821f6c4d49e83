//! Swift: additive increase of the window while the round trip is below a target, and
//! multiplicative decrease in proportion to the excess over the target.
//!
//! Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control
//! in the Datacenter", SIGCOMM 2020: section 3.2 (algorithm 1), 3.4 (windows
//! below one frame), 3.5 (scaling of the target by the number of flows).
//!
//! Reasons for Swift: it needs only timestamps of the end hosts, so it works over ordinary switches
//! (DCTCP and DCQCN need ECN, HPCC needs telemetry). It limits the queueing delay to microseconds.
//! It works with less than one frame per round trip, which is the share of each device when many
//! devices answer one host (incast). It is fair without the number of flows.
//!
//! Differences from the paper:
//! - There is one delay instead of fabric and endpoint delay (3.3): the round
//!   trip less the time that the peer delayed its acknowledgement.
//! - The target does not scale with hops. The target is configured, or relative to the minimum
//!   measured round trip.
//! - The paper shrinks the window at any loss. Here, loss below 2 % does not shrink the window
//!   while the delay is below the target, because such loss comes from the wire, not from a queue.
//!   BBR also uses 2 % (draft-cardwell-iccrg-bbr-congestion-control-02, 4.5.10.2, `BBRLossThresh`).
//! - The window counts bytes, and grows only if the window limited the sender.

use super::Acknowledged;
use wire::{Duration, Instant};

/// The round trip at which the window neither grows nor shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A fixed target, as in the paper. The target must exceed the round trip of a largest frame
    /// through empty queues. All flows that share a queue should have the same target.
    RoundTrip(Duration),
    /// The minimum round trip of the last 10 to 20 s plus this duration. A flow that starts during
    /// a standing queue measures a minimum that includes the queue, and gets more than its share.
    Above(Duration),
}

/// Parameters of Swift. The defaults are values of the paper, where it states one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwiftConfig {
    /// The target delay.
    pub target: Target,
    /// Additive increase ("ai"): hundredths of a largest frame per round trip.
    pub increase_percent: u32,
    /// Multiplicative decrease ("beta"): the share of the excess delay by which
    /// the window shrinks, in percent.
    pub decrease_percent: u32,
    /// The largest decrease at once, in percent ("max_mdf").
    pub max_decrease_percent: u32,
    /// Flow scaling ("fs_range"): the delay added to the target at a window of
    /// [`Self::MIN_SCALED_WINDOW`]. Small windows have large targets, so that many flows converge
    /// to equal shares.
    pub scaling: Duration,
    /// The initial window, in frames of the largest size.
    pub initial_window: u32,
}

impl Default for SwiftConfig {
    fn default() -> Self {
        Self {
            target: Target::Above(Duration::from_us(15)),
            increase_percent: 100,
            decrease_percent: 80,
            max_decrease_percent: 50,
            scaling: Duration::from_us(60),
            initial_window: 10,
        }
    }
}

impl SwiftConfig {
    /// The window, in hundredths of a frame, up to which all of [`Self::scaling`] is added to the
    /// target ("fs_min_cwnd", 0.1).
    pub const MIN_SCALED_WINDOW: u64 = 10;
    /// The window, in hundredths of a frame, from which nothing is added to the target
    /// ("fs_max_cwnd", 100).
    pub const MAX_SCALED_WINDOW: u64 = 10_000;
}

/// Units of the window per byte.
const FRACTION: u64 = 1 << 10;

/// Denominator of shares of the window.
const WHOLE: u64 = 1 << 10;

/// The largest window, in frames.
const MAX_FRAMES: u64 = 4096;

/// The smallest window is one frame divided by this number.
const MIN_WINDOW_DIVISOR: u64 = 128;

/// Number of timeouts in a row after which the window is set to its minimum
/// ("RETX_RESET_THRESHOLD").
const TIMEOUTS: u32 = 5;

/// Loss above this share counts as congestion: 20 / 1024, about 2 %.
const LOSS_THRESHOLD: u32 = 20;

/// Number of frames over which loss is averaged.
const LOSS_MEMORY: u32 = 256;

/// The shortest time for which a minimum round trip is kept. The longest time is twice as long.
const EPOCH: Duration = Duration::from_ms(10_000);

/// Number of frame size classes. Each has its own minimum round trip, because short frames are
/// faster.
const SIZE_CLASSES: usize = 4;

/// The state of Swift for one connection.
#[derive(Clone, Debug)]
pub struct Swift {
    config: SwiftConfig,
    /// The largest frame, in bytes on the wire.
    frame: u64,
    /// The window in bytes on the wire, times `FRACTION`.
    window: u64,
    round_trip: Duration,
    /// Whether the last round trip was above its target.
    above_target: bool,
    last_decrease: Instant,
    not_before: Instant,
    /// The share of lost frames among about the last 256, in units of 2^-20.
    loss: u32,
    /// Minimum round trips of this epoch and of the epoch before, by size class.
    min_round_trip: [[Duration; SIZE_CLASSES]; 2],
    epoch: Instant,
}

const UNKNOWN: Duration = Duration::from_ps(u64::MAX);

impl Swift {
    /// A controller for frames of at most `frame` bytes on the wire.
    pub fn new(config: SwiftConfig, frame: u64) -> Self {
        Self {
            config,
            frame,
            window: u64::from(config.initial_window.max(1)) * frame * FRACTION,
            round_trip: Duration::ZERO,
            above_target: false,
            last_decrease: Instant::ZERO,
            not_before: Instant::ZERO,
            loss: 0,
            min_round_trip: [[UNKNOWN; SIZE_CLASSES]; 2],
            epoch: Instant::ZERO,
        }
    }

    /// The congestion window in bytes on the wire.
    pub fn window(&self) -> u64 {
        self.window / FRACTION
    }

    /// Whether a frame of `bytes` may be sent now.
    pub fn may_send(&self, now: Instant, in_flight: u64, bytes: u64) -> bool {
        now >= self.not_before && (in_flight == 0 || in_flight + bytes <= self.window())
    }

    /// When the next frame may be sent. Frames are paced while the window is below one frame.
    pub fn not_before(&self) -> Instant {
        self.not_before
    }

    /// Counts a data frame of `bytes` bytes that was sent.
    pub fn sent(&mut self, now: Instant, bytes: u64) {
        // With less than one frame per round trip, frames are paced (section 3.4).
        if self.window() < self.frame {
            let pause = scale(self.round_trip, bytes * FRACTION, self.window.max(1));
            self.not_before = now + pause;
        }
    }

    /// Handles the acknowledgement of frames: algorithm 1, "On Receiving ACK".
    pub fn acknowledged(&mut self, now: Instant, ack: Acknowledged) {
        for _ in 0..ack.frames {
            self.loss -= self.loss / LOSS_MEMORY;
        }
        let Some((delay, bytes)) = ack.round_trip else { return self.grow(ack) };
        self.round_trip = delay;
        self.record_round_trip(now, delay, bytes);
        let target = self.target(bytes);
        self.above_target = delay >= target;
        if self.above_target {
            let excess = u128::from((delay - target).as_ps()) * u128::from(WHOLE);
            let beta = u128::from(self.config.decrease_percent);
            let part = excess * beta / 100 / u128::from(delay.as_ps().max(1));
            self.shrink(now, part as u64);
        } else {
            self.grow(ack);
        }
    }

    /// Handles the loss of a frame, detected by acknowledgements of later frames: "On Fast
    /// Recovery".
    pub fn lost(&mut self, now: Instant) {
        self.loss += ((1 << 20) - self.loss) / LOSS_MEMORY;
        if self.above_target || self.loss > LOSS_THRESHOLD << 10 {
            self.shrink(now, WHOLE);
        }
    }

    /// Handles the `count`th timeout in a row: "On Retransmit Timeout".
    pub fn timed_out(&mut self, now: Instant, count: u32) {
        if count >= TIMEOUTS {
            self.window = self.min_window();
            self.last_decrease = now;
        } else {
            self.shrink(now, WHOLE);
        }
    }

    fn grow(&mut self, ack: Acknowledged) {
        if self.above_target || !ack.window_limited {
            return;
        }
        let frame = self.frame * FRACTION;
        let acked = ack.bytes * FRACTION * u64::from(self.config.increase_percent) / 100;
        let grown = if self.window >= frame {
            (u128::from(acked) * u128::from(frame) / u128::from(self.window)) as u64
        } else {
            acked
        };
        self.window = (self.window + grown).min(MAX_FRAMES * frame);
    }

    /// Shrinks the window by `part` of `WHOLE`, at most once per round trip.
    fn shrink(&mut self, now: Instant, part: u64) {
        if now.since(self.last_decrease) < self.round_trip {
            return;
        }
        let most = u64::from(self.config.max_decrease_percent) * WHOLE / 100;
        let left = self.window * (WHOLE - part.min(most)) / WHOLE;
        self.window = left.max(self.min_window());
        self.last_decrease = now;
    }

    fn min_window(&self) -> u64 {
        self.frame * FRACTION / MIN_WINDOW_DIVISOR
    }

    fn size_class(&self, bytes: u64) -> usize {
        ((bytes * SIZE_CLASSES as u64).saturating_sub(1) / self.frame.max(1))
            .min(SIZE_CLASSES as u64 - 1) as usize
    }

    fn record_round_trip(&mut self, now: Instant, delay: Duration, bytes: u64) {
        if now.since(self.epoch) >= EPOCH {
            self.epoch = now;
            self.min_round_trip = [[UNKNOWN; SIZE_CLASSES], self.min_round_trip[0]];
        }
        let class = self.size_class(bytes);
        self.min_round_trip[0][class] = self.min_round_trip[0][class].min(delay);
    }

    /// The target delay for a frame of `bytes` bytes (section 3.5): the base target plus `alpha /
    /// sqrt(cwnd) + beta`, where the sum of the last two terms is limited to 0 to `scaling`.
    fn target(&self, bytes: u64) -> Duration {
        let class = self.size_class(bytes);
        let base = match self.config.target {
            Target::RoundTrip(fixed) => fixed,
            Target::Above(queue) => {
                self.min_round_trip[0][class].min(self.min_round_trip[1][class]) + queue
            }
        };
        // 100 times the square root of hundredths of frames.
        let root = |hundredths: u64| (hundredths * 10_000).isqrt().max(1);
        let window = (u128::from(self.window) * 100 / u128::from(self.frame * FRACTION)) as u64;
        let window = window.clamp(SwiftConfig::MIN_SCALED_WINDOW, SwiftConfig::MAX_SCALED_WINDOW);
        let inverse = |hundredths: u64| 1_000_000_000 / root(hundredths);
        let most = inverse(SwiftConfig::MAX_SCALED_WINDOW);
        let part = inverse(window) - most;
        base + scale(self.config.scaling, part, inverse(SwiftConfig::MIN_SCALED_WINDOW) - most)
    }
}

/// `span * times / part`.
fn scale(span: Duration, times: u64, part: u64) -> Duration {
    let ps = u128::from(span.as_ps()) * u128::from(times) / u128::from(part);
    Duration::from_ps(ps.try_into().unwrap_or(u64::MAX))
}
