//! Background traffic: frames that compete with those of the tunnels.

use bytes::Bytes;
use wire::{Duration, Instant};

use super::frame::{FCS, Frame, HEADER, MINIMUM, Mac};
use stats::random::Random;

/// The EtherType of background frames: local experimental 1 (IEEE 802-2014,
/// table 3).
pub const ETHER_TYPE: u16 = 0x88b5;

/// When frames are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One every interval.
    Periodic(Duration),
    /// A Poisson process with this mean interval.
    Poisson(Duration),
}

/// A source's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Source address.
    pub source: Mac,
    /// Destination address.
    pub destination: Mac,
    /// Bytes a frame, header to FCS, without tag.
    pub length: usize,
    /// Priority, 0 to 7.
    pub priority: u8,
    /// When frames are created.
    pub pattern: Pattern,
    /// The first frame, or for a Poisson process its beginning.
    pub start: Instant,
    /// No frame at this time or after it.
    pub stop: Option<Instant>,
    /// Seed of a Poisson process.
    pub seed: u64,
    /// Of the frames' ids: the first is this one.
    pub first_id: u64,
}

/// Output of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A frame to send now; a station without room drops and counts it.
    Frame(Frame),
    /// Nothing before this time.
    Timeout(Option<Instant>),
}

/// A source of background traffic.
#[derive(Clone, Debug)]
pub struct Source {
    config: Config,
    bytes: Bytes,
    random: Random,
    next: Option<Instant>,
    made: u64,
}

impl Source {
    /// A source.
    ///
    /// # Panics
    /// If the length is below the minimum frame or the interval is zero.
    pub fn new(config: Config) -> Self {
        assert!(config.length >= MINIMUM, "a frame of {} bytes", config.length);
        let (Pattern::Periodic(interval) | Pattern::Poisson(interval)) = config.pattern;
        assert!(interval > Duration::ZERO, "no interval");
        let mut bytes = vec![0; config.length - FCS];
        bytes[..6].copy_from_slice(&config.destination.0);
        bytes[6..12].copy_from_slice(&config.source.0);
        bytes[12..HEADER].copy_from_slice(&ETHER_TYPE.to_be_bytes());
        let mut source = Self {
            bytes: bytes.into(),
            random: Random::new(config.seed),
            next: None,
            made: 0,
            config,
        };
        let start = source.config.start;
        let first = match source.config.pattern {
            Pattern::Periodic(_) => start,
            Pattern::Poisson(_) => start + source.interval(),
        };
        source.next = source.within(first);
        source
    }

    /// Frames created.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// The next frame, or when to poll again.
    pub fn poll(&mut self, now: Instant) -> Output {
        match self.next {
            Some(at) if at <= now => {
                let id = self.config.first_id + self.made;
                self.made += 1;
                let interval = self.interval();
                self.next = self.within(at + interval);
                Output::Frame(Frame::new(id, self.bytes.clone(), self.config.priority, now))
            }
            next => Output::Timeout(next),
        }
    }

    fn interval(&mut self) -> Duration {
        match self.config.pattern {
            Pattern::Periodic(interval) => interval,
            Pattern::Poisson(mean) => Duration::from_ps(self.random.exponential(mean.as_ps())),
        }
    }

    fn within(&self, at: Instant) -> Option<Instant> {
        self.config.stop.is_none_or(|stop| at < stop).then_some(at)
    }
}
