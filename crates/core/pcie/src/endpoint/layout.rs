//! Where the BARs and MSI-X of a function are.

use super::EndpointConfig;
use crate::config::{self, ConfigSpace, PcieCapability, PcieKind, register};
use std::ops::Range;

/// BARs and MSI-X.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub bars: [Bar; 6],
    pub msix: Option<MsixPlace>,
}

/// A memory BAR.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bar {
    /// Size in bytes, a power of two; 0: there is none.
    pub size: u64,
    /// Whether it has 64 bits, and the next register.
    pub wide: bool,
}

/// The capability and the structures of MSI-X.
#[derive(Clone, Debug)]
pub(super) struct MsixPlace {
    /// Byte offset of the capability.
    pub capability: u16,
    pub vectors: u16,
    /// The BAR and the bytes of the table.
    pub table: (u8, Range<u64>),
    /// The BAR and the bytes of the pending bits.
    pub pending: (u8, Range<u64>),
}

/// The configuration space of a function after power-on.
pub(super) struct Parts {
    pub config: ConfigSpace,
    pub layout: Layout,
    pub pcie: PcieCapability,
}

impl Layout {
    /// BAR 0 with MSI-X in its upper half.
    ///
    /// # Panics
    /// As [`Endpoint::new`](super::Endpoint::new).
    pub(super) fn parts(settings: &EndpointConfig) -> Parts {
        let size = settings.bar0_size;
        assert!(size.is_power_of_two() && size >= 4096);
        assert!(u64::from(settings.vectors) * 16 <= size / 4, "MSI-X beyond BAR 0");
        let mut config = header(settings);
        let (table, pending) = (size / 2, size / 4 * 3);
        let capability =
            config::add_msix(&mut config, settings.vectors, table as u32, pending as u32);
        let pcie = PcieCapability::add(&mut config, PcieKind::Endpoint, settings.max_payload);
        let mut layout = Self::default();
        layout.bars[0] = Bar { size, wide: true };
        layout.size_bars(&mut config);
        layout.msix = Some(MsixPlace {
            capability,
            vectors: settings.vectors,
            table: (0, table..pending),
            pending: (0, pending..size),
        });
        Parts { config, layout, pcie }
    }

    pub(super) fn vectors(&self) -> u16 {
        self.msix.as_ref().map_or(0, |msix| msix.vectors)
    }

    /// Makes the address bits of the BARs writable.
    pub(super) fn size_bars(&self, config: &mut ConfigSpace) {
        for (number, bar) in self.bars.iter().enumerate().filter(|(_, bar)| bar.size > 0) {
            let mask = (!(bar.size - 1)).to_le_bytes();
            let bytes = if bar.wide { 8 } else { 4 };
            config.make_rw(register::BAR0 + 4 * number as u16, &mask[..bytes]);
        }
    }

    /// The BAR, and the offset in it, of the `length` bytes at `address`, if all are in one BAR.
    pub(super) fn find(
        &self,
        config: &ConfigSpace,
        address: u64,
        length: u64,
    ) -> Option<(u8, u64)> {
        (0..6).find_map(|number| {
            let Bar { size, wide } = self.bars[usize::from(number)];
            let at = register::BAR0 + 4 * u16::from(number);
            let upper = if wide { u64::from(config.u32(at + 4)) << 32 } else { 0 };
            let start = u64::from(config.u32(at) & !0xf) | upper;
            let offset = address.checked_sub(start)?;
            let end = offset.checked_add(length)?;
            (start != 0 && end <= size).then_some((number, offset))
        })
    }
}

/// The header of configuration space after power-on, and power management.
fn header(settings: &EndpointConfig) -> ConfigSpace {
    let mut config = ConfigSpace::default();
    config.set_u16(register::VENDOR, settings.vendor);
    config.set_u16(register::DEVICE, settings.device);
    config.make_rw(register::COMMAND, &[0x46, 0x05]);
    let [base, sub, interface] = settings.class;
    config.set(register::REVISION, &[settings.revision, interface, sub, base]);
    // 64-bit, not prefetchable.
    config.set_u32(register::BAR0, 0b100);
    config.set_u16(register::SUBSYSTEM_VENDOR, settings.subsystem.0);
    config.set_u16(register::SUBSYSTEM, settings.subsystem.1);
    config.make_rw(register::INTERRUPT_LINE, &[0xff]);
    config.set(register::INTERRUPT_PIN, &[1]);
    config::add_power_management(&mut config);
    config
}
