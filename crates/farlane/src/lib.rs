//! The farlane program as a library: commands, analyser, reports.

// First: its macros are for all that follows.
#[macro_use]
pub mod output;

pub mod commands;
mod floor;
mod link_end;
mod link_wait;
mod local;
mod namespace;
mod node;
mod progress;
mod rig;
mod signals;
mod stdout;
mod trace_args;
