//! The record `done`: commands whose effect must not be repeated.

use super::check::{Check, Problem};
use serde::{Deserialize, Serialize};

/// The most commands of a controller in the record: more than the controller carries out at the same
/// time.
const MOST: usize = 32;
/// The lowest bit of the CNTLID in the number of a command.
const CONTROLLER: u32 = 48;

/// Commands that changed records, so that a process that goes on after a kill does not carry them out
/// again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// The number of power cycles when they were carried out.
    pub power_cycle: u128,
    /// Each command and dword 0 of its completion. Bits 47:0 of a command are its number in the
    /// controller since power-on, bits 63:48 are CNTLID - 1.
    pub commands: Vec<(u64, u32)>,
}

impl Done {
    /// Command `number` of a controller, as in [`commands`](Self::commands).
    pub(crate) fn command(controller: u16, number: u64) -> u64 {
        u64::from(controller - 1) << CONTROLLER | number
    }

    /// The record with one more command.
    #[must_use]
    pub(crate) fn with(&self, power_cycle: u128, command: (u64, u32)) -> Self {
        let same = self.power_cycle == power_cycle;
        let mut commands = if same { self.commands.clone() } else { Vec::new() };
        let same = |other: &(u64, u32)| other.0 >> CONTROLLER == command.0 >> CONTROLLER;
        if commands.iter().filter(|other| same(other)).count() >= MOST {
            let oldest = commands.iter().position(same).expect("there are some");
            commands.remove(oldest);
        }
        commands.push(command);
        Self { power_cycle, commands }
    }

    /// Dword 0 of a command's completion, if it was carried out in this power cycle.
    pub(crate) fn result(&self, power_cycle: u128, command: u64) -> Option<u32> {
        let of_it = |(other, _): &&(u64, u32)| *other == command && power_cycle == self.power_cycle;
        self.commands.iter().find(of_it).map(|(_, result)| *result)
    }

    /// A number that no later command of the controller has in the record of this power cycle.
    pub(crate) fn next_number(&self, power_cycle: u128, controller: u16) -> u64 {
        let numbers = self.commands.iter().filter_map(|(command, _)| {
            let number = command & ((1 << CONTROLLER) - 1);
            (Self::command(controller, number) == *command).then_some(number + 1)
        });
        numbers.max().filter(|_| power_cycle == self.power_cycle).unwrap_or(0)
    }
}

impl Check for Done {
    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_controller_has_room_and_numbers_of_its_own() {
        let mut done = Done::default().with(3, (Done::command(2, 7), 1));
        for number in 0..MOST as u64 + 1 {
            done = done.with(3, (Done::command(1, number), 0));
        }
        assert_eq!(done.commands.len(), MOST + 1);
        assert_eq!(done.result(3, Done::command(2, 7)), Some(1));
        assert_eq!(done.result(3, Done::command(1, 0)), None, "the oldest");
        assert_eq!(done.result(3, Done::command(1, MOST as u64)), Some(0));
        // A controller that is not restored uses no number again in this power cycle.
        let next = |power_cycle| [1, 2, 3].map(|id| done.next_number(power_cycle, id));
        assert_eq!((next(3), next(4)), ([MOST as u64 + 1, 8, 0], [0; 3]));
    }
}
