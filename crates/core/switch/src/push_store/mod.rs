//! The store of pushed bytes of host memory, which the function will read after a doorbell
//! ([`wire::push`], `docs/push.md`).

mod held;
mod store;

pub use store::{Counters, Store};

use std::fmt::Debug;
use std::ops::Range;
use wire::push::Queue;
use wire::tlp::{MemoryRequest, Tlp};

/// Default number of pushed bytes that a device node keeps: 1 MiB, as large as the default window
/// of a link for posted TLPs.
pub const CAPACITY: u32 = 1 << 20;

/// Submission queue and command identifier that pushed bytes belong to.
pub type Command = (u16, u16);

/// Pushed bytes that became invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// The bytes of a command.
    Command(Command),
    /// The bytes at these addresses of host memory.
    Range(Range<u64>),
}

/// Decides which pushed bytes the writes of a function invalidate. [`Store`] has one rule per
/// function. Only the rule depends on the kind of function.
pub trait Rule: Clone + Debug {
    /// Number of queues that the rule follows.
    fn queues(&self) -> usize;

    /// Whether the rule follows this queue. [`Store`] keeps no bytes of other queues, because no
    /// write would invalidate such bytes.
    fn follows(&self, queue: u16) -> bool;

    /// The queues that the rule follows, each with the head that it knows.
    fn followed(&self) -> Vec<Queue>;

    /// Starts to follow the queue `id`; with `None`, stops to follow it.
    fn set_queue(&mut self, id: u16, queue: Option<Queue>);

    /// Passes to `invalid` the bytes that a write of the function to host memory invalidates.
    fn write(&mut self, tlp: &Tlp, request: MemoryRequest, invalid: &mut dyn FnMut(Invalid));
}

/// The rule of a function that is not an NVMe controller: it follows no queue, so no bytes are
/// kept.
impl Rule for () {
    fn queues(&self) -> usize {
        0
    }

    fn follows(&self, _queue: u16) -> bool {
        false
    }

    fn followed(&self) -> Vec<Queue> {
        Vec::new()
    }

    fn set_queue(&mut self, _id: u16, _queue: Option<Queue>) {}

    fn write(&mut self, _: &Tlp, _: MemoryRequest, _: &mut dyn FnMut(Invalid)) {}
}
