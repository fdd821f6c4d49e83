//! Time-Sensitive Networking (TSN): algorithms that decide when a frame may leave.
//!
//! - [`gates`]: gate control lists (IEEE 802.1Q-2022, 8.6.8.4 and 8.6.9; formerly 802.1Qbv): the
//!   state of a gate, the earliest start of a frame, the longest closed time of a queue, open time,
//!   holds of preemptable frames, changes from one list to the next, lists of classes.
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
//! - [`taprio`]: writes a list as a command for Linux, and parses such a command.
//!
//! The crate has only arithmetic and state machines. It does no I/O; callers pass the time.
//!
//! # Example
//!
//! A port of 1 Gb/s opens queue 7 for the first 100 us of each millisecond, and the other queues
//! for the remaining 900 us. A frame leaves only if it ends before its gate closes.
//!
//! ```
//! # use wire as farlane_wire;
//! use farlane_tsn::{Clock, Entry, GateControlList, GateStates, Gates};
//! use farlane_wire::{Duration, Instant};
//!
//! let entries = [
//!     Entry::set(GateStates(0b1000_0000), Duration::from_us(100)),
//!     Entry::set(GateStates(0b0111_1111), Duration::from_us(900)),
//! ];
//! let list = GateControlList::of_entries(Instant::ZERO, &entries)?;
//! let gates = Gates::new(list, Clock::default());
//!
//! // 1500 bytes at 1 Gb/s.
//! let frame = Duration::from_us(12);
//! let start = |queue, ns| gates.earliest_start(queue, Instant::from_ns(ns), frame);
//! assert_eq!(start(7, 10_000), Some(Instant::from_ns(10_000)), "the gate is open");
//! assert_eq!(start(7, 95_000), Some(Instant::from_ns(1_000_000)), "5 us are too short");
//! assert_eq!(start(0, 10_000), Some(Instant::from_ns(100_000)));
//! assert_eq!(gates.longest_wait(7, frame), Some(Duration::from_us(912)));
//! # Ok::<(), farlane_tsn::ListError>(())
//! ```

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
    CycleWindows, Entry, GateControlList, GateStates, Gates, Hardware, Hold, HoldAdvance,
    ListError, OpenShare, Operation, StepPolicy, hyperperiod,
};

/// The number of queues of a port, of priorities, and the maximum of traffic classes (IEEE
/// 802.1Q-2022, 8.6.6).
pub const QUEUES: usize = 8;
