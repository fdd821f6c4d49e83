//! Records ports with TSN over time: gates, fragments, queues and credit around the frame with the
//! longest wait. Memory does not grow with time.

mod ring;
#[cfg(test)]
mod tests;
mod window;

pub use window::{Piece, Row, Timeline};

use super::places;
use ring::Ring;
use sim::Config;
use sim::ethernet::port::{self, Algorithm};
use sim::measure::{Observer, Point, PortSample};
use sim::network::CableEnd;
use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// The period of a port without gates.
const PERIOD: Duration = Duration::from_ms(1);

/// A port and a time to draw, instead of its longest wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The wire onto which the port sends.
    pub wire: usize,
    /// Start of the picture; `None` for a window around the longest wait.
    pub from: Option<Instant>,
}

/// A port that is recorded.
#[derive(Clone, Debug)]
struct Recorded {
    place: CableEnd,
    period: Duration,
    ring: Ring,
}

/// Recordings of all ports with gates, shapers, cyclic queues or preemption.
#[derive(Clone, Debug)]
pub struct Timelines {
    ports: BTreeMap<usize, Recorded>,
    chosen: Option<Chosen>,
}

/// A port over time, and its rank.
#[derive(Clone, Debug)]
pub struct PortTimeline {
    /// The wire onto which the port sends.
    pub wire: usize,
    /// Place of the port.
    pub place: CableEnd,
    /// Gate cycle of the port; 1 ms without gates.
    pub period: Duration,
    /// Whether the user selected the port.
    pub chosen: bool,
    /// The recorded window; `None` if no frame started, or if the simulation ended before the
    /// selected time.
    pub timeline: Option<Timeline>,
}

impl PortTimeline {
    /// Returns the wait of the frame in the picture.
    pub fn wait(&self) -> Duration {
        let frame = self.timeline.as_ref().and_then(|timeline| timeline.frame.as_ref());
        frame.map_or(Duration::ZERO, |frame| frame.waited)
    }
}

impl Timelines {
    /// Creates an empty recording. A selected port is recorded with any configuration.
    pub fn new(config: &Config, chosen: Option<Chosen>) -> Self {
        let network = &config.network;
        let ports = (0..2 * network.cables.len()).filter_map(|wire| {
            let (place, _) = places::wire(network, wire)?;
            let port = network.port(place);
            let chosen = chosen.filter(|chosen| chosen.wire == wire);
            if !uses_tsn(port) && chosen.is_none() {
                return None;
            }
            let period = period(port);
            let span = Duration::from_ps(period.as_ps().saturating_mul(2));
            let ring = Ring::new(span, port, chosen.and_then(|chosen| chosen.from));
            Some((wire, Recorded { place, period, ring }))
        });
        Self { ports: ports.collect(), chosen }
    }

    /// Returns the recordings at the end of virtual time: the selected port, then the ports with
    /// the longest waits relative to their period.
    pub fn finish(&mut self, now: Instant) -> Vec<PortTimeline> {
        let mut all: Vec<PortTimeline> = self
            .ports
            .iter_mut()
            .map(|(wire, port)| PortTimeline {
                wire: *wire,
                place: port.place,
                period: port.period,
                chosen: self.chosen.is_some_and(|chosen| chosen.wire == *wire),
                timeline: port.ring.finish(now),
            })
            .collect();
        all.sort_by(|a, b| {
            let share = |one: &PortTimeline, other: &PortTimeline| {
                u128::from(one.wait().as_ps()) * u128::from(other.period.as_ps())
            };
            (b.chosen, share(b, a)).cmp(&(a.chosen, share(a, b)))
        });
        all
    }
}

/// Returns whether frames may wait at a port although its line is free.
fn uses_tsn(port: &port::Config) -> bool {
    let shaped = |class: &port::Class| !matches!(class.algorithm, Algorithm::StrictPriority);
    port.gates.is_some() || port.preemption.is_some() || port.classes.iter().any(shaped)
}

/// Returns the gate cycle. A cycle shorter than a byte at 1 Gb/s has only open gates.
fn period(port: &port::Config) -> Duration {
    let cycle = port.gates.as_ref().map(|gates| gates.list().cycle_time());
    cycle.filter(|cycle| *cycle > Duration::from_ns(8)).unwrap_or(PERIOD)
}

impl Observer for Timelines {
    fn follows(&self, wire: Point) -> bool {
        matches!(wire, Point::Wire(wire) if self.ports.contains_key(&usize::from(wire)))
    }

    fn port(&mut self, at: Instant, wire: Point, sample: &PortSample<'_>) {
        let Point::Wire(wire) = wire else { return };
        if let Some(port) = self.ports.get_mut(&usize::from(wire)) {
            port.ring.add(at, sample);
        }
    }
}
