//! Analysis of recorded TLPs.
//!
//! [`commands`] follows every NVMe command through its TLPs, whether they come
//! from a live root port, a simulation or a file. [`trace`] reads the files of
//! a run and puts them on one timeline. [`export`] makes captures for other
//! tools of them, [`topology`] prints what a host has enumerated,
//! [`trace_report`] shows a run, or two of them, as text, document and page.

pub mod commands;
pub mod export;

pub mod topology;
pub mod trace;
pub mod trace_report;
