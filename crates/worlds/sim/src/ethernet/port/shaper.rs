//! What a shaper of a class is: from when on the class may send its next frame.

use std::fmt::Debug;
use tsn::Gates;
use wire::{Duration, Instant};

use super::config::Config;

/// The shaper of one class at one port, asked beside its gate and the higher classes.
/// [`Algorithm::Own`](super::Algorithm::Own) gives a class one of your own; the credit-based shaper
/// is the one that farlane has. (Asynchronous shaping gives each frame a time when it is queued, so
/// it is not a shaper of a class.)
///
/// The port says what happens to the class, in the order of time, and calls
/// [`advance`](Self::advance) first. `head` is how long the next frame of the class takes on the
/// line, from preamble to FCS; `None` if no frame waits.
pub trait Shaper: Debug {
    /// Time has passed until `now`; nothing else has changed.
    fn advance(&mut self, now: Instant, head: Option<Duration>, gates: Option<&Gates>);

    /// The first moment from `now` on at which the next frame may start; `None`: never, as long as
    /// nothing but time changes.
    fn ready(&self, now: Instant, head: Duration, gates: Option<&Gates>) -> Option<Instant>;

    /// Bits of the class pass.
    fn transmits(&mut self, bits: Transmits);

    /// The frame of the class that passes is interrupted.
    fn stops(&mut self, now: Instant);

    /// The clock of the gates has been set, or runs at another rate.
    fn clock_changed(&mut self, _gates: Option<&Gates>) {}
}

/// Bits of a frame that pass, for a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmits {
    /// When the first of them passes.
    pub from: Instant,
    /// How much of this time the preamble takes; nothing if an interrupted frame goes on.
    pub preamble: Duration,
    /// When the last bit of the frame has passed, unless it is interrupted.
    pub until: Instant,
    /// How long the gap behind it lasts.
    pub gap: Duration,
}

/// Makes the shaper of a class of a port.
pub type NewShaper = fn(&Config, usize) -> Box<dyn Shaper>;
