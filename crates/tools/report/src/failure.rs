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
