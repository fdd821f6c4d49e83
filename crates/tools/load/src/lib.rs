//! Load on live drives, and what it comes to: the built-in initiator, jobs in fio's words, the cases
//! of a bench, policies of aggregation side by side.
//!
//! [`rig`] is a host node with the initiator, [`local`] brings its far side up in this process.
//! [`io`] runs jobs on any drive. [`testbed`], [`recording`] and [`ablation`] measure cases,
//! [`latencies`] single transactions at the root port. [`floor`] is what the network alone takes.
//! A [`Console`] learns how far a run is.

pub mod ablation;
pub mod case;
mod console;
mod cpu;
pub mod floor;
pub mod io;
pub mod latencies;
pub mod local;
pub mod recording;
pub mod rig;
pub mod testbed;
mod trace;
mod verify;

pub use console::Console;
pub use cpu::CpuTime;
pub use trace::{TraceFile, TraceTarget};
pub use verify::verify;
