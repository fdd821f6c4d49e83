//! The BAR registers of a function, which the client emulates. The sizes are the sizes of the
//! server's regions. QEMU (`hw/vfio/pci.c`) and the vfio driver of Linux emulate BAR registers too.

use pcie::config::register;
use std::ops::Range;

/// Byte offsets of the BAR registers in configuration space.
const REGISTERS: Range<u16> = register::BAR0..register::BAR0 + 24;
/// The bit of a BAR of I/O ports (PCI Express Base 4.0, section 7.5.1.2.1). Such BARs are not used.
const IO: u32 = 1;
/// The bit of a 64-bit BAR, which also uses the next register.
const WIDE: u32 = 4;
/// The bits of a BAR register below the address bits.
const FLAGS: u32 = 0xf;

/// The six BAR registers.
#[derive(Clone, Debug, Default)]
pub(super) struct Bars {
    values: [u32; 6],
    /// Bits that can be written.
    masks: [u32; 6],
    sizes: [u64; 6],
    wide: [bool; 6],
}

impl Bars {
    /// Creates the registers. `sizes` are the sizes of the regions in bytes (powers of two, 0 for
    /// an absent BAR); `registers` are the values of the function's own registers.
    pub(super) fn new(sizes: [u64; 6], registers: [u32; 6]) -> Self {
        let mut bars = Self::default();
        for (index, (size, register)) in sizes.into_iter().zip(registers).enumerate() {
            // The upper half of a BAR has no region of its own.
            if size == 0 || register & IO != 0 || index > 0 && bars.wide[index - 1] {
                continue;
            }
            let mask = !(size - 1);
            bars.wide[index] = register & WIDE != 0 && index < 5;
            bars.sizes[index] = size;
            bars.masks[index] = mask as u32 & !FLAGS;
            bars.values[index] = register & FLAGS;
            if bars.wide[index] {
                bars.masks[index + 1] = (mask >> 32) as u32;
            }
        }
        bars
    }

    /// The register that contains byte `offset` of configuration space: its index and the shift of
    /// the byte in bits. `None` if the byte is in no BAR register.
    fn register(offset: u16) -> Option<(usize, u32)> {
        let at = offset.checked_sub(REGISTERS.start).filter(|_| offset < REGISTERS.end)?;
        Some((usize::from(at / 4), u32::from(at % 4) * 8))
    }

    /// The value of the bytes from `offset` to the end of the double word; `None` if the bytes are
    /// not in a BAR register.
    pub(super) fn read(&self, offset: u16) -> Option<u32> {
        Self::register(offset).map(|(index, shift)| self.values[index] >> shift)
    }

    /// Writes bytes within a double word of configuration space; returns whether they are in a BAR
    /// register.
    pub(super) fn write(&mut self, offset: u16, size: u8, value: u32) -> bool {
        let Some((index, shift)) = Self::register(offset) else { return false };
        let written = (u64::MAX >> (64 - 8 * u32::from(size)) << shift) as u32 & self.masks[index];
        let place = &mut self.values[index];
        *place = *place & !written | value << shift & written;
        true
    }

    /// The BAR that contains all `size` bytes at `address`, and the offset of the first byte in the
    /// BAR; `None` if no BAR contains them.
    pub(super) fn find(&self, address: u64, size: u8) -> Option<(u8, u64)> {
        (0..6).find_map(|index| {
            let upper = if self.wide[index] { self.values[index + 1] } else { 0 };
            let start = u64::from(upper) << 32 | u64::from(self.values[index] & !FLAGS);
            let offset = address.checked_sub(start)?;
            let end = offset.checked_add(u64::from(size))?;
            (end <= self.sizes[index]).then_some((index as u8, offset))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_registers_return_sizes_and_resolve_addresses() {
        // BAR 0: 16 KiB, 64 bits; BAR 2: 4 KiB, 32 bits; BAR 3: I/O; BAR 4: none.
        let sizes = [0x4000, 0, 0x1000, 0x100, 0, 0];
        let mut bars = Bars::new(sizes, [4, 0, 0, 1, 0, 0]);
        for at in (0x10..0x28).step_by(4) {
            assert!(bars.write(at, 4, u32::MAX));
        }
        let read = |bars: &Bars| [0x10, 0x14, 0x18, 0x1c, 0x20].map(|at| bars.read(at).unwrap());
        assert_eq!(read(&bars), [0xffff_c004, 0xffff_ffff, 0xffff_f000, 0, 0]);
        assert!(bars.write(0x10, 4, 0xe000_0000) && bars.write(0x14, 4, 1));
        assert!(bars.write(0x1a, 2, 0xe123) && bars.write(0x19, 1, 0x45));
        assert_eq!(read(&bars)[..3], [0xe000_0004, 1, 0xe123_4000]);
        assert_eq!(bars.read(0x12), Some(0xe000), "the upper half");
        assert_eq!(bars.find(0x1_e000_3ff8, 8), Some((0, 0x3ff8)));
        assert_eq!(bars.find(0x1_e000_3ffc, 8), None, "across its end");
        assert_eq!(bars.find(0xe123_4004, 4), Some((2, 4)));
        assert_eq!(bars.find(0xe000_0000, 4), None);
        assert!(!bars.write(0x28, 4, 0) && !bars.write(0x0c, 4, 0));
        assert_eq!((bars.read(0x0e), bars.read(0x28)), (None, None));
    }
}
