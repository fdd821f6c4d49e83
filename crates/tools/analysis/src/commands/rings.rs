//! Positions of a controller's rings, from doorbells and completion entries.

use wire::{Bdf, Instant};

/// A position of a queue, valid from the TLP that changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingState {
    /// Start of the TLP.
    pub at: Instant,
    /// The drive.
    pub device: Bdf,
    /// The queue's identifier.
    pub queue: u16,
    /// The ring and its positions.
    pub ring: Ring,
}

/// The positions of a ring. Positions are indices of entries, as in doorbells and completion
/// entries (NVM Express 1.4, sections 3.1.24, 3.1.25 and 4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// A submission queue.
    Submission {
        /// Entries of the ring; one of them is always free.
        entries: u32,
        /// Number of commands between their tail doorbell and the head doorbell for their
        /// completion entry.
        outstanding: u64,
        /// The last value that the host wrote to the tail doorbell; `None` where records are
        /// missing.
        tail: Option<u32>,
        /// SQHD of the latest completion entry, 0 before the first one; `None` where records are
        /// missing.
        head: Option<u32>,
    },
    /// A completion queue.
    Completion {
        /// Entries of the ring; one of them is always free.
        entries: u32,
        /// Index after the entry that the drive wrote last; `None` where records are missing.
        tail: Option<u32>,
        /// The last value that the host wrote to the head doorbell; `None` where records are
        /// missing.
        head: Option<u32>,
        /// Phase tag of the entry that the drive wrote last.
        phase: bool,
    },
    /// The queue was reset or deleted.
    Gone,
}
