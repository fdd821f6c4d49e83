//! The credit-based shaper (IEEE 802.1Q-2022, 8.6.8.2 and annex L; formerly 802.1Qav).
//!
//! A class may send while its credit is not negative. Credit falls at sendSlope while the class
//! sends, and rises at idleSlope while it does not send and its gate is open. The owner reports the
//! length of each state:
//!
//! | state | call |
//! | --- | --- |
//! | the line carries bits of a frame of the class (*transmit* is true) | [`Credit::spend`] |
//! | the line carries anything else: other classes, gaps, overhead of cuts | [`Credit::gain`] |
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

/// Picobits in a bit. 1 bit/s is 1 picobit per picosecond.
const PICO: i128 = 1_000_000_000_000;

/// idleSlope in bit/s for a stream that sends up to `frames` frames (MaxIntervalFrames) of
/// `frame_bytes_on_wire` bytes ([`FRAME_OVERHEAD`] included) in each class measurement interval,
/// rounded up (IEEE 802.1Q-2022, 34.4). `u64::MAX` for an interval of zero and for larger results;
/// [`Slopes::new`] rejects a slope above the port's rate.
pub fn idle_slope(frame_bytes_on_wire: usize, frames: u32, interval: Duration) -> u64 {
    if interval == Duration::ZERO {
        return u64::MAX;
    }
    let picobits = 8 * frame_bytes_on_wire as u128 * u128::from(frames) * PICO as u128;
    u64::try_from(picobits.div_ceil(interval.as_ps().into())).unwrap_or(u64::MAX)
}

/// Why slopes are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SlopesError {
    /// idleSlope is zero. The class would never regain credit.
    #[error("idleSlope is 0 bit/s; the minimum is 1")]
    Zero,
    /// idleSlope is above the port's rate.
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

    /// The slopes that keep the bandwidth of the class if its gate is open for `open` in each
    /// `cycle`: idleSlope = operIdleSlope * OperCycleTime / GateOpenTime, rounded down
    /// (8.6.8.2, d).
    ///
    /// # Errors
    /// If `open` is zero or above `cycle`, or if the new idleSlope is above the rate.
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

/// The credit of a class, exact in picobits (10^-12 bit). The credit starts at zero.
#[derive(Clone, Debug)]
pub struct Credit {
    slopes: Slopes,
    picobits: i128,
    lowest: i128,
    highest: i128,
}

impl Credit {
    /// A credit of zero for a class with `slopes`.
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

    /// Accounts a transmission of the class that lasted `took`.
    pub fn spend(&mut self, took: Duration) {
        self.set(self.picobits.saturating_sub(self.slopes.spent(took)));
    }

    /// Accounts the time `took`, in which the class did not send and its gate was open. If frames
    /// were `waiting`, credit rises. Otherwise positive credit is lost at once, and negative
    /// credit rises to at most zero (8.6.8.2, *credit*).
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
