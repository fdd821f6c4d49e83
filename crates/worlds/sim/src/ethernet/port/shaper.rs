//! The trait of shapers, which determine the time from which a class may send its next frame.

use std::fmt::Debug;
use tsn::Gates;
use wire::{Duration, Instant};

use super::config::Config;

/// The shaper of one class at one port, in addition to its gate and the higher classes. The
/// built-in implementation is the credit-based shaper; [`Algorithm::Own`](super::Algorithm::Own)
/// adds another one. (Asynchronous shaping gives each frame a time when it is queued, so it is not
/// a shaper of a class.)
///
/// The port reports events of the class in the order of time, and calls [`advance`](Self::advance)
/// before each. `head` is the time of the class's next frame on the line, from preamble to FCS;
/// `None` if no frame waits.
pub trait Shaper: Debug {
    /// Advances the time to `now` without an event.
    fn advance(&mut self, now: Instant, head: Option<Duration>, gates: Option<&Gates>);

    /// The first time from `now` on at which the next frame may start; `None`: never, unless an
    /// event occurs.
    fn ready(&self, now: Instant, head: Duration, gates: Option<&Gates>) -> Option<Instant>;

    /// Handles a transmission of bits of the class.
    fn transmits(&mut self, bits: Transmits);

    /// Handles the interruption of the transmitted frame of the class.
    fn stops(&mut self, now: Instant);

    /// Handles a step of the gates' clock, or a change of its rate.
    fn clock_changed(&mut self, _gates: Option<&Gates>) {}
}

/// The transmission of a frame's bits, for a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmits {
    /// Time of the first bit.
    pub from: Instant,
    /// Time of the preamble; zero if an interrupted frame continues.
    pub preamble: Duration,
    /// Time of the last bit, unless the frame is interrupted.
    pub until: Instant,
    /// Length of the gap after the frame.
    pub gap: Duration,
}

/// Makes the shaper of a class of a port.
pub type NewShaper = fn(&Config, usize) -> Box<dyn Shaper>;
