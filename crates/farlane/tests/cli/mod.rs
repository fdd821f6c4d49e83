//! The program as its user meets it: exit status, one line of error, the machine interface.

mod bench;
mod demo;
mod disks;
pub mod drive;
mod gates;
mod io;
mod io_vfio_user;
pub mod json_document;
mod latency;
mod media;
mod mistakes;
mod nodes;
mod outputs;
mod peers;
mod phases;
mod raw;
mod record;
mod redirect;
mod replay;
mod reproduce;
mod requirements;
mod sim;
mod streams;
mod stress;
mod trace;
mod trace_runs;
mod transcripts;
