//! The buses of host software, and its sleeps.

use ::switch::upstream::next_timer;
use pcie::Bus;
use pcie::software::{Request, RequestId};
use wire::Instant;

/// The bus is in the upper bits of a request's name.
const BUS_SHIFT: u32 = 48;

/// The buses of several pieces of host software, as one: what all of them ask
/// of a [`HostNode`](super::HostNode), under names of its own. The shell carries
/// requests and answers between the two, at once or after the time that a CPU
/// needs.
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

    /// Serves a bus that was made elsewhere.
    pub fn add(&mut self, bus: Bus) {
        self.buses.push(bus);
    }

    /// The next request that `takes` lets go, as [`Bus::next_request_if`]; sleeps
    /// are kept and answered here.
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

    /// Ends the sleeps that are over; whether any was.
    pub fn wake(&mut self, now: Instant) -> bool {
        let over: Vec<RequestId> =
            self.sleeps.extract_if(.., |(at, _)| *at <= now).map(|(_, name)| name).collect();
        over.iter().for_each(|name| self.answer(*name, Some(0)));
        !over.is_empty()
    }

    /// When the next sleep is over.
    pub fn timer(&self) -> Option<Instant> {
        next_timer(self.sleeps.iter().map(|(at, _)| Some(*at)))
    }
}
