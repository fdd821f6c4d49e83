//! The record `sanitize`: the most recent sanitize operation.

use super::check::{Check, Problem};
use serde::{Deserialize, Serialize};

/// The most recent sanitize operation (NVMe 1.4, section 8.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sanitize {
    /// Command dword 10 of the command that started the operation.
    pub command: u32,
    /// Overwrite Pattern: command dword 11.
    pub pattern: u32,
    /// Progress of the operation.
    pub phase: SanitizePhase,
}

/// The progress of a sanitize operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SanitizePhase {
    /// The operation is under way. After a loss of power it starts again.
    Running,
    /// The operation was successful.
    Completed,
    /// The operation failed: the drive allows only few commands.
    Failed,
    /// The operation failed, and a host has left the failure mode.
    Left,
}

impl Check for Sanitize {
    fn check(&self) -> Result<(), Problem> {
        match crate::admin::is_sanitize(self.command) {
            true => Ok(()),
            false => Err(format!("command: '{}' starts no sanitize operation", self.command)),
        }
    }
}
