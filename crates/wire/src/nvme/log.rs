//! Log page identifiers (figure 191) and the small pages.

use super::field::{array, put, u32_at};

/// Log page identifiers.
pub mod log_page {
    /// Error Information.
    pub const ERROR: u8 = 0x01;
    /// SMART / Health Information.
    pub const SMART: u8 = 0x02;
    /// Firmware Slot Information.
    pub const FIRMWARE: u8 = 0x03;
    /// Commands Supported and Effects.
    pub const EFFECTS: u8 = 0x05;
}

/// Firmware Slot Information (section 5.14.1.3, figure 196).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirmwareSlots {
    /// The slot that runs now, 1 to 7.
    pub active: u8,
    /// The slot after the next reset; 0 for the same.
    pub next: u8,
    /// Revision in each slot, ASCII; zeroes if empty.
    pub revisions: [[u8; 8]; 7],
}

impl FirmwareSlots {
    /// Length in bytes.
    pub const LENGTH: usize = 512;

    /// From the bytes of the page.
    pub fn decode(b: &[u8; Self::LENGTH]) -> Self {
        let revisions = std::array::from_fn(|slot| array(b, 8 + slot * 8));
        Self { active: b[0] & 7, next: b[0] >> 4 & 7, revisions }
    }

    /// To the bytes of the page.
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut b = [0; Self::LENGTH];
        b[0] = self.active & 7 | (self.next & 7) << 4;
        for (slot, revision) in self.revisions.into_iter().enumerate() {
            put(&mut b, 8 + slot * 8, revision);
        }
        b
    }
}

/// What one opcode does (section 5.14.1.5, figure 199).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandEffects(u32);

impl CommandEffects {
    /// The command is not supported.
    pub const UNSUPPORTED: Self = Self(0);
    /// CSUPP: supported, without effects beyond its own.
    pub const SUPPORTED: Self = Self(1);
    /// CSUPP and LBCC: supported, changes logical block content.
    pub const CHANGES_BLOCKS: Self = Self(3);

    /// From the 32 bits of an entry.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// As 32 bits.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

/// Commands Supported and Effects (section 5.14.1.5, figure 198).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandsSupported {
    /// By admin opcode.
    pub admin: [CommandEffects; 256],
    /// By I/O opcode.
    pub io: [CommandEffects; 256],
}

impl Default for CommandsSupported {
    fn default() -> Self {
        let none = [CommandEffects::UNSUPPORTED; 256];
        Self { admin: none, io: none }
    }
}

impl CommandsSupported {
    /// Length in bytes.
    pub const LENGTH: usize = 4096;

    /// From the bytes of the page.
    pub fn decode(b: &[u8; Self::LENGTH]) -> Self {
        let entry = |base: usize, opcode| CommandEffects(u32_at(b, base + opcode * 4));
        Self {
            admin: std::array::from_fn(|opcode| entry(0, opcode)),
            io: std::array::from_fn(|opcode| entry(1024, opcode)),
        }
    }

    /// To the bytes of the page.
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut b = [0; Self::LENGTH];
        for opcode in 0..256 {
            put(&mut b, opcode * 4, self.admin[opcode].0.to_le_bytes());
            put(&mut b, 1024 + opcode * 4, self.io[opcode].0.to_le_bytes());
        }
        b
    }
}
