//! Sequence recovery (IEEE 802.1CB-2017, 7.4.3), of a stream or of one of its member streams.

use thiserror::Error;
use wire::{Duration, Instant};

use super::SPACE;

/// How copies are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// By a history of the last numbers (7.4.3.4, VectorRecoveryAlgorithm).
    Vector {
        /// frerSeqRcvyHistoryLength: how many numbers, counted down from the highest one, the
        /// history holds; [`Config::SHORTEST`] to [`Config::LONGEST`].
        history: u16,
    },
    /// A frame with the number of the previous frame is a copy (7.4.3.5, MatchRecoveryAlgorithm).
    Match,
}

/// Parameters of a recovery function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How copies are recognised.
    pub algorithm: Algorithm,
    /// frerSeqRcvyResetMSec: after this time without a passed frame, any number passes.
    pub reset: Duration,
    /// frerSeqRcvyTakeNoSequence: whether vector recovery passes frames without a number. Match
    /// recovery always passes them (7.4.3.5).
    pub take_no_sequence: bool,
    /// frerSeqRcvyIndividualRecovery: recovery of one member stream. Discarded frames also restart
    /// the reset timer.
    pub individual: bool,
}

/// A configuration outside clause 10.4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The history's length is out of range.
    #[error(
        "invalid history of '{0}' numbers: expected {shortest} to {longest}",
        shortest = Config::SHORTEST,
        longest = Config::LONGEST
    )]
    History(u16),
    /// The reset timer is zero.
    #[error("the reset timer is 0; it must be above 0, or no duplicate is eliminated")]
    Reset,
}

impl Config {
    /// The shortest history, and the default (10.4.1.6).
    pub const SHORTEST: u16 = 2;
    /// The longest history: half of the sequence space, beyond which old and new numbers cannot be
    /// distinguished (7.4.3.4).
    pub const LONGEST: u16 = (SPACE / 2) as u16;
    /// The default of `reset` (10.4.1.7).
    pub const RESET: Duration = Duration::from_ms(2_000);

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value outside of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self.algorithm {
            Algorithm::Vector { history }
                if !(Self::SHORTEST..=Self::LONGEST).contains(&history) =>
            {
                Err(ConfigError::History(history))
            }
            _ if self.reset == Duration::ZERO => Err(ConfigError::Reset),
            _ => Ok(()),
        }
    }
}

/// Counters of a recovery function (10.8 and 10.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// frerCpsSeqRcvyPassedPackets.
    pub passed: u64,
    /// frerCpsSeqRcvyDiscardedPackets; includes rogue packets.
    pub discarded: u64,
    /// frerCpsSeqRcvyRoguePackets: packets whose number differs from the highest one by the
    /// history's length or more.
    pub rogue: u64,
    /// frerCpsSeqRcvyOutOfOrderPackets: passed packets whose number is not one above the highest
    /// number (vector recovery) or the previous number (match recovery).
    pub out_of_order: u64,
    /// frerCpsSeqRcvyLostPackets: numbers that left the history without being seen.
    pub lost: u64,
    /// The part of `lost` with numbers before the first frame after the start or a reset. The
    /// standard counts these numbers as lost, although they may never have been sent.
    pub lost_before_first: u64,
    /// frerCpsSeqRcvyTaglessPackets: packets without a sequence number.
    pub tagless: u64,
    /// frerCpsSeqRcvyResets: expiries of the timer.
    pub resets: u64,
}

/// A recovery function.
#[derive(Clone, Debug)]
pub struct Recovery {
    config: Config,
    counters: Counters,
    /// TakeAny.
    take_any: bool,
    /// RecovSeqNum.
    highest: u16,
    /// SequenceHistory: one bit per number.
    seen: Box<[u64; SPACE as usize / 64]>,
    /// How many numbers from the first one to the highest one, at most the history's length.
    known: u32,
    /// When the timer expires, if it runs.
    expires: Option<Instant>,
}

impl Recovery {
    /// A function that first accepts any number (7.4.3.3).
    ///
    /// # Errors
    /// A value outside of its range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            counters: Counters::default(),
            take_any: true,
            highest: u16::MAX,
            seen: Box::new([0; SPACE as usize / 64]),
            known: 0,
            expires: None,
        })
    }

    /// The counters up to the last call of [`Self::passes`] or [`Self::advance`].
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Resets the function if its timer has expired by `now` (7.4.3.3, SequenceRecoveryReset).
    pub fn advance(&mut self, now: Instant) {
        if self.expires.is_some_and(|at| at <= now) {
            self.counters.resets += 1;
            self.restart();
        }
    }

    /// Forgets all numbers, as after a restart of the system; the counters stay.
    pub fn restart(&mut self) {
        (self.take_any, self.highest, self.known, self.expires) = (true, u16::MAX, 0, None);
        self.seen.fill(0);
    }

    /// Whether a frame with the number `sequence` passes. `None`: the frame has no tag.
    pub fn passes(&mut self, now: Instant, sequence: Option<u16>) -> bool {
        self.advance(now);
        let (passes, restarts) = match (sequence, self.config.algorithm) {
            (None, Algorithm::Vector { .. }) => {
                self.counters.tagless += 1;
                (self.config.take_no_sequence, self.config.take_no_sequence)
            }
            (None, Algorithm::Match) => {
                self.counters.tagless += 1;
                (true, false)
            }
            (Some(number), algorithm) => {
                let passes = match algorithm {
                    _ if self.take_any => self.take_first(number),
                    Algorithm::Vector { history } => self.vector(number, history.into()),
                    Algorithm::Match => self.matches(number),
                };
                (passes, passes || self.config.individual)
            }
        };
        if restarts {
            self.expires = Some(now + self.config.reset);
        }
        self.counters.passed += u64::from(passes);
        self.counters.discarded += u64::from(!passes);
        passes
    }

    fn take_first(&mut self, number: u16) -> bool {
        (self.take_any, self.highest, self.known) = (false, number, 1);
        self.set(number, true);
        true
    }

    fn matches(&mut self, number: u16) -> bool {
        let before = std::mem::replace(&mut self.highest, number);
        self.counters.out_of_order +=
            u64::from(number != before && number != before.wrapping_add(1));
        number != before
    }

    fn vector(&mut self, number: u16, history: i32) -> bool {
        // From -SPACE/2 to SPACE/2 - 1.
        let delta = i32::from(number.wrapping_sub(self.highest).cast_signed());
        if delta.abs() >= history {
            self.counters.rogue += 1;
            return false;
        }
        if delta <= 0 {
            let is_new = !self.has(number);
            self.set(number, true);
            self.counters.out_of_order += u64::from(is_new);
            return is_new;
        }
        self.counters.out_of_order += u64::from(delta != 1);
        (0..delta).for_each(|_| self.shift(history as u16));
        self.set(number, true);
        true
    }

    /// Raises the highest number by one (ShiftSequenceHistory).
    fn shift(&mut self, history: u16) {
        self.highest = self.highest.wrapping_add(1);
        let oldest = self.highest.wrapping_sub(history);
        if !self.has(oldest) {
            self.counters.lost += 1;
            self.counters.lost_before_first += u64::from(self.known < u32::from(history));
        }
        self.set(oldest, false);
        self.known = (self.known + 1).min(history.into());
    }

    fn has(&self, number: u16) -> bool {
        self.seen[usize::from(number) / 64] >> (number % 64) & 1 == 1
    }

    fn set(&mut self, number: u16, seen: bool) {
        let bit = 1 << (number % 64);
        let word = &mut self.seen[usize::from(number) / 64];
        *word = if seen { *word | bit } else { *word & !bit };
    }
}
