//! Time-Sensitive Networking: when a frame may leave.
//!
//! - [`gates`]: gate control lists (IEEE 802.1Q-2022, 8.6.8.4 and 8.6.9,
//!   formerly 802.1Qbv): open or closed at a time, the earliest start of a
//!   frame, the longest time a queue stays closed, open time, holds of
//!   preemptable frames, changes from one list to the next, lists of classes.
//! - [`cqf`]: cyclic queuing and forwarding (annex T, formerly 802.1Qch): two alternating classes.
//! - [`clock`]: a node's clock, with offset and drift against true time.
//! - [`credit`]: the credit-based shaper (IEEE 802.1Q-2022, 8.6.8.2, annex L; formerly 802.1Qav).
//! - [`ats`]: asynchronous traffic shaping (8.6.11; formerly 802.1Qcr).
//! - [`ets`]: enhanced transmission selection, by weights (8.6.8.3).
//! - [`frer`]: replication and elimination (IEEE 802.1CB-2017).
//! - [`psfp`]: filtering and policing of streams (8.6.5.2 to 8.6.5.5; formerly 802.1Qci).
//! - [`preemption`]: where a frame may be cut, mPackets, verification (IEEE 802.1Q-2022, 6.7.2;
//!   IEEE 802.3-2022, clause 99).
//! - [`gptp`]: oscillators, the messages of IEEE 802.1AS, best master, the servo of linuxptp.
//! - [`taprio`]: a list as a command for Linux, and the reverse.
//!
//! Everything is arithmetic and state machines without I/O: time is an argument.

pub mod ats;
pub mod clock;
pub mod cqf;
pub mod credit;
pub mod ets;
pub mod frer;
pub mod gates;
pub mod gptp;
pub mod preemption;
pub mod psfp;
pub mod taprio;

pub use clock::{Clock, LocalTime};
pub use cqf::{Cqf, CqfError};
pub use gates::{
    Entry, GateControlList, GateStates, Gates, Hardware, Hold, HoldAdvance, ListError, OpenShare,
    Operation, StepPolicy, hyperperiod,
};

/// Queues of a port; also the number of priorities and the most traffic classes (IEEE 802.1Q-2022,
/// 8.6.6).
pub const QUEUES: usize = 8;
