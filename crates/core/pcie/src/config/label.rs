//! The label capability: serial number and capacity of a drive, for host
//! software without a driver for it.
//!
//! A Vendor-Specific Extended Capability (PCIe Base 4.0, section 7.9.5):
//!
//! | byte | | |
//! | --- | --- | --- |
//! | 00h | header | capability ID 000Bh, version 1 |
//! | 04h | vendor-specific header | VSEC ID 0002h (15:0), revision 1 (19:16), length 028h (31:20) |
//! | 08h | serial number, 20 bytes | ASCII, padded with spaces: SN of Identify Controller (NVMe 1.4, figure 247) |
//! | 1ch | reserved, 4 bytes | 0 |
//! | 20h | capacity, 8 bytes | bytes of all namespaces together |

use super::{ConfigSpace, capability};

/// Size of a serial number in bytes.
const SERIAL: usize = 20;
/// Byte offsets of the vendor-specific header, the serial number and the capacity.
const HEADER: u16 = 0x04;
const NAME: u16 = 0x08;
const CAPACITY: u16 = 0x20;
const LENGTH: u16 = 0x28;
const HEADER_VALUE: u32 = (LENGTH as u32) << 20 | 1 << 16 | 0x0002;

/// The contents of the label capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The serial number: up to 20 printable ASCII characters.
    pub serial: String,
    /// Size of all namespaces together in bytes.
    pub capacity: u64,
}

impl Label {
    /// Adds the capability; truncates the serial number to 20 bytes.
    pub fn add(&self, config: &mut ConfigSpace) {
        let at = config.add_extended(capability::EXT_VENDOR_SPECIFIC, 1, LENGTH);
        config.set_u32(at + HEADER, HEADER_VALUE);
        let mut serial = [b' '; SERIAL];
        serial.iter_mut().zip(self.serial.bytes()).for_each(|(to, byte)| *to = byte);
        config.set(at + NAME, &serial);
        config.set(at + CAPACITY, &self.capacity.to_le_bytes());
    }

    /// Finds the label in the configuration space of a function. `None` if the Vendor ID of the
    /// function is not `vendor` (VSEC IDs are per vendor), or if there is no label. Replaces
    /// characters that are not printable with `?`.
    pub fn find(config: &[u8; 4096], vendor: u16) -> Option<Self> {
        let word = |at: u16| {
            let bytes = config.get(usize::from(at)..usize::from(at) + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
        };
        if word(0)? as u16 != vendor {
            return None;
        }
        // The search ends after 64 capabilities, because the list may be circular.
        let mut at = 0x100;
        for _ in 0..64 {
            let header = word(at)?;
            let is_ours = header as u16 == capability::EXT_VENDOR_SPECIFIC
                && word(at + HEADER) == Some(HEADER_VALUE);
            if is_ours {
                let bytes = config.get(usize::from(at)..usize::from(at + LENGTH))?;
                let (serial, capacity) =
                    (&bytes[usize::from(NAME)..][..SERIAL], &bytes[usize::from(CAPACITY)..]);
                let printable =
                    |byte: &u8| if (0x20..0x7f).contains(byte) { *byte as char } else { '?' };
                let serial: String = serial.iter().map(printable).collect();
                let capacity = u64::from_le_bytes(capacity.try_into().expect("eight bytes"));
                return Some(Self { serial: serial.trim_end().to_owned(), capacity });
            }
            at = (header >> 20) as u16 & 0xffc;
            if at < 0x100 {
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(config: &ConfigSpace) -> Box<[u8; 4096]> {
        let mut bytes = Box::new([0; 4096]);
        for (at, word) in bytes.chunks_exact_mut(4).enumerate() {
            word.copy_from_slice(&config.read(at as u16 * 4).to_le_bytes());
        }
        bytes
    }

    fn labelled() -> Box<[u8; 4096]> {
        let mut config = ConfigSpace::default();
        config.set_u32(0, 0x0001_fa12);
        config.add_extended(capability::EXT_SERIAL_NUMBER, 1, 12);
        Label { serial: "FL0123".into(), capacity: 0x0102_0304_0506_0708 }.add(&mut config);
        bytes(&config)
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let config = labelled();
        assert_eq!(config[0x10c..0x114], [0x0b, 0, 1, 0, 2, 0, 0x81, 2]);
        assert_eq!(config[0x114..0x128], *b"FL0123              ");
        assert_eq!(config[0x128..0x134], [0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
        let label = Label::find(&config, 0xfa12).unwrap();
        assert_eq!((label.serial.as_str(), label.capacity), ("FL0123", 0x0102_0304_0506_0708));
        assert_eq!(Label::find(&config, 0x8086), None, "another vendor's");
        assert_eq!(Label::find(&[0xff; 4096], 0xffff), None, "nobody answers");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(changes in prop::collection::vec((0x100usize..0x140, any::<u8>()), 0..8)) {
            let mut config = labelled();
            changes.into_iter().for_each(|(at, byte)| config[at] = byte);
            if let Some(label) = Label::find(&config, 0xfa12) {
                prop_assert!(label.serial.len() <= SERIAL && label.serial.is_ascii());
                prop_assert!(label.serial.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            }
        }
    }
}
