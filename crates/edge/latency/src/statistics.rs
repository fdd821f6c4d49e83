//! Figures of signed latencies. All samples count. Percentiles are samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A band of latencies, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Band {
    /// The least latency.
    pub from_ns: i64,
    /// The greatest latency.
    pub to_ns: i64,
}

/// Figures of latencies, all zero without frames. Percentiles are samples, by nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "LatencyFigures")]
pub struct Figures {
    /// Frames.
    pub n: u64,
    /// Frames with an impossible latency below zero; `n` includes them.
    pub negative: u64,
    /// The shortest latency.
    pub min_ns: i64,
    /// Arithmetic mean, rounded down.
    pub mean_ns: i64,
    /// Standard deviation (divisor n), rounded down.
    pub sigma_ns: u64,
    /// Median.
    pub p50_ns: i64,
    /// 90th percentile.
    pub p90_ns: i64,
    /// 99th percentile.
    pub p99_ns: i64,
    /// 99.9th percentile.
    pub p99_9_ns: i64,
    /// 99.99th percentile.
    pub p99_99_ns: i64,
    /// The longest latency.
    pub max_ns: i64,
    /// Mean absolute difference between the latencies of consecutive frames (RFC 3393, without the
    /// smoothing of RFC 3550).
    pub jitter_ns: u64,
    /// Frames within the band of `--band`; null without this option.
    pub in_band: Option<u64>,
}

impl Figures {
    /// The figures of samples, which must be in the order of sending.
    pub fn from_samples(samples: &[i64], band: Option<Band>) -> Self {
        let n = samples.len();
        let in_band = band.map(|Band { from_ns, to_ns }| {
            samples.iter().filter(|ns| (from_ns..=to_ns).contains(ns)).count() as u64
        });
        if n == 0 {
            return Self { in_band, ..Self::default() };
        }
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let wide = n as i128;
        let sum: i128 = samples.iter().map(|ns| i128::from(*ns)).sum();
        let steps: u128 =
            samples.windows(2).map(|pair| u128::from(pair[0].abs_diff(pair[1]))).sum();
        // n squared times the variance. Deviations from the median do not overflow.
        let middle = quantile(&sorted, 5_000);
        let off = |ns: &i64| i128::from(*ns) - i128::from(middle);
        let squares: i128 =
            samples.iter().map(off).fold(0, |sum, d| sum.saturating_add(d.saturating_mul(d)));
        let first = sum - wide * i128::from(middle);
        let variance = wide.saturating_mul(squares).saturating_sub(first.saturating_mul(first))
            / (wide * wide);
        Self {
            n: n as u64,
            negative: sorted.partition_point(|ns| *ns < 0) as u64,
            min_ns: sorted[0],
            mean_ns: sum.div_euclid(wide) as i64,
            sigma_ns: variance.max(0).isqrt() as u64,
            p50_ns: middle,
            p90_ns: quantile(&sorted, 9_000),
            p99_ns: quantile(&sorted, 9_900),
            p99_9_ns: quantile(&sorted, 9_990),
            p99_99_ns: quantile(&sorted, 9_999),
            max_ns: sorted[n - 1],
            jitter_ns: (steps / (n as u128).max(2).saturating_sub(1)) as u64,
            in_band,
        }
    }
}

/// The percentile `of_10000` of sorted samples, by nearest rank; 0 without samples.
pub(crate) fn quantile(sorted: &[i64], of_10000: u64) -> i64 {
    let rank = (sorted.len() as u64 * of_10000).div_ceil(10_000).max(1);
    sorted.get(rank as usize - 1).copied().unwrap_or(0)
}

/// The median by nearest rank; 0 without samples.
pub(crate) fn median(samples: impl IntoIterator<Item = i64>) -> i64 {
    let mut sorted: Vec<i64> = samples.into_iter().collect();
    sorted.sort_unstable();
    quantile(&sorted, 5_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The numbers 1 to 1000 have the mean 500.5 and the variance (1000^2 - 1) / 12 = 83333.25,
    /// whose root is 288.67.
    #[test]
    fn figures_of_a_thousand_numbers() {
        let samples: Vec<i64> = (1..=1000).collect();
        let figures = Figures::from_samples(&samples, Some(Band { from_ns: 40, to_ns: 100 }));
        let golden = Figures {
            n: 1000,
            negative: 0,
            min_ns: 1,
            mean_ns: 500,
            sigma_ns: 288,
            p50_ns: 500,
            p90_ns: 900,
            p99_ns: 990,
            p99_9_ns: 999,
            p99_99_ns: 1000,
            max_ns: 1000,
            jitter_ns: 1,
            in_band: Some(61),
        };
        assert_eq!(figures, golden);
        assert_eq!(Figures::from_samples(&[], None), Figures::default());
    }

    /// The mean is -20 / 3 = -6.67. With 30 instead of 20, the variance is (100 + 2500 + 900) / 3 -
    /// 3.33^2 = 1155.6, whose root is 33.99.
    #[test]
    fn figures_of_negative_numbers() {
        let figures = Figures::from_samples(&[10, -50, 20], None);
        assert_eq!((figures.negative, figures.min_ns, figures.mean_ns), (1, -50, -7));
        let wide = Figures::from_samples(&[10, -50, 30], None);
        assert_eq!((wide.sigma_ns, wide.jitter_ns), (33, 70));
        let ends = Figures::from_samples(&[i64::MIN, i64::MAX], None);
        assert_eq!((ends.min_ns, ends.max_ns, ends.mean_ns), (i64::MIN, i64::MAX, -1));
    }

    proptest! {
        #[test]
        fn figures_are_ordered_and_percentiles_are_samples(us in prop::collection::vec(1i64..100_000, 1..300)) {
            let samples: Vec<i64> = us.iter().map(|us| us * 1000).collect();
            let figures = Figures::from_samples(&samples, None);
            prop_assert!(figures.min_ns <= figures.p50_ns && figures.p50_ns <= figures.p90_ns);
            prop_assert!(figures.p99_ns <= figures.p99_9_ns && figures.p99_99_ns <= figures.max_ns);
            prop_assert!((figures.min_ns..=figures.max_ns).contains(&figures.mean_ns));
            prop_assert!(samples.contains(&figures.p99_ns));
            prop_assert_eq!(figures.sigma_ns == 0, figures.min_ns == figures.max_ns);
        }
    }
}
