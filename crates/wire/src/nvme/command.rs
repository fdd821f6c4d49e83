//! Submission queue entries (section 4.2, figures 104 to 106) and the data
//! they point to.

use super::SUBMISSION_ENTRY;
use super::field::{put, u16_at, u32_at, u64_at};

/// A submission queue entry. Fields are as the host wrote them: nothing is
/// checked here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// OPC, see [`opcode`](super::opcode).
    pub opcode: u8,
    /// FUSE, 2 bits: 0 for a command of its own.
    pub fuse: u8,
    /// PSDT, 2 bits: 0 for PRPs.
    pub psdt: u8,
    /// Command identifier.
    pub cid: u16,
    /// Namespace identifier.
    pub nsid: u32,
    /// Metadata pointer.
    pub mptr: u64,
    /// PRP entry 1.
    pub prp1: u64,
    /// PRP entry 2.
    pub prp2: u64,
    /// Command Dword 10.
    pub cdw10: u32,
    /// Command Dword 11.
    pub cdw11: u32,
    /// Command Dword 12.
    pub cdw12: u32,
    /// Command Dword 13.
    pub cdw13: u32,
    /// Command Dword 14.
    pub cdw14: u32,
    /// Command Dword 15.
    pub cdw15: u32,
}

impl Command {
    /// From the bytes of an entry. Reserved fields are dropped.
    pub fn decode(entry: &[u8; SUBMISSION_ENTRY]) -> Self {
        Self {
            opcode: entry[0],
            fuse: entry[1] & 3,
            psdt: entry[1] >> 6,
            cid: u16_at(entry, 2),
            nsid: u32_at(entry, 4),
            mptr: u64_at(entry, 16),
            prp1: u64_at(entry, 24),
            prp2: u64_at(entry, 32),
            cdw10: u32_at(entry, 40),
            cdw11: u32_at(entry, 44),
            cdw12: u32_at(entry, 48),
            cdw13: u32_at(entry, 52),
            cdw14: u32_at(entry, 56),
            cdw15: u32_at(entry, 60),
        }
    }

    /// To the bytes of an entry.
    pub fn encode(&self) -> [u8; SUBMISSION_ENTRY] {
        let mut entry = [0; SUBMISSION_ENTRY];
        entry[0] = self.opcode;
        entry[1] = self.fuse & 3 | self.psdt << 6;
        put(&mut entry, 2, self.cid.to_le_bytes());
        put(&mut entry, 4, self.nsid.to_le_bytes());
        put(&mut entry, 16, self.mptr.to_le_bytes());
        put(&mut entry, 24, self.prp1.to_le_bytes());
        put(&mut entry, 32, self.prp2.to_le_bytes());
        let dwords = [self.cdw10, self.cdw11, self.cdw12, self.cdw13, self.cdw14, self.cdw15];
        for (index, dword) in dwords.into_iter().enumerate() {
            put(&mut entry, 40 + index * 4, dword.to_le_bytes());
        }
        entry
    }

    /// SLBA of Read, Write and Write Zeroes: command dwords 10 and 11
    /// (section 6.9).
    pub fn slba(&self) -> u64 {
        u64::from(self.cdw11) << 32 | u64::from(self.cdw10)
    }

    /// Logical blocks of Read, Write and Write Zeroes, 1 to 65536: NLB is
    /// 0's based.
    pub fn blocks(&self) -> u32 {
        (self.cdw12 & 0xffff) + 1
    }

    /// FUA, force unit access: bit 30 of command dword 12.
    pub fn force_unit_access(&self) -> bool {
        self.cdw12 & 1 << 30 != 0
    }
}

/// One range of Dataset Management (section 6.7.1.1, figure 364).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DsmRange {
    /// Context attributes: hints.
    pub attributes: u32,
    /// Length in logical blocks.
    pub blocks: u32,
    /// Starting LBA.
    pub slba: u64,
}

impl DsmRange {
    /// Length in bytes of a range.
    pub const LENGTH: usize = 16;

    /// From the bytes of a range.
    pub fn decode(bytes: &[u8; Self::LENGTH]) -> Self {
        Self { attributes: u32_at(bytes, 0), blocks: u32_at(bytes, 4), slba: u64_at(bytes, 8) }
    }

    /// To the bytes of a range.
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        put(&mut bytes, 0, self.attributes.to_le_bytes());
        put(&mut bytes, 4, self.blocks.to_le_bytes());
        put(&mut bytes, 8, self.slba.to_le_bytes());
        bytes
    }
}
