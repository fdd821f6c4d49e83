//! The farlane program as a library: commands, analyser, reports.

pub mod commands;
mod namespace;
mod node;
mod signals;
