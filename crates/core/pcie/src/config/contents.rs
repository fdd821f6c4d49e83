//! The contents capability: lets host software detect whether the data of a function have changed.
//!
//! A Vendor-Specific Extended Capability (PCIe Base 4.0, section 7.9.5), whose
//! vendor is the function's Vendor ID, [`VENDOR`]:
//!
//! | byte | | |
//! | --- | --- | --- |
//! | 00h | header | capability ID 000Bh, version 1 |
//! | 04h | vendor-specific header | VSEC ID 0001h (15:0), revision 1 (19:16), length 014h (31:20) |
//! | 08h | incarnation, 8 bytes | read only: unchanged as long as no data were lost |
//! | 10h | owner, 4 bytes | the attaching host writes its own number. 0 after power-on, unchanged by every reset (RWS) |

use super::{ConfigSpace, capability};

/// Vendor ID of functions that have the capability.
pub use wire::id::VENDOR;

/// The contents capability in configuration space.
#[derive(Clone, Copy, Debug)]
pub struct ContentsCapability {
    at: u16,
}

impl ContentsCapability {
    const LENGTH: u16 = 0x14;
    /// Byte offset of the vendor-specific header.
    pub const HEADER: u16 = 0x04;
    /// The value of the header.
    pub const HEADER_VALUE: u32 = (Self::LENGTH as u32) << 20 | 1 << 16 | 0x0001;
    /// Byte offset of the incarnation.
    pub const INCARNATION: u16 = 0x08;
    /// Byte offset of the owner.
    pub const OWNER: u16 = 0x10;

    /// Adds the capability.
    pub fn add(config: &mut ConfigSpace, incarnation: u64) -> Self {
        let at = config.add_extended(capability::EXT_VENDOR_SPECIFIC, 1, Self::LENGTH);
        config.set_u32(at + Self::HEADER, Self::HEADER_VALUE);
        config.set(at + Self::INCARNATION, &incarnation.to_le_bytes());
        config.make_rw(at + Self::OWNER, &[0xff; 4]);
        Self { at }
    }

    /// The owner that the host has written.
    pub fn owner(self, config: &ConfigSpace) -> u32 {
        config.u32(self.at + Self::OWNER)
    }

    /// Sets the owner, which survives resets.
    pub fn set_owner(self, config: &mut ConfigSpace, owner: u32) {
        config.set_u32(self.at + Self::OWNER, owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_documented_one() {
        let mut config = ConfigSpace::default();
        config.add_extended(capability::EXT_SERIAL_NUMBER, 1, 12);
        let contents = ContentsCapability::add(&mut config, 0x0123_4567_89ab_cdef);
        assert_eq!(contents.at, 0x10c);
        let words: Vec<u32> = (0..6).map(|word| config.read(0x10c + word * 4)).collect();
        assert_eq!(words, [0x0001_000b, 0x0141_0001, 0x89ab_cdef, 0x0123_4567, 0, 0]);
        (0..6_u16).for_each(|word| config.write(0x10c + word * 4, 0xf, !u32::from(word)));
        let written: Vec<u32> = (0..6).map(|word| config.read(0x10c + word * 4)).collect();
        assert_eq!(written[..4], words[..4], "read only");
        assert_eq!(written[4..], [!4, 0]);
        assert_eq!(contents.owner(&config), !4);
    }
}
