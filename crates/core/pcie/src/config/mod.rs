//! Configuration space: a register file with per-bit access rules, and the
//! capabilities that functions and bridges are built of.

mod capabilities;
pub mod contents;
mod error_reporting;
pub mod label;

pub use capabilities::{PcieCapability, PcieKind, add_msix, add_power_management};
pub use error_reporting::ErrorReporting;

/// Standard registers (PCI Local Bus 3.0, section 6.1; PCIe Base 4.0, 7.5.1).
#[allow(missing_docs)]
pub mod register {
    pub const VENDOR: u16 = 0x00;
    pub const DEVICE: u16 = 0x02;
    pub const COMMAND: u16 = 0x04;
    pub const STATUS: u16 = 0x06;
    pub const REVISION: u16 = 0x08;
    pub const HEADER_TYPE: u16 = 0x0e;
    pub const BAR0: u16 = 0x10;
    pub const PRIMARY_BUS: u16 = 0x18;
    pub const SECONDARY_BUS: u16 = 0x19;
    pub const SUBORDINATE_BUS: u16 = 0x1a;
    pub const MEMORY_BASE: u16 = 0x20;
    pub const MEMORY_LIMIT: u16 = 0x22;
    pub const PREFETCH_BASE: u16 = 0x24;
    pub const PREFETCH_LIMIT: u16 = 0x26;
    pub const PREFETCH_BASE_UPPER: u16 = 0x28;
    pub const PREFETCH_LIMIT_UPPER: u16 = 0x2c;
    pub const SUBSYSTEM_VENDOR: u16 = 0x2c;
    pub const SUBSYSTEM: u16 = 0x2e;
    pub const CAPABILITIES: u16 = 0x34;
    pub const INTERRUPT_LINE: u16 = 0x3c;
    pub const INTERRUPT_PIN: u16 = 0x3d;
    pub const BRIDGE_CONTROL: u16 = 0x3e;
}

/// Bits of the command register.
#[allow(missing_docs)]
pub mod command {
    pub const MEMORY_SPACE: u16 = 1 << 1;
    pub const BUS_MASTER: u16 = 1 << 2;
    pub const INTX_DISABLE: u16 = 1 << 10;
}

/// Capability IDs (PCI Code and ID Assignment 1.11).
#[allow(missing_docs)]
pub mod capability {
    pub const POWER_MANAGEMENT: u8 = 0x01;
    pub const VITAL_PRODUCT_DATA: u8 = 0x03;
    pub const MSI: u8 = 0x05;
    pub const VENDOR: u8 = 0x09;
    pub const MSIX: u8 = 0x11;
    pub const PCIE: u8 = 0x10;
    pub const EXT_ERROR_REPORTING: u16 = 0x0001;
    pub const EXT_SERIAL_NUMBER: u16 = 0x0003;
    pub const EXT_VENDOR_SPECIFIC: u16 = 0x000b;
}

const SIZE: usize = 4096;
const FIRST_CAPABILITY: u16 = 0x40;
const FIRST_EXTENDED: u16 = 0x100;

/// 4 KiB of configuration space.
#[derive(Clone, Debug)]
pub struct ConfigSpace {
    value: Box<[u8; SIZE]>,
    writable: Box<[u8; SIZE]>,
    rw1c: Box<[u8; SIZE]>,
    next_capability: u16,
    last_link: u16,
    last_extended: Option<u16>,
    next_extended: u16,
}

impl Default for ConfigSpace {
    fn default() -> Self {
        Self {
            value: Box::new([0; SIZE]),
            writable: Box::new([0; SIZE]),
            rw1c: Box::new([0; SIZE]),
            next_capability: FIRST_CAPABILITY,
            last_link: register::CAPABILITIES,
            last_extended: None,
            next_extended: FIRST_EXTENDED,
        }
    }
}

impl ConfigSpace {
    /// Reads one byte.
    pub fn u8(&self, at: u16) -> u8 {
        self.value[usize::from(at)]
    }

    /// Reads two bytes.
    pub fn u16(&self, at: u16) -> u16 {
        u16::from_le_bytes([self.u8(at), self.u8(at + 1)])
    }

    /// Reads four bytes.
    pub fn u32(&self, at: u16) -> u32 {
        u32::from(self.u16(at)) | u32::from(self.u16(at + 2)) << 16
    }

    /// Sets bytes as the hardware does, without access rules.
    pub fn set(&mut self, at: u16, bytes: &[u8]) {
        let at = usize::from(at);
        self.value[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Sets two bytes as the hardware does.
    pub fn set_u16(&mut self, at: u16, value: u16) {
        self.set(at, &value.to_le_bytes());
    }

    /// Sets four bytes as the hardware does.
    pub fn set_u32(&mut self, at: u16, value: u32) {
        self.set(at, &value.to_le_bytes());
    }

    /// Makes the bits of `mask` writable by software (RW).
    pub fn make_rw(&mut self, at: u16, mask: &[u8]) {
        let at = usize::from(at);
        self.writable[at..at + mask.len()].copy_from_slice(mask);
    }

    /// Lets software clear the bits of `mask` by writing ones (RW1C).
    pub fn make_rw1c(&mut self, at: u16, mask: &[u8]) {
        let at = usize::from(at);
        self.rw1c[at..at + mask.len()].copy_from_slice(mask);
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.value[..]
    }

    /// Sets all bytes; `false` if there are more or fewer.
    pub fn set_bytes(&mut self, bytes: &[u8]) -> bool {
        let fits = bytes.len() == SIZE;
        if fits {
            self.value.copy_from_slice(bytes);
        }
        fits
    }

    /// A software read of the double word at `at`.
    pub fn read(&self, at: u16) -> u32 {
        self.u32(at & 0xffc)
    }

    /// A software write of the double word at `at`, with byte enables.
    pub fn write(&mut self, at: u16, enables: u8, value: u32) {
        for (i, byte) in value.to_le_bytes().into_iter().enumerate() {
            if enables >> i & 1 == 0 {
                continue;
            }
            let at = usize::from(at & 0xffc) + i;
            let mask = self.writable[at];
            let kept = self.value[at] & !mask & !(byte & self.rw1c[at]);
            self.value[at] = kept | byte & mask;
        }
    }

    /// Sets the byte offset of the next capability, a multiple of 4.
    pub fn place_next_capability(&mut self, at: u16) {
        self.next_capability = at;
    }

    /// Appends a capability of `length` bytes to the list; all bytes except the header are 0.
    /// Returns the offset.
    pub fn add_capability(&mut self, id: u8, length: u16) -> u16 {
        let at = self.next_capability;
        assert!(at + length <= FIRST_EXTENDED, "no room for capability {id:#x}");
        self.set(self.last_link, &[at as u8]);
        self.set(at, &[id, 0]);
        self.last_link = at + 1;
        self.next_capability = (at + length).next_multiple_of(4);
        let status = self.u16(register::STATUS) | 1 << 4;
        self.set_u16(register::STATUS, status);
        at
    }

    /// Appends an extended capability of `length` bytes, header included. Returns the offset.
    pub fn add_extended(&mut self, id: u16, version: u8, length: u16) -> u16 {
        let at = self.next_extended;
        assert!(usize::from(at + length) <= SIZE, "no room for extended capability {id:#x}");
        if let Some(last) = self.last_extended {
            let header = self.u32(last) | u32::from(at) << 20;
            self.set_u32(last, header);
        }
        self.set_u32(at, u32::from(id) | u32::from(version) << 16);
        self.last_extended = Some(at);
        self.next_extended = (at + length).next_multiple_of(4);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_rules_hold_bit_by_bit() {
        let mut config = ConfigSpace::default();
        config.set_u32(0x40, 0xff00_00ff);
        config.make_rw(0x40, &[0x0f, 0, 0, 0]);
        config.make_rw1c(0x40, &[0, 0, 0, 0x81]);
        config.write(0x40, 0xf, 0x0100_ff05);
        assert_eq!(config.read(0x40), 0xfe00_00f5);
        config.write(0x40, 0b0001, 0xffff_ff0a);
        assert_eq!(config.read(0x42), 0xfe00_00fa, "only enabled bytes, whole double words");
    }

    #[test]
    fn capabilities_are_linked() {
        let mut config = ConfigSpace::default();
        let first = config.add_capability(1, 8);
        let second = config.add_capability(0x10, 0x3c);
        assert_eq!((config.u8(0x34), config.u8(first + 1)), (first as u8, second as u8));
        assert_eq!(config.u8(second + 1), 0);
        assert_eq!(config.u16(register::STATUS) & 0x10, 0x10);
        let a = config.add_extended(3, 1, 12);
        let b = config.add_extended(1, 2, 0x2c);
        assert_eq!((a, config.u32(a)), (0x100, 0x10c1_0003));
        assert_eq!(config.u32(b), 0x0002_0001);
    }
}
