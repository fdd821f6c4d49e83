//! Bytes pushed for commands that are not complete.

use wire::Table;

/// Bytes pushed for the commands of a controller that are not complete.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// By queue and command identifier.
    commands: Table<(u16, u16), usize>,
    bytes: usize,
}

impl InFlight {
    /// The sum of all bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds bytes of a command.
    pub(super) fn add(&mut self, (queue, command): (u16, u16), bytes: usize) {
        *self.commands.entry((queue, command)).or_default() += bytes;
        self.bytes += bytes;
    }

    /// Removes a command.
    pub(super) fn remove(&mut self, queue: u16, command: u16) {
        self.bytes -= self.commands.remove(&(queue, command)).unwrap_or_default();
    }

    /// Removes the commands of a queue.
    pub(super) fn remove_queue(&mut self, queue: u16) {
        let gone = self.commands.extract_if(|(id, _), _| *id == queue);
        self.bytes -= gone.map(|(_, bytes)| bytes).sum::<usize>();
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
