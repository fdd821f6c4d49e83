//! Statistics of latencies. No sample is left out.

use schemars::JsonSchema;
use serde::Serialize;

pub use stats::Latency;

/// Statistics of latencies. No sample is left out. All fields are 0 without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Summary {
    /// Number of samples.
    pub n: u64,
    /// Minimum.
    pub min_ns: u64,
    /// Arithmetic mean, rounded down.
    pub mean_ns: u64,
    /// Median, to three significant digits.
    pub p50_ns: u64,
    /// 99th percentile, to three significant digits.
    pub p99_ns: u64,
    /// Maximum, exact.
    pub max_ns: u64,
}

impl From<&Latency> for Summary {
    fn from(latency: &Latency) -> Self {
        let stats::Summary { n, min_ns, mean_ns, p50_ns, p99_ns, max_ns, .. } = latency.summary();
        Self { n, min_ns, mean_ns, p50_ns, p99_ns, max_ns }
    }
}

/// The same measurement direct-attached and through the tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Pair {
    /// The same root complex, TLP codec and controller, without switch and tunnel.
    pub direct: Summary,
    /// Through the switch and TCP on loopback.
    pub tunnelled: Summary,
}

impl Pair {
    /// Returns T_tunnel, the one-way time that the tunnel adds, in nanoseconds: half of the
    /// difference between the medians of the tunnelled and the direct round trip. Noise can make it
    /// negative.
    pub fn t_tunnel_ns(&self) -> i64 {
        let ns = |summary: &Summary| i64::try_from(summary.p50_ns).unwrap_or(i64::MAX);
        (ns(&self.tunnelled) - ns(&self.direct)) / 2
    }
}

/// Formats a table of measurements for a terminal, in microseconds.
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
    use wire::Duration;

    #[test]
    fn percentiles_of_known_samples() {
        let latency: Latency = (1..=100).map(|us| Duration::from_us(us * 10)).collect();
        let summary = Summary::from(&latency);
        assert_eq!((summary.n, summary.min_ns, summary.max_ns), (100, 10_000, 1_000_000));
        assert_eq!(summary.mean_ns, 505_000);
        assert!(summary.p50_ns.abs_diff(500_000) <= 500, "{summary:?}");
        assert!(summary.p99_ns.abs_diff(990_000) <= 990, "{summary:?}");
        assert_eq!(Summary::from(&Latency::default()), Summary::default());
    }

    #[test]
    fn the_table_of_the_nvme_tsn_paper() {
        let summary = |p50_ns| Summary {
            n: 100,
            p50_ns,
            p99_ns: p50_ns + 1_234,
            max_ns: 1_234_567,
            ..Summary::default()
        };
        let config = Pair { direct: summary(280), tunnelled: summary(6_020) };
        let read = Pair { direct: summary(99_920), tunnelled: Summary::default() };
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
