//! The record `done`: commands whose effect must not be repeated.

use super::check::{Check, Problem};
use serde::{Deserialize, Serialize};

/// The most commands in the record: more than a controller carries out at the same time.
const MOST: usize = 32;

/// Commands that changed records, so that a process that goes on after a kill does not carry them out
/// again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// The number of power cycles when they were carried out.
    pub power_cycle: u128,
    /// The number of each command since power-on, and dword 0 of its completion.
    pub commands: Vec<(u64, u32)>,
}

impl Done {
    /// The record with one more command.
    #[must_use]
    pub(crate) fn with(&self, power_cycle: u128, command: (u64, u32)) -> Self {
        let same = self.power_cycle == power_cycle;
        let mut commands = if same { self.commands.clone() } else { Vec::new() };
        commands.push(command);
        commands.drain(..commands.len().saturating_sub(MOST));
        Self { power_cycle, commands }
    }

    /// Dword 0 of a command's completion, if it was carried out in this power cycle.
    pub(crate) fn result(&self, power_cycle: u128, number: u64) -> Option<u32> {
        let of_it = |(other, _): &&(u64, u32)| *other == number && power_cycle == self.power_cycle;
        self.commands.iter().find(of_it).map(|(_, result)| *result)
    }
}

impl Check for Done {
    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }
}
