//! A shadow of what matters of a function's configuration space: class, header type, BAR 0 and
//! the buses of a bridge.

use pcie::config::register;
use std::ops::{Range, RangeInclusive};

/// NVMe I/O controllers (NVM Express 1.4, section 2.1.5): base class, subclass, interface.
const CLASS_NVME: u32 = 0x01_08_02;

/// One half of BAR 0.
#[derive(Clone, Copy, Debug, Default)]
struct Half {
    value: u32,
    /// What reads as one after all ones were written.
    mask: Option<u32>,
    /// All ones were written; the address comes later.
    sizing: bool,
}

impl Half {
    fn write(&mut self, value: u32) {
        (self.sizing, self.value) = (value == !0, value);
    }

    /// Whether this told the size.
    fn read(&mut self, value: u32) -> bool {
        let told = self.sizing && self.mask != Some(value);
        if self.sizing {
            self.mask = Some(value);
        }
        told
    }
}

#[derive(Debug, Default)]
pub(super) struct Shadow {
    class: Option<u32>,
    header_type: Option<u8>,
    bar: [Half; 2],
    /// Bits 2:1 of BAR 0 are 10b: 64 bits wide (PCIe Base 4.0, section 7.5.1.2.1).
    wide: bool,
    buses: Option<(u8, u8)>,
}

impl Shadow {
    /// Takes note of what the enabled bytes of a register read as. Whether that may tell where BAR 0
    /// is.
    pub fn read(&mut self, at: u16, enables: u8, value: u32) -> bool {
        let all = |bytes: u8| enables & bytes == bytes;
        match at {
            register::REVISION if all(0b1110) => {
                let class = Some(value >> 8);
                std::mem::replace(&mut self.class, class) != class
            }
            0x0c if all(0b0100) => {
                let header_type = Some((value >> 16) as u8 & 0x7f);
                std::mem::replace(&mut self.header_type, header_type) != header_type
            }
            register::BAR0 if all(0b1111) => {
                self.wide = value >> 1 & 3 == 2;
                self.bar[0].read(value & !0xf)
            }
            0x14 if all(0b1111) => self.bar[1].read(value),
            _ => false,
        }
    }

    /// Takes note of a write of the enabled bytes.
    pub fn write(&mut self, at: u16, enables: u8, value: u32) {
        let half = match at {
            register::BAR0 => 0,
            0x14 => 1,
            _ => return,
        };
        // A BAR that is written in pieces is not followed.
        let value = if enables == 0xf { value } else { !0 };
        self.bar[half].write(if half == 0 && value != !0 { value & !0xf } else { value });
    }

    /// Whether it is known for a bridge: it has a type 1 header.
    pub fn is_bridge(&self) -> bool {
        self.header_type == Some(1)
    }

    /// Whether it is known for no bridge.
    pub fn is_endpoint(&self) -> bool {
        self.header_type == Some(0)
    }

    /// Takes note of a write of its bus numbers. Yields the buses that are others now: with another
    /// secondary bus all below, before and after; else those that it gained or lost.
    pub fn set_buses(&mut self, enables: u8, value: u32) -> Vec<RangeInclusive<u8>> {
        let [_, secondary, subordinate, _] = value.to_le_bytes();
        let before = self.buses;
        let (old_secondary, old_subordinate) = before.unwrap_or((0, 0));
        let pick = |bit: u8, new, old| if enables >> bit & 1 != 0 { new } else { old };
        let (first, last) =
            (pick(1, secondary, old_secondary), pick(2, subordinate, old_subordinate));
        self.buses = Some((first, last));
        if before.is_some() && old_secondary == first {
            let (least, most) = (last.min(old_subordinate), last.max(old_subordinate));
            return (least < most).then(|| least + 1..=most).into_iter().collect();
        }
        before.into_iter().chain(self.buses).map(|(first, last)| first..=last).collect()
    }

    /// The registers of an NVMe controller: BAR 0, once it has an address and its size is known.
    pub fn registers(&self) -> Option<Range<u64>> {
        let [low, high] = self.bar;
        if self.class != Some(CLASS_NVME) || !self.is_endpoint() || low.sizing {
            return None;
        }
        let (base, mask) = if self.wide {
            let mask = u64::from(high.mask?) << 32 | u64::from(low.mask?);
            (u64::from(high.value) << 32 | u64::from(low.value), mask)
        } else {
            (u64::from(low.value), !0 << 32 | u64::from(low.mask?))
        };
        let usable = !(self.wide && high.sizing) && base != 0 && mask != 0;
        usable.then(|| base..base.saturating_add((!mask).wrapping_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A controller with 16 KiB of registers at 1_e000_0000h.
    fn shadow() -> Shadow {
        let mut shadow = Shadow::default();
        shadow.read(register::REVISION, 0xf, 0x0108_0201);
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
    fn bar_0_is_where_software_put_it_after_sizing() {
        assert_eq!(shadow().registers(), Some(0x1_e000_0000..0x1_e000_4000));
        let mut moved = shadow();
        moved.write(0x10, 0xf, !0);
        assert_eq!(moved.registers(), None, "it is being sized");
        moved.write(0x10, 0xf, 0xd000_0000);
        assert_eq!(moved.registers(), Some(0x1_d000_0000..0x1_d000_4000));
        let mut narrow = shadow();
        narrow.read(0x10, 0xf, 0xe000_0000);
        assert_eq!(narrow.registers(), Some(0xe000_0000..0xe000_4000));
    }

    #[test]
    fn other_classes_are_not_followed() {
        let mut other = shadow();
        other.read(register::REVISION, 0xf, 0x0108_0101);
        assert_eq!(other.registers(), None, "not NVM Express");
        let mut bridge = shadow();
        bridge.read(0x0c, 4, 0x81_0000);
        assert!(bridge.is_bridge() && bridge.registers().is_none());
    }

    #[test]
    fn buses_that_are_others_afterwards() {
        let mut bridge = Shadow::default();
        assert_eq!(bridge.set_buses(0xf, 0x0005_0302), [3..=5]);
        assert_eq!(bridge.set_buses(0xf, 0x0005_0302), [], "as before");
        assert_eq!(bridge.set_buses(0b100, 0x0007_0000), [6..=7], "gained");
        assert_eq!(bridge.set_buses(0b100, 0x0004_0000), [5..=7], "lost");
        assert_eq!(bridge.set_buses(0xf, 0x0006_0402), [3..=4, 4..=6]);
    }
}
