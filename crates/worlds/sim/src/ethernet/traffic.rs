//! Streams of frames that compete with the frames of tunnels.

use bytes::Bytes;
use tsn::{Clock, LocalTime};
use wire::{Duration, Instant, earliest};

use super::frame::{FCS, Frame, HEADER, MINIMUM, Mac, TAG};
use super::recorded::{Recording, Replay};
use stats::random::Random;

/// The EtherType of background frames: local experimental 1 (IEEE 802-2014,
/// table 3).
pub const ETHER_TYPE: u16 = 0x88b5;

/// When frames are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One burst every interval.
    Periodic(Duration),
    /// Bursts as a Poisson process with this mean interval.
    Poisson(Duration),
    /// Intervals from a normal distribution; values that are not above zero are drawn again.
    Normal {
        /// Mean of the distribution.
        mean: Duration,
        /// Standard deviation of the distribution.
        deviation: Duration,
    },
    /// Intervals evenly distributed from `mean - spread` to `mean + spread`.
    Uniform {
        /// Mean of the distribution.
        mean: Duration,
        /// Largest difference from the mean, below it.
        spread: Duration,
    },
    /// Intervals of at least `least`; what exceeds it is exponentially distributed.
    Sporadic {
        /// Mean of the distribution, above `least`.
        mean: Duration,
        /// Minimum of the distribution.
        least: Duration,
    },
    /// All that a token bucket permits, as soon as it does: an arrival curve of network calculus.
    Envelope {
        /// Time in which the bucket gains one frame.
        interval: Duration,
        /// Frames in the full bucket, at least one. The bucket is full at the start.
        frames: u32,
    },
    /// The frames of a recording. Its first frame is sent at the start.
    Recorded(Recording),
}

impl Pattern {
    /// The mean time between two bursts. For [`Self::Normal`] this is the mean of the distribution,
    /// although values at or below zero are drawn again. For [`Self::Envelope`], the burst at the
    /// start is not counted.
    pub fn interval(&self) -> Duration {
        match self {
            Self::Periodic(interval)
            | Self::Poisson(interval)
            | Self::Envelope { interval, .. } => *interval,
            Self::Normal { mean, .. }
            | Self::Uniform { mean, .. }
            | Self::Sporadic { mean, .. } => *mean,
            Self::Recorded(recording) => recording.interval,
        }
    }

    /// Whether times are random.
    pub fn is_random(&self) -> bool {
        !matches!(self, Self::Periodic(_) | Self::Envelope { .. } | Self::Recorded(_))
    }
}

/// Times in which a source sends, and pauses between them, in turns from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOff {
    /// Time of sending, above zero.
    pub on: Duration,
    /// The pause that follows.
    pub off: Duration,
}

impl OnOff {
    /// Moves a time in a pause to the end of the pause.
    fn admit(self, start: Instant, at: Instant) -> Instant {
        let (on, off) = (self.on.as_ps(), self.off.as_ps());
        let within = at.since(start).as_ps() % (on + off);
        if within < on { at } else { at + Duration::from_ps(on + off - within) }
    }
}

/// Identifies a stream by its sending station and the number of the source there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// The sending station.
    pub station: u16,
    /// Number of the source at the sending station.
    pub number: u8,
}

/// This bit is set in the IDs of all frames of streams.
const OF_A_STREAM: u64 = 1 << 63;

impl StreamId {
    /// The stream with the number `number` at a station.
    pub const fn new(station: usize, number: usize) -> Self {
        Self { station: station as u16, number: number as u8 }
    }

    /// The ID of the stream's first frame. Later frames have the next IDs.
    pub const fn first_frame(self) -> u64 {
        OF_A_STREAM | (self.station as u64) << 48 | (self.number as u64) << 40
    }

    /// The stream of the frame with the ID `id`, if the frame belongs to a stream.
    pub const fn of_frame(id: u64) -> Option<Self> {
        if id & OF_A_STREAM == 0 {
            return None;
        }
        Some(Self { station: (id >> 48) as u16 & 0x7fff, number: (id >> 40) as u8 })
    }
}

/// A source's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Source address.
    pub source: Mac,
    /// Destination address.
    pub destination: Mac,
    /// Bytes per frame, header to FCS, without tag; of a recording, bytes of the longest frame.
    pub length: usize,
    /// Priority, 0 to 7.
    pub priority: u8,
    /// When frames are created.
    pub pattern: Pattern,
    /// How late each burst of a periodic source may be: a random time, evenly distributed. At most
    /// the interval.
    pub jitter: Duration,
    /// Pauses. A burst due in a pause is sent at its end.
    pub on_off: Option<OnOff>,
    /// Frames per burst, created at once; at least one.
    pub burst: u32,
    /// Time of the first burst. With a random pattern, the first burst follows one interval later.
    pub start: Instant,
    /// End of the source: no frame is created at this time or later.
    pub stop: Option<Instant>,
    /// Whether `start`, `stop` and intervals are times of the sender's clock.
    pub own_clock: bool,
    /// Times in which the source also creates a frame every `line_time`, in order.
    pub babbles: Vec<(Instant, Instant)>,
    /// The time that a frame takes on the sender's line, gap included.
    pub line_time: Duration,
    /// Seed of random intervals.
    pub seed: u64,
    /// ID of the first frame.
    pub first_id: u64,
}

/// Output of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A frame to send now. A station without room drops and counts it.
    Frame(Frame),
    /// No frame before this time.
    Timeout(Option<Instant>),
}

/// A source of background traffic.
#[derive(Debug)]
pub struct Source {
    config: Config,
    /// The bytes of the longest frame.
    bytes: Bytes,
    /// Bytes of the next frame, without FCS.
    length: usize,
    random: Random,
    replay: Option<Replay>,
    /// When the token bucket of an envelope is full.
    full: Instant,
    /// When the next burst is due, and how late it is.
    next: Option<Instant>,
    late: Duration,
    /// Frames left in the present burst.
    left: u32,
    made: u64,
    /// The earliest time of the next frame as a babbling source.
    babbled: Instant,
    /// Whether the source was polled.
    begun: bool,
}

impl Source {
    /// A source before its first frame.
    ///
    /// # Panics
    /// If the length is below 60 bytes (64 with a tag), or if the interval or the burst is zero.
    pub fn new(config: Config) -> Self {
        assert!(config.length >= MINIMUM - TAG, "a frame of {} bytes", config.length);
        assert!(config.pattern.interval() > Duration::ZERO, "no interval");
        assert!(config.burst > 0, "a burst without frames");
        let mut bytes = vec![0; config.length - FCS];
        bytes[..6].copy_from_slice(&config.destination.0);
        bytes[6..12].copy_from_slice(&config.source.0);
        bytes[12..HEADER].copy_from_slice(&ETHER_TYPE.to_be_bytes());
        let replay = match &config.pattern {
            Pattern::Recorded(recording) => Some(Replay::new(recording.clone(), config.start)),
            _ => None,
        };
        let mut source = Self {
            length: bytes.len(),
            bytes: bytes.into(),
            random: Random::new(config.seed),
            replay,
            full: config.start,
            next: None,
            late: Duration::ZERO,
            left: config.burst,
            made: 0,
            babbled: Instant::ZERO,
            begun: false,
            config,
        };
        let start = source.config.start;
        let first = match source.config.pattern {
            Pattern::Periodic(_) | Pattern::Envelope { .. } => Some(start),
            _ => source.following(start),
        };
        source.schedule(first);
        source
    }

    /// Frames created.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// The next frame, or when to poll again. `clock` is the sender's clock, which determines due
    /// times if [`Config::own_clock`] is true. After a step forward all skipped frames are due at
    /// once. After a step back no frame is due until the clock shows the earlier time again.
    pub fn poll(&mut self, now: Instant, clock: Option<&Clock>) -> Output {
        let clock = clock.filter(|_| self.config.own_clock);
        if let (Some(clock), false) = (clock, self.begun) {
            self.skip(clock.local(now));
        }
        self.begun = true;
        let global = |at: Instant| match clock {
            Some(clock) => clock.global(LocalTime::from_ps(at.as_ps() as i64)),
            None => at,
        };
        let due = self.next.map(|at| global(at + self.late));
        match (self.next, due) {
            (Some(at), Some(due)) if due <= now => {
                self.left -= 1;
                let length = self.length;
                if self.left == 0 {
                    self.left = self.config.burst;
                    let next = self.following(at);
                    self.schedule(next);
                }
                Output::Frame(self.frame(length, now))
            }
            _ => match self.babble() {
                Some(at) if at <= now => {
                    self.babbled = at + self.config.line_time;
                    Output::Frame(self.frame(self.bytes.len(), now))
                }
                at => Output::Timeout(earliest([due, at])),
            },
        }
    }

    fn frame(&mut self, length: usize, now: Instant) -> Frame {
        let id = self.config.first_id + self.made;
        self.made += 1;
        Frame::new(id, self.bytes.slice(..length), self.config.priority, now)
    }

    /// When the next frame of a babbling source is due.
    fn babble(&self) -> Option<Instant> {
        let spans = self.config.babbles.iter();
        spans
            .map(|(from, until)| (self.babbled.max(*from), until))
            .find(|(at, until)| at < until)
            .map(|(at, _)| at)
    }

    /// Skips the frames that were due before `local`, the first reading of the clock.
    fn skip(&mut self, local: LocalTime) {
        let now = Instant::from_ps(local.as_ps().max(0) as u64);
        let Some(next) = self.next.filter(|next| *next < now) else { return };
        let first = match self.config.pattern {
            Pattern::Periodic(interval) => {
                let missed = now.since(next).as_ps().div_ceil(interval.as_ps());
                Some(next + Duration::from_ps(missed * interval.as_ps()))
            }
            Pattern::Envelope { .. } => Some(now),
            Pattern::Recorded(_) => std::iter::repeat_with(|| self.following(now))
                .find(|at| at.is_none_or(|at| at >= now))
                .flatten(),
            _ => self.following(now),
        };
        self.schedule(first);
    }

    /// When the burst after the burst at `at` is due.
    fn following(&mut self, at: Instant) -> Option<Instant> {
        let interval = match self.config.pattern {
            Pattern::Recorded(_) => {
                let (at, length) = self.replay.as_mut()?.next()?;
                self.length = length - FCS;
                return Some(at);
            }
            Pattern::Envelope { interval, frames } => {
                // The virtual scheduling algorithm of ITU-T I.371, annex A.
                self.full = self.full.max(at) + interval;
                let rest = interval.as_ps().saturating_mul(u64::from(frames - 1));
                let wait = self.full.since(at).as_ps().saturating_sub(rest);
                return Some(at + Duration::from_ps(wait));
            }
            Pattern::Periodic(interval) => interval,
            Pattern::Poisson(mean) => Duration::from_ps(self.random.exponential(mean.as_ps())),
            Pattern::Normal { mean, deviation } => loop {
                let step = self.random.normal(deviation.as_ps());
                match mean.as_ps().checked_add_signed(step) {
                    Some(ps) if ps > 0 => break Duration::from_ps(ps),
                    _ => {}
                }
            },
            Pattern::Uniform { mean, spread } => {
                let [mean, spread] = [mean, spread].map(Duration::as_ps);
                Duration::from_ps(self.random.within(mean - spread..=mean + spread))
            }
            Pattern::Sporadic { mean, least } => {
                let rest = (mean - least).as_ps();
                least + Duration::from_ps(self.random.exponential(rest))
            }
        };
        Some(at + interval)
    }

    /// Makes the next burst due at `at`, or at the end of a pause.
    fn schedule(&mut self, at: Option<Instant>) {
        let Config { on_off, start, stop, jitter, .. } = self.config;
        let at = at.map(|at| on_off.map_or(at, |on_off| on_off.admit(start, at)));
        if jitter > Duration::ZERO {
            self.late = Duration::from_ps(self.random.within(0..=jitter.as_ps()));
        }
        self.next = at.filter(|at| stop.is_none_or(|stop| *at < stop));
    }
}
