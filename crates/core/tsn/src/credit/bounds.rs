//! The range of a credit (IEEE 802.1Q-2022, annex L).

use super::Slopes;

/// A class of higher priority with a credit-based shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Higher {
    /// Its idleSlope, bit/s.
    pub idle: u64,
    /// Its largest frame, bits.
    pub max_frame: u64,
}

/// The highest credit of a class, in bits, rounded up (hiCredit).
///
/// `interference` is the largest frame of all lower classes, in bits. `higher` has all higher
/// classes; each one has a credit-based shaper. Sizes count the same bytes of a frame as the times
/// for [`super::Credit::spend`].
///
/// - Class A, without higher classes: `interference * idleSlope / rate` (equations L-3, L-10 and
///   L-12).
/// - Class B below class A: `idleSlope * (interference / (rate - idleSlope_A) + frame_A / rate)`
///   (L-3 with L-16).
/// - In general: `idleSlope / (rate - Σ idleSlope_j) * (interference - Σ loCredit_j)` over the
///   higher classes j (Zhao, Pop, Zheng, Daigmorte, Boyer, "Latency Analysis of Multiple Classes of
///   AVB Traffic in TSN with Standard Credit Behavior Using Network Calculus").
///
/// `None` if the higher classes may use the whole rate, so that the credit is unbounded, or if the
/// result is above 2^64 - 1.
pub fn hi_credit(slopes: Slopes, interference: u64, higher: &[Higher]) -> Option<u64> {
    let rate = u128::from(slopes.rate);
    let reserved: u128 = higher.iter().map(|class| u128::from(class.idle)).sum();
    let left = rate.checked_sub(reserved).filter(|&left| left > 0)?;
    // Numerator and denominator are multiplied by `rate`:
    // -loCredit_j * rate = frame_j * (rate - idleSlope_j).
    let mut size = u128::from(interference).checked_mul(rate)?;
    for class in higher {
        let debt = u128::from(class.max_frame).checked_mul(rate - u128::from(class.idle))?;
        size = size.checked_add(debt)?;
    }
    let bits = size.checked_mul(slopes.idle.into())?.div_ceil(rate.checked_mul(left)?);
    u64::try_from(bits).ok()
}

/// The lowest credit of a class, in bits, rounded down (loCredit): `max_frame * sendSlope / rate`
/// (equation L-2). `max_frame` is the largest frame of the class, in bits.
pub fn lo_credit(slopes: Slopes, max_frame: u64) -> i64 {
    let spent = u128::from(max_frame) * u128::from(slopes.rate - slopes.idle);
    let bits = spent.div_ceil(slopes.rate.into());
    -i64::try_from(bits).unwrap_or(i64::MAX)
}
