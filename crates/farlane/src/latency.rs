//! Distributions of latencies.

use hdrhistogram::Histogram;
use serde::Serialize;

/// What a distribution comes to; nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Samples.
    pub n: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

impl Summary {
    /// Of samples in nanoseconds; three significant digits.
    pub fn of(samples: impl IntoIterator<Item = u64>) -> Self {
        let mut histogram = Histogram::<u64>::new(3).expect("three digits are allowed");
        let mut max = 0;
        for sample in samples {
            histogram.record(sample).expect("the histogram grows as needed");
            max = max.max(sample);
        }
        Self {
            n: histogram.len(),
            p50_ns: histogram.value_at_quantile(0.5).min(max),
            p99_ns: histogram.value_at_quantile(0.99).min(max),
            max_ns: max,
        }
    }
}
