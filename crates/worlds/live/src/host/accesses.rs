//! Accesses of a VMM as requests on the host node's bus.

use pcie::enumerate::Node;
use pcie::software::Bus;
use vfio_user::EndpointInfo;

/// Reads what must be known of an endpoint before it is offered. A device that does not answer
/// reads all ones.
pub async fn describe(bus: Bus, node: Node, doorbells: bool) -> EndpointInfo {
    let mut config = Box::new([0; 4096]);
    for (at, place) in config.chunks_exact_mut(4).enumerate() {
        let value = bus.config_read(node.bdf, at as u16 * 4, 4).await;
        place.copy_from_slice(&value.to_le_bytes());
    }
    let mut bars = [None; 6];
    let device = node.device();
    for bar in device.into_iter().flat_map(|device| &device.bars) {
        bars[usize::from(bar.index)] = Some(*bar);
    }
    EndpointInfo { config, bars, doorbells }
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
pub async fn read(bus: &Bus, address: u64, length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(length);
    for (at, _, size) in aligned(address, length) {
        let value = bus.read(at, size).await;
        out.extend_from_slice(&value.to_le_bytes()[..usize::from(size)]);
    }
    out
}

/// Writes to a window of memory: posted.
pub fn write(bus: &Bus, address: u64, data: &[u8]) {
    for (at, offset, size) in aligned(address, data.len()) {
        let mut value = [0; 8];
        value[..usize::from(size)].copy_from_slice(&data[offset..offset + usize::from(size)]);
        bus.write(at, size, u64::from_le_bytes(value));
    }
}
