//! The upper end of a modelled PCIe link, as the function below a root complex
//! or a downstream port.

use crate::measure::Journeys;
use crate::pcie::Link;
use pcie::{Function, Input, OrderedQueue, Output, Ready};
use wire::Instant;
use wire::tlp::Mark;

/// TLPs of each class that wait here on their way up. Further ones stay in the
/// link's receiver, which returns no credits for them.
pub(super) const DEPTH: usize = 8;

/// Queues between a node and a modelled link.
#[derive(Debug)]
pub(super) struct Port {
    depth: usize,
    /// The classes that the link below takes now.
    pub link: Ready,
    pub down: OrderedQueue,
    /// From the link below, of classes in [`room_up`](Self::room_up).
    pub up: OrderedQueue,
    reset: bool,
    /// Marks of discarded TLPs.
    discarded: Vec<Mark>,
}

impl Port {
    /// A port in which up to `depth` TLPs of each class wait on their way down, and
    /// one more that the link takes at once.
    pub fn new(depth: usize) -> Self {
        let (down, up) = Default::default();
        Self { depth, link: Ready::NONE, down, up, reset: false, discarded: Vec::new() }
    }

    /// The classes that it takes from the link below.
    pub fn room_up(&self) -> Ready {
        Ready::of(|class| self.up.len(class) < DEPTH)
    }

    /// Resets the link below after a hot reset from above; whether there was one.
    pub fn pass_reset(&mut self, now: Instant, link: &mut Link, journeys: &mut Journeys) -> bool {
        let reset = std::mem::take(&mut self.reset);
        if reset {
            link.reset(now, |mark| journeys.end(mark));
            self.discarded.drain(..).for_each(|mark| journeys.end(mark));
        }
        reset
    }
}

impl Function for Port {
    fn handle(&mut self, _: Instant, input: Input) {
        match input {
            Input::Tlp(tlp) => self.down.push(tlp),
            Input::HotReset => {
                self.discarded.extend(self.down.marks().chain(self.up.marks()));
                self.down.clear();
                self.up.clear();
                self.reset = true;
            }
        }
    }

    fn poll(&mut self, _: Instant, ready: Ready) -> Output {
        self.up.poll(ready)
    }

    fn ready(&self) -> Ready {
        let passes = |class| self.down.is_empty() && self.link.has(class);
        Ready::of(|class| self.down.len(class) < self.depth || passes(class))
    }
}
