//! Learns the block size of a namespace for which host software sent no Identify: from the bytes
//! that the controller moves for a single command in flight.

use nvme::MemoryRange;
use std::ops::Range;
use wire::nvme::{Command, opcode};

/// The most pieces of a transfer that are kept: two pages in TLPs of 128 bytes.
const MOST_PIECES: usize = 64;
/// Binary logarithms of the possible block sizes.
const SHIFTS: std::ops::RangeInclusive<u8> = 9..=16;

/// A command whose transfer cannot be confused with another transfer of its controller.
#[derive(Debug)]
pub(super) struct Watch {
    /// Queue and identifier of the command.
    pub id: (u16, u16),
    command: Command,
    moved: Vec<Range<u64>>,
}

impl Watch {
    /// Watches a command, if it moves blocks and has no lists of SGL descriptors.
    pub(super) fn new(queue: u16, command: Command) -> Option<Self> {
        let moves = [opcode::nvm::READ, opcode::nvm::WRITE, opcode::nvm::COMPARE];
        let fits = moves.contains(&command.opcode) && command.psdt == 0;
        fits.then(|| Self { id: (queue, command.cid), command, moved: Vec::new() })
    }

    /// The namespace.
    pub(super) fn nsid(&self) -> u32 {
        self.command.nsid
    }

    /// Notes that the controller moves `length` bytes at `address`, to the host or from the host.
    pub(super) fn moves(&mut self, to_host: bool, address: u64, length: usize) {
        let end = address.saturating_add(length as u64);
        if to_host == (self.command.opcode == opcode::nvm::READ) && self.moved.len() <= MOST_PIECES
        {
            self.moved.push(address..end);
        }
    }

    /// The binary logarithm of a block's bytes, once the command has succeeded: the size with which
    /// the moved bytes are exactly the bytes of the data pointer. `None` if no size matches, or the
    /// transfer needs a list.
    pub(super) fn block_shift(mut self, page: usize) -> Option<u8> {
        let to_host = self.command.opcode == opcode::nvm::READ;
        let moved = (self.moved.len() <= MOST_PIECES).then(|| joined(&mut self.moved))?;
        SHIFTS.into_iter().find(|shift| {
            let length = (self.command.blocks() as usize) << shift;
            let ranges = nvme::follow(&self.command, length, page, to_host, |_, _| None);
            ranges.is_some_and(|ranges| joined(&mut ranges.iter().map(range).collect()) == moved)
        })
    }
}

fn range(memory: &MemoryRange) -> Range<u64> {
    memory.address..memory.address.saturating_add(memory.length as u64)
}

/// Joins adjacent ranges; keeps their order.
fn joined(ranges: &mut Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges.drain(..) {
        match joined.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The block size learnt from a write of `blocks` blocks at 1_0c00h that moves these bytes.
    fn learnt(blocks: u32, pieces: &[(u64, usize)]) -> Option<u8> {
        let command = Command {
            opcode: opcode::nvm::WRITE,
            prp1: 0x1_0c00,
            prp2: 0x8000,
            cdw12: blocks - 1,
            ..Command::default()
        };
        let mut watch = Watch::new(1, command)?;
        watch.moves(true, 0x5000, 16);
        pieces.iter().for_each(|(address, length)| watch.moves(false, *address, *length));
        watch.block_shift(4096)
    }

    #[test]
    fn block_size_is_learnt_only_from_exactly_the_bytes_of_the_data_pointer() {
        assert_eq!(learnt(2, &[(0x1_0e00, 512), (0x1_0c00, 512)]), Some(9));
        assert_eq!(learnt(1, &[(0x8000, 2048), (0x1_0c00, 1024), (0x8800, 1024)]), Some(12));
        assert_eq!(learnt(2, &[(0x1_0c00, 512)]), None, "too little");
        assert_eq!(learnt(2, &[(0x1_0c00, 1024), (0x9000, 64)]), None, "metadata, or a list");
        assert_eq!(learnt(2, &[(0x1_0c00, 1024), (0x8000, 16)]), None, "520 bytes");
        assert_eq!(learnt(64, &[(0x1_0c00, 1024), (0x8000, 4096)]), None, "with a list");
        assert_eq!(learnt(2, &[]), None);
    }
}
