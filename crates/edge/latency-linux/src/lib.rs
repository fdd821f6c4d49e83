//! Time-sensitive frames on Linux: a [`Talker`] that sends them on schedule, a [`Listener`] that
//! takes them and sends them back, and what both need of the machine: sockets whose frames are
//! stamped ([`Port`]), threads that nothing gets in the way of, hardware clocks. Programs that
//! [`redirect`] frames are here too. What follows from the stamps is in [`latency`].
//!
//! All times are nanoseconds of CLOCK_TAI (clock_gettime(2)).

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
pub use options::{Clock, Heading, Listen, Machine, Marks, Run, Talk};
pub use port::{Port, Received, Remote, Tag};
pub use rows::Rows;
pub use talker::Talker;
