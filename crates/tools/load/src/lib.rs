//! Load on live drives and its results: the built-in initiator, jobs in fio's terms, the cases of a
//! bench, and comparisons of aggregation policies.
//!
//! [`initiator_host`] is a host node with the initiator; [`local`] runs its peers in this process.
//! [`io`] runs jobs on any drive. [`testbed`], [`recording`] and [`ablation`] measure cases,
//! [`latencies`] single transactions at the root port, and [`floor`] the network alone. A
//! [`Console`] receives the progress.
//!
//! # Modules
//!
//! - [`initiator_host`]: a host node with the built-in initiator
//! - [`local`]: the far side in threads of this process
//! - [`io`]: jobs on live drives
//! - [`case`]: the cases of a bench
//! - [`testbed`]: rounds of a case on every path
//! - [`recording`]: the cost of recording a trace
//! - [`ablation`]: comparison of aggregation policies
//! - [`latencies`]: transactions measured at the root port
//! - [`floor`]: round trip and stream of raw TCP
//! - `verify`: writes, reads back and compares every byte
//! - `trace`: the place where a node records
//! - `console`: progress reports of a run
//! - `cpu`: CPU time of a thread and of the process

pub mod ablation;
pub mod case;
mod console;
mod cpu;
pub mod floor;
pub mod initiator_host;
pub mod io;
pub mod latencies;
pub mod local;
pub mod recording;
pub mod testbed;
mod trace;
mod verify;

pub use console::Console;
pub use cpu::CpuTime;
pub use trace::{TraceFile, TraceTarget};
pub use verify::verify;
