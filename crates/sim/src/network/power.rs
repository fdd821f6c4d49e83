//! Stations without power.

use super::ends::ConnectionEnd;
use super::{Network, config};
use crate::kernel::Component;
use wire::Instant;

impl Network {
    /// Powers a station off: it loses all its state.
    pub fn power_off(&mut self, now: Instant, number: usize) {
        let station = &mut self.stations[number];
        station.powered_off = true;
        station.nic.reset(now);
        self.streams.lose(station.nic.dropped().take());
        let waiting = station.waiting.iter_mut().flat_map(|waiting| waiting.drain(..));
        self.streams.lose(waiting.map(|frame| frame.id));
        station.ends.iter_mut().for_each(ConnectionEnd::forget);
    }

    /// Powers a station on: it listens and connects again.
    pub fn power_on(&mut self, now: Instant, number: usize) -> Component {
        let others = (0..self.stations.len()).filter(|other| *other != number);
        let others: Vec<_> = others.map(|at| (config::mac(at), config::ip(at))).collect();
        let station = &mut self.stations[number];
        station.powered_off = false;
        station.host = station.host.restarted();
        others.into_iter().for_each(|(mac, ip)| station.host.add_neighbour(mac, ip));
        (0..station.ends.len()).for_each(|end| station.reopen(now, end));
        self.station_components[number]
    }
}
