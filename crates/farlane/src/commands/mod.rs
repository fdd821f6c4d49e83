//! The subcommands, one file each.

pub mod bench;
pub mod calibrate;
pub mod campaign;
pub mod check;
pub mod compare;
pub mod demo;
pub mod device;
pub mod drive;
pub mod generate;
pub mod host;
pub mod io;
pub mod key;
pub mod latency;
pub mod live;
pub mod move_to;
pub mod ping;
pub mod reproduce;
pub mod run;
#[cfg(test)]
mod schemas;
pub mod sim;
pub mod status;
pub mod switch;
pub mod trace;
pub mod tsn;
pub mod work;

pub(crate) use report::document::{Ended, INTERRUPTED, finish_with_data, json, rounded};
use report::{Failure, Outcome};
