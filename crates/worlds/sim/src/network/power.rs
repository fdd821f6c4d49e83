//! Stations and bridges without power.

use super::ends::{ConnectionEnd, Protocol};
use super::{Network, Place};
use crate::ethernet::cable;
use crate::kernel::Component;
use std::iter;
use wire::Instant;

impl Network {
    /// Powers a station off. The station loses all state except its clock. Returns the
    /// neighbours whose links go down, if they react.
    pub(crate) fn power_off(&mut self, now: Instant, number: usize) -> Vec<Component> {
        self.power_clock(now, Place::Station(number), false);
        let station = &mut self.stations[number];
        station.powered_off = true;
        let cables = station.cables.iter().flatten();
        cables.for_each(|(_, to)| self.directions[*to].is_dark = true);
        station.nic.reset(now);
        self.streams.settle(station.nic.dropped());
        let waiting = station.waiting.iter_mut().flat_map(|waiting| waiting.drain(..));
        self.streams.lose(waiting.map(|(frame, _)| frame.id));
        station.ends.iter_mut().for_each(ConnectionEnd::forget);
        self.neighbours(number)
    }

    /// Powers a station on. The station listens and connects again. Returns the station, and the
    /// neighbours whose links come up, if they react.
    pub(crate) fn power_on(
        &mut self,
        now: Instant,
        number: usize,
    ) -> impl Iterator<Item = Component> + use<> {
        self.power_clock(now, Place::Station(number), true);
        let station = &mut self.stations[number];
        for (from, _) in station.cables.iter().flatten() {
            let cable = &mut self.directions[*from].cable;
            while cable.next().is_some_and(|due| due < now)
                && let cable::Output::Deliver(missed) = cable.poll(now)
            {
                self.streams.lose(iter::once(missed.frame.id));
            }
        }
        if let Some(time) = &self.time {
            station.nic.set_clock(now, *time.clock(Place::Station(number)), None);
        }
        station.powered_off = false;
        let cables = station.cables.iter().flatten();
        cables.for_each(|(_, to)| self.directions[*to].is_dark = false);
        station.host.iter_mut().for_each(|host| **host = host.restarted());
        (0..station.ends.len()).for_each(|end| station.reopen(now, end));
        iter::once(self.station_components[number]).chain(self.neighbours(number))
    }

    /// Ends the connections of a station, whose peers do not notice, and drops the frames in its
    /// interface. Returns the owners of the connections and the station.
    pub(crate) fn reset_connections(&mut self, now: Instant, number: usize) -> Vec<Component> {
        let station = &mut self.stations[number];
        station.nic.reset(now);
        self.streams.settle(station.nic.dropped());
        station.host.iter_mut().for_each(|host| **host = host.restarted());
        for end in &mut station.ends {
            end.forget();
            end.closed = true;
            if let Protocol::Raw(raw) = &mut end.protocol {
                raw.abort();
            }
        }
        let owners = station.ends.iter().map(|end| end.owner);
        owners.chain([self.station_components[number]]).collect()
    }

    /// Powers a bridge off or on (`on`), if this is due at `now`. A bridge without power loses its
    /// waiting frames and its state of 802.1AS.
    pub(super) fn power_bridge(&mut self, now: Instant, number: usize, on: bool) {
        let place = Place::Bridge(number);
        let is_due = |(at, to): &mut (Instant, bool)| *to == on && *at <= now;
        while self.bridges[number].outages.pop_if(is_due).is_some() {
            self.power_clock(now, place, on);
            let bridge = &mut self.bridges[number].bridge;
            if !on {
                bridge.reset(now);
            } else if let Some(time) = &self.time {
                bridge.set_clock(now, *time.clock(place), None);
            }
        }
    }

    /// Powers the clock of a node off or on, after counting all edges of gates up to `now`.
    fn power_clock(&mut self, now: Instant, place: Place, on: bool) {
        self.settle_edges(now, None);
        self.time.iter_mut().for_each(|time| time.power(now, place, on));
    }

    /// The components at the other ends of a station's cables that react to link changes.
    fn neighbours(&self, number: usize) -> Vec<Component> {
        let cables = self.stations[number].cables.iter().flatten();
        let reacting = cables.filter(|(from, _)| self.directions[*from].preempts);
        reacting.map(|(_, to)| self.directions[*to].to).collect()
    }
}
