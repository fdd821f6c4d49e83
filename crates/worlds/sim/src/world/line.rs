//! A line of bridges with gates at every port and streams over several hops: a TSN network without
//! drives.

use super::Config;
use crate::ethernet::nic::Tagging;
use crate::ethernet::traffic::Pattern;
use crate::ethernet::{Rate, bridge, port};
use crate::network::{
    BridgeConfig, CableConfig, CableEnd, NetworkConfig, StationConfig, TrafficConfig,
};
use tsn::{Clock, Entry, GateControlList, GateStates, Gates};
use wire::{Duration, Instant};

/// Delays of the pipelines in a station and in a bridge.
const STATION: Duration = Duration::from_ns(500);
const BRIDGE: Duration = Duration::from_ns(1_500);
/// Propagation delay of a cable of ten metres.
const CABLE: Duration = Duration::from_ns(50);
/// The entries of the gates: open queues and interval in microseconds. First queue 7, then queues 6
/// and 5, then the others.
const WINDOWS: [(u8, u64); 3] = [(0x80, 100), (0x60, 150), (0x1f, 250)];
/// The streams of each station: priority, bytes per frame (header to FCS, without tag), interval in
/// microseconds, number of cables between the sender's and the receiver's bridge.
const STREAMS: [(u8, usize, u64, usize); 4] =
    [(7, 128, 500, 3), (6, 256, 1_000, 5), (5, 512, 2_000, 8), (0, 1_518, 4_000, 13)];

impl Config {
    /// A line of `bridges` bridges at 1 Gb/s, with gates at every port. At each bridge a station
    /// sends four streams: priorities 7, 6 and 5 (periodic) and 0 (Poisson), over 4, 6, 9 and 14
    /// bridges. The simulation ends after `runtime`.
    ///
    /// # Panics
    /// If `bridges` is not 26 to 64.
    pub fn tsn_line(bridges: usize, runtime: Duration) -> Self {
        assert!((26..=64).contains(&bridges), "26 to 64 bridges");
        let station = |number| StationConfig {
            ports: vec![port()],
            tagging: Some(Tagging::vlan(1)),
            traffic: STREAMS.iter().map(|stream| traffic(number, bridges, *stream)).collect(),
            ..StationConfig::new(Rate::G1, STATION, 4)
        };
        let bridge = BridgeConfig {
            ports: vec![port(); 3],
            mode: bridge::Mode::StoreAndForward,
            delay: BRIDGE,
            jitter: Duration::ZERO,
        };
        // Port 0 leads to the station, 1 to the next bridge, 2 to the previous bridge.
        let own = (0..bridges).map(|at| (CableEnd::station(at), CableEnd::Bridge(at, 0)));
        let line = (1..bridges).map(|at| (CableEnd::Bridge(at - 1, 1), CableEnd::Bridge(at, 2)));
        let network = NetworkConfig {
            stations: (0..bridges).map(station).collect(),
            bridges: vec![bridge; bridges],
            cables: own.chain(line).map(|(a, b)| CableConfig::new(a, b, CABLE)).collect(),
            ..NetworkConfig::default()
        };
        Self { network, runtime: Some(runtime), ..Self::default() }
    }
}

/// A stream of station `number` to a station with a higher number, or to one with a lower number if
/// the line is too short. The streams of station n begin at n times 7 us.
fn traffic(
    number: usize,
    bridges: usize,
    (priority, length, us, hops): (u8, usize, u64, usize),
) -> TrafficConfig {
    let to = if number + hops < bridges { number + hops } else { number - hops };
    let interval = Duration::from_us(us);
    let pattern = match priority {
        0 => Pattern::Poisson(interval),
        _ => Pattern::Periodic(interval),
    };
    TrafficConfig {
        start: Instant::ZERO + Duration::from_us(7 * number as u64),
        seed: number as u64,
        ..TrafficConfig::new(to, length, priority, pattern)
    }
}

fn port() -> port::Config {
    let entry = |(states, us)| Entry::set(GateStates(states), Duration::from_us(us));
    let list = GateControlList::of_entries(Instant::ZERO, &WINDOWS.map(entry));
    let gates = Gates::new(list.expect("three windows of whole microseconds"), Clock::default());
    port::Config { gates: Some(gates), ..port::Config::new(Rate::G1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::World;

    #[test]
    fn every_stream_arrives_and_a_window_of_its_own_bounds_its_wait() {
        let config = Config::tsn_line(26, Duration::from_ms(50));
        let report = World::new(&config).unwrap().run().unwrap();
        assert_eq!(report.streams.len(), 26 * STREAMS.len());
        for (number, stream) in report.streams.iter().enumerate() {
            let (priority, length, us, hops) = STREAMS[number % STREAMS.len()];
            assert!(stream.lost() == 0 && stream.sent - stream.arrived() <= 8, "{stream:?}");
            if priority != 0 {
                // The first station sends one additional frame at time 0.
                assert!(stream.sent.abs_diff(50_000 / us) <= 1, "{stream:?}");
            }
            // The lower bound of the latency is the sum of serialisation (12 bytes of preamble and
            // tag), cables and pipelines.
            let (wire, hops) = (Rate::G1.duration(length + 12), hops as u64);
            let least = (wire + CABLE).as_ps() * (hops + 2)
                + BRIDGE.as_ps() * (hops + 1)
                + STATION.as_ps() * 2;
            assert!(stream.latency().quantile_ns(0.0) >= least / 1000, "{stream:?}");
        }
    }
}
