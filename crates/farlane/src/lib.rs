//! The farlane program as a library: commands, analyser, reports.

// First: its macros are for all that follows.
#[macro_use]
pub mod output;

pub mod analyse;
pub mod commands;
pub mod experiments;
pub mod export;
mod floor;
mod link_end;
mod links;
mod local;
mod namespace;
mod node;
pub mod plan;
mod progress;
pub mod report;
mod rig;
mod signals;
pub mod simulate;
mod span;
pub mod target;
pub mod topology;
pub mod trace;
mod trace_to;
