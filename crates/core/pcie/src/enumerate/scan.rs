//! Searches the buses depth first.

use super::identity::{Layout, numbers};
use super::{Bar, Device, Error, Kind, Msix, Node, Port, Settings};
use crate::config::{capability, command, register};
use crate::software::Bus;
use std::future::Future;
use std::pin::Pin;
use wire::Bdf;

/// Port types of the PCI Express capability.
const UPSTREAM: u8 = 5;

/// Bus numbers that may be assigned. Numbers above `last` are never used, because these buses may
/// belong to another part of the hierarchy.
#[derive(Debug)]
pub(super) struct Buses {
    next: u16,
    last: u8,
}

impl Buses {
    pub(super) fn new(first: u16, last: u8) -> Self {
        Self { next: first, last }
    }

    fn take(&mut self) -> Result<u8, Error> {
        let bus = u8::try_from(self.next).ok().filter(|bus| *bus <= self.last);
        self.next += 1;
        bus.ok_or(Error::Buses)
    }

    /// Reserves `count` bus numbers.
    fn keep(&mut self, count: u8) -> Result<(), Error> {
        self.next += u16::from(count);
        if self.next <= u16::from(self.last) + 1 { Ok(()) } else { Err(Error::Buses) }
    }
}

/// Examines the function at `bdf` and everything below it.
pub(super) fn function<'a>(
    bus: &'a Bus,
    bdf: Bdf,
    settings: &'a Settings,
    buses: &'a mut Buses,
) -> Pin<Box<dyn Future<Output = Result<Node, Error>> + 'a>> {
    Box::pin(async move {
        let id = bus.config_read(bdf, register::VENDOR, 4).await;
        let class = bus.config_read(bdf, register::REVISION, 4).await;
        let header = bus.config_read(bdf, register::HEADER_TYPE, 1).await & 0x7f;
        let capabilities = capabilities(bus, bdf).await;
        let find = |id| capabilities.iter().find(|(known, _)| *known == id).map(|(_, at)| *at);
        let pcie = find(capability::PCIE);
        let supported = match pcie {
            Some(at) => 128 << (bus.config_read(bdf, at + 4, 4).await & 7).min(5),
            None => 128,
        };
        let kind = if header == 1 {
            Kind::Bridge(bridge(bus, bdf, pcie, settings, buses).await?)
        } else {
            let vendor = settings.contents.then_some(id as u16);
            Kind::Endpoint(device(bus, bdf, vendor, find(capability::MSIX)).await)
        };
        Ok(Node {
            bdf,
            id: (id as u16, (id >> 16) as u16),
            class: [(class >> 24) as u8, (class >> 16) as u8, (class >> 8) as u8],
            pcie,
            capabilities,
            max_payload_supported: supported,
            max_payload: 128,
            kind,
        })
    })
}

/// The functions that answer on bus `secondary`. Buses up to `last` are available.
pub(super) async fn below(
    bus: &Bus,
    secondary: u8,
    last: u8,
    settings: &Settings,
) -> Result<Vec<Node>, Error> {
    let mut buses = Buses::new(u16::from(secondary) + 1, last);
    on_bus(bus, secondary, false, settings, &mut buses).await
}

async fn on_bus(
    bus: &Bus,
    number: u8,
    inside_switch: bool,
    settings: &Settings,
    buses: &mut Buses,
) -> Result<Vec<Node>, Error> {
    let mut found = Vec::new();
    // A link has one device below it; the bus inside a switch has up to 32.
    for device in 0..if inside_switch { 32 } else { 1 } {
        let bdf = Bdf::new(number, device, 0);
        let vendor = bus.config_read(bdf, register::VENDOR, 2).await;
        if vendor != 0xffff && vendor != 0 {
            found.push(function(bus, bdf, settings, buses).await?);
        }
    }
    Ok(found)
}

async fn bridge(
    bus: &Bus,
    bdf: Bdf,
    pcie: Option<u16>,
    settings: &Settings,
    buses: &mut Buses,
) -> Result<Port, Error> {
    let (mut port_type, mut slot, mut link_up) = (4, None, true);
    if let Some(at) = pcie {
        let flags = bus.config_read(bdf, at + 2, 2).await;
        port_type = (flags >> 4 & 0xf) as u8;
        if flags & 1 << 8 != 0 {
            slot = Some((bus.config_read(bdf, at + 0x14, 4).await >> 19) as u16);
        }
        link_up = bus.config_read(bdf, at + 0x12, 2).await & 1 << 13 != 0;
    }
    let (secondary, last) = (buses.take()?, buses.last);
    let numbers = |subordinate: u8| {
        u32::from(bdf.bus()) | u32::from(secondary) << 8 | u32::from(subordinate) << 16
    };
    bus.config_write(bdf, register::PRIMARY_BUS, 4, numbers(last)).await;
    let children = on_bus(bus, secondary, port_type == UPSTREAM, settings, buses).await?;
    if slot.is_some() {
        buses.keep(settings.hotplug_buses)?;
    }
    let subordinate = (buses.next - 1) as u8;
    bus.config_write(bdf, register::PRIMARY_BUS, 4, numbers(subordinate)).await;
    Ok(Port { port_type, slot, link_up, secondary, subordinate, window: 0..0, children })
}

/// The capability list: ID and byte offset. Ends after 48 entries, because the list may be
/// circular.
pub(super) async fn capabilities(bus: &Bus, bdf: Bdf) -> Vec<(u8, u16)> {
    let mut found = Vec::new();
    let mut at = bus.config_read(bdf, register::CAPABILITIES, 1).await as u16 & 0xfc;
    while at >= 0x40 && found.len() < 48 {
        let header = bus.config_read(bdf, at, 2).await;
        found.push((header as u8, at));
        at = (header >> 8) as u16 & 0xfc;
    }
    found
}

/// Examines an endpoint; with `vendor`, also reads its contents capability.
async fn device(bus: &Bus, bdf: Bdf, vendor: Option<u16>, msix: Option<u16>) -> Device {
    let (bars, msix) = layout(bus, bdf, msix).await;
    let (serial, contents) = numbers(bus, bdf, vendor).await;
    Device { bars, msix, serial, contents }
}

/// BARs (with address 0) and MSI-X capability of an endpoint. `msix` is the byte offset of the
/// capability.
pub(super) async fn layout(bus: &Bus, bdf: Bdf, msix: Option<u16>) -> Layout {
    let msix = match msix {
        None => None,
        Some(at) => {
            let control = bus.config_read(bdf, at + 2, 2).await;
            let table = bus.config_read(bdf, at + 4, 4).await;
            let pending = bus.config_read(bdf, at + 8, 4).await;
            let split = |word: u32| ((word & 7) as u8, word & !7);
            Some(Msix {
                capability: at,
                vectors: (control as u16 & 0x7ff) + 1,
                table: split(table),
                pending: split(pending),
            })
        }
    };
    (bars(bus, bdf).await, msix)
}

/// Determines the sizes of the memory BARs. While they are written, memory decoding is off.
async fn bars(bus: &Bus, bdf: Bdf) -> Vec<Bar> {
    let before = bus.config_read(bdf, register::COMMAND, 2).await;
    let off = before & !u32::from(command::MEMORY_SPACE);
    bus.config_write(bdf, register::COMMAND, 2, off).await;
    let mut bars = Vec::new();
    let mut index = 0u8;
    while index < 6 {
        let at = register::BAR0 + u16::from(index) * 4;
        let kept = bus.config_read(bdf, at, 4).await;
        bus.config_write(bdf, at, 4, !0).await;
        let low = bus.config_read(bdf, at, 4).await;
        bus.config_write(bdf, at, 4, kept).await;
        let (io, is_64bit) = (low & 1 != 0, low & 0b111 == 0b100);
        let mut mask = u64::from(low & !0xf) | 0xffff_ffff_0000_0000;
        if is_64bit {
            bus.config_write(bdf, at + 4, 4, !0).await;
            let high = bus.config_read(bdf, at + 4, 4).await;
            mask = u64::from(low & !0xf) | u64::from(high) << 32;
        }
        if low & !0xf != 0 && !io {
            // The lowest writable bit gives the size, even if a faulty device returns invalid bits
            // above.
            let size = 1 << mask.trailing_zeros();
            let prefetchable = low & 8 != 0;
            bars.push(Bar { index, size, is_64bit, prefetchable, address: 0 });
        }
        index += if is_64bit { 2 } else { 1 };
    }
    bars
}

/// Reads the list of extended capabilities. Ends after 64 entries, because the list may be
/// circular.
pub(super) struct Extended {
    at: u16,
    left: u8,
}

impl Extended {
    pub(super) fn new() -> Self {
        Self { at: 0x100, left: 64 }
    }

    /// The next capability: its ID and its offset.
    pub(super) async fn next(&mut self, bus: &Bus, bdf: Bdf) -> Option<(u16, u16)> {
        if self.at < 0x100 || self.left == 0 {
            return None;
        }
        self.left -= 1;
        let at = self.at;
        let header = bus.config_read(bdf, at, 4).await;
        self.at = (header >> 20) as u16 & 0xffc;
        (header != 0 && header != !0).then_some((header as u16, at))
    }
}

/// Byte offset of the first extended capability with this ID.
pub(super) async fn extended(bus: &Bus, bdf: Bdf, id: u16) -> Option<u16> {
    let mut walk = Extended::new();
    while let Some((found, at)) = walk.next(bus, bdf).await {
        if found == id {
            return Some(at);
        }
    }
    None
}
