//! The slot's host software: identifies a function, resets it, restores settings, and splits the
//! client's accesses into requests.

use follow::Registers;
use pcie::enumerate::{self, Comparison, Identity, Node};
use pcie::software::Bus;
use wire::nvme::register::{ACQ, AQA, ASQ, CC};

/// The reason to detach if a device disappears between two steps.
pub(super) const REPLACED: &str = "the device was replaced meanwhile";

/// Settings to restore in a function that was reset.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Restore {
    /// Whether to reset the function first, because its contents count as new.
    pub reset: bool,
    /// Whether the client uses MSI-X.
    pub msix: bool,
    /// The bytes of the Command register that the client wrote.
    pub command: [Option<u8>; 2],
    /// The registers of a driver that has enabled its NVMe controller meanwhile.
    pub registers: Option<Registers>,
}

/// Restores settings in a function that was enumerated again; returns whether the function is still
/// there. Sets bus mastering last, so that the function sends nothing before.
pub(super) async fn restore(
    bus: &Bus,
    node: &Node,
    settings: &super::Settings,
    Restore { reset, msix, command, registers }: Restore,
) -> bool {
    if reset {
        enumerate::reset_function(bus, node, &settings.enumeration).await;
    }
    let Some(identity) = node.identity() else { return false };
    if !mark(bus, node, identity, settings.owner).await {
        return false;
    }
    if msix {
        set_msix(bus, node, true).await;
    }
    if let Some((bar, registers)) = node.bar(0).zip(registers) {
        // CC comes last.
        for (at, size) in [(AQA, 4), (ASQ, 8), (ACQ, 8), (CC, 4)] {
            let bytes = registers.bytes();
            let bytes = &bytes[at as usize..at as usize + size];
            write(bus, bar.address + at, bytes);
        }
    }
    // The lower byte holds Bus Master Enable (PCIe Base 4.0, section 7.5.1.1.3).
    for (index, byte) in command.into_iter().enumerate().rev() {
        if let Some(byte) = byte {
            let at = pcie::config::register::COMMAND + index as u16;
            bus.config_write(node.bdf, at, 1, byte.into()).await;
        }
    }
    true
}

/// Writes the host's number into a function that is set up, if it is still the device of
/// `identity`. A device that replaces it later has no BARs set, so its data cannot be mistaken.
async fn mark(bus: &Bus, node: &Node, identity: Identity, owner: u32) -> bool {
    if owner == 0 {
        return true;
    }
    let Some(now) = enumerate::identify(bus, node.bdf).await else { return false };
    let owners = [owner, identity.contents.map_or(0, |contents| contents.owner)];
    let same = owners.into_iter().any(|owner| identity.compare(&now, owner) == Comparison::Same);
    if same {
        enumerate::write_owner(bus, node.bdf, now.contents, owner).await;
    }
    same
}

/// A device's identity, and the comparison with the former device.
pub(super) type Identified = (Identity, Comparison);

/// Identifies the device in the place of `node`, where `before` was attached last. If it is the
/// same device with the shape of `node`, resets the function, whether or not its contents are
/// the same. `None` if no device answers. A device behind a switch node can be replaced while
/// no link of this host goes down.
pub(super) async fn identify_and_reset(
    bus: &Bus,
    before: Identity,
    node: &Node,
    settings: &super::Settings,
) -> Option<Identified> {
    let identity = enumerate::identify(bus, node.bdf).await?;
    let mut returned = before.compare(&identity, settings.owner);
    if !matches!(returned, Comparison::Another(_)) {
        let shape = enumerate::layout(bus, node.bdf).await;
        returned = returned.with_layout(&node.layout(), &shape);
    }
    if !matches!(returned, Comparison::Another(_)) {
        enumerate::reset_function(bus, node, &settings.enumeration).await;
        if !mark(bus, node, identity, settings.owner).await {
            returned = Comparison::Another(REPLACED.to_owned());
        }
    }
    Some((identity, returned))
}

/// Enables or disables MSI-X. The message data of a vector are its number. The client itself masks
/// vectors.
pub(super) async fn set_msix(bus: &Bus, node: &Node, enable: bool) {
    let vectors = node.device().and_then(|device| device.msix).map_or(0, |msix| msix.vectors);
    if enable {
        for vector in 0..vectors {
            enumerate::write_msix_entry(bus, node, vector, u32::from(vector), false);
        }
    }
    enumerate::set_msix(bus, node, enable).await;
}

/// Naturally aligned pieces of at most 8 bytes: (address, offset, size).
fn aligned(address: u64, length: usize) -> impl Iterator<Item = (u64, usize, u8)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let left = length - done;
        if left == 0 {
            return None;
        }
        let at = address + done as u64;
        let size = [8usize, 4, 2, 1]
            .into_iter()
            .find(|size| *size <= left && at.is_multiple_of(*size as u64))
            .expect("one byte always fits");
        let piece = (at, done, size as u8);
        done += size;
        Some(piece)
    })
}

/// Reads a window of memory.
pub(super) async fn read(bus: &Bus, address: u64, length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(length);
    for (at, _, size) in aligned(address, length) {
        let value = bus.read(at, size).await;
        out.extend_from_slice(&value.to_le_bytes()[..usize::from(size)]);
    }
    out
}

/// Writes to a window of memory: posted.
pub(super) fn write(bus: &Bus, address: u64, data: &[u8]) {
    for (at, offset, size) in aligned(address, data.len()) {
        let mut value = [0; 8];
        value[..usize::from(size)].copy_from_slice(&data[offset..offset + usize::from(size)]);
        bus.write(at, size, u64::from_le_bytes(value));
    }
}
