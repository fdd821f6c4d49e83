//! Builds networks of stations and bridges, link by link.

use super::config::{
    BridgeConfig, CableConfig, CableEnd, NetworkConfig, StationConfig, TrafficConfig,
};
use crate::ethernet::nic::Tagging;
use crate::ethernet::traffic::StreamId;
use crate::ethernet::{Rate, bridge, port};
use std::fmt;
use wire::Duration;

/// Frames per transmit ring of the stations of a [`Tree`]: so many that no frame of a stream waits
/// in the host.
const TX_RING: usize = 1024;

/// A node of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The station with this number.
    Station(usize),
    /// The bridge with this number.
    Bridge(usize),
}

impl Place {
    /// A port of the node.
    pub const fn port(self, port: usize) -> CableEnd {
        match self {
            Self::Station(station) => CableEnd::Station(station, port),
            Self::Bridge(bridge) => CableEnd::Bridge(bridge, port),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Station(number) => write!(f, "station {number}"),
            Self::Bridge(number) => write!(f, "bridge {number}"),
        }
    }
}

/// A network with one rate. Its stations add no delay and tag frames with their priority. Bridges
/// get a port for each link.
#[derive(Clone, Debug)]
pub struct Tree {
    rate: Rate,
    propagation: Duration,
    network: NetworkConfig,
}

impl Tree {
    /// An empty network. All links have `rate`, all cables `propagation`.
    pub fn new(rate: Rate, propagation: Duration) -> Self {
        Self { rate, propagation, network: NetworkConfig::default() }
    }

    /// Adds a station.
    pub fn station(&mut self) -> Place {
        let tagging = Some(Tagging::vlan(1));
        let plain = StationConfig::new(self.rate, Duration::ZERO, TX_RING);
        self.network.stations.push(StationConfig { tagging, ..plain });
        Place::Station(self.network.stations.len() - 1)
    }

    /// Adds a bridge.
    pub fn bridge(&mut self, mode: bridge::Mode, delay: Duration) -> Place {
        let (ports, jitter) = (Vec::new(), Duration::ZERO);
        self.network.bridges.push(BridgeConfig { ports, mode, delay, jitter });
        Place::Bridge(self.network.bridges.len() - 1)
    }

    /// Adds a cable. A station gets a further port for each further cable. Returns the number of its direction from `a` to `b`; the direction from `b` to
    /// `a` has the next number.
    pub fn link(&mut self, a: Place, b: Place) -> usize {
        let [a, b] = [a, b].map(|place| match place {
            Place::Station(station) => {
                let ports = &mut self.network.stations[station].ports;
                let is_used = self.network.cables.iter().any(|cable| {
                    [cable.a, cable.b].contains(&CableEnd::Station(station, ports.len() - 1))
                });
                if is_used {
                    ports.push(port::Config::new(self.rate));
                }
                CableEnd::Station(station, ports.len() - 1)
            }
            Place::Bridge(bridge) => {
                let ports = &mut self.network.bridges[bridge].ports;
                ports.push(port::Config::new(self.rate));
                CableEnd::Bridge(bridge, ports.len() - 1)
            }
        });
        self.network.cables.push(CableConfig::new(a, b, self.propagation));
        2 * (self.network.cables.len() - 1)
    }

    /// The port that sends in this direction of a cable.
    pub fn port(&mut self, direction: usize) -> &mut port::Config {
        match self.network.sender(direction) {
            CableEnd::Station(station, port) => &mut self.network.stations[station].ports[port],
            CableEnd::Bridge(bridge, port) => &mut self.network.bridges[bridge].ports[port],
        }
    }

    /// Adds a stream that the station `from` sends.
    ///
    /// # Panics
    /// If `from` is not a station.
    pub fn stream(&mut self, from: Place, stream: TrafficConfig) -> StreamId {
        let Place::Station(station) = from else { panic!("{from:?} sends no streams") };
        let traffic = &mut self.network.stations[station].traffic;
        traffic.push(stream);
        StreamId { station: station as u16, number: traffic.len() as u8 - 1 }
    }

    /// The network.
    pub fn network(&mut self) -> &mut NetworkConfig {
        &mut self.network
    }
}
