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

use serde::Serialize;
use thiserror::Error;

/// Why a command failed: one line for its user.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self(why)
    }
}

/// What a command ends in.
pub type Outcome = Result<(), Failure>;

/// A document of `--json` as it is printed.
fn json<D: Serialize + ?Sized>(document: &D) -> String {
    serde_json::to_string_pretty(document).expect("plain keys")
}
