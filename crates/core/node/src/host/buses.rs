//! The buses of host software, and its timers.

use pcie::Bus;
use pcie::software::{Request, RequestId};
use wire::Instant;
use wire::earliest;

/// The upper bits of a request's identifier are the bus.
const BUS_SHIFT: u32 = 48;

/// Combines the buses of several pieces of host software into one bus, which assigns its own
/// request identifiers. The owner carries requests and answers between this bus and a
/// [`HostNode`](super::HostNode), at once or after a modelled CPU time.
#[derive(Debug, Default)]
pub struct Buses {
    buses: Vec<Bus>,
    sleeps: Vec<(Instant, RequestId)>,
}

impl Buses {
    /// A bus for another piece of host software.
    pub fn new_bus(&mut self) -> Bus {
        let bus = Bus::new();
        self.add(bus.clone());
        bus
    }

    /// Adds an existing bus.
    pub fn add(&mut self, bus: Bus) {
        self.buses.push(bus);
    }

    /// The next request that `takes` accepts, as [`Bus::next_request_if`]. Sleeps
    /// stay here until [`wake`](Self::wake) answers them.
    pub fn next_request(
        &mut self,
        now: Instant,
        takes: impl Fn(&Request) -> bool,
    ) -> Option<(RequestId, Request)> {
        for (index, bus) in self.buses.iter().enumerate() {
            while let Some((id, request)) = bus.next_request_if(&takes) {
                let name = (index as u64) << BUS_SHIFT | id;
                match request {
                    Request::Sleep(span) => self.sleeps.push((now + span, name)),
                    request => return Some((name, request)),
                }
            }
        }
        None
    }

    /// Answers a request, all ones if it failed.
    pub fn answer(&self, name: RequestId, value: Option<u64>) {
        let bus = &self.buses[(name >> BUS_SHIFT) as usize];
        bus.answer(name & ((1 << BUS_SHIFT) - 1), value.unwrap_or(u64::MAX));
    }

    /// Answers the sleeps that have ended; returns whether there was any.
    pub fn wake(&mut self, now: Instant) -> bool {
        let over: Vec<RequestId> =
            self.sleeps.extract_if(.., |(at, _)| *at <= now).map(|(_, name)| name).collect();
        over.iter().for_each(|name| self.answer(*name, Some(0)));
        !over.is_empty()
    }

    /// When the next sleep ends.
    pub fn timer(&self) -> Option<Instant> {
        earliest(self.sleeps.iter().map(|(at, _)| Some(*at)))
    }
}
