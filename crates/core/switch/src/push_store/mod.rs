//! The receiver of pushed bytes of host memory, which the function will read after a doorbell
//! ([`wire::push`], `docs/push.md`).

mod held;
mod store;

pub use store::{Counters, Store};

use std::fmt::Debug;
use std::ops::Range;
use wire::push::Queue;
use wire::tlp::{MemoryRequest, Tlp};

/// Default number of pushed bytes that the port of a device keeps: the size of a link's default
/// window for posted TLPs.
pub const CAPACITY: u32 = 1 << 20;

/// Queue and command that pushed bytes belong to.
pub type Command = (u16, u16);

/// Pushed bytes that became invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// The bytes of a command.
    Command(Command),
    /// The bytes at these addresses of host memory.
    Range(Range<u64>),
}

/// Decides which pushed bytes a function's own writes invalidate. [`Store`] has one rule per
/// function. Only the rule depends on the kind of the function.
pub trait Rule: Clone + Debug {
    /// Number of queues that the rule follows.
    fn queues(&self) -> usize;

    /// Whether the rule follows this queue. [`Store`] keeps no bytes of other queues, because no
    /// write would invalidate them.
    fn follows(&self, queue: u16) -> bool;

    /// Starts to follow a queue, or stops with `None`.
    fn set_queue(&mut self, id: u16, queue: Option<Queue>);

    /// Passes to `invalid` the bytes that a write of the function to host memory invalidates.
    fn write(&mut self, tlp: &Tlp, request: MemoryRequest, invalid: &mut dyn FnMut(Invalid));
}

/// The rule of a function that is no NVMe controller: no queue is followed, no bytes are kept.
impl Rule for () {
    fn queues(&self) -> usize {
        0
    }

    fn follows(&self, _queue: u16) -> bool {
        false
    }

    fn set_queue(&mut self, _id: u16, _queue: Option<Queue>) {}

    fn write(&mut self, _: &Tlp, _: MemoryRequest, _: &mut dyn FnMut(Invalid)) {}
}
