//! The trait of shapers. A shaper determines when a class may send its next frame.

use std::fmt::Debug;
use tsn::Gates;
use wire::{Duration, Instant};

use super::config::Config;

/// The shaper of one class at one port. Gates and higher classes apply in addition. The built-in
/// implementation is the credit-based shaper; [`Algorithm::Own`](super::Algorithm::Own) adds
/// another one. Asynchronous traffic shaping does not use this trait, because it determines the
/// eligibility time of each frame at admission.
///
/// The port reports events of the class in the order of time, and calls [`advance`](Self::advance)
/// before each event. `head` is how long the next frame of the class occupies the line, from
/// preamble to FCS; `None` if no frame waits.
pub trait Shaper: Debug {
    /// Advances the time to `now` without an event.
    fn advance(&mut self, now: Instant, head: Option<Duration>, gates: Option<&Gates>);

    /// The first time from `now` on at which the next frame may start. `None`: not before the next
    /// event.
    fn ready(&self, now: Instant, head: Duration, gates: Option<&Gates>) -> Option<Instant>;

    /// Handles the start or the continuation of a frame of the class.
    fn transmits(&mut self, bits: Transmits);

    /// Handles the interruption, at `now`, of the frame of the class on the line.
    fn stops(&mut self, now: Instant);

    /// Handles a step of the gates' clock, or a change of its rate.
    fn clock_changed(&mut self, _gates: Option<&Gates>) {}
}

/// The transmission of a frame's bits, for a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmits {
    /// Time of the first bit.
    pub from: Instant,
    /// Length of the preamble; zero if an interrupted frame continues.
    pub preamble: Duration,
    /// Time of the last bit, unless the frame is interrupted.
    pub until: Instant,
    /// Length of the gap after the frame.
    pub gap: Duration,
}

/// A function that makes a shaper from the port's configuration and the class, 0 to 7.
pub type NewShaper = fn(&Config, usize) -> Box<dyn Shaper>;
