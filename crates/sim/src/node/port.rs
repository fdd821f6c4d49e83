//! The near end of the PCIe link below a device node.

use pcie::{Function, Input, OrderedQueue, Output, Ready};
use wire::Instant;
use wire::tlp::{Class, Mark};

/// TLPs of each class that wait between the tunnel and the link below: those
/// beyond stay in the tunnel, which returns no credits for them.
const MOST: usize = 8;

/// What the downstream port takes for its function: the near end of the link.
#[derive(Debug, Default)]
pub(super) struct Port {
    pub down: OrderedQueue,
    pub up: OrderedQueue,
    pub reset: bool,
    /// Marks of what was forgotten.
    pub gone: Vec<Mark>,
}

impl Port {
    /// What it takes from below.
    pub fn ready_above(&self) -> Ready {
        room(&self.up)
    }
}

impl Function for Port {
    fn handle(&mut self, _: Instant, input: Input) {
        match input {
            Input::Tlp(tlp) => self.down.push(tlp),
            Input::HotReset => {
                self.gone.extend(self.down.marks().chain(self.up.marks()));
                self.down.clear();
                self.up.clear();
                self.reset = true;
            }
        }
    }

    fn poll(&mut self, _: Instant, ready: Ready) -> Output {
        self.up.pop(ready).map_or(Output::Timeout(None), Output::Tlp)
    }

    fn ready(&self) -> Ready {
        room(&self.down)
    }
}

fn room(queue: &OrderedQueue) -> Ready {
    let ready = |ready: Ready, class| ready.with(class, queue.len(class) < MOST);
    Class::ALL.into_iter().fold(Ready::NONE, ready)
}
