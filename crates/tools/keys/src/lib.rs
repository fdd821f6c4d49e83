//! Keys and values of plans, job files and options of the command line: the allowed values of each
//! key, the place of each value, and every mistake with its place.
//!
//! [`Table`]s declare keys. [`allowed::check`] checks a whole [`Value`] against them. A [`Section`]
//! reads checked values. [`job`] contains the keys of a job in fio's terms.
//!
//! # Modules
//!
//! - [`allowed`]: tables of keys, their allowed values, checks
//! - `value`: TOML values with their places
//! - `section`: reads checked tables key by key
//! - [`units`]: parsers of values with units
//! - `names`: names that a plan chooses
//! - `mistakes`: all mistakes that one pass finds
//! - `fault`: faults of plans and options
//! - `error_text`: messages for invalid TOML and unknown names
//! - [`job`]: the keys of a job

pub mod allowed;
mod error_text;
mod fault;
pub mod job;
mod mistakes;
mod names;
mod section;
pub mod units;
mod value;

pub use allowed::{Allowed, Key, Table};
pub use error_text::unknown;
pub use fault::{drive_fault, fault, node_fault};
pub use mistakes::{Mistakes, all, both};
pub use names::Names;
pub use section::Section;
pub use units::KeyValue;
pub use value::{Entry, KeyError, Kind, Origin, Source, Value, parse};
