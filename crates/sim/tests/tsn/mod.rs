//! Worlds of streams alone: bridges and stations, no host.

mod laws;
mod random;
mod streams;

use sim::ethernet::traffic::{Pattern, StreamId};
use sim::ethernet::{Frame, LineEvent, Rate, Transmission, bridge};
use sim::measure::{Observer, Point};
use sim::network::{Place, TrafficConfig, Tree};
use sim::world::{Error, Report};
use sim::{Config, World};
use std::cell::RefCell;
use std::rc::Rc;
use wire::{Duration, Instant};

/// A world of these streams that runs for `runtime`.
fn config(tree: &mut Tree, runtime: Duration) -> Config {
    Config { network: tree.network().clone(), runtime: Some(runtime), ..Config::default() }
}

/// What an observer saw, in order.
#[derive(Debug, Default)]
struct Seen {
    /// Frames on wires, by number of the direction.
    sent: Vec<(usize, Transmission)>,
    /// Frames that arrived at their stations.
    arrived: Vec<(Instant, Frame)>,
}

struct Watch(Rc<RefCell<Seen>>);

impl Observer for Watch {
    fn line(&mut self, _: Instant, point: Point, event: &LineEvent) {
        let Point::Wire(wire) = point else { panic!("{point:?} sends no frames") };
        if let LineEvent::Transmit(transmission) = event {
            self.0.borrow_mut().sent.push((usize::from(wire), transmission.clone()));
        }
    }

    fn arrival(&mut self, at: Instant, frame: &Frame) {
        self.0.borrow_mut().arrived.push((at, frame.clone()));
    }
}

/// Runs a world; its report and everything that an observer saw.
fn observed(config: &Config) -> (Report, Seen) {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let mut world = World::new(config).expect("the configuration is right");
    world.observe(Box::new(Watch(seen.clone())));
    let report = world.run().expect("it runs");
    drop(world);
    (report, Rc::into_inner(seen).expect("the world is gone").into_inner())
}
