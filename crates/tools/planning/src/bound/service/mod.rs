//! The longest time from the arrival of a frame in a queue to its transmission.
//!
//! All times are picoseconds. The *work* of a frame is its time on the line with preamble and gap.
//! A frame of a class waits for the frames of its class that came before it, for classes with
//! precedence, for one frame of the other classes that had begun, for gates and for credit. The
//! functions try every time `x` by which the frame may arrive after the queue was last empty, with
//! the most work that can arrive meanwhile (busy-period analysis; network calculus with the service
//! curves of J.-Y. Le Boudec and P. Thiran, "Network Calculus", and frames instead of bits).

mod class;
mod guarantee;
mod higher;
mod load;
mod windows;

pub use class::Class;
pub use guarantee::{fraction, whole};
pub use higher::{Credit, Higher, Peer, Weights};
pub use load::{Cap, Constraint, Entering, Group, Load, Measure};
pub use windows::{Open, Windows};

/// The longest time that counts; beyond it a class is unbounded.
pub const LIMIT: u64 = 2_000_000_000_000;
