//! Everything that watches a simulation, in one observer.

use sim::measure::{CommandRecord, Observer, Point};
use std::cell::RefCell;
use std::rc::Rc;
use wire::Instant;
use wire::frame::FrameReport;
use wire::tlp::Tlp;

/// An observer that can be asked afterwards: the world has one clone, whoever
/// wants to know keeps the other.
#[derive(Debug, Default)]
pub struct Shared<T>(pub Rc<RefCell<T>>);

impl<T> Shared<T> {
    /// Of `inner`.
    pub fn new(inner: T) -> Self {
        Self(Rc::new(RefCell::new(inner)))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Observer> Observer for Shared<T> {
    fn tlp(&mut self, at: Instant, point: Point, up: bool, tlp: &Tlp) {
        self.0.borrow_mut().tlp(at, point, up, tlp);
    }

    fn stream(&mut self, at: Instant, point: Point, sent: bool, bytes: &[u8]) {
        self.0.borrow_mut().stream(at, point, sent, bytes);
    }

    fn tunnel_frame(&mut self, at: Instant, point: Point, frame: &FrameReport) {
        self.0.borrow_mut().tunnel_frame(at, point, frame);
    }

    fn link(&mut self, at: Instant, point: Point, up: bool) {
        self.0.borrow_mut().link(at, point, up);
    }

    fn command(&mut self, record: &CommandRecord) {
        self.0.borrow_mut().command(record);
    }

    fn frame(&mut self, at: Instant, point: Point, bytes: &[u8]) {
        self.0.borrow_mut().frame(at, point, bytes);
    }
}

/// Several observers, told in their order.
#[derive(Default)]
pub struct All(pub Vec<Box<dyn Observer>>);

impl Observer for All {
    fn tlp(&mut self, at: Instant, point: Point, up: bool, tlp: &Tlp) {
        self.0.iter_mut().for_each(|one| one.tlp(at, point, up, tlp));
    }

    fn stream(&mut self, at: Instant, point: Point, sent: bool, bytes: &[u8]) {
        self.0.iter_mut().for_each(|one| one.stream(at, point, sent, bytes));
    }

    fn tunnel_frame(&mut self, at: Instant, point: Point, frame: &FrameReport) {
        self.0.iter_mut().for_each(|one| one.tunnel_frame(at, point, frame));
    }

    fn link(&mut self, at: Instant, point: Point, up: bool) {
        self.0.iter_mut().for_each(|one| one.link(at, point, up));
    }

    fn command(&mut self, record: &CommandRecord) {
        self.0.iter_mut().for_each(|one| one.command(record));
    }

    fn frame(&mut self, at: Instant, point: Point, bytes: &[u8]) {
        self.0.iter_mut().for_each(|one| one.frame(at, point, bytes));
    }
}
