//! Latency statistics over all samples.

use super::Bins;
use serde::{Deserialize, Serialize};
use wire::Duration;

/// Latency samples of one measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// In nanoseconds, to three significant digits.
    bins: Bins,
    min_ps: u64,
    max_ps: u64,
    sum_ps: u128,
    last_ps: Option<u64>,
    /// Sum of the differences between consecutive samples.
    steps_ps: u128,
}

/// Statistics of samples in nanoseconds; all zero without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of samples.
    pub n: u64,
    /// The shortest sample.
    pub min_ns: u64,
    /// Arithmetic mean of the samples.
    pub mean_ns: u64,
    /// Median, to three significant digits.
    pub p50_ns: u64,
    /// 90th percentile, to three significant digits.
    pub p90_ns: u64,
    /// 99th percentile, to three significant digits.
    pub p99_ns: u64,
    /// 99.9th percentile, to three significant digits.
    pub p99_9_ns: u64,
    /// The longest sample.
    pub max_ns: u64,
    /// Mean absolute difference between consecutive samples (packet delay variation as in RFC 3393,
    /// without the smoothing of RFC 3550).
    pub jitter_ns: u64,
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            bins: Bins::default(),
            min_ps: u64::MAX,
            max_ps: 0,
            sum_ps: 0,
            last_ps: None,
            steps_ps: 0,
        }
    }
}

impl Latency {
    /// Adds a sample.
    pub fn record(&mut self, span: Duration) {
        let ps = span.as_ps();
        self.bins.record(span.as_ns());
        self.min_ps = self.min_ps.min(ps);
        self.max_ps = self.max_ps.max(ps);
        self.sum_ps += u128::from(ps);
        if let Some(last) = self.last_ps.replace(ps) {
            self.steps_ps += u128::from(last.abs_diff(ps));
        }
    }

    /// Adds the samples of `other`. The step from one series to the other does not count as jitter.
    pub fn merge(&mut self, other: &Self) {
        self.bins.add(&other.bins);
        self.min_ps = self.min_ps.min(other.min_ps);
        self.max_ps = self.max_ps.max(other.max_ps);
        self.sum_ps += other.sum_ps;
        self.last_ps = None;
        self.steps_ps += other.steps_ps;
    }

    /// Number of samples so far.
    pub fn count(&self) -> u64 {
        self.bins.len()
    }

    /// The longest sample; zero without samples.
    pub fn longest(&self) -> Duration {
        Duration::from_ps(self.max_ps)
    }

    /// Sum of all samples in picoseconds.
    pub fn sum_ps(&self) -> u128 {
        self.sum_ps
    }

    /// The value in nanoseconds that the share `quantile` (0 to 1) of the samples does not exceed,
    /// to three significant digits; 0 without samples.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        if self.count() == 0 {
            return 0;
        }
        let (min_ns, max_ns) = (self.min_ps / 1000, self.max_ps / 1000);
        self.bins.at_quantile(quantile).clamp(min_ns, max_ns)
    }

    /// The distribution of all samples in nanoseconds.
    pub fn bins(&self) -> &Bins {
        &self.bins
    }

    /// The statistics of the samples so far.
    pub fn summary(&self) -> Summary {
        let n = self.count();
        if n == 0 {
            return Summary::default();
        }
        Summary {
            n,
            min_ns: self.min_ps / 1000,
            mean_ns: (self.sum_ps / u128::from(n) / 1000) as u64,
            p50_ns: self.quantile_ns(0.5),
            p90_ns: self.quantile_ns(0.9),
            p99_ns: self.quantile_ns(0.99),
            p99_9_ns: self.quantile_ns(0.999),
            max_ns: self.max_ps / 1000,
            jitter_ns: (self.steps_ps / u128::from(n.max(2) - 1) / 1000) as u64,
        }
    }
}

impl FromIterator<Duration> for Latency {
    fn from_iter<I: IntoIterator<Item = Duration>>(spans: I) -> Self {
        let mut latency = Self::default();
        spans.into_iter().for_each(|span| latency.record(span));
        latency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_known_samples() {
        let mut latency = Latency::default();
        assert_eq!(latency.summary(), Summary::default());
        (1..=1000).for_each(|us| latency.record(Duration::from_us(us)));
        let s = latency.summary();
        assert_eq!((s.n, s.min_ns, s.max_ns, s.mean_ns), (1000, 1_000, 1_000_000, 500_500));
        assert_eq!(s.jitter_ns, 1_000);
        let near = |value: u64, want: u64| value.abs_diff(want) * 1000 <= want;
        assert!(near(s.p50_ns, 500_000) && near(s.p90_ns, 900_000), "{s:?}");
        assert!(near(s.p99_ns, 990_000) && near(s.p99_9_ns, 999_000), "{s:?}");
    }

    #[test]
    fn single_and_longest_spans_are_counted() {
        let one: Latency = [Duration::from_ns(123_457)].into_iter().collect();
        assert_eq!((one.summary().p50_ns, one.quantile_ns(0.0)), (123_457, 123_457));
        let mut latency: Latency = [Duration::from_ps(u64::MAX)].into_iter().collect();
        latency.merge(&[Duration::ZERO].into_iter().collect());
        assert_eq!((latency.summary().n, latency.summary().min_ns), (2, 0));
        assert_eq!(Latency::default().quantile_ns(0.5), 0);
    }
}
