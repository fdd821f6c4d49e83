//! The far side of what a host pushes with a doorbell: bytes of host memory that the function will
//! read ([`wire::push`], `docs/push.md`).

mod held;
mod store;

pub use store::{Counters, Store};

use std::fmt::Debug;
use std::ops::Range;
use wire::push::Queue;
use wire::tlp::{MemoryRequest, Tlp};

/// Bytes that the port of a device keeps of what its host pushes, unless told otherwise: as much as
/// a link's default window for posted TLPs brings.
pub const CAPACITY: u32 = 1 << 20;

/// Queue and command that pushed bytes belong to.
pub type Command = (u16, u16);

/// Pushed bytes that are not valid any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// Those of a command.
    Command(Command),
    /// Those at these addresses of host memory.
    Range(Range<u64>),
}

/// Which pushed bytes a function's own writes invalidate. [`Store`] has one rule for each function;
/// the kind of the function and its queues are known to the rule alone.
pub trait Rule: Clone + Debug {
    /// Number of queues that it follows.
    fn queues(&self) -> usize;

    /// Whether it follows a queue. Bytes of other queues are not kept: their commands never end.
    fn follows(&self, queue: u16) -> bool;

    /// Follows a queue from now on, or forgets it with `None`.
    fn set_queue(&mut self, id: u16, queue: Option<Queue>);

    /// Hands to `invalid` what a write of the function to host memory invalidates.
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
