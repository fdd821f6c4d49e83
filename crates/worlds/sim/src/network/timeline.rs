//! Reports changes at the followed ports to observers.
//!
//! Line events are reported at once. Queues are compared with their last reported state after each
//! run of their station or bridge. Following a port changes no result of the simulation.

use super::{CableDirection, Network};
use crate::ethernet::LineEvent;
use crate::ethernet::port::{CreditCourse, Port};
use crate::measure::{Observer, Point, PortChange, PortSample};
use crate::node::Context;
use tsn::QUEUES;
use wire::Instant;

/// The last reported state of a port's class.
#[derive(Debug, Default)]
struct Shown {
    frames: usize,
    bytes: usize,
    /// Frames dropped because the queue was full.
    full: u64,
    /// The time until which the credit of the class was reported.
    until: Instant,
    /// The credit of the class from `until` on, if no event occurs.
    course: Option<CreditCourse>,
}

/// A port that an observer follows.
#[derive(Debug, Default)]
pub(super) struct Followed {
    classes: [Shown; QUEUES],
    /// The class of the preemptable frame that started last.
    preemptable: usize,
    points: Vec<(Instant, i128)>,
}

/// The destination of samples.
struct Sink<'a> {
    now: Instant,
    wire: Point,
    observer: &'a mut dyn Observer,
}

impl<'a> Sink<'a> {
    fn for_wire(now: Instant, wire: usize, context: &'a mut Context) -> Option<Self> {
        let observer = context.observer.as_mut()?;
        Some(Self { now, wire: Point::Wire(wire as u16), observer: &mut **observer })
    }
}

impl Network {
    /// Follows the ports that the observer selects, from now on.
    pub(crate) fn follow(&mut self, observer: &dyn Observer) {
        for (wire, direction) in self.directions.iter_mut().enumerate() {
            let follows = observer.follows(Point::Wire(wire as u16));
            direction.followed = follows.then(Box::default);
        }
    }

    /// Runs a station and reports the changes at its port.
    pub(crate) fn show_station(&mut self, number: usize, context: &mut Context) -> Option<Instant> {
        let next = self.run_station(number, context);
        self.of_station(number, |wire, followed, port| followed.after(wire, port, context));
        next
    }

    /// Runs a bridge and reports the changes at its ports.
    pub(crate) fn show_bridge(&mut self, number: usize, context: &mut Context) -> Option<Instant> {
        let next = self.run_bridge(number, context);
        self.of_bridge(number, |wire, followed, port| followed.after(wire, port, context));
        next
    }

    fn of_station(&mut self, number: usize, mut see: impl FnMut(usize, &mut Followed, &Port)) {
        let station = &self.stations[number];
        for (port, cables) in station.cables.iter().enumerate() {
            let Some((_, wire)) = *cables else { continue };
            if let Some(followed) = &mut self.directions[wire].followed {
                see(wire, followed, station.nic.port(port));
            }
        }
    }

    fn of_bridge(&mut self, number: usize, mut see: impl FnMut(usize, &mut Followed, &Port)) {
        let bridge = &self.bridges[number];
        for (port, cables) in bridge.cables.iter().enumerate() {
            let Some((_, wire)) = *cables else { continue };
            if let Some(followed) = &mut self.directions[wire].followed {
                see(wire, followed, bridge.bridge.port(port));
            }
        }
    }
}

impl CableDirection {
    /// Reports a line event of `port`.
    pub(super) fn show(
        &mut self,
        now: Instant,
        wire: usize,
        event: &LineEvent,
        port: &Port,
        context: &mut Context,
    ) {
        let Some(followed) = &mut self.followed else { return };
        if let Some(mut sink) = Sink::for_wire(now, wire, context) {
            followed.line(event, port, &mut sink);
        }
    }
}

impl Followed {
    /// Reports changes of queues after a run of the port's node.
    fn after(&mut self, wire: usize, port: &Port, context: &mut Context) {
        let now = context.now;
        let Some(mut sink) = Sink::for_wire(now, wire, context) else { return };
        let full = port.counters().full;
        for (class, full) in full.into_iter().enumerate() {
            let shown = &mut self.classes[class];
            // The counters of a station start from zero after a power loss.
            let dropped = full.saturating_sub(shown.full);
            shown.full = full;
            if dropped > 0 {
                self.sample(class, PortChange::Dropped(dropped), port, &mut sink);
            } else if (shown.frames, shown.bytes) != queue(port, class) {
                self.sample(class, PortChange::Queue, port, &mut sink);
            }
        }
    }

    fn line(&mut self, event: &LineEvent, port: &Port, sink: &mut Sink) {
        let (class, change) = match event {
            LineEvent::Transmit(sent) if sent.frame.control.is_some() => return,
            LineEvent::Transmit(sent) => {
                let class = port.last_class();
                if sent.preemptable {
                    self.preemptable = class;
                }
                (class, PortChange::Started { sent, waited: port.last_wait() })
            }
            LineEvent::Suspend(suspend) => (self.preemptable, PortChange::Suspended(*suspend)),
            LineEvent::Resume(resume) => (self.preemptable, PortChange::Resumed(*resume)),
        };
        self.sample(class, change, port, sink);
    }

    fn sample(&mut self, class: usize, change: PortChange<'_>, port: &Port, sink: &mut Sink) {
        let shown = &mut self.classes[class];
        let (now, gates) = (sink.now, port.config().gates.as_ref());
        self.points.clear();
        if let Some(course) = shown.course.take().filter(|_| shown.until < now) {
            course.points(shown.until, now, gates, &mut self.points);
        }
        shown.course = port.credit_course(class);
        if let Some(course) = shown.course.clone() {
            let credit = course.at(now, gates);
            if self.points.last() != Some(&(now, credit)) {
                self.points.push((now, credit));
            }
        }
        (shown.frames, shown.bytes) = queue(port, class);
        shown.until = now;
        let (frames, bytes) = (shown.frames, shown.bytes);
        let sample = PortSample { class, change, frames, bytes, credit: &self.points };
        sink.observer.port(now, sink.wire, &sample);
    }
}

/// Frames and bytes in a queue.
fn queue(port: &Port, class: usize) -> (usize, usize) {
    (port.queued_frames_in(class), port.queued_bytes(class))
}
