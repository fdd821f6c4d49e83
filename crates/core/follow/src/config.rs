//! A function's configuration space, as far as it is known from the requests of host software.

use pcie::config::{capability, register};
use std::ops::Range;

/// Class code of NVMe I/O controllers (NVM Express 1.4, section 2.1.5): interface, subclass, base
/// class.
const CLASS_NVME: [u8; 3] = [2, 8, 1];
/// Bytes that are kept: header and capabilities.
const BYTES: usize = 256;

/// A function's registers, with the values that reads returned. Writes of host software change only
/// BARs and the bus numbers of a bridge.
#[derive(Clone, Debug)]
pub struct ConfigShadow {
    value: [u8; BYTES],
    known: [bool; BYTES],
    bars: [Bar; 6],
    found: Found,
}

/// The address of a BAR, and the length in bytes if the BAR was sized.
type BarPlace = (u64, Option<u64>);

/// Values derived from the registers, stored because every TLP needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    header_type: Option<u8>,
    nvme: Option<bool>,
    bars: [Option<BarPlace>; 6],
    msix_table: Option<Range<u64>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bar {
    value: u32,
    /// Type bits (3:0), known only from reads.
    kind: u32,
    /// The value read after all ones were written.
    mask: Option<u32>,
    /// Software wrote all ones, and no address since.
    sizing: bool,
    /// Software wrote only a part of the register: the address is not known.
    torn: bool,
}

impl Default for ConfigShadow {
    fn default() -> Self {
        Self {
            value: [0; BYTES],
            known: [false; BYTES],
            bars: [Bar::default(); 6],
            found: Found::default(),
        }
    }
}

/// The number of the BAR that contains a register.
fn bar_at(register: u16) -> Option<usize> {
    (0x10..0x28).contains(&register).then(|| usize::from(register - register::BAR0) / 4)
}

impl ConfigShadow {
    /// Handles a read of a double word's enabled bytes. Returns whether the function's kind or a
    /// BAR's place has changed.
    pub fn read(&mut self, register: u16, enables: u8, dword: u32) -> bool {
        self.store(register & 0xffc, enables, dword);
        if let Some(index) = bar_at(register)
            && enables == 0xf
        {
            let bar = &mut self.bars[index];
            bar.kind = dword & 0xf;
            match bar.sizing {
                true => bar.mask = Some(dword),
                false => (bar.value, bar.torn) = (dword, false),
            }
        }
        self.find()
    }

    /// Handles a write of a double word's enabled bytes.
    pub fn write(&mut self, register: u16, enables: u8, dword: u32) {
        if self.header_type() != Some(0) && register & 0xffc == register::PRIMARY_BUS {
            self.store(register & 0xffc, enables, dword);
        }
        if let Some(index) = bar_at(register) {
            let (bar, whole) = (&mut self.bars[index], enables == 0xf);
            bar.torn = !whole;
            bar.sizing = whole && dword == !0;
            bar.value = if bar.sizing { 0 } else { dword };
            self.find();
        }
    }

    fn store(&mut self, at: u16, enables: u8, dword: u32) {
        let Some(place) = self.value.get_mut(usize::from(at)..usize::from(at) + 4) else { return };
        for (i, byte) in dword.to_le_bytes().into_iter().enumerate() {
            if enables >> i & 1 != 0 {
                place[i] = byte;
                self.known[usize::from(at) + i] = true;
            }
        }
    }

    /// Derives [`Found`] from the registers. Returns whether a value has changed.
    fn find(&mut self) -> bool {
        let header_type = self.byte(register::HEADER_TYPE.into()).map(|header| header & 0x7f);
        let class = self.bytes(usize::from(register::REVISION) + 1);
        let nvme = class.map(|class: [u8; 3]| class == CLASS_NVME);
        let nvme = if header_type == Some(1) { Some(false) } else { nvme };
        let bars = std::array::from_fn(|index| self.find_bar(index));
        let msix_table = self.find_msix_table(&bars);
        let found = Found { header_type, nvme, bars, msix_table };
        let changed = found != self.found;
        self.found = found;
        changed
    }

    fn byte(&self, at: usize) -> Option<u8> {
        (*self.known.get(at)?).then(|| self.value[at])
    }

    fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = self.byte(at + i)?;
        }
        Some(bytes)
    }

    /// The header type, if it was read: 0 for endpoints, 1 for bridges.
    pub fn header_type(&self) -> Option<u8> {
        self.found.header_type
    }

    /// Whether the header type is that of a bridge.
    pub fn is_bridge(&self) -> bool {
        self.header_type() == Some(1)
    }

    /// Whether the function is an NVMe controller; `None` before the class was read.
    pub fn is_nvme(&self) -> Option<bool> {
        self.found.nvme
    }

    /// The secondary and the subordinate bus of a bridge; `None` before software sets them.
    pub fn buses(&self) -> Option<(u8, u8)> {
        let [secondary, subordinate] = self.bytes(register::SECONDARY_BUS.into())?;
        (secondary > 0).then_some((secondary, subordinate))
    }

    /// The address range of a memory BAR; `None` if the address is not known. For a BAR that
    /// software has not sized, `presumed` is the length in bytes; with `None` there is no range.
    pub fn bar(&self, index: usize, presumed: Option<u64>) -> Option<Range<u64>> {
        let (base, size) = self.found.bars.get(index).copied().flatten()?;
        Some(base..base.saturating_add(size.or(presumed)?))
    }

    fn find_bar(&self, index: usize) -> Option<BarPlace> {
        let low = self.bars.get(index)?;
        // Bit 0: I/O space. Bits 2:1 are 10b: 64 bits wide (PCIe Base 4.0, section 7.5.1.2.1).
        let wide = low.kind & 6 == 4;
        let high = if wide { *self.bars.get(index + 1)? } else { Bar::default() };
        let placed = |bar: &Bar| !bar.sizing && !bar.torn;
        let base = u64::from(high.value) << 32 | u64::from(low.value & !0xf);
        if low.kind & 1 != 0 || !placed(low) || !placed(&high) || base == 0 {
            return None;
        }
        let size = match low.mask.map(|mask| mask & !0xf) {
            None => None,
            // The mask in the upper half gives sizes of 4 GiB and more.
            Some(0) => high.mask.filter(|high| wide && *high != 0).map(|high| {
                let mask = u64::from(high) << 32;
                (!mask).wrapping_add(1)
            }),
            Some(low) => Some(u64::from((!low).wrapping_add(1))),
        };
        Some((base, size))
    }

    /// Byte offset of the capability with this ID; `None` if it is not known.
    pub fn capability(&self, id: u8) -> Option<usize> {
        let mut at = usize::from(self.byte(register::CAPABILITIES.into())? & 0xfc);
        // At most 48 capabilities fit the space: a longer list is circular.
        for _ in 0..48 {
            if at < 0x40 {
                return None;
            }
            if self.byte(at)? == id {
                return Some(at);
            }
            at = usize::from(self.byte(at + 1)? & 0xfc);
        }
        None
    }

    /// The address range of the MSI-X table (PCIe Base 4.0, section 7.7.2.2); `None` if it is not
    /// known.
    pub fn msix_table(&self) -> Option<Range<u64>> {
        self.found.msix_table.clone()
    }

    fn find_msix_table(&self, bars: &[Option<BarPlace>]) -> Option<Range<u64>> {
        let at = self.capability(capability::MSIX)?;
        let vectors = u64::from(u16::from_le_bytes(self.bytes(at + 2)?) & 0x7ff) + 1;
        let table = u32::from_le_bytes(self.bytes(at + 4)?);
        let (base, _) = bars.get(table as usize & 7).copied().flatten()?;
        let start = base.checked_add(u64::from(table & !7))?;
        Some(start..start.saturating_add(vectors * 16))
    }

    /// Whether a write starts a function level reset: bit 15 of Device Control (section 7.5.3.4).
    pub fn asks_for_reset(&self, register: u16, enables: u8, dword: u32) -> bool {
        let control = self.capability(capability::PCIE).map(|at| at + 8);
        control == Some(usize::from(register)) && enables & 2 != 0 && dword & 1 << 15 != 0
    }

    /// Whether a write sets Secondary Bus Reset: bit 6 of Bridge Control (section 7.5.1.3.13).
    pub fn asks_for_bus_reset(&self, register: u16, enables: u8, dword: u32) -> bool {
        let control = register == register::INTERRUPT_LINE && enables & 4 != 0;
        self.is_bridge() && control && dword & 1 << 22 != 0
    }

    /// Sets the registers that software wrote to their values after a reset.
    pub fn reset(&mut self) {
        for bar in &mut self.bars {
            (bar.value, bar.sizing, bar.torn) = (0, false, false);
        }
        self.find();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A controller with 16 KiB of registers at 1_e000_0000h.
    fn controller() -> ConfigShadow {
        let mut shadow = ConfigShadow::default();
        shadow.read(0x08, 0xf, 0x0108_0201);
        shadow.read(0x0c, 4, 0);
        for (at, mask) in [(0x10, 0xffff_c004), (0x14, 0xffff_ffff)] {
            shadow.write(at, 0xf, !0);
            shadow.read(at, 0xf, mask);
        }
        shadow.write(0x10, 0xf, 0xe000_0004);
        shadow.write(0x14, 0xf, 1);
        shadow
    }

    #[test]
    fn bar_is_where_software_put_it_after_sizing() {
        let mut shadow = controller();
        assert_eq!(shadow.bar(0, None), Some(0x1_e000_0000..0x1_e000_4000));
        shadow.write(0x10, 0xf, !0);
        assert_eq!(shadow.bar(0, None), None, "it is being sized");
        shadow.write(0x10, 0xf, 0xd000_0000);
        assert_eq!(shadow.bar(0, None), Some(0x1_d000_0000..0x1_d000_4000));
        shadow.write(0x10, 0b11, 0xd000_8000);
        assert_eq!(shadow.bar(0, None), None, "one half was written");
        shadow.read(0x10, 0xf, 0xe000_0000);
        assert_eq!(shadow.bar(0, None), Some(0xe000_0000..0xe000_4000), "no 64-bit BAR");
        shadow.reset();
        assert_eq!(shadow.bar(0, None), None);
    }

    #[test]
    fn size_is_presumed_only_on_request() {
        let mut shadow = ConfigShadow::default();
        shadow.read(0x10, 0xf, 0xe000_0000);
        assert_eq!(shadow.bar(0, None), None);
        assert_eq!(shadow.bar(0, Some(0x4000)), Some(0xe000_0000..0xe000_4000));
        for (at, mask) in [(0x10, 4), (0x14, 0xffff_fffe)] {
            shadow.write(at, 0xf, !0);
            shadow.read(at, 0xf, mask);
            shadow.write(at, 0xf, at as u32 & 4);
        }
        assert_eq!(shadow.bar(0, None), Some(0x4_0000_0000..0x6_0000_0000), "8 GiB");
    }

    #[test]
    fn class_and_header_tell_what_a_function_is() {
        assert_eq!(ConfigShadow::default().is_nvme(), None);
        let mut shadow = controller();
        assert_eq!((shadow.is_nvme(), shadow.header_type()), (Some(true), Some(0)));
        shadow.read(0x08, 0b1110, 0x0108_0101);
        assert_eq!(shadow.is_nvme(), Some(false), "not NVM Express");
        shadow.write(0x08, 0xf, 0x0108_0201);
        assert_eq!(shadow.is_nvme(), Some(false), "nothing writes the class");
        let mut bridge = ConfigShadow::default();
        bridge.read(0x0c, 4, 0x81_0000);
        assert_eq!((bridge.is_bridge(), bridge.is_nvme()), (true, Some(false)));
        bridge.write(0x18, 0xf, 0x0005_0000);
        assert_eq!(bridge.buses(), None);
        bridge.write(0x18, 0b10, 0x0300);
        assert_eq!(bridge.buses(), Some((3, 5)));
    }

    #[test]
    fn msix_table_is_in_its_bar() {
        let mut shadow = ConfigShadow::default();
        shadow.read(0x10, 0xf, 0xe000_0000);
        shadow.read(0x34, 1, 0x40);
        shadow.read(0x40, 0xf, 0x0040_0011);
        shadow.read(0x44, 0xf, 0x2000);
        let table = Some(0xe000_2000..0xe000_2000 + 65 * 16);
        assert_eq!(shadow.msix_table(), table);
        shadow.write(0x40, 0b1100, 0x8000_0000);
        assert_eq!(shadow.msix_table(), table, "enabling MSI-X does not change its size");
    }
}
