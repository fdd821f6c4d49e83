//! Latencies: how many, how long, how far they spread. Every sample counts.

use hdrhistogram::Histogram;
use serde::Serialize;
use wire::Duration;

/// Longer spans count as this long in percentiles: one hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Samples of one measurement.
#[derive(Clone, Debug)]
pub struct Latency {
    /// Three significant digits.
    histogram: Histogram<u64>,
    min: u64,
    max: u64,
    sum: u128,
}

/// What samples amount to, in nanoseconds; all zero if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Samples.
    pub n: u64,
    /// The shortest.
    pub min_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: u64,
    /// Median, to three significant digits.
    pub p50_ns: u64,
    /// 99th percentile, to three significant digits.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Default for Latency {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("fixed bounds");
        Self { histogram, min: u64::MAX, max: 0, sum: 0 }
    }
}

impl Latency {
    /// No samples yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sample.
    pub fn record(&mut self, span: Duration) {
        let ns = span.as_ns();
        self.histogram.saturating_record(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.sum += u128::from(ns);
    }

    /// Adds the samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("equal bounds");
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }

    /// Samples so far.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The span that `quantile`, 0 to 1, of the samples do not exceed, in
    /// nanoseconds to three significant digits; 0 without samples.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        if self.count() == 0 {
            return 0;
        }
        self.histogram.value_at_quantile(quantile).clamp(self.min, self.max)
    }

    /// All samples, for reports that keep the distribution.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// The usual numbers.
    pub fn summary(&self) -> Summary {
        let n = self.count();
        if n == 0 {
            return Summary::default();
        }
        Summary {
            n,
            min_ns: self.min,
            mean_ns: (self.sum / u128::from(n)) as u64,
            p50_ns: self.quantile_ns(0.5),
            p99_ns: self.quantile_ns(0.99),
            max_ns: self.max,
        }
    }
}

impl Extend<Duration> for Latency {
    fn extend<I: IntoIterator<Item = Duration>>(&mut self, spans: I) {
        spans.into_iter().for_each(|span| self.record(span));
    }
}

impl FromIterator<Duration> for Latency {
    fn from_iter<I: IntoIterator<Item = Duration>>(spans: I) -> Self {
        let mut latency = Self::new();
        latency.extend(spans);
        latency
    }
}

/// The same measurement direct-attached and through the tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// Without the tunnel.
    pub direct: Summary,
    /// With it.
    pub tunnelled: Summary,
}

impl Pair {
    /// T_tunnel, the one-way time that the tunnel adds, from the medians of a
    /// round trip: (tunnelled - direct) / 2, in nanoseconds. Negative if
    /// noise makes it so.
    pub fn t_tunnel_ns(&self) -> i64 {
        let ns = |summary: &Summary| i64::try_from(summary.p50_ns).unwrap_or(i64::MAX);
        (ns(&self.tunnelled) - ns(&self.direct)) / 2
    }
}

/// A table of measurements for a terminal, in microseconds.
pub fn table(rows: &[(&str, Pair)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut out = format!("{:width$}  {:<38}  tunnelled\n", "", "direct");
    let head = format!("{:>7} {:>9} {:>9} {:>10}", "n", "p50", "p99", "max");
    out += &format!("{:width$}  {head}  {head}  us\n", "");
    for (name, Pair { direct, tunnelled }) in rows {
        out += &format!("{name:<width$}  {}  {}\n", cells(direct), cells(tunnelled));
    }
    out
}

fn cells(summary: &Summary) -> String {
    let Summary { n, p50_ns, p99_ns, max_ns, .. } = *summary;
    if n == 0 {
        return format!("{n:>7} {:>9} {:>9} {:>10}", "-", "-", "-");
    }
    format!("{n:>7} {:>9} {:>9} {:>10}", micros(p50_ns), micros(p99_ns), micros(max_ns))
}

fn micros(ns: u64) -> String {
    format!("{}.{:02}", ns / 1000, ns % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_known_samples() {
        let latency: Latency = (1..=100).map(|us| Duration::from_us(us * 10)).collect();
        let summary = latency.summary();
        assert_eq!((summary.n, summary.min_ns, summary.max_ns), (100, 10_000, 1_000_000));
        assert_eq!(summary.mean_ns, 505_000);
        assert!(summary.p50_ns.abs_diff(500_000) <= 500, "{summary:?}");
        assert!(summary.p99_ns.abs_diff(990_000) <= 990, "{summary:?}");
        assert_eq!(Latency::new().summary(), Summary::default());
        let one: Latency = [Duration::from_ns(123_457)].into_iter().collect();
        assert_eq!(one.summary().p50_ns, 123_457);
    }

    #[test]
    fn endless_spans_count_too() {
        let mut latency = Latency::new();
        latency.record(Duration::from_ps(u64::MAX));
        latency.record(Duration::ZERO);
        assert_eq!((latency.summary().n, latency.summary().min_ns), (2, 0));
    }

    #[test]
    fn the_table_of_the_brief() {
        let of = |p50_ns| Summary {
            n: 100,
            p50_ns,
            p99_ns: p50_ns + 1_234,
            max_ns: 1_234_567,
            ..Summary::default()
        };
        let config = Pair { direct: of(280), tunnelled: of(6_020) };
        let read = Pair { direct: of(99_920), tunnelled: Summary::default() };
        assert_eq!(config.t_tunnel_ns(), 2_870);
        let text = table(&[("configuration read", config), ("4 KiB read", read)]);
        assert_eq!(
            text,
            "                    direct                                  tunnelled
                          n       p50       p99        max        n       p50       p99        max  us
configuration read      100      0.28      1.51    1234.56      100      6.02      7.25    1234.56
4 KiB read              100     99.92    101.15    1234.56        0         -         -          -
"
        );
    }
}
