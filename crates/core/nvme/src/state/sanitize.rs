//! The record `sanitize`: the most recent sanitize operation.

use super::check::{Check, Problem};
use serde::{Deserialize, Serialize};

/// The most recent sanitize operation (NVMe 1.4, section 8.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sanitize {
    /// Command dword 10 of the command that began it.
    pub command: u32,
    /// Overwrite Pattern.
    pub pattern: u32,
    /// How far it has come.
    pub phase: SanitizePhase,
}

/// How far a sanitize operation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SanitizePhase {
    /// It is under way: after a loss of power it begins again.
    Running,
    /// It was successful.
    Completed,
    /// It failed: the drive allows few commands.
    Failed,
    /// It failed, and a host has left the failure mode.
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
