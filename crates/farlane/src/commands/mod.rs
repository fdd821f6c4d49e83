//! The subcommands, one file each.

pub mod bench;
pub mod demo;
pub mod device;
pub mod host;
pub mod move_to;
pub mod ping;
pub mod reproduce;
pub mod sim;
pub mod switch;
pub mod trace;

use report::{Failure, Outcome};
use serde::Serialize;

/// A document of `--json` as it is printed.
fn json<D: Serialize + ?Sized>(document: &D) -> String {
    serde_json::to_string_pretty(document).expect("plain keys")
}
