//! Time-Sensitive Networking: when a frame may leave.
//!
//! - [`gates`]: gate control lists (IEEE 802.1Q-2022, 8.6.8.4 and 8.6.9,
//!   formerly 802.1Qbv): open or closed at a time, the earliest start of a
//!   frame, the longest time a queue stays closed, open time, holds of
//!   preemptable frames, changes from one list to the next, lists of classes.
//! - [`cqf`]: cyclic queuing and forwarding (annex T, formerly 802.1Qch): two
//!   classes that take turns.
//! - [`clock`]: a node's clock, with offset and drift against true time.
//! - [`taprio`]: a list as a command for Linux.
//!
//! All of it is arithmetic on values, without waiting or state.
//!
//! Not implemented: credit-based shapers (802.1Qav), frame preemption itself
//! (Qbu; only its holds), replication (CB), the clock servo of 802.1AS.

pub mod clock;
pub mod cqf;
pub mod gates;
pub mod taprio;

pub use clock::{Clock, LocalTime};
pub use cqf::{Cqf, CqfError};
pub use gates::{
    Entry, GateControlList, GateStates, Gates, Hardware, Hold, HoldAdvance, ListError, OpenShare,
    Operation, hyperperiod,
};

/// Queues of a port, which is also the number of priorities and the most
/// traffic classes (IEEE 802.1Q-2022, 8.6.6).
pub const QUEUES: usize = 8;
