//! Frame replication and elimination for reliability (IEEE 802.1CB-2017, clause 7): sequence
//! numbers, the tag that carries them, and the recovery functions that discard copies.
//!
//! Each copy of a frame has the same number. A recovery function passes the first copy that it
//! receives and discards the others, whichever path they took.

mod latent;
mod recovery;
pub mod rtag;

pub use latent::{LatentTest, LatentTester};
pub use recovery::{Algorithm, Config, ConfigError, Counters, Recovery};

/// Number of sequence numbers: they have 16 bits (7.4.1.1, GenSeqSpace; 7.4.3.2.1, RecovSeqSpace).
pub const SPACE: u32 = 1 << 16;

/// Sequence generation (7.4.1): numbers from 0, incremented modulo [`SPACE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generator {
    next: u16,
}

impl Generator {
    /// The number of the next frame (7.4.1.4).
    pub fn number(&mut self) -> u16 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        number
    }

    /// Restarts at 0, as after a restart of the node (7.4.1.3).
    pub fn reset(&mut self) {
        self.next = 0;
    }
}
