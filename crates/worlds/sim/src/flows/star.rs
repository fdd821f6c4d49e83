//! A star: senders, one bridge and one receiver.

use super::{FlowConfig, FlowsConfig};
use crate::ethernet::port::RateStep;
use crate::ethernet::{Rate, bridge, port};
use crate::network::{BridgeConfig, CableConfig, CableEnd, NetworkConfig, StationConfig};
use crate::transport::RawConfig;
use switch::congestion::Config;
use switch::raw::Settings;
use wire::{Duration, Instant};

/// The bottleneck: the index in [`super::Sample::loads`] of cable 0 towards the receiver.
pub const BOTTLENECK: usize = 0;

/// Bridge and port of the bottleneck.
pub const BOTTLENECK_PORT: (usize, usize) = (0, 0);

/// A network in which stations 1 to `senders` can send to station 0 through a store-and-forward
/// bridge, all at `rate`. Delays are 500 ns in stations, 1500 ns in the bridge and 50 ns (10 m) in
/// cables; transmit rings have four frames. `steps` limit the rate of the cable to station 0.
pub fn star(senders: usize, rate: Rate, steps: Vec<RateStep>) -> NetworkConfig {
    let station = StationConfig::new(rate, Duration::from_ns(500), 4);
    let cable = |station| {
        let (bridge, station) = (CableEnd::Bridge(0, station), CableEnd::station(station));
        CableConfig::new(bridge, station, Duration::from_ns(50))
    };
    let mut cables: Vec<_> = (0..=senders).map(cable).collect();
    cables[0].rate_steps = steps;
    let bridge = BridgeConfig {
        ports: vec![port::Config::new(rate); senders + 1],
        mode: bridge::Mode::StoreAndForward,
        delay: Duration::from_ns(1_500),
        jitter: Duration::ZERO,
    };
    NetworkConfig {
        stations: vec![station; senders + 1],
        bridges: vec![bridge],
        cables,
        ..NetworkConfig::default()
    }
}

/// Flows from each sender of a star at 10 Gb/s. Each flow begins `apart` after the previous flow.
/// The interval between samples is 50 us.
pub fn incast(senders: usize, congestion: Config, apart: Duration, time: Duration) -> FlowsConfig {
    let flow = |sender: usize| FlowConfig {
        raw: RawConfig {
            stations: [sender, 0],
            priority: 0,
            settings: Settings { congestion, ..Settings::new(0) },
        },
        start: Instant::from_ps(apart.as_ps() * (sender as u64 - 1)),
        stop: Instant::ZERO + time,
        segment: usize::MAX,
    };
    FlowsConfig {
        seed: 1,
        network: star(senders, Rate::G10, Vec::new()),
        flows: (1..=senders).map(flow).collect(),
        watch: BOTTLENECK_PORT,
        time,
        interval: Duration::from_us(50),
    }
}
