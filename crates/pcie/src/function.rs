//! The one trait that everything below a downstream port implements: drives,
//! test functions, and the upstream port of another switch.

use crate::port_queues::Target;
use wire::Instant;
use wire::tlp::{Class, Tlp};

/// What reaches a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A packet from the link above.
    Tlp(Tlp),
    /// The link above was reset, or went down: everything returns to its
    /// state after power-on, nothing in flight is answered.
    HotReset,
}

/// What [`Function::poll`] yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A packet for the link above.
    Tlp(Tlp),
    /// Nothing more now; call again after an input, or for one of these.
    Wait(Wait),
}

/// What a state machine with nothing more to do waits for, besides an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// This time.
    pub until: Option<Instant>,
    /// The receiver: a packet waits until it takes a class that it did not take
    /// in this call.
    pub receiver: bool,
}

impl Wait {
    /// For a time, if any, and for no receiver.
    pub const fn until(until: Option<Instant>) -> Self {
        Self { until, receiver: false }
    }
}

/// How a function came to be reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Initiate Function Level Reset in Device Control.
    FunctionLevel,
    /// Hot reset or link down.
    Hot,
}

/// Which classes of packets a receiver takes now. Packets of a class that is
/// not ready wait, and PCIe ordering decides who may pass them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready([bool; 3]);

impl Ready {
    /// Every class.
    pub const ALL: Self = Self([true; 3]);
    /// No class.
    pub const NONE: Self = Self([false; 3]);

    /// The classes that `takes` names.
    pub fn of(mut takes: impl FnMut(Class) -> bool) -> Self {
        Class::ALL.into_iter().fold(Self::NONE, |ready, class| ready.with(class, takes(class)))
    }

    /// Whether `class` is taken.
    pub const fn has(self, class: Class) -> bool {
        self.0[class.index()]
    }

    /// The same but for `class`.
    #[must_use]
    pub const fn with(mut self, class: Class, ready: bool) -> Self {
        self.0[class.index()] = ready;
        self
    }
}

/// A component below a downstream port, as a state machine without I/O.
///
/// Feed it with [`handle`](Self::handle), then [`poll`](Self::poll) until it
/// yields [`Output::Wait`].
pub trait Function {
    /// Takes an input. A packet of a class that [`ready`](Self::ready) denies
    /// may not be handed in.
    fn handle(&mut self, now: Instant, input: Input);

    /// The next packet of a class in `ready`, in PCIe order.
    fn poll(&mut self, now: Instant, ready: Ready) -> Output;

    /// The classes this function takes now, wherever a packet goes.
    fn ready(&self) -> Ready;

    /// The queue in which a packet to `target` waits for this function: a
    /// switch has one for each port, so that none holds up another.
    fn queue(&self, _target: Target) -> usize {
        0
    }

    /// The classes this function takes now from a queue.
    fn queue_ready(&self, _queue: usize) -> Ready {
        self.ready()
    }
}
