//! Observers that combine other observers.

use node::faults::Fault;
use sim::ethernet::{Frame, LineEvent, Transmission};
use sim::measure::{CommandRecord, LinkChange, Observer, Point, PortSample};
use std::cell::RefCell;
use std::rc::Rc;
use wire::Instant;
use wire::frame::FrameReport;
use wire::tlp::Tlp;

/// A shared observer: the world has one clone, and the owner of the results keeps the other.
#[derive(Debug, Default)]
pub struct Shared<T>(pub Rc<RefCell<T>>);

impl<T> Shared<T> {
    /// Wraps `inner`.
    pub fn new(inner: T) -> Self {
        Self(Rc::new(RefCell::new(inner)))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Several observers, called in their order.
#[derive(Default)]
pub struct Observers(pub Vec<Box<dyn Observer>>);

/// Implements [`Observer`] for [`Shared`] and [`Observers`], which forward all calls.
macro_rules! pass_on {
    ($($seen:ident($($name:ident: $kind:ty),*);)*) => {
        impl<T: Observer> Observer for Shared<T> {
            fn follows(&self, wire: Point) -> bool {
                self.0.borrow().follows(wire)
            }

            $(fn $seen(&mut self, $($name: $kind),*) {
                self.0.borrow_mut().$seen($($name),*);
            })*
        }

        impl Observer for Observers {
            fn follows(&self, wire: Point) -> bool {
                self.0.iter().any(|one| one.follows(wire))
            }

            $(fn $seen(&mut self, $($name: $kind),*) {
                self.0.iter_mut().for_each(|one| one.$seen($($name),*));
            })*
        }
    };
}

pass_on! {
    tlp(at: Instant, point: Point, up: bool, tlp: &Tlp);
    stream(at: Instant, point: Point, sent: bool, bytes: &[u8]);
    tunnel_frame(at: Instant, point: Point, frame: &FrameReport);
    link(at: Instant, point: Point, change: LinkChange);
    fault(at: Instant, point: Point, fault: &Fault);
    command(record: &CommandRecord);
    ethernet_frame(at: Instant, point: Point, bytes: &[u8]);
    line(at: Instant, point: Point, event: &LineEvent);
    delivered(at: Instant, point: Point, sent: &Transmission);
    arrival(at: Instant, station: usize, frame: &Frame);
    mpacket(at: Instant, point: Point, bytes: &[u8]);
    port(at: Instant, wire: Point, sample: &PortSample<'_>);
}
