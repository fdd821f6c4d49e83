//! The outcome of an access, by the condition of the slot.
//!
//! `docs/architecture.md` has this table in words; a test compares them.

use pcie::Presence;

/// The condition of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The client uses the function.
    Attached,
    /// The client uses the function. The link has lost its connection, and its session waits for
    /// another one.
    Interrupted,
    /// The slot resets the function, or restores the client's settings in it.
    Preparing,
    /// The link is down. The slot answers for the NVMe controller, which is not ready.
    Awaited,
    /// The link is down, or the function was not enumerated since the link came up.
    LinkDown,
    /// The function is back with new contents, and the client may rely on the old ones.
    NewContents,
    /// Another device, or no device, is in the function's place.
    Detached,
}

/// A kind of access: the first six by the client, the last three by the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read of configuration space.
    ConfigRead,
    /// A write to configuration space.
    ConfigWrite,
    /// A read of a BAR.
    BarRead,
    /// A write to a BAR.
    BarWrite,
    /// MSI-X enabled or disabled.
    Msix,
    /// A reset of the function.
    Reset,
    /// A read of the client's memory.
    MemoryRead,
    /// A write to the client's memory.
    MemoryWrite,
    /// An interrupt.
    Interrupt,
}

/// The outcome of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The access is passed on to the function or the client, which answers.
    Passes,
    /// The access waits in the link for its connection. A client that cannot wait as long gets the
    /// answer of an absent function.
    Held,
    /// The slot answers for the controller.
    Answered,
    /// The access waits for the end of the preparation.
    Waits,
    /// The access reads all ones at once.
    AllOnes,
    /// The access is dropped at once.
    Dropped,
    /// The access is answered at once; the slot stores it for the returning function.
    Remembered,
    /// The device is identified, and reset if it is the former one. Then it is attached.
    Identifies,
    /// The access is answered with Unsupported Request, and counted.
    Refused,
}

use Outcome::{AllOnes, Answered, Dropped, Held, Identifies, Passes, Refused, Remembered, Waits};

/// The outcomes, by [`Access`] and [`Condition`] in the order of their variants. A restored
/// function sends nothing too early, because bus mastering is restored last. TLPs sent earlier
/// still pass.
const TABLE: [[Outcome; 7]; 9] = [
    [Passes, Held, Waits, Answered, AllOnes, Passes, AllOnes],
    [Passes, Held, Waits, Answered, Dropped, Passes, Dropped],
    [Passes, Held, Waits, Answered, AllOnes, AllOnes, AllOnes],
    [Passes, Held, Waits, Answered, Dropped, Dropped, Dropped],
    [Passes, Held, Waits, Remembered, Remembered, Remembered, Remembered],
    [Identifies, Held, Waits, Remembered, Remembered, Identifies, Identifies],
    [Passes, Passes, Passes, Passes, Passes, Refused, Refused],
    [Passes, Passes, Passes, Passes, Passes, Refused, Refused],
    [Passes, Passes, Passes, Passes, Passes, Dropped, Dropped],
];

impl Condition {
    /// The outcome of an access in this condition.
    pub fn outcome(self, access: Access) -> Outcome {
        TABLE[access as usize][self as usize]
    }

    /// The part of the function that the client sees in this condition. During a wait the former
    /// state stays visible.
    pub(super) fn presence(self) -> Presence {
        let seen = |access| self.outcome(access) != AllOnes;
        match (seen(Access::ConfigRead), seen(Access::BarRead)) {
            (true, true) => Presence::Present,
            (true, false) => Presence::ConfigOnly,
            (false, _) => Presence::Absent,
        }
    }
}
