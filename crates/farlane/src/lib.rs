//! The farlane program as a library: commands, analyser, reports.

pub mod commands;
pub mod latency;
mod namespace;
mod node;
mod rig;
mod signals;
