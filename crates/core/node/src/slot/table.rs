//! What an access comes to: the condition of a slot decides.
//!
//! `docs/architecture.md` has this table in words; a test compares them.

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

/// How much of its endpoint a client sees, as the table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// All of it.
    Present,
    /// Configuration space only: the client sees that the function exists, cannot use it, and can
    /// reset it.
    ConfigOnly,
    /// Nothing.
    Absent,
}

impl Condition {
    /// Every condition, in the order of the table.
    pub const ALL: [Self; 5] =
        [Self::Attached, Self::Preparing, Self::LinkDown, Self::NewContents, Self::Detached];

    /// What an access comes to in this condition.
    pub fn outcome(self, access: Access) -> Outcome {
        use Access::{ConfigRead, ConfigWrite, Interrupt, MemoryRead, MemoryWrite, Msix, Reset};
        match (access, self) {
            // The function sends nothing that it must not: bus mastering is restored last. What
            // it sent before its link was lost still counts.
            (
                MemoryRead | MemoryWrite | Interrupt,
                Self::Attached | Self::Preparing | Self::LinkDown,
            ) => Outcome::Passes,
            (MemoryRead | MemoryWrite, _) => Outcome::Refused,
            (Interrupt, _) => Outcome::Dropped,
            (_, Self::Attached) if access != Reset => Outcome::Passes,
            (_, Self::Preparing) => Outcome::Waits,
            // The host that has it in its slot sees a function with its own configuration.
            (ConfigRead | ConfigWrite, Self::NewContents) => Outcome::Passes,
            (Reset, Self::LinkDown) | (Msix, _) => Outcome::Remembered,
            (Reset, _) => Outcome::Identifies,
            (ConfigRead | Access::BarRead, _) => Outcome::AllOnes,
            (ConfigWrite | Access::BarWrite, _) => Outcome::Dropped,
        }
    }

    /// What the client sees meanwhile. What waits is seen once the wait is over.
    pub(super) fn presence(self) -> Presence {
        let seen = |access| self.outcome(access) != Outcome::AllOnes;
        match (seen(Access::ConfigRead), seen(Access::BarRead)) {
            (true, true) => Presence::Present,
            (true, false) => Presence::ConfigOnly,
            (false, _) => Presence::Absent,
        }
    }
}

impl Access {
    /// Every kind, in the order of the table.
    pub const ALL: [Self; 9] = [
        Self::ConfigRead,
        Self::ConfigWrite,
        Self::BarRead,
        Self::BarWrite,
        Self::Msix,
        Self::Reset,
        Self::MemoryRead,
        Self::MemoryWrite,
        Self::Interrupt,
    ];
}
