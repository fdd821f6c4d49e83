//! The configuration space of a function in the place of another program's device.
//!
//! The function itself has the header, BARs, power management, MSI-X and the PCI Express capability,
//! which a conventional PCI device lacks. Vendor-specific capabilities, and registers outside of all
//! capabilities, belong to the device. Other capabilities are hidden: what they control, such as MSI
//! or address translation, would bypass the function.

use super::layout::{Bar, Layout, MsixPlace, Parts};
use crate::config::{self, ConfigSpace, PcieCapability, PcieKind, capability, register};
use std::ops::Range;

/// Bytes of conventional configuration space.
const SIZE: usize = 256;
/// The first byte after the header.
const HEADER: u16 = 0x40;
/// Most capabilities in [`SIZE`] bytes.
const MOST: usize = 48;

#[cfg(test)]
mod tests;

/// What a foreign device has in its first 256 bytes of configuration space after a reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    image: Box<[u8; SIZE]>,
    bars: [u64; 6],
    /// Bytes that belong to the device.
    owned: Box<[bool; SIZE]>,
    /// The visible capabilities, in the order of the list.
    shown: Vec<(u16, u8)>,
}

/// Why a device cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForeignError {
    /// The header is not of type 0 (a bridge, for example). Has the header type.
    #[error("header type {0:#04x}: expected 0x00 (not a bridge)")]
    HeaderType(u8),
    /// The list of capabilities is a loop, or leaves configuration space.
    #[error("invalid list of capabilities")]
    Capabilities,
    /// The table or the pending bits of MSI-X are outside of their BAR.
    #[error("MSI-X outside of its BAR")]
    Msix,
    /// No room for the PCI Express capability, which has 60 bytes.
    #[error("no room for the PCI Express capability in configuration space")]
    NoRoom,
}

impl Foreign {
    /// A device with this configuration space and these sizes of its BARs in bytes, powers of two, 0
    /// for an absent one. BARs of I/O ports are not shown.
    ///
    /// # Errors
    /// If the device cannot be shown.
    pub fn new(image: [u8; SIZE], bars: [u64; 6]) -> Result<Self, ForeignError> {
        let kind = image[usize::from(register::HEADER_TYPE)] & 0x7f;
        if kind != 0 {
            return Err(ForeignError::HeaderType(kind));
        }
        let all = capabilities(&image)?;
        let owned = Box::new(std::array::from_fn(|at| at >= usize::from(HEADER)));
        let shown = all.iter().copied().filter(|(_, id)| is_own(*id) || is_passed_on(*id));
        let mut foreign = Self { image: image.into(), bars, owned, shown: shown.collect() };
        for (at, id) in &all {
            let length = if is_passed_on(*id) { 2 } else { length(*id) };
            foreign.keep(*at..*at + length);
        }
        if !all.iter().any(|(_, id)| *id == capability::PCIE) {
            let at = foreign.free(&all, length(capability::PCIE)).ok_or(ForeignError::NoRoom)?;
            foreign.keep(at..at + length(capability::PCIE));
            foreign.shown.push((at, capability::PCIE));
        }
        let Parts { layout, .. } = foreign.parts(128);
        let inside = |(bar, bytes): &(u8, Range<u64>)| {
            layout.bars.get(usize::from(*bar)).is_some_and(|bar| bytes.end <= bar.size)
        };
        match layout.msix {
            Some(msix) if !(inside(&msix.table) && inside(&msix.pending)) => {
                Err(ForeignError::Msix)
            }
            _ => Ok(foreign),
        }
    }

    /// Whether the byte belongs to the device.
    pub(super) fn owns(&self, at: u16) -> bool {
        self.owned.get(usize::from(at)).copied().unwrap_or(false)
    }

    /// Whether a byte of the double word at `at` belongs to the device.
    pub(super) fn owns_part_of(&self, at: u16) -> bool {
        (at..at + 4).any(|at| self.owns(at))
    }

    /// Takes bytes from the device.
    fn keep(&mut self, bytes: Range<u16>) {
        bytes.for_each(|at| self.owned[usize::from(at)] = false);
    }

    /// The place of `length` bytes that no capability has and that are 0.
    fn free(&self, all: &[(u16, u8)], length: u16) -> Option<u16> {
        let ends = |(at, id): &(u16, u8)| (*at, *at + self::length_in(&self.image, *at, *id));
        let taken: Vec<_> = all.iter().map(ends).collect();
        (HEADER..=SIZE as u16 - length).step_by(4).find(|at| {
            let end = at + length;
            taken.iter().all(|(from, to)| end <= *from || to <= at)
                && self.image[usize::from(*at)..usize::from(end)].iter().all(|byte| *byte == 0)
        })
    }

    fn u16(&self, at: u16) -> u16 {
        let at = usize::from(at);
        u16::from_le_bytes([self.image[at], self.image[at + 1]])
    }

    fn u32(&self, at: u16) -> u32 {
        u32::from(self.u16(at)) | u32::from(self.u16(at + 2)) << 16
    }

    /// The configuration space after power-on, for payloads of up to `max_payload` bytes.
    pub(super) fn parts(&self, max_payload: usize) -> Parts {
        let mut config = ConfigSpace::default();
        let mut layout = Layout { bars: self.bars(), msix: None };
        let id = usize::from(register::VENDOR)..usize::from(register::COMMAND);
        let class = usize::from(register::REVISION)..usize::from(register::REVISION) + 4;
        let subsystem =
            usize::from(register::SUBSYSTEM_VENDOR)..usize::from(register::SUBSYSTEM) + 2;
        for bytes in [id, class, subsystem] {
            config.set(bytes.start as u16, &self.image[bytes]);
        }
        // The function sends INTA only.
        let pin = self.image[usize::from(register::INTERRUPT_PIN)].min(1);
        config.set(register::INTERRUPT_PIN, &[pin]);
        config.make_rw(register::COMMAND, &[0x46, 0x05]);
        config.make_rw(register::INTERRUPT_LINE, &[0xff]);
        for (number, bar) in layout.bars.iter().enumerate().filter(|(_, bar)| bar.size > 0) {
            let at = register::BAR0 + 4 * number as u16;
            let prefetchable = self.u32(at) & 8;
            config.set_u32(at, prefetchable | if bar.wide { 4 } else { 0 });
        }
        layout.size_bars(&mut config);
        let mut pcie = None;
        for (at, id) in &self.shown {
            config.place_next_capability(*at);
            match *id {
                capability::POWER_MANAGEMENT => _ = config::add_power_management(&mut config),
                capability::MSIX => layout.msix = Some(self.add_msix(&mut config, *at)),
                capability::PCIE => {
                    pcie = Some(PcieCapability::add(&mut config, PcieKind::Endpoint, max_payload));
                }
                id => _ = config.add_capability(id, 2),
            }
        }
        Parts { config, layout, pcie: pcie.expect("every device has or gets the capability") }
    }

    fn bars(&self) -> [Bar; 6] {
        let mut bars = [Bar::default(); 6];
        for number in 0..6 {
            let flags = self.u32(register::BAR0 + 4 * number as u16);
            let is_upper = number > 0 && bars[number - 1].wide;
            if flags & 1 == 0 && !is_upper {
                let wide = flags & 4 != 0 && number < 5;
                bars[number] = Bar { size: self.bars[number], wide };
            }
        }
        bars
    }

    fn add_msix(&self, config: &mut ConfigSpace, at: u16) -> MsixPlace {
        let vectors = (self.u16(at + 2) & 0x7ff) + 1;
        let [table, pending] = [self.u32(at + 4), self.u32(at + 8)];
        let capability = config::add_msix(config, vectors, table, pending);
        let place = |register: u32, bytes: u64| {
            let start = u64::from(register & !7);
            ((register & 7) as u8, start..start + bytes)
        };
        let count = u64::from(vectors);
        let pending = place(pending, count.div_ceil(64) * 8);
        MsixPlace { capability, vectors, table: place(table, count * 16), pending }
    }
}

/// Whether the function itself has the capability.
fn is_own(id: u8) -> bool {
    [capability::POWER_MANAGEMENT, capability::MSIX, capability::PCIE].contains(&id)
}

/// Whether the device has the capability, and the function passes accesses on.
fn is_passed_on(id: u8) -> bool {
    [capability::VITAL_PRODUCT_DATA, capability::VENDOR].contains(&id)
}

/// Length of a capability of the function, or of a hidden one, in bytes. Of unknown ones, the header.
fn length(id: u8) -> u16 {
    match id {
        capability::POWER_MANAGEMENT => 8,
        capability::MSIX => 12,
        capability::PCIE => 60,
        capability::MSI => 24,
        _ => 2,
    }
}

/// Length of a capability of the device in bytes.
fn length_in(image: &[u8; SIZE], at: u16, id: u8) -> u16 {
    match id {
        capability::VENDOR => u16::from(image[usize::from(at) + 2]),
        capability::VITAL_PRODUCT_DATA => 8,
        id => length(id),
    }
}

/// The capabilities of a device: byte offset and ID.
fn capabilities(image: &[u8; SIZE]) -> Result<Vec<(u16, u8)>, ForeignError> {
    let mut found = Vec::new();
    // Status register, bit 4: there is a list.
    let mut next = match image[usize::from(register::STATUS)] & 1 << 4 {
        0 => 0,
        _ => image[usize::from(register::CAPABILITIES)] & 0xfc,
    };
    while next != 0 {
        let at = u16::from(next);
        let id = image[usize::from(next)];
        let end = at + length_in(image, at, id).max(2);
        let overlaps = |(other, kind): &(u16, u8)| {
            at < *other + length_in(image, *other, *kind) && *other < end
        };
        if at < HEADER || end > SIZE as u16 || found.len() == MOST || found.iter().any(overlaps) {
            return Err(ForeignError::Capabilities);
        }
        found.push((at, id));
        next = image[usize::from(next) + 1] & 0xfc;
    }
    Ok(found)
}
