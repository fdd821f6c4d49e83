//! Error Information log entries (section 5.14.1.1, figure 194).

use super::Status;
use super::field::{put, u16_at, u32_at, u64_at};

/// One entry of the error log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorLogEntry {
    /// Counts errors over the controller's life; 0 marks an unused entry.
    pub count: u64,
    /// Submission queue of the command, FFFFh if there is none.
    pub sq_id: u16,
    /// Command identifier, FFFFh if there is none.
    pub cid: u16,
    /// Status of the command.
    pub status: Status,
    /// Phase tag of its completion.
    pub phase: bool,
    /// Where the fault lies: byte of the command in 7:0, bit in 10:8; FFFFh
    /// if not in one place.
    pub parameter: u16,
    /// First LBA with the fault.
    pub lba: u64,
    /// Namespace.
    pub nsid: u32,
}

impl ErrorLogEntry {
    /// Length in bytes.
    pub const LENGTH: usize = 64;

    /// From the bytes of an entry.
    pub fn decode(b: &[u8; Self::LENGTH]) -> Self {
        let status = u16_at(b, 12);
        Self {
            count: u64_at(b, 0),
            sq_id: u16_at(b, 8),
            cid: u16_at(b, 10),
            status: Status::from_bits(status >> 1),
            phase: status & 1 != 0,
            parameter: u16_at(b, 14),
            lba: u64_at(b, 16),
            nsid: u32_at(b, 24),
        }
    }

    /// To the bytes of an entry.
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut b = [0; Self::LENGTH];
        put(&mut b, 0, self.count.to_le_bytes());
        put(&mut b, 8, self.sq_id.to_le_bytes());
        put(&mut b, 10, self.cid.to_le_bytes());
        let status = self.status.bits() << 1 | u16::from(self.phase);
        put(&mut b, 12, status.to_le_bytes());
        put(&mut b, 14, self.parameter.to_le_bytes());
        put(&mut b, 16, self.lba.to_le_bytes());
        put(&mut b, 24, self.nsid.to_le_bytes());
        b
    }
}
