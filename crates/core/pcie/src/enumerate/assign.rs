//! Assigns memory windows and programs registers.

use super::scan::extended;
use super::{Device, Kind, Node, Port, Settings};
use crate::config::{ErrorReporting, capability, command, register};
use crate::software::Bus;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use wire::{Bdf, Duration};

/// Granularity of bridge windows: 1 MiB.
const GRANULE: u64 = 1 << 20;

/// Why a hierarchy cannot be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// More than 255 buses, or more than are reserved for a hot-plug slot.
    #[error("no bus number is left: there are 255, or fewer below a hot-plug slot")]
    Buses,
    /// The BARs need more memory window than is available.
    #[error("the BARs need a memory window of {need:#x} bytes, but only {have:#x} are left")]
    Window {
        /// Bytes that the BARs need.
        need: u64,
        /// Number of bytes available.
        have: u64,
    },
}

/// Size and alignment in bytes that a node needs in the window of its parent.
fn need(node: &Node, settings: &Settings) -> (u64, u64) {
    match &node.kind {
        Kind::Endpoint(device) => {
            let total = device.bars.iter().fold(0u64, |sum, bar| sum.saturating_add(bar.size));
            (total, device.bars.iter().map(|bar| bar.size).max().unwrap_or(1))
        }
        Kind::Bridge(port) => {
            let kept = if port.slot.is_some() { settings.hotplug_window } else { 0 };
            let (total, align) = need_of_all(&port.children, settings);
            let align = align.max(GRANULE);
            (round_up(total.max(kept), align), align)
        }
    }
}

fn need_of_all(nodes: &[Node], settings: &Settings) -> (u64, u64) {
    let mut at = 0u64;
    let mut most = 1;
    for (size, align) in by_alignment(nodes, settings).into_iter().map(|(_, need)| need) {
        at = round_up(at, align).saturating_add(size);
        most = most.max(align);
    }
    (at, most)
}

/// Rounds up to a multiple of `align`. Saturates, because sizes come from untrusted devices.
fn round_up(value: u64, align: u64) -> u64 {
    value.checked_next_multiple_of(align).unwrap_or(u64::MAX)
}

/// The index of each node with its size and alignment, largest alignment first.
fn by_alignment(nodes: &[Node], settings: &Settings) -> Vec<(usize, (u64, u64))> {
    let mut order: Vec<_> = nodes.iter().map(|node| need(node, settings)).enumerate().collect();
    order.sort_by_key(|(_, (_, align))| std::cmp::Reverse(*align));
    order
}

/// Sets up the whole tree.
pub(super) async fn tree(bus: &Bus, root: &mut Node, settings: &Settings) -> Result<(), Error> {
    fn smallest(node: &Node) -> usize {
        let below = node.children().iter().map(smallest).min().unwrap_or(4096);
        node.max_payload_supported.min(below)
    }
    let max_payload = smallest(root).min(settings.max_payload);
    let nodes = std::slice::from_mut(root);
    below(bus, nodes, settings.window.clone(), max_payload, settings).await
}

/// Sets up `nodes`, which are all on one bus, inside `window`.
pub(super) fn below<'a>(
    bus: &'a Bus,
    nodes: &'a mut [Node],
    window: Range<u64>,
    max_payload: usize,
    settings: &'a Settings,
) -> Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>> {
    Box::pin(async move {
        let mut at = window.start;
        for (index, (size, align)) in by_alignment(nodes, settings) {
            let node = &mut nodes[index];
            at = round_up(at, align);
            let have = window.end.saturating_sub(at);
            if size > have {
                return Err(Error::Window { need: size, have });
            }
            node.max_payload = max_payload;
            let own = at..at + size;
            match &mut node.kind {
                Kind::Endpoint(device) => place_bars(device, own.start),
                Kind::Bridge(port) => port.window = own.clone(),
            }
            program(bus, node, settings).await;
            if let Kind::Bridge(port) = &mut node.kind {
                below(bus, &mut port.children, own, max_payload, settings).await?;
            }
            at += size;
        }
        Ok(())
    })
}

fn place_bars(device: &mut Device, mut at: u64) {
    device.bars.sort_by_key(|bar| std::cmp::Reverse(bar.size));
    for bar in &mut device.bars {
        at = at.next_multiple_of(bar.size);
        bar.address = at;
        at += bar.size;
    }
    device.bars.sort_by_key(|bar| bar.index);
}

/// Programs the registers of `node` after enumeration or a reset.
pub async fn program(bus: &Bus, node: &Node, settings: &Settings) {
    device_control(bus, node, settings).await;
    match &node.kind {
        Kind::Endpoint(device) => {
            for bar in &device.bars {
                let at = register::BAR0 + u16::from(bar.index) * 4;
                bus.config_write(node.bdf, at, 4, bar.address as u32).await;
                if bar.is_64bit {
                    bus.config_write(node.bdf, at + 4, 4, (bar.address >> 32) as u32).await;
                }
            }
            if settings.ecrc {
                enable_ecrc(bus, node.bdf).await;
            }
            command(bus, node.bdf, command::MEMORY_SPACE | command::INTX_DISABLE).await;
        }
        Kind::Bridge(port) => {
            window(bus, node.bdf, port).await;
            command(bus, node.bdf, command::MEMORY_SPACE | command::BUS_MASTER).await;
        }
    }
}

/// Resets a function (FLR, PCIe Base 4.0, section 6.6.2) and programs its registers again.
pub async fn reset_function(bus: &Bus, node: &Node, settings: &Settings) {
    if let Some(pcie) = node.pcie {
        bus.config_write(node.bdf, pcie + 8, 2, 1 << 15).await;
    }
    program(bus, node, settings).await;
}

/// Enables ECRC generation and checking of an endpoint, if it supports them.
async fn enable_ecrc(bus: &Bus, bdf: Bdf) {
    let Some(at) = extended(bus, bdf, capability::EXT_ERROR_REPORTING).await else { return };
    let at = at + ErrorReporting::CONTROL;
    let control = bus.config_read(bdf, at, 4).await;
    if control & ErrorReporting::ECRC_CAPABLE == ErrorReporting::ECRC_CAPABLE {
        bus.config_write(bdf, at, 4, control | ErrorReporting::ECRC_ENABLE).await;
    }
}

async fn command(bus: &Bus, bdf: Bdf, bits: u16) {
    bus.config_write(bdf, register::COMMAND, 2, u32::from(bits)).await;
}

async fn window(bus: &Bus, bdf: Bdf, port: &Port) {
    let (base, limit) = if port.window.is_empty() {
        (0xfff0, 0)
    } else {
        ((port.window.start >> 16) as u32, ((port.window.end - 1) >> 16) as u32)
    };
    bus.config_write(bdf, register::MEMORY_BASE, 4, base & 0xfff0 | (limit & 0xfff0) << 16).await;
    // No prefetchable window: base above limit.
    bus.config_write(bdf, register::PREFETCH_BASE, 4, 0x0000_fff0).await;
}

/// The value of Completion Timeout for links that may be interrupted for `outage`, and the bits of
/// ranges that offer it in Device Capabilities 2: the shortest range that begins later, at least 260 to 900
/// ms, because the memory of a guest can answer slowly (PCIe Base 4.0, section 7.5.3.16).
fn completion_timeout(outage: Duration) -> (u32, u32) {
    match outage.as_ns() / 1_000_000 {
        _ if outage == Duration::ZERO => (0b1001, 0b1100),
        0..3_000 => (0b1101, 0b1000),
        _ => (0b1110, 0b1000),
    }
}

/// Sets MPS, MRRS, and extended tags; if supported, also 10-bit tags and a completion timeout.
async fn device_control(bus: &Bus, node: &Node, settings: &Settings) {
    let Some(at) = node.pcie else { return };
    let code = |bytes: usize| bytes.clamp(128, 4096).ilog2() - 7;
    let mps = code(node.max_payload.min(node.max_payload_supported));
    let mrrs = code(settings.max_read_request);
    bus.config_write(node.bdf, at + 8, 2, 0x0910 | mps << 5 | mrrs << 12).await;
    let offers = bus.config_read(node.bdf, at + 0x24, 4).await;
    let (value, range) = completion_timeout(settings.outage);
    let timeout = if offers & range != 0 { value } else { 0 };
    let tags = if offers & 1 << 17 != 0 { 1 << 12 } else { 0 };
    bus.config_write(node.bdf, at + 0x28, 2, timeout | tags).await;
}

/// Sets or clears Bus Master Enable of an endpoint.
pub async fn enable_bus_master(bus: &Bus, bdf: Bdf, enable: bool) {
    let before = bus.config_read(bdf, register::COMMAND, 2).await;
    let bit = u32::from(command::BUS_MASTER);
    let after = if enable { before | bit } else { before & !bit };
    bus.config_write(bdf, register::COMMAND, 2, after).await;
}

/// Writes one entry of the MSI-X table: `vector` then writes `data` to the start of
/// [`MSI_WINDOW`](crate::root::MSI_WINDOW), unless it is masked. The writes are posted. No effect
/// without an MSI-X capability.
pub fn write_msix_entry(bus: &Bus, node: &Node, vector: u16, data: u32, masked: bool) {
    let Some(msix) = node.device().and_then(|device| device.msix) else { return };
    let Some(bar) = node.bar(msix.table.0) else { return };
    let at = bar.address + u64::from(msix.table.1) + u64::from(vector) * 16;
    bus.write(at, 4, crate::root::MSI_WINDOW.start);
    bus.write(at + 4, 4, 0);
    bus.write(at + 8, 4, u64::from(data));
    bus.write(at + 12, 4, u64::from(masked));
}

/// Enables or disables MSI-X. No effect without an MSI-X capability.
pub async fn set_msix(bus: &Bus, node: &Node, enable: bool) {
    let Some(msix) = node.device().and_then(|device| device.msix) else { return };
    let control = if enable { 1 << 15 } else { 0 };
    bus.config_write(node.bdf, msix.capability + 2, 2, control).await;
}

/// Makes an endpoint ready for its driver: enables bus mastering and MSI-X. `vectors` has the
/// message data of each vector.
pub async fn enable(bus: &Bus, node: &Node, vectors: impl IntoIterator<Item = (u16, u32)>) {
    enable_bus_master(bus, node.bdf, true).await;
    for (vector, data) in vectors {
        write_msix_entry(bus, node, vector, data, false);
    }
    set_msix(bus, node, true).await;
}
