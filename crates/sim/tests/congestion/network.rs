//! Senders, a bridge and one receiver at 10 Gb/s.

use sim::ethernet::port::RateStep;
use sim::ethernet::{Rate, bridge, port};
use sim::flows::{FlowConfig, FlowsConfig, FlowsReport, run};
use sim::network::{BridgeConfig, CableConfig, NetworkConfig, Place, StationConfig};
use sim::transport::RawConfig;
use switch::raw::Settings;
use wire::{Duration, Instant};

/// Direction of the cable to the receiver: the bottleneck.
pub const BOTTLENECK: usize = 0;

pub const fn ms(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

pub fn station() -> StationConfig {
    StationConfig {
        rate: Rate::G10,
        tx_delay: Duration::from_ns(500),
        rx_delay: Duration::from_ns(500),
        tx_ring: 4,
        tagging: None,
        gates: None,
        ack_delay: None,
        traffic: Vec::new(),
    }
}

/// `senders` stations, 1 and on, send to station 0 through one bridge.
pub fn star(senders: usize, steps: &[(u64, u64)]) -> NetworkConfig {
    let cable = |station| {
        CableConfig::new(Place::Bridge(0, station), Place::Station(station), Duration::from_ns(50))
    };
    let mut cables: Vec<_> = (0..=senders).map(cable).collect();
    cables[0].rate_steps = steps
        .iter()
        .map(|(at, gigabits)| RateStep { at: ms(*at), bits_per_second: gigabits * 1_000_000_000 })
        .collect();
    let bridge = BridgeConfig {
        ports: vec![port::Config::new(Rate::G10); senders + 1],
        mode: bridge::Mode::StoreAndForward,
        delay: Duration::from_ns(1_500),
        jitter: Duration::ZERO,
    };
    NetworkConfig { stations: vec![station(); senders + 1], bridges: vec![bridge], cables }
}

pub fn flow(sender: usize, congestion: &str, start: Instant) -> FlowConfig {
    let congestion = congestion.parse().expect("a control");
    let settings = Settings { congestion, ..Settings::new(0) };
    let raw = RawConfig { stations: [sender, 0], priority: 0, settings };
    FlowConfig { raw, start, stop: ms(1 << 20), chunk: usize::MAX }
}

/// `senders` flows that begin `apart` from each other.
pub fn flows(senders: usize, congestion: &str, apart: Duration, time: Duration) -> FlowsConfig {
    let start = |sender: usize| Instant::from_ps(apart.as_ps() * sender as u64);
    let flows = (0..senders).map(|sender| flow(sender + 1, congestion, start(sender)));
    FlowsConfig {
        seed: 1,
        network: star(senders, &[]),
        flows: flows.collect(),
        watch: (0, 0),
        time,
        interval: Duration::from_us(50),
    }
}

pub fn simulate(config: &FlowsConfig) -> FlowsReport {
    let report = run(config).expect("a valid configuration");
    assert_eq!(run(config).expect("again").digest, report.digest, "two runs are one run");
    report
}

/// Bits of line a second between two times, gaps counted.
pub fn line_rate(report: &FlowsReport, from: Instant, to: Instant) -> f64 {
    let between = report.samples.iter().filter(|sample| sample.at > from && sample.at <= to);
    let bytes = between.map(|sample| {
        let load = sample.loads[BOTTLENECK];
        load.bytes + 12 * load.packets
    });
    bytes.sum::<u64>() as f64 * 8e9 / (to - from).as_ns() as f64
}

/// What each flow delivered between two times.
pub fn shares(report: &FlowsReport, from: Instant, to: Instant) -> Vec<u64> {
    let mut sums = vec![0; report.senders.len()];
    for sample in report.samples.iter().filter(|sample| sample.at > from && sample.at <= to) {
        sums.iter_mut().zip(&sample.delivered).for_each(|(sum, more)| *sum += more);
    }
    sums
}

/// Jain, Chiu, Hawe, "A Quantitative Measure of Fairness and Discrimination",
/// DEC-TR-301, 1984.
pub fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|share| *share as f64).sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    sum * sum / (shares.len() as f64 * squares)
}

/// The longest wait at the bottleneck between two times.
pub fn longest_wait(report: &FlowsReport, from: Instant, to: Instant) -> Duration {
    let between = report.samples.iter().filter(|sample| sample.at > from && sample.at <= to);
    between.map(|sample| sample.longest_wait).max().unwrap_or_default()
}
