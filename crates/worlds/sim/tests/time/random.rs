//! In random trees clocks synchronise, and frames are outside their window by at most the error of
//! the clocks.

use super::*;
use proptest::prelude::*;
use sim::ethernet::LineEvent;
use sim::measure::{Observer, Point};
use std::cell::RefCell;
use std::rc::Rc;

const OPEN: u64 = 100_000_000;
const CYCLE: u64 = 500_000_000;

/// Frames of class 0: time, wire, and how far the frame is outside its window in true time, in
/// picoseconds.
#[derive(Clone, Default)]
struct Outside(Rc<RefCell<Vec<(Instant, u16, u64)>>>);

impl Observer for Outside {
    fn line(&mut self, _: Instant, point: Point, event: &LineEvent) {
        let (Point::Wire(wire), LineEvent::Transmit(sent)) = (point, event) else { return };
        if sent.frame.tag.is_none_or(|tag| tag.pcp != 0) {
            return;
        }
        let within = sent.start.as_ps() % CYCLE;
        let late = (within + (sent.end - sent.start).as_ps()).saturating_sub(OPEN);
        let outside = late.min(CYCLE - within);
        self.0.borrow_mut().push((sent.start, wire, outside));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    /// The bridges form a random tree, and each has a station. The grandmaster has no drift, so
    /// that its time is true time. Each station sends a stream of class 0 to the next station.
    #[test]
    fn clocks_of_random_trees_synchronise(shape in prop::collection::vec((any::<u8>(), -100i64..100), 1..4), seed in 0u64..100) {
        let mut net = Net::new();
        let mut bridges = Vec::new();
        let mut wires = Vec::new();
        for (number, (above, ppm)) in shape.iter().enumerate() {
            let bridge = net.bridge(wandering(*ppm, &[246]));
            let station = match number {
                0 => net.station(clock(0, &[100])),
                _ => net.station(wandering(-ppm, &[248])),
            };
            wires.push(net.tree.link(bridge, station));
            if number > 0 {
                wires.push(net.tree.link(bridge, bridges[usize::from(*above) % number]));
            }
            bridges.push(bridge);
        }
        let gates = gates_of(&[(0x81, Duration::from_ps(OPEN)), (0xfe, Duration::from_ps(CYCLE - OPEN))]);
        for wire in wires.iter().flat_map(|wire| [*wire, wire + 1]) {
            net.tree.port(wire).gates = Some(gates.clone());
        }
        for station in 0..shape.len() {
            let to = (station + 1) % shape.len();
            let pattern = Pattern::Poisson(Duration::from_us(900));
            let traffic = TrafficConfig { seed, ..TrafficConfig::new(to, 300, 0, pattern) };
            if to != station {
                net.tree.stream(Place::Station(station), traffic);
            }
        }
        let converged = seconds(15);
        let outside = Outside::default();
        let report = net.observed(seconds(18), Box::new(outside.clone()));
        let time = report.time_of_nodes.as_ref().unwrap();
        let mut bound = 0;
        for node in 0..time.clocks.len() {
            let worst = worst(time, node, converged);
            prop_assert!(worst < 1_000_000, "node {}: {} ps", node, worst);
            bound = bound.max(worst);
        }
        for (at, wire, outside) in outside.0.borrow().iter() {
            // Between two samples, 125 ms apart, clocks drift by the difference of their
            // frequencies.
            let most = bound + 500_000;
            prop_assert!(
                *at < Instant::ZERO + converged || *outside <= most,
                "wire {} at {}: {} ps outside, clocks err by {}", wire, at, outside, bound
            );
        }
        let streams = report.streams.iter();
        prop_assert!(streams.clone().all(|stream| stream.lost() == 0));
        prop_assert_eq!(streams.count(), if shape.len() > 1 { shape.len() } else { 0 });
    }
}
