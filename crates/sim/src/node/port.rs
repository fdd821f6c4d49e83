//! The upper end of a modelled PCIe link, as the function below a root complex
//! or a downstream port.

use crate::measure::Journeys;
use crate::pcie::Link;
use pcie::{Function, Input, OrderedQueue, Output, Ready};
use wire::Instant;
use wire::tlp::{Mark, Tlp};

/// TLPs of each class that wait here on their way up. Further ones stay in the
/// link's receiver, which returns no credits for them.
pub(super) const DEPTH: usize = 8;

/// Queues between a node and a modelled link.
#[derive(Debug)]
pub(super) struct Port {
    depth: usize,
    link: Ready,
    down: OrderedQueue,
    up: OrderedQueue,
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

    /// Sets the classes that the link below takes now.
    pub fn set_link_ready(&mut self, link: Ready) {
        self.link = link;
    }

    /// The next TLP for the link below, of a class in `ready`.
    pub fn next_down(&mut self, ready: Ready) -> Option<Tlp> {
        self.down.pop(ready)
    }

    /// Whether no TLP waits for the link below.
    pub fn is_empty_down(&self) -> bool {
        self.down.is_empty()
    }

    /// Takes a TLP from the link below, of a class in
    /// [`room_up`](Self::room_up).
    pub fn push_up(&mut self, tlp: Tlp) {
        self.up.push(tlp);
    }

    /// The classes that it takes from the link below.
    pub fn room_up(&self) -> Ready {
        Ready::of(|class| self.up.len(class) < DEPTH)
    }

    /// Whether no TLP from the link below waits.
    pub fn is_empty_up(&self) -> bool {
        self.up.is_empty()
    }

    /// Resets the link below after a hot reset from above; whether there was one.
    pub fn pass_reset(&mut self, link: &mut Link, journeys: &mut Journeys) -> bool {
        let reset = std::mem::take(&mut self.reset);
        if reset {
            link.reset(|mark| journeys.end(mark));
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
