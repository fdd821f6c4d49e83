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

/// The events, in addition to an input, after which a state machine must be polled again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// The end of the wait; `None` if only an input ends it.
    pub until: Option<Instant>,
    /// Whether a packet waits until the receiver takes a class that it denied in this call.
    pub receiver: bool,
}

impl Wait {
    /// A wait for the time `until`, and for no receiver. With `None` no time is waited for.
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
    /// Every class, without runs.
    pub const ALL: Self = Self { classes: [true; 3], runs: false };
    /// No class.
    pub const NONE: Self = Self { classes: [false; 3], runs: false };

    /// A receiver of the classes for which `takes` returns true.
    pub fn from_fn(mut takes: impl FnMut(Class) -> bool) -> Self {
        Class::ALL.into_iter().fold(Self::NONE, |ready, class| ready.with(class, takes(class)))
    }

    /// Whether `class` is taken.
    pub const fn has(self, class: Class) -> bool {
        self.classes[class.index()]
    }

    /// Sets whether `class` is taken.
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

    /// Sets whether runs are allowed.
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
    /// Number of posted TLPs that do not wait for header credits.
    pub headers: u32,
    /// Data credits for these TLPs: 16 bytes each.
    pub data: u32,
    /// The maximum number of pushed bytes that the far end keeps, for all its functions together.
    pub capacity: usize,
}

/// A component below a downstream port, as a state machine without I/O.
///
/// Feed it with [`handle`](Self::handle), then [`poll`](Self::poll) until it
/// yields [`Output::Wait`].
pub trait Function {
    /// Handles an input. The class of a packet must be in [`ready`](Self::ready).
    fn handle(&mut self, now: Instant, input: Input);

    /// The next packet of a class in `ready`, in PCIe order.
    fn poll(&mut self, now: Instant, ready: Ready) -> Output;

    /// The classes that this function takes now, for any target.
    fn ready(&self) -> Ready;

    /// The ports of a switch; `None` for an endpoint, which has one queue and takes no messages of
    /// [`wire::push`]. A function that wraps another function returns the ports of the wrapped
    /// function.
    fn ports(&self) -> Option<&dyn Ports>;
}

/// The downstream ports of a function that is a switch.
pub trait Ports {
    /// The queue for packets to `target`. Each port has one queue, so that ports do not block each
    /// other.
    fn queue(&self, target: Target) -> usize;

    /// The classes that a queue takes now.
    fn queue_ready(&self, queue: usize) -> Ready;

    /// Whether the link behind a queue is interrupted and waits for its connection: completions
    /// will be late, so completion timeouts do not end.
    fn is_interrupted(&self, _queue: usize) -> bool {
        false
    }

    /// The room for messages of [`wire::push`] to the function `target`. `None` if the port of
    /// `target` accepts no such messages, or if `target` may not read host memory. The caller need
    /// not check [`Function::ready`] for messages within this room, nor for urgent messages that
    /// only invalidate.
    fn push_room(&self, target: Bdf) -> Option<PushRoom>;
}

/// The part of a function that its user can access.
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
