//! The trait of everything below a downstream port: drives, test functions, and
//! the upstream port of another switch.

use crate::port_queues::Target;
use wire::tlp::{Class, Tlp};
use wire::{Bdf, Instant};

/// Input of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A packet from the link above.
    Tlp(Tlp),
    /// The link above was reset or went down: return to the power-on state and
    /// drop everything in flight.
    HotReset,
}

/// Output of [`Function::poll`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A packet for the link above.
    Tlp(Tlp),
    /// No output now. Poll again after an input, or when the wait ends.
    Wait(Wait),
}

/// What a state machine waits for in addition to an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// The end of the wait; `None` if only an input ends it.
    pub until: Option<Instant>,
    /// Whether a packet waits until the receiver takes a class that it denied in this call.
    pub receiver: bool,
}

impl Wait {
    /// A wait for a time, if any, and for no receiver.
    pub const fn until(until: Option<Instant>) -> Self {
        Self { until, receiver: false }
    }
}

/// The kind of a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Initiate Function Level Reset in Device Control.
    FunctionLevel,
    /// Hot reset or link down.
    Hot,
}

/// The classes of packets that a receiver takes now. Packets of other classes wait; PCIe ordering
/// decides which packets may pass them. A separate flag allows runs ([`wire::tlp::Run`]); by
/// default they are not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    classes: [bool; 3],
    runs: bool,
}

impl Ready {
    /// Every class.
    pub const ALL: Self = Self { classes: [true; 3], runs: false };
    /// No class.
    pub const NONE: Self = Self { classes: [false; 3], runs: false };

    /// The classes for which `takes` returns true.
    pub fn from_fn(mut takes: impl FnMut(Class) -> bool) -> Self {
        Class::ALL.into_iter().fold(Self::NONE, |ready, class| ready.with(class, takes(class)))
    }

    /// Whether `class` is taken.
    pub const fn has(self, class: Class) -> bool {
        self.classes[class.index()]
    }

    /// These classes, with `class` taken or not.
    #[must_use]
    pub const fn with(mut self, class: Class, ready: bool) -> Self {
        self.classes[class.index()] = ready;
        self
    }

    /// Whether several packets may arrive as one: as a run, or as one completion longer than the
    /// largest payload.
    pub const fn takes_runs(self) -> bool {
        self.runs
    }

    /// These classes, with runs or without.
    #[must_use]
    pub const fn with_runs(mut self, runs: bool) -> Self {
        self.runs = runs;
        self
    }
}

/// The room for messages of [`wire::push`] that a [`Function`] has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushRoom {
    /// The largest payload of a message, in bytes: 128 to 4096.
    pub payload: usize,
    /// Posted TLPs that leave without waiting for credits.
    pub headers: u32,
    /// Data credits for these TLPs, of 16 bytes each.
    pub data: u32,
    /// Bytes that the far end keeps, over all its functions.
    pub capacity: usize,
}

/// A component below a downstream port, as a state machine without I/O.
///
/// Feed it with [`handle`](Self::handle), then [`poll`](Self::poll) until it
/// yields [`Output::Wait`].
pub trait Function {
    /// Takes an input. A packet of a class that [`ready`](Self::ready) denies may not be handed in.
    fn handle(&mut self, now: Instant, input: Input);

    /// The next packet of a class in `ready`, in PCIe order.
    fn poll(&mut self, now: Instant, ready: Ready) -> Output;

    /// The classes this function takes now, whatever the target.
    fn ready(&self) -> Ready;

    /// The ports of a switch; `None` for an endpoint, which has one queue and takes no messages of
    /// [`wire::push`]. A function around another one returns the other one's ports.
    fn ports(&self) -> Option<&dyn Ports>;
}

/// The downstream ports of a function that is a switch.
pub trait Ports {
    /// The queue for packets to `target`: one per port, so that ports do not block each other.
    fn queue(&self, target: Target) -> usize;

    /// The classes that a queue takes now.
    fn queue_ready(&self, queue: usize) -> Ready;

    /// The room for messages of [`wire::push`] for the function `target`. `None` if its port
    /// accepts none, or if `target` may not read host memory. The caller may pass in messages
    /// within this room without checking [`Function::ready`], and also messages that only
    /// invalidate and cannot wait.
    fn push_room(&self, target: Bdf) -> Option<PushRoom>;
}

/// How much of a function is visible to its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The whole function.
    Present,
    /// Configuration space only. BARs read all ones and writes to them are dropped. The user can
    /// detect and reset the function, but not use it.
    ConfigOnly,
    /// Nothing: everything reads all ones, and writes are dropped.
    Absent,
}
