//! Flow meters: two token buckets (IEEE 802.1Q-2022, 8.6.5.5; MEF 10.3, 12.2, with one flow).

use thiserror::Error;
use wire::Instant;

/// Parameters of a meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterConfig {
    /// Committed information rate, in bits per second. 0: the committed bucket is never refilled.
    pub cir: u64,
    /// Committed burst size, in bytes; above zero if `cir` is above zero.
    pub cbs: u64,
    /// Excess information rate, in bits per second.
    pub eir: u64,
    /// Excess burst size, in bytes; above zero if `eir` is above zero.
    pub ebs: u64,
    /// CF: tokens that overflow the committed bucket go to the excess bucket.
    pub coupling: bool,
    /// CM: frames received as drop eligible are never green.
    pub color_aware: bool,
    /// DropOnYellow: yellow frames are discarded; otherwise they become drop eligible.
    pub drop_on_yellow: bool,
    /// MarkAllFramesRedEnable: all frames after a red frame are red.
    pub mark_all_red: bool,
}

/// A bucket of size zero with a rate above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} is 0 bytes with a rate above 0: no frame would ever conform (MEF 10.3, 12.2)")]
pub struct MeterError(&'static str);

/// The result of a meter for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Within the committed rate and burst.
    Green,
    /// Within the excess rate and burst.
    Yellow,
    /// Beyond both rates and bursts. The frame is discarded.
    Red,
}

/// Tokens per bit. A token is 10^-12 bit; 1 bit/s adds one token per picosecond.
const BIT: u128 = 1_000_000_000_000;

/// A meter.
#[derive(Clone, Debug)]
pub struct Meter {
    config: MeterConfig,
    committed: u128,
    excess: u128,
    /// When the tokens were last updated.
    at: Instant,
    /// MarkAllFramesRed.
    all_red: bool,
}

impl MeterConfig {
    /// Checks that a rate above zero has a burst above zero.
    ///
    /// # Errors
    /// A burst of zero with a rate above zero.
    pub fn check(&self) -> Result<(), MeterError> {
        match (self.cir > 0 && self.cbs == 0, self.eir > 0 && self.ebs == 0) {
            (true, _) => Err(MeterError("the committed burst")),
            (_, true) => Err(MeterError("the excess burst")),
            _ => Ok(()),
        }
    }
}

fn bytes(bytes: u64) -> u128 {
    u128::from(bytes) * 8 * BIT
}

impl Meter {
    /// A meter with full buckets.
    ///
    /// # Errors
    /// A burst of zero with a rate above zero.
    pub fn new(config: MeterConfig) -> Result<Self, MeterError> {
        config.check()?;
        let (committed, excess) = (bytes(config.cbs), bytes(config.ebs));
        Ok(Self { config, committed, excess, at: Instant::ZERO, all_red: false })
    }

    /// Fills both buckets and ends the marking of all frames as red.
    pub(super) fn restart(&mut self) {
        (self.committed, self.excess) = (bytes(self.config.cbs), bytes(self.config.ebs));
        self.all_red = false;
    }

    /// Whether all frames are marked red permanently.
    pub fn is_blocked(&self) -> bool {
        self.all_red
    }

    /// The tokens of the committed and of the excess bucket after the last frame, in bytes, rounded
    /// down.
    pub fn tokens(&self) -> [u64; 2] {
        [self.committed, self.excess].map(|tokens| (tokens / bytes(1)) as u64)
    }

    /// Returns the color of a frame of `length` bytes received at `now`, and removes its tokens.
    pub fn color(&mut self, now: Instant, length: u64, drop_eligible: bool) -> Color {
        self.fill(now);
        if self.all_red {
            return Color::Red;
        }
        let needed = bytes(length);
        let may_be_green = !(self.config.color_aware && drop_eligible);
        if may_be_green && needed <= self.committed {
            self.committed -= needed;
            Color::Green
        } else if needed <= self.excess {
            self.excess -= needed;
            Color::Yellow
        } else {
            self.all_red = self.config.mark_all_red;
            Color::Red
        }
    }

    fn fill(&mut self, now: Instant) {
        let elapsed = u128::from(now.since(self.at).as_ps());
        self.at = self.at.max(now);
        let committed = self.committed + u128::from(self.config.cir) * elapsed;
        self.committed = committed.min(bytes(self.config.cbs));
        let over = if self.config.coupling { committed - self.committed } else { 0 };
        let excess = self.excess + u128::from(self.config.eir) * elapsed + over;
        self.excess = excess.min(bytes(self.config.ebs));
    }
}
