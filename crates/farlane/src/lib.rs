//! The farlane program: commands, analyser, reports.

pub mod analyse;
pub mod topology;
