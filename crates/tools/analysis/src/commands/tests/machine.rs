//! The testkit's machine as the analyser reads it.

use crate::commands::Direction;
use crate::commands::stream::StreamRange;
use node::push::Mode;
pub use testkit::machine::io;

pub type Machine = testkit::machine::Machine<Direction>;

/// A machine whose host pushes nothing.
pub fn machine(max_payload: u16, blocks: u64) -> Machine {
    with_push(max_payload, blocks, Mode::Off)
}

pub fn with_push(max_payload: u16, blocks: u64, mode: Mode) -> Machine {
    Machine::new([Direction::Down, Direction::Up], max_payload, blocks, mode)
}

/// Returns the bytes that passed the connection, in order.
pub fn ranges(machine: &Machine) -> Vec<StreamRange> {
    let pieces = machine.ranges.iter().cloned();
    pieces.map(|(at, direction, bytes)| StreamRange { at, direction, bytes }).collect()
}
