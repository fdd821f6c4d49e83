//! A shadow of a function's configuration space, from the requests seen.

use std::ops::Range;

/// Presumed size of a BAR that nobody sized: registers, doorbells of 64 queues and
/// an MSI-X table fit.
const PRESUMED_BAR: u64 = 0x4000;

/// NVMe I/O controllers (NVM Express 1.4, section 2.1.5).
const CLASS_NVME: [u8; 3] = [1, 8, 2];

/// A shadow of the first 256 bytes.
#[derive(Clone, Debug)]
pub(super) struct Shadow {
    value: [u8; 256],
    known: [bool; 256],
    bars: [Bar; 6],
    found: Found,
}

/// What its registers say, kept because every TLP asks for it.
#[derive(Clone, Debug)]
struct Found {
    nvme: bool,
    bars: [Option<Range<u64>>; 6],
    msix_table: Option<Range<u64>>,
}

impl Default for Found {
    /// A function whose class nobody read is taken for an NVMe controller.
    fn default() -> Self {
        Self { nvme: true, bars: Default::default(), msix_table: None }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Bar {
    value: u32,
    /// Type bits, which only reads show.
    kind: u32,
    /// What reads as one after all ones were written.
    mask: Option<u32>,
    /// All ones were written, the address comes later.
    sizing: bool,
}

impl Default for Shadow {
    fn default() -> Self {
        Self {
            value: [0; 256],
            known: [false; 256],
            bars: [Bar::default(); 6],
            found: Found::default(),
        }
    }
}

impl Shadow {
    /// Stores a double word that was read or written at `register` under the
    /// byte enables `enables`.
    pub fn store(&mut self, register: u16, enables: u8, dword: u32, write: bool) {
        let at = usize::from(register & 0xffc);
        if at + 4 > self.value.len() {
            return;
        }
        // The size of the MSI-X table (PCIe Base 4.0, section 7.7.2.2) is
        // constant, whatever software puts there when it sets Enable.
        let constant = if write && self.capability(pcie::config::capability::MSIX) == Some(at) {
            [0xff, 0xff, 0xff, 0x07]
        } else {
            [0; 4]
        };
        for (i, byte) in dword.to_le_bytes().into_iter().enumerate() {
            if enables >> i & 1 != 0 {
                self.value[at + i] = self.value[at + i] & constant[i] | byte & !constant[i];
                self.known[at + i] = true;
            }
        }
        if (0x10..0x28).contains(&at) && enables == 0xf {
            self.store_bar((at - 0x10) / 4, dword, write);
        }
        self.find();
    }

    fn find(&mut self) {
        let class = self.bytes(0x09).map(|[interface, sub, base]: [u8; 3]| [base, sub, interface]);
        self.found.nvme = !self.is_bridge() && class.is_none_or(|class| class == CLASS_NVME);
        self.found.bars = std::array::from_fn(|index| self.find_bar(index));
        self.found.msix_table = self.find_msix_table();
    }

    fn store_bar(&mut self, index: usize, dword: u32, write: bool) {
        let bar = &mut self.bars[index];
        if write {
            bar.sizing = dword == !0;
            bar.value = if bar.sizing { 0 } else { dword };
            return;
        }
        bar.kind = dword & 0xf;
        match bar.sizing {
            true => bar.mask = Some(dword),
            false => bar.value = dword,
        }
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

    /// Whether it has a type 1 header.
    pub fn is_bridge(&self) -> bool {
        self.byte(0x0e).is_some_and(|header| header & 0x7f == 1)
    }

    /// Whether it is an NVMe controller; a function whose class nobody read is taken for one.
    pub fn is_nvme(&self) -> bool {
        self.found.nvme
    }

    /// Secondary and subordinate bus of a bridge.
    pub fn buses(&self) -> Option<(u8, u8)> {
        Some((self.byte(0x19)?, self.byte(0x1a)?))
    }

    /// The addresses of a memory BAR; `None` while it has none.
    pub fn bar(&self, index: u8) -> Option<Range<u64>> {
        self.found.bars.get(usize::from(index))?.clone()
    }

    fn find_bar(&self, index: usize) -> Option<Range<u64>> {
        let low = self.bars.get(index)?;
        let wide = low.kind & 0b110 == 0b100;
        if low.sizing || low.kind & 1 != 0 {
            return None;
        }
        let mut base = u64::from(low.value & !0xf);
        let mut mask = u64::from(low.mask.unwrap_or(0) & !0xf) | 0xffff_ffff_0000_0000;
        if wide {
            let high = self.bars.get(index + 1)?;
            if high.sizing {
                return None;
            }
            base |= u64::from(high.value) << 32;
            let high_mask = u64::from(high.mask.unwrap_or(!0)) << 32;
            mask = mask & 0xffff_ffff | high_mask;
        }
        let sized = low.mask.is_some_and(|low| low & !0xf != 0);
        let size = if sized { (!mask).wrapping_add(1) } else { PRESUMED_BAR };
        (base != 0).then(|| base..base.saturating_add(size))
    }

    /// Where a capability begins.
    pub fn capability(&self, id: u8) -> Option<usize> {
        let mut at = usize::from(self.byte(0x34)? & 0xfc);
        // 48 capabilities fill the space: a loop ends there.
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

    /// The addresses of the MSI-X table.
    pub fn msix_table(&self) -> Option<Range<u64>> {
        self.found.msix_table.clone()
    }

    fn find_msix_table(&self) -> Option<Range<u64>> {
        let at = self.capability(pcie::config::capability::MSIX)?;
        let vectors = u64::from(u16::from_le_bytes(self.bytes(at + 2)?) & 0x7ff) + 1;
        let table = u32::from_le_bytes(self.bytes(at + 4)?);
        let start = self.bar((table & 7) as u8)?.start.checked_add(u64::from(table & !7))?;
        Some(start..start.saturating_add(vectors * 16))
    }

    /// Whether a write of `dword` at `register` is a function level reset.
    pub fn asks_for_reset(&self, register: u16, enables: u8, dword: u32) -> bool {
        let control = self.capability(pcie::config::capability::PCIE).map(|at| at + 8);
        control == Some(usize::from(register)) && enables & 2 != 0 && dword & 1 << 15 != 0
    }

    /// Whether a write of `dword` at `register` resets the bus below.
    pub fn asks_for_bus_reset(&self, register: u16, enables: u8, dword: u32) -> bool {
        self.is_bridge() && register == 0x3c && enables & 4 != 0 && dword & 1 << 22 != 0
    }

    /// Resets what software wrote.
    pub fn reset(&mut self) {
        for bar in &mut self.bars {
            bar.value = 0;
            bar.sizing = false;
        }
        self.find();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enabling_msix_does_not_change_its_size() {
        let mut shadow = Shadow::default();
        shadow.store(0x10, 0xf, 0xe000_0000, false);
        shadow.store(0x34, 1, 0x40, false);
        shadow.store(0x40, 0xf, 0x0040_0011, false);
        shadow.store(0x44, 0xf, 0x2000, false);
        let table = Some(0xe000_2000..0xe000_2000 + 65 * 16);
        assert_eq!(shadow.msix_table(), table);
        shadow.store(0x40, 0b1100, 0x8000_0000, true);
        assert_eq!(shadow.msix_table(), table);
    }
}
