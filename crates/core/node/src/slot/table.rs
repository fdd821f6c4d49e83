//! What an access comes to: the condition of a slot decides.
//!
//! `docs/architecture.md` has this table in words; a test compares them.

use pcie::Presence;

/// The condition of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The client uses the function.
    Attached,
    /// The slot resets the function, or restores the client's settings in it.
    Preparing,
    /// The link is down, or nobody has looked below the port since it came up.
    LinkDown,
    /// The function is back with new contents, and the client may know the old ones.
    NewContents,
    /// Another device is in the function's place, or none.
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

/// What an access comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is passed on, to the function or to the client, and answered from there.
    Passes,
    /// It waits for the end of the preparation.
    Waits,
    /// All ones at once.
    AllOnes,
    /// It is dropped at once.
    Dropped,
    /// Done at once: the slot remembers it for the function that comes back.
    Remembered,
    /// The device is identified, and reset if it is the one before. Then it is attached.
    Identifies,
    /// Unsupported Request, which is counted.
    Refused,
}

use Outcome::{AllOnes, Dropped, Identifies, Passes, Refused, Remembered, Waits};

/// By [`Access`] and [`Condition`], in their orders. Until its link is lost, a function sends
/// nothing that it must not: bus mastering is restored last. What it sent before still passes.
const TABLE: [[Outcome; 5]; 9] = [
    [Passes, Waits, AllOnes, Passes, AllOnes],
    [Passes, Waits, Dropped, Passes, Dropped],
    [Passes, Waits, AllOnes, AllOnes, AllOnes],
    [Passes, Waits, Dropped, Dropped, Dropped],
    [Passes, Waits, Remembered, Remembered, Remembered],
    [Identifies, Waits, Remembered, Identifies, Identifies],
    [Passes, Passes, Passes, Refused, Refused],
    [Passes, Passes, Passes, Refused, Refused],
    [Passes, Passes, Passes, Dropped, Dropped],
];

impl Condition {
    /// What an access comes to in this condition.
    pub fn outcome(self, access: Access) -> Outcome {
        TABLE[access as usize][self as usize]
    }

    /// What the client sees meanwhile. What waits is seen once the wait is over.
    pub(super) fn presence(self) -> Presence {
        let seen = |access| self.outcome(access) != AllOnes;
        match (seen(Access::ConfigRead), seen(Access::BarRead)) {
            (true, true) => Presence::Present,
            (true, false) => Presence::ConfigOnly,
            (false, _) => Presence::Absent,
        }
    }
}
