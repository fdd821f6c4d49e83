//! Where the rings of a controller are: what doorbells and completion entries say.

use wire::{Bdf, Instant};

/// The state of a queue, from the TLP on that changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingState {
    /// Start of the TLP.
    pub at: Instant,
    /// The drive.
    pub device: Bdf,
    /// The queue's identifier.
    pub queue: u16,
    /// Which ring, and where it is.
    pub ring: Ring,
}

/// A ring. Positions are indices of entries, as doorbells and completion entries have them (NVM
/// Express 1.4, sections 3.1.24, 3.1.25 and 4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// A submission queue.
    Submission {
        /// Entries of the ring; one of them is always free.
        entries: u32,
        /// Commands from their tail doorbell to the head doorbell of their completion entry.
        outstanding: u64,
        /// What the host wrote last to the tail doorbell; `None` where records are missing.
        tail: Option<u32>,
        /// SQHD of the latest completion entry, 0 before the first one; `None` where records are
        /// missing.
        head: Option<u32>,
    },
    /// A completion queue.
    Completion {
        /// Entries of the ring; one of them is always free.
        entries: u32,
        /// Behind the entry that the drive wrote last; `None` where records are missing.
        tail: Option<u32>,
        /// What the host wrote last to the head doorbell; `None` where records are missing.
        head: Option<u32>,
        /// Phase tag of the entry that the drive wrote last.
        phase: bool,
    },
    /// A queue with this identifier is gone: reset or deleted.
    Gone,
}
