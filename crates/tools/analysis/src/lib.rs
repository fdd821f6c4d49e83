//! Analysis of recorded TLPs.
//!
//! [`commands`] follows every NVMe command through its TLPs, which come from a live root port, a
//! simulation or a file. [`trace`] reads the files of a run and puts them on one timeline.
//! [`export`] writes TLPs, connections and frames as captures for other tools. [`topology`] prints
//! the hierarchy that a host has enumerated. [`trace_report`] presents a run, or a comparison of
//! two runs, as text, JSON document and HTML page.

pub mod commands;
pub mod export;

pub mod topology;
pub mod trace;
pub mod trace_report;
