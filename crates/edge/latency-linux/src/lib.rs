//! Time-sensitive frames on Linux: a [`Talker`] that sends them on schedule, a [`Listener`] that
//! receives them and sends them back, and the parts of the machine that both use: sockets with time
//! stamps ([`Port`]), real-time threads, hardware clocks. [`redirect`] has programs that forward
//! frames. The analysis of the stamps is in [`latency`].
//!
//! All times are nanoseconds of CLOCK_TAI (clock_gettime(2)).
//!
//! # Modules
//!
//! - `talker`: sends frames on schedule and receives the returned frames
//! - `listener`: receives the talker's frames and returns them
//! - `receive`: the thread that receives frames and stamps
//! - `outbox`: assigns the kernel's stamps to sent frames
//! - `options`: the parameters of a run
//! - `settings`: the requested settings, and the settings that the machine granted
//! - `rows`: writes rows of frames during the run
//! - `document`: the document of `--json`
//! - `operator`: how a run reports to its user, and how the user stops it
//! - `port`: sockets with time stamps
//! - `control`: control messages of stamped frames
//! - `hardware`: stamps of a NIC
//! - `netdev`: properties of an interface over generic netlink
//! - `phc`: hardware clocks
//! - `ptp`: the offset that ptp4l reports
//! - `clocks`: the clock error of a run, once per second
//! - `realtime`: real-time threads
//! - [`redirect`]: XDP programs that forward frames
//! - `kernel`: system calls without a safe wrapper, and the unsafe code of this crate

#![deny(unsafe_code)]

mod clocks;
mod control;
mod document;
mod hardware;
#[allow(unsafe_code)]
mod kernel;
mod listener;
mod netdev;
mod operator;
mod options;
mod outbox;
mod phc;
mod port;
mod ptp;
mod realtime;
mod receive;
pub mod redirect;
mod rows;
mod settings;
mod talker;

pub use document::{Document, Faults, Setting, TagCount};
pub use listener::Listener;
pub use operator::Operator;
pub use options::{Clock, Heading, Listen, MachineOptions, Marks, Run, Talk};
pub use port::{Port, Received, Remote, Tag};
pub use rows::Rows;
pub use talker::Talker;
