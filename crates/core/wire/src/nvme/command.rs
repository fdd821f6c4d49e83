//! Submission queue entries (section 4.2, figures 104 to 106) and the data they point to.

use super::SUBMISSION_ENTRY;

layout! {
    decode encode
    /// A submission queue entry. Fields are as the host wrote them, without checks.
    #[derive(Default)]
    pub struct Command: SUBMISSION_ENTRY, {
        /// OPC, see [`opcode`](super::opcode).
        opcode: u8 = 0,
        /// FUSE, 2 bits: 0 for a command that is not fused.
        fuse: u8 = 1 [0, 2],
        /// PSDT, 2 bits: 0 for PRPs.
        psdt: u8 = 1 [6, 2],
        /// Command identifier.
        cid: u16 = 2,
        /// Namespace identifier.
        nsid: u32 = 4,
        /// Metadata pointer.
        mptr: u64 = 16,
        /// PRP entry 1.
        prp1: u64 = 24,
        /// PRP entry 2.
        prp2: u64 = 32,
        /// Command Dword 10.
        cdw10: u32 = 40,
        /// Command Dword 11.
        cdw11: u32 = 44,
        /// Command Dword 12.
        cdw12: u32 = 48,
        /// Command Dword 13.
        cdw13: u32 = 52,
        /// Command Dword 14.
        cdw14: u32 = 56,
        /// Command Dword 15.
        cdw15: u32 = 60,
    }
}

impl Command {
    /// SLBA of Read, Write and Write Zeroes: command dwords 10 and 11 (section 6.9).
    pub fn slba(&self) -> u64 {
        u64::from(self.cdw11) << 32 | u64::from(self.cdw10)
    }

    /// Logical blocks of Read, Write and Write Zeroes, 1 to 65536: NLB is 0's based.
    pub fn blocks(&self) -> u32 {
        (self.cdw12 & 0xffff) + 1
    }

    /// DEAC of Write Zeroes, deallocate: bit 25 of command dword 12 (section 6.17).
    pub fn deallocates(&self) -> bool {
        self.cdw12 & 1 << 25 != 0
    }

    /// FUA, force unit access: bit 30 of command dword 12.
    pub fn force_unit_access(&self) -> bool {
        self.cdw12 & 1 << 30 != 0
    }
}

layout! {
    decode encode
    /// One range of Dataset Management (section 6.7.1.1, figure 364).
    #[derive(Default)]
    pub struct DsmRange: 16, {
        /// Context attributes: hints.
        attributes: u32 = 0,
        /// Length in logical blocks.
        blocks: u32 = 4,
        /// Starting LBA.
        slba: u64 = 8,
    }
}

layout! {
    decode encode
    /// One source range of Copy in format 0h (NVM Command Set 1.0, section 3.2.2, figure 30).
    #[derive(Default)]
    pub struct CopyRange: 32, {
        /// Starting LBA.
        slba: u64 = 8,
        /// Logical blocks, 0's based.
        last: u16 = 16,
        /// EILBRT: the reference tag expected of the first block.
        reference: u32 = 24,
        /// ELBAT: the application tag expected.
        application: u16 = 28,
        /// ELBATM: the checked bits of the application tag.
        mask: u16 = 30,
    }
}
