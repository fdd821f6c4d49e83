//! The parts of a controller, for links of several connections.

use super::Subsystem;
use crate::controller::{Part, PartMessage, PartRequest, Parts};
use wire::Instant;

impl Subsystem {
    /// Divides controller 1 of a drive without records: `count` parts serve its I/O queue pairs from
    /// number `queue_pairs` + 1 on, `queue_pairs` each. [`part`](Self::part) makes the parts. Call
    /// this before any other method. The drive then has no fused operations.
    ///
    /// # Panics
    /// If the drive has records or several controllers, or with 0 queue pairs.
    #[must_use]
    pub fn with_parts(mut self, count: u16, queue_pairs: u16) -> Self {
        assert!(self.shared.store.is_none(), "a drive with records has no parts");
        assert!(self.controllers.len() == 1 && queue_pairs > 0);
        self.controllers[0].parts = Parts::new(count, queue_pairs);
        self
    }

    /// A part of controller 1: a subsystem of its own with one controller, whose function serves a
    /// further connection. The owner passes [requests](Self::poll_part) of the controller to
    /// [`handle_part_request`](Self::handle_part_request), and messages of the part to
    /// [`handle_part_message`](Self::handle_part_message), each in order. Its media have the
    /// contents of this drive.
    #[must_use]
    pub fn part(&self, now: Instant) -> Self {
        let mut part = Self::start(now, self.shared.state(), self.settings.clone(), None);
        part.controllers[0].part = Some(Part::default());
        part.with_label()
    }

    /// The next request to a part, and the number of the part, from 1. Poll after each call.
    pub fn poll_part(&mut self) -> Option<(u16, PartRequest)> {
        self.controllers[0].parts.poll()
    }

    /// Passes a message of a part to controller 1.
    pub fn handle_part_message(&mut self, now: Instant, message: PartMessage) {
        let degraded = self.shared.health.is_degraded();
        let controller = &mut self.controllers[0];
        controller.now = now;
        controller.part_message(&mut self.shared, message);
        if self.shared.health.is_degraded() != degraded {
            self.report_media_error(now);
        }
    }

    /// Passes a request of the controller to this part.
    ///
    /// # Panics
    /// If this subsystem is no part.
    pub fn handle_part_request(&mut self, now: Instant, request: PartRequest) {
        let controller = &mut self.controllers[0];
        controller.now = now;
        controller.part_request(&mut self.shared, request);
    }

    /// The next message of this part to the controller. Poll after each call.
    pub fn poll_part_message(&mut self) -> Option<PartMessage> {
        self.controllers[0].poll_part_message(&mut self.shared)
    }
}
