//! Helpers of the tests.

pub use sim::flows::{BOTTLENECK, FlowsReport, jain};
use sim::flows::{FlowsConfig, incast, run};
pub use wire::{Duration, Instant};

pub const fn ms(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

/// `senders` flows, each of which begins `apart` after the previous one.
pub fn flows(senders: usize, congestion: &str, apart: Duration, time: Duration) -> FlowsConfig {
    incast(senders, congestion.parse().expect("a control"), apart, time)
}

pub fn simulate(config: &FlowsConfig) -> FlowsReport {
    let report = run(config).expect("a valid configuration");
    assert_eq!(run(config).expect("again").digest, report.digest, "two runs are one run");
    report
}

/// Bits per second on the line to the receiver.
pub fn line_rate(report: &FlowsReport, from: Instant, to: Instant) -> u64 {
    report.line_rate(BOTTLENECK, from, to)
}
