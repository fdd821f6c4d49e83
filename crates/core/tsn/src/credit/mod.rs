//! The credit-based shaper (IEEE 802.1Q-2022, 8.6.8.2 and annex L; formerly 802.1Qav).
//!
//! A class may send while its credit is not negative. Credit falls at sendSlope while the class
//! sends, and rises at idleSlope while it does not send and its gate is open. The owner reports the
//! length of each state:
//!
//! | state | call |
//! | --- | --- |
//! | bits of a frame of the class are on the line (*transmit* is true) | [`Credit::spend`] |
//! | they are not: other classes, gaps, interrupted frames, overhead of cuts | [`Credit::gain`] |
//! | the gate of the class is closed | none: the credit stays |
//!
//! The owner decides whether preamble and gap count as bits of a frame, and must choose the slopes
//! accordingly. [`FRAME_OVERHEAD`] and [`idle_slope`] count both.

mod bounds;

pub use bounds::{Higher, hi_credit, lo_credit};

use thiserror::Error;
use wire::Duration;

/// The class measurement interval of SR class A (IEEE 802.1Q-2022, 34.4).
pub const CLASS_A_INTERVAL: Duration = Duration::from_us(125);

/// The class measurement interval of SR class B (IEEE 802.1Q-2022, 34.4).
pub const CLASS_B_INTERVAL: Duration = Duration::from_us(250);

/// Bytes of a frame on the line besides its payload, which count in a reservation (IEEE
/// 802.1Q-2022, 34.4): preamble 8, addresses and EtherType 14, tag 4, FCS 4, gap 12.
pub const FRAME_OVERHEAD: usize = 8 + 14 + 4 + 4 + 12;

/// Picobits in a bit: a rate of 1 bit/s makes one in a picosecond.
const PICO: i128 = 1_000_000_000_000;

/// idleSlope in bit/s for a stream that sends up to `frames` frames (MaxIntervalFrames) of
/// `frame_bytes_on_wire` bytes ([`FRAME_OVERHEAD`] included) in each class measurement interval,
/// rounded up (IEEE 802.1Q-2022, 34.4). Saturates, also for an interval of zero; [`Slopes::new`]
/// rejects excessive values.
pub fn idle_slope(frame_bytes_on_wire: usize, frames: u32, interval: Duration) -> u64 {
    if interval == Duration::ZERO {
        return u64::MAX;
    }
    let picobits = 8 * frame_bytes_on_wire as u128 * u128::from(frames) * PICO as u128;
    u64::try_from(picobits.div_ceil(interval.as_ps().into())).unwrap_or(u64::MAX)
}

/// An error in slopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SlopesError {
    /// A class that never gains credit could not send again.
    #[error("idleSlope is 0 bit/s; the minimum is 1")]
    Zero,
    /// More than the port can send.
    #[error("idleSlope of {idle} bit/s is above the port's {rate} bit/s")]
    AboveRate {
        /// idleSlope, bit/s.
        idle: u64,
        /// portTransmitRate, bit/s.
        rate: u64,
    },
    /// A gate that is never open, or open longer than the cycle.
    #[error("the gate is open for {open} of a cycle of {cycle}; allowed are above 0 to {cycle}")]
    Open {
        /// GateOpenTime.
        open: Duration,
        /// OperCycleTime.
        cycle: Duration,
    },
}

/// How fast the credit of a class rises and falls; sendSlope is `idle - rate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slopes {
    /// idleSlope in bit/s, 1 to `rate`.
    pub idle: u64,
    /// portTransmitRate in bit/s.
    pub rate: u64,
}

impl Slopes {
    /// Slopes of a class with `idle` bit/s at a port with `rate` bit/s.
    ///
    /// # Errors
    /// If `idle` is zero or above `rate`.
    pub fn new(idle: u64, rate: u64) -> Result<Self, SlopesError> {
        match idle {
            0 => Err(SlopesError::Zero),
            _ if idle > rate => Err(SlopesError::AboveRate { idle, rate }),
            _ => Ok(Self { idle, rate }),
        }
    }

    /// The slopes that give the same share of the port although the gate is open only for `open`
    /// in each `cycle`: idleSlope = operIdleSlope * OperCycleTime / GateOpenTime, rounded down
    /// (8.6.8.2, d).
    ///
    /// # Errors
    /// If the class needs more than the port can send while the gate is open.
    pub fn scaled(self, open: Duration, cycle: Duration) -> Result<Self, SlopesError> {
        if open == Duration::ZERO || open > cycle {
            return Err(SlopesError::Open { open, cycle });
        }
        let idle = u128::from(self.idle) * u128::from(cycle.as_ps()) / u128::from(open.as_ps());
        Self::new(u64::try_from(idle).unwrap_or(u64::MAX), self.rate)
    }

    /// Picobits gained in `took`.
    fn gained(self, took: Duration) -> i128 {
        i128::from(self.idle).saturating_mul(took.as_ps().into())
    }

    /// Picobits spent in `took`.
    fn spent(self, took: Duration) -> i128 {
        i128::from(self.rate - self.idle).saturating_mul(took.as_ps().into())
    }
}

/// The credit of a class, exactly, in picobits (10^-12 bit). It starts at zero.
#[derive(Clone, Debug)]
pub struct Credit {
    slopes: Slopes,
    picobits: i128,
    lowest: i128,
    highest: i128,
}

impl Credit {
    /// The credit zero of a class with `slopes`.
    ///
    /// # Panics
    /// If idleSlope is zero or above the rate.
    pub fn new(slopes: Slopes) -> Self {
        let mut credit = Self { slopes, picobits: 0, lowest: 0, highest: 0 };
        credit.set_slopes(slopes);
        credit
    }

    /// Changes the slopes; the credit stays.
    ///
    /// # Panics
    /// If idleSlope is zero or above the rate.
    pub fn set_slopes(&mut self, slopes: Slopes) {
        assert!(Slopes::new(slopes.idle, slopes.rate).is_ok(), "{slopes:?}");
        self.slopes = slopes;
    }

    /// Accounts transmission of the class for `took`.
    pub fn spend(&mut self, took: Duration) {
        self.set(self.picobits.saturating_sub(self.slopes.spent(took)));
    }

    /// Accounts `took` without transmission and with an open gate. With `waiting` frames, credit
    /// rises. Without, positive credit is lost at once, and negative credit rises to at most zero
    /// (8.6.8.2, *credit*).
    pub fn gain(&mut self, took: Duration, waiting: bool) {
        let credit = self.picobits.saturating_add(self.slopes.gained(took));
        self.set(if waiting { credit } else { credit.min(0) });
    }

    /// How long the class must gain credit before it may send, rounded up to a picosecond; zero if
    /// the credit is not negative.
    pub fn until_ready(&self) -> Duration {
        let debt = self.picobits.min(0).unsigned_abs();
        let ps = debt.div_ceil(self.slopes.idle.into());
        Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// The credit in bits, for display; [`Self::picobits`] is exact.
    pub fn bits(&self) -> f64 {
        self.picobits as f64 / PICO as f64
    }

    /// The credit in picobits.
    pub fn picobits(&self) -> i128 {
        self.picobits
    }

    /// The lowest credit so far, in picobits.
    pub fn lowest(&self) -> i128 {
        self.lowest
    }

    /// The highest credit so far, in picobits.
    pub fn highest(&self) -> i128 {
        self.highest
    }

    fn set(&mut self, picobits: i128) {
        self.picobits = picobits;
        self.lowest = self.lowest.min(picobits);
        self.highest = self.highest.max(picobits);
    }
}
