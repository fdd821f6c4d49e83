//! Whether the medians of two series differ: confidence intervals by order statistics, for skewed
//! values that depend on earlier values.
//!
//! 1. The **median of one series** has a confidence interval between two of its order statistics
//!    (David and Nagaraja, "Order Statistics", 3rd edition, section 7.1): the ranks (n + 1) / 2 -+
//!    z * sqrt(n * tau) / 2. No distribution is assumed.
//! 2. **tau** is the number of consecutive values worth one independent value: 1 plus twice the sum
//!    of the autocorrelations of "at most the median", estimated by the initial monotone positive
//!    sequence (Geyer, "Practical Markov chain Monte Carlo", 1992, section 3.3) and divided by 1 -
//!    2 * tau / n, because a short series underestimates its autocorrelation. tau is at least 1.
//! 3. The **difference** of two independent medians has an interval calculated from both intervals
//!    (MOVER: Zou and Donner, "Construction of confidence intervals about effect measures", 2008);
//!    the **ratio** has the interval of the difference of logarithms.
//! 4. The **p-value** is the greatest level at which the difference's interval contains 0.
//!
//! Limits: fewer than six independent values have no interval at 95 %. With fewer than a hundred
//! strongly dependent values (autocorrelation 0.9), intervals are too narrow: about one of ten
//! pairs of equal series seems to differ, instead of one of twenty. A difference can also come from
//! conditions of the whole run, such as temperature, other processes or placement in memory.

use crate::normal;

/// The z value of a 95 % interval.
const Z95: f64 = 1.959_963_984_540_054;
/// The largest z value that is examined. The least reported p-value is therefore 2 * (1 - Phi(8)) =
/// 1.2e-15.
const LARGEST_Z: f64 = 8.0;

/// A value with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value of the series.
    pub value: f64,
    /// The lower and the upper end of the interval; `None` if the series are too short.
    pub interval: Option<(f64, f64)>,
}

/// The comparison of two medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Both medians.
    pub medians: [u64; 2],
    /// The number of independent values that each series is worth.
    pub independent: [f64; 2],
    /// The second median minus the first one.
    pub difference: Estimate,
    /// The second median divided by the first one; `None` if one of them is 0.
    pub ratio: Option<Estimate>,
    /// The probability of a difference at least this large between series with equal medians.
    pub p: f64,
}

/// One sorted series, and the tau of the series (see the module's documentation).
struct Series {
    sorted: Vec<u64>,
    tau: f64,
}

/// The median of a sorted series, the lower of two middle values; `None` for an empty series.
pub fn median(sorted: &[u64]) -> Option<u64> {
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

impl Series {
    /// A series from values in the order of time, and its median; `None` without values.
    fn new(values: &[u64]) -> Option<(Self, u64)> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let median = median(&sorted)?;
        let tau = autocorrelation_time(values, median);
        Some((Self { sorted, tau }, median))
    }

    fn independent(&self) -> f64 {
        self.sorted.len() as f64 / self.tau
    }

    /// The confidence interval of the median for `z`; `None` if the series is too short.
    fn interval(&self, z: f64) -> Option<(u64, u64)> {
        let n = self.sorted.len();
        let low = ((n + 1) as f64 / 2.0 - z * (n as f64 * self.tau).sqrt() / 2.0).floor();
        // `low` is a rank from 1. The upper rank has the same distance from the end.
        if low < 1.0 {
            return None;
        }
        let low = low as usize;
        Some((self.sorted[low - 1], self.sorted[n - low]))
    }
}

/// The confidence interval of the difference of two medians.
fn mover(medians: [f64; 2], intervals: [(f64, f64); 2]) -> (f64, f64) {
    let [a, b] = medians;
    let [(low_a, high_a), (low_b, high_b)] = intervals;
    ((b - a) - (b - low_b).hypot(high_a - a), (b - a) + (high_b - b).hypot(a - low_a))
}

/// Compares two series of values, each in the order of time. `None` if a series is empty.
pub fn compare(a: &[u64], b: &[u64]) -> Option<Comparison> {
    let ((first, a), (second, b)) = (Series::new(a)?, Series::new(b)?);
    let at = |z: f64, scale: fn(u64) -> f64| {
        let intervals = [first.interval(z)?, second.interval(z)?];
        let intervals = intervals.map(|(low, high)| (scale(low), scale(high)));
        Some(mover([scale(a), scale(b)], intervals))
    };
    let linear = |value: u64| value as f64;
    let includes_zero = |z: f64| at(z, linear).is_none_or(|(low, high)| low <= 0.0 && high >= 0.0);
    let log = |value: u64| (value as f64).ln();
    let ratio = (a > 0 && b > 0).then(|| Estimate {
        value: b as f64 / a as f64,
        interval: at(Z95, log).map(|(low, high)| (low.exp(), high.exp())),
    });
    Some(Comparison {
        medians: [a, b],
        independent: [first.independent(), second.independent()],
        difference: Estimate { value: b as f64 - a as f64, interval: at(Z95, linear) },
        ratio,
        p: p_value(includes_zero),
    })
}

/// The level at which a confidence interval, which grows with z, begins to include 0.
fn p_value(includes_zero: impl Fn(f64) -> bool) -> f64 {
    let (mut out, mut inside) = (0.0, LARGEST_Z);
    if includes_zero(out) {
        return 1.0;
    }
    if !includes_zero(inside) {
        return normal::two_sided(LARGEST_Z);
    }
    // Bisection until the p-value has four digits.
    for _ in 0..20 {
        let middle = (out + inside) / 2.0;
        *(if includes_zero(middle) { &mut inside } else { &mut out }) = middle;
    }
    normal::two_sided(inside)
}

/// One bit per value: whether the value is at most the median.
struct Bits {
    words: Vec<u64>,
    n: usize,
}

impl Bits {
    fn new(values: &[u64], median: u64) -> Self {
        let word = |values: &[u64]| {
            values.iter().rev().fold(0, |word, value| word << 1 | u64::from(*value <= median))
        };
        Self { words: values.chunks(64).map(word).collect(), n: values.len() }
    }

    fn at(&self, index: usize) -> u64 {
        self.words[index / 64] >> (index % 64) & 1
    }

    fn ones(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Number of positions at which this bit and the bit `lag` positions later are set.
    fn both(&self, lag: usize) -> u64 {
        let (skip, shift) = (lag / 64, lag % 64);
        let later = |word: usize| {
            let low = self.words[word + skip] >> shift;
            let high = self.words.get(word + skip + 1).filter(|_| shift > 0);
            low | high.map_or(0, |high| high << (64 - shift))
        };
        let words = 0..self.words.len().saturating_sub(skip);
        words.map(|word| u64::from((self.words[word] & later(word)).count_ones())).sum()
    }
}

/// The value tau that the module's documentation defines.
fn autocorrelation_time(values: &[u64], median: u64) -> f64 {
    let bits = Bits::new(values, median);
    let (n, ones) = (bits.n, bits.ones());
    let share = ones as f64 / n as f64;
    let variance = share * (1.0 - share);
    if variance == 0.0 {
        return 1.0;
    }
    // Set bits with a successor (`early`) and with a predecessor (`late`) at distance `lag`.
    let (mut early, mut late) = (ones, ones);
    let mut autocovariance = |lag: usize| {
        if lag > 0 {
            early -= bits.at(n - lag);
            late -= bits.at(lag - 1);
        }
        let mixed = share * (early + late) as f64;
        (bits.both(lag) as f64 - mixed + (n - lag) as f64 * share * share) / n as f64
    };
    let (mut sum, mut before) = (0.0, f64::INFINITY);
    // With a variance above 0 there are two values at least.
    for pair in 0..(n / 4).max(1) {
        let both = autocovariance(2 * pair) + autocovariance(2 * pair + 1);
        if both <= 0.0 {
            break;
        }
        before = both.min(before);
        sum += before;
    }
    let tau = (2.0 * sum / variance - 1.0).max(1.0);
    // Each autocovariance about the sample mean is too low by about tau / n of the variance.
    // Without the correction, a short series would count as too many independent values.
    let share = tau / n as f64;
    tau / (1.0 - 2.0 * share).max(share)
}

/// Corrects the p-values of several comparisons, so that the probability of at least one false
/// finding is the same as for one comparison (S. Holm, "A simple sequentially rejective multiple
/// test procedure", 1979).
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let (mut corrected, mut least) = (vec![1.0; p.len()], 0.0f64);
    for (rank, index) in order.into_iter().enumerate() {
        least = least.max(p[index] * (p.len() - rank) as f64).min(1.0);
        corrected[index] = least;
    }
    corrected
}

#[cfg(test)]
mod tests;
