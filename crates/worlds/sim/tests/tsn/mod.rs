//! Worlds of streams alone: bridges and stations, no host.

mod eligibility;
mod laws;
mod mesh;
mod police;
mod ports;
mod random;
mod redundancy;
mod shapers;
mod streams;

use sim::ethernet::traffic::{Pattern, StreamId};
use sim::ethernet::{Frame, LineEvent, Rate, Transmission, bridge};
use sim::measure::{Observer, Point};
use sim::network::{Place, TrafficConfig, Tree};
use sim::world::{Error, Report};
use sim::{Config, World};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use wire::{Duration, Instant};

/// A world of these streams that runs for `runtime`.
fn config(tree: &mut Tree, runtime: Duration) -> Config {
    Config { network: tree.network().clone(), runtime: Some(runtime), ..Config::default() }
}

/// The events that an observer received, in order.
#[derive(Debug, Default)]
struct Seen {
    /// Frames on wires.
    sent: Vec<Sent>,
    /// When wires were busy, and with what. An interrupted frame has several of these times.
    busy: Vec<(usize, Instant, Instant, Carried)>,
    /// Frames that arrived at their stations.
    arrived: Vec<(Instant, Frame)>,
}

/// The kind of a transmission on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    Express,
    Preemptable,
    /// A verify or respond packet.
    Control,
}

/// A frame on a wire.
#[derive(Clone, Debug)]
struct Sent {
    /// Number of the direction.
    wire: usize,
    /// From its beginning to its end, after all interruptions; [`UNFINISHED`] without the end.
    frame: Transmission,
    /// Bytes of its fragments, destination address onwards, but the last one.
    fragments: Vec<usize>,
}

/// The end of a frame whose rest did not come.
const UNFINISHED: Instant = Instant::from_ps(u64::MAX / 2);

struct Watch {
    seen: Rc<RefCell<Seen>>,
    /// By wire: the last preemptable frame, and the last time when it was busy.
    last: BTreeMap<usize, [usize; 2]>,
}

impl Observer for Watch {
    fn line(&mut self, _: Instant, point: Point, event: &LineEvent) {
        let Point::Wire(wire) = point else { panic!("{point:?} sends no frames") };
        let wire = usize::from(wire);
        let Seen { sent, busy, .. } = &mut *self.seen.borrow_mut();
        let [frame, piece] = self.last.entry(wire).or_default();
        match event {
            LineEvent::Transmit(started) => {
                if started.preemptable {
                    *frame = sent.len();
                }
                *piece = busy.len();
                let carried = match (started.frame.control, started.preemptable) {
                    (Some(_), _) => Carried::Control,
                    (None, true) => Carried::Preemptable,
                    (None, false) => Carried::Express,
                };
                busy.push((wire, started.start, started.end, carried));
                if carried != Carried::Control {
                    sent.push(Sent { wire, frame: started.clone(), fragments: Vec::new() });
                }
            }
            LineEvent::Suspend(suspend) => {
                busy[*piece].2 = suspend.end;
                sent[*frame].frame.end = UNFINISHED;
                sent[*frame].fragments.push(suspend.bytes);
            }
            LineEvent::Resume(resume) => {
                *piece = busy.len();
                busy.push((wire, resume.start, resume.end, Carried::Preemptable));
                sent[*frame].frame.end = resume.end;
            }
        }
    }

    fn arrival(&mut self, at: Instant, frame: &Frame) {
        self.seen.borrow_mut().arrived.push((at, frame.clone()));
    }
}

/// Runs a world; its report and everything that an observer saw.
fn observed(config: &Config) -> (Report, Seen) {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let mut world = World::new(config).expect("the configuration is right");
    world.observe(Box::new(Watch { seen: seen.clone(), last: BTreeMap::new() }));
    let report = world.run().expect("it runs");
    drop(world);
    (report, Rc::into_inner(seen).expect("the world is gone").into_inner())
}
