//! The farlane program as a library: commands, analyser, reports.

pub mod analyse;
pub mod commands;
pub mod latency;
mod links;
mod namespace;
mod node;
mod rig;
mod signals;
pub mod topology;
