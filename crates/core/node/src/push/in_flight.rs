//! Bytes pushed for commands that are not complete.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Bytes pushed for the commands of a controller that are not complete.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// By queue and command identifier.
    commands: HashMap<u32, usize, BuildHasherDefault<Multiply>>,
    bytes: usize,
}

impl InFlight {
    /// All bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds bytes of a command.
    pub fn add(&mut self, (queue, command): (u16, u16), bytes: usize) {
        *self.commands.entry(key(queue, command)).or_default() += bytes;
        self.bytes += bytes;
    }

    /// Removes a command.
    pub fn remove(&mut self, queue: u16, command: u16) {
        self.bytes -= self.commands.remove(&key(queue, command)).unwrap_or_default();
    }

    /// Removes the commands of a queue.
    pub fn remove_queue(&mut self, queue: u16) {
        let gone = self.commands.extract_if(|key, _| (key >> 16) as u16 == queue);
        self.bytes -= gone.map(|(_, bytes)| bytes).sum::<usize>();
    }
}

fn key(queue: u16, command: u16) -> u32 {
    u32::from(queue) << 16 | u32::from(command)
}

/// A hash of one number. The bound of what is pushed keeps the commands few, whatever their numbers.
#[derive(Debug, Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32((*byte).into()));
    }

    fn write_u32(&mut self, number: u32) {
        // 2^64 by the golden ratio; the table uses the lowest and the highest bits.
        let product = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_all_commands() {
        let mut in_flight = InFlight::default();
        for (id, bytes) in [((1, 2), 64), ((1, 2), 4096), ((1, 3), 64), ((2, 2), 64)] {
            in_flight.add(id, bytes);
        }
        in_flight.remove(1, 2);
        in_flight.remove(1, 9);
        assert_eq!(in_flight.bytes(), 128);
        in_flight.remove_queue(1);
        assert_eq!(in_flight.bytes(), 64);
    }
}
