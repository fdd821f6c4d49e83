//! Ratios of frequencies in the format of 802.1AS.

/// The rate of one clock relative to another: (ratio - 1) in units of 2^-41
/// (cumulativeScaledRateOffset, IEEE 802.1AS-2020, 11.4.4.3.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateRatio(i64);

const SHIFT: u32 = 41;

impl RateRatio {
    /// The ratio with `scaled` as its value in a message.
    pub const fn from_scaled(scaled: i32) -> Self {
        Self(scaled as i64)
    }

    /// The value in a message; saturates at about ±0.1 %.
    pub fn scaled(self) -> i32 {
        self.0.clamp(i32::MIN.into(), i32::MAX.into()) as i32
    }

    /// The ratio of a clock that is `ppt` parts per 10^12 faster.
    pub const fn from_ppt(ppt: i64) -> Self {
        Self((((ppt as i128) << SHIFT) / 1_000_000_000_000) as i64)
    }

    /// The ratio of two spans between the same two events, measured by two clocks. `None` if `own`
    /// is not above zero, or if the spans differ by more than a tenth of `own`.
    pub fn of_spans(other: i64, own: i64) -> Option<Self> {
        if own <= 0 || other.abs_diff(own) > own.unsigned_abs() / 10 {
            return None;
        }
        Some(Self((((i128::from(other) - i128::from(own)) << SHIFT) / i128::from(own)) as i64))
    }

    /// The product of two ratios.
    #[must_use]
    pub const fn times(self, other: Self) -> Self {
        Self(self.0 + other.0 + ((self.0 as i128 * other.0 as i128) >> SHIFT) as i64)
    }

    /// Converts a span of the reference clock to a span of the other clock, in picoseconds.
    pub const fn convert(self, ps: i64) -> i64 {
        ps + ((ps as i128 * self.0 as i128) >> SHIFT) as i64
    }
}
