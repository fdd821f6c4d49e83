//! End-to-end data protection (section 8.3) and its command fields.

use super::{Command, CopyRange};

numbers! {
    /// Types of protection (section 8.3.1), bits 2:0 of DPS (figure 245) and PI of Format NVM.
    pub enum ProtectionType: u8 {
        /// The reference tag is the low 32 bits of the block's LBA.
        Type1 = 1,
        /// The command has the reference tag of the first block; the tag increases with each block.
        Type2 = 2,
        /// The reference tag belongs to the host.
        Type3 = 3,
    }
}

register! {
    /// PRINFO, 4 bits: the protection information field of section 6.
    pub struct ProtectionControl: u8, {
        /// PRCHK bit 0: the reference tag is checked.
        reference: bool = [0, 1],
        /// PRCHK bit 1: the application tag is checked.
        application: bool = [1, 1],
        /// PRCHK bit 2: the guard is checked.
        guard: bool = [2, 1],
        /// PRACT: the controller inserts the protection information in a write, or strips it in a
        /// read.
        action: bool = [3, 1],
    }
}

/// Protection information of a block (section 8.3.1): 8 bytes, numbers in big endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtectionInformation {
    /// Guard: CRC-16 of the block.
    pub guard: u16,
    /// Application tag.
    pub application: u16,
    /// Reference tag.
    pub reference: u32,
}

impl ProtectionInformation {
    /// Size of the protection information in bytes.
    pub const LENGTH: usize = 8;

    /// Decodes the protection information.
    pub fn decode(bytes: &[u8; Self::LENGTH]) -> Self {
        let [a, b, c, d, e, f, g, h] = *bytes;
        Self {
            guard: u16::from_be_bytes([a, b]),
            application: u16::from_be_bytes([c, d]),
            reference: u32::from_be_bytes([e, f, g, h]),
        }
    }

    /// Encodes the protection information.
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let ([a, b], [c, d]) = (self.guard.to_be_bytes(), self.application.to_be_bytes());
        let [e, f, g, h] = self.reference.to_be_bytes();
        [a, b, c, d, e, f, g, h]
    }
}

/// The tags of a command's blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtectionTags {
    /// LBAT, or ELBAT for an expected tag.
    pub application: u16,
    /// LBATM: the checked bits of the application tag.
    pub mask: u16,
    /// ILBRT, or EILBRT for an expected tag: the reference tag of the first block.
    pub reference: u32,
}

impl Command {
    /// PRINFO of Read, Write and others, PRINFOW of Copy: bits 29:26 of command dword 12.
    pub fn protection(&self) -> ProtectionControl {
        ProtectionControl::from_bits((self.cdw12 >> 26 & 15) as u8)
    }

    /// PRINFOR of Copy: bits 15:12 of command dword 12 (NVM Command Set 1.0, section 3.2.2).
    pub fn protection_of_sources(&self) -> ProtectionControl {
        ProtectionControl::from_bits((self.cdw12 >> 12 & 15) as u8)
    }

    /// The tags in command dwords 14 and 15.
    pub fn tags(&self) -> ProtectionTags {
        let (application, mask) = (self.cdw15 as u16, (self.cdw15 >> 16) as u16);
        ProtectionTags { application, mask, reference: self.cdw14 }
    }
}

impl CopyRange {
    /// The expected tags of the source.
    pub fn tags(&self) -> ProtectionTags {
        let Self { application, mask, reference, .. } = *self;
        ProtectionTags { application, mask, reference }
    }
}
