//! Stations and bridges without power.

use super::ends::ConnectionEnd;
use super::{Network, Place};
use crate::ethernet::cable;
use crate::kernel::Component;
use std::iter;
use wire::Instant;

impl Network {
    /// Powers a station off. The station loses all state except its clock. Returns the neighbour
    /// whose link goes down, if the neighbour reacts.
    pub(crate) fn power_off(&mut self, now: Instant, number: usize) -> Option<Component> {
        self.power_clock(now, Place::Station(number), false);
        let station = &mut self.stations[number];
        station.powered_off = true;
        station.cables.iter().for_each(|(_, to)| self.directions[*to].is_dark = true);
        station.nic.reset(now);
        self.streams.settle(station.nic.dropped());
        let waiting = station.waiting.iter_mut().flat_map(|waiting| waiting.drain(..));
        self.streams.lose(waiting.map(|(frame, _)| frame.id));
        station.ends.iter_mut().for_each(ConnectionEnd::forget);
        self.neighbour(number)
    }

    /// Powers a station on. The station listens and connects again. Returns the station, and the
    /// neighbour whose link comes up, if the neighbour reacts.
    pub(crate) fn power_on(
        &mut self,
        now: Instant,
        number: usize,
    ) -> impl Iterator<Item = Component> + use<> {
        self.power_clock(now, Place::Station(number), true);
        let station = &mut self.stations[number];
        if let Some((from, _)) = station.cables {
            let cable = &mut self.directions[from].cable;
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
        station.cables.iter().for_each(|(_, to)| self.directions[*to].is_dark = false);
        station.host.iter_mut().for_each(|host| **host = host.restarted());
        (0..station.ends.len()).for_each(|end| station.reopen(now, end));
        iter::once(self.station_components[number]).chain(self.neighbour(number))
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

    /// The component at the other end of a station's cable, if it reacts to link changes.
    fn neighbour(&self, number: usize) -> Option<Component> {
        let (from, to) = self.stations[number].cables?;
        self.directions[from].preempts.then_some(self.directions[to].to)
    }
}
