//! Worlds without hosts: streams between stations, over bridges.

mod eligibility;
mod laws;
mod mesh;
mod police;
mod ports;
mod random;
mod redundancy;
mod shapers;
mod slow;
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

/// A world with the network of `tree` that runs for `runtime`.
fn config(tree: &mut Tree, runtime: Duration) -> Config {
    Config { network: tree.network().clone(), runtime: Some(runtime), ..Config::default() }
}

/// The events that an observer received, in order.
#[derive(Debug, Default)]
struct Seen {
    /// Frames on wires.
    sent: Vec<Sent>,
    /// Wire, start, end and kind of each transmission. An interrupted frame has several entries.
    busy: Vec<(usize, Instant, Instant, Carried)>,
    /// Frames that arrived at their stations.
    arrived: Vec<(Instant, Frame)>,
    /// The stations at which the frames of `arrived` arrived.
    listeners: Vec<usize>,
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
    /// The frame. Its end is after all interruptions; [`UNFINISHED`] if the end did not come.
    frame: Transmission,
    /// Bytes of each fragment except the last one, without preamble and mCRC.
    fragments: Vec<usize>,
}

/// The end of a frame that was interrupted and did not continue.
const UNFINISHED: Instant = Instant::from_ps(u64::MAX / 2);

struct Watch {
    seen: Rc<RefCell<Seen>>,
    /// For each wire, the indices of its last preemptable frame in `sent` and `busy`.
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

    fn arrival(&mut self, at: Instant, station: usize, frame: &Frame) {
        let mut seen = self.seen.borrow_mut();
        seen.arrived.push((at, frame.clone()));
        seen.listeners.push(station);
    }
}

/// Runs a world. Returns its report and all events of an observer.
fn observed(config: &Config) -> (Report, Seen) {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let mut world = World::new(config).expect("the configuration is right");
    world.observe(Box::new(Watch { seen: seen.clone(), last: BTreeMap::new() }));
    let report = world.run().expect("it runs");
    drop(world);
    (report, Rc::into_inner(seen).expect("the world is gone").into_inner())
}
