//! The error of a command.

use thiserror::Error;

/// The reason why a command failed, in one line for the user.
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

/// The result of a command.
pub type Outcome = Result<(), Failure>;

/// Returns the last line of a program's output that is not empty, or else `otherwise`.
pub fn last_line(log: &str, otherwise: &str) -> String {
    let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next_back().unwrap_or(otherwise).to_owned()
}
