//! vfio-user messages between a VMM and a device server over a Unix socket.
//!
//! Source: the vfio-user protocol specification, version 0.1 (QEMU `docs/interop/vfio-user.rst`;
//! "the specification" below), and Linux `include/uapi/linux/vfio.h`, whose structures the protocol
//! uses.
//!
//! In the specification all fields are in host byte order. This module encodes and decodes
//! little-endian fields, because all supported hosts are little endian. Payloads are encoded and
//! decoded without the [`Header`], which has [`Header::SIZE`] bytes. Bytes after a payload of fixed
//! size are allowed, as the rules of `argsz` in the specification demand (SPDK pads GET_REGION_INFO
//! to 4080 bytes).
//!
//! Not implemented: VFIO_USER_DEVICE_FEATURE and the migration messages.

mod access;
mod device;
mod dma;
mod header;
mod irq;
mod region;
#[cfg(test)]
mod tests;
mod version;

pub use access::{RegionAccess, SingleWrite, WriteMulti};
pub use device::{DEVICE_FLAGS_PCI, DEVICE_FLAGS_RESET, DeviceInfo};
pub use dma::{DMA_FLAG_READ, DMA_FLAG_WRITE, DMA_UNMAP_FLAG_ALL, DmaAccess, DmaMap, DmaUnmap};
pub use header::{Command, Header, Kind};
pub use irq::{
    IRQ_INFO_AUTOMASKED, IRQ_INFO_EVENTFD, IRQ_INFO_MASKABLE, IrqAction, IrqData, IrqInfo, IrqSet,
    irq_index,
};
pub use region::{
    IO_FD_TYPE_IOEVENTFD, IoFd, REGION_FLAG_CAPS, REGION_FLAG_MMAP, REGION_FLAG_READ,
    REGION_FLAG_WRITE, RegionInfo, RegionIoFds, SparseArea, region_index,
};
pub use version::{Capabilities, DEFAULT_MAX_DATA_XFER_SIZE, DEFAULT_MAX_MSG_FDS, Version};

/// Why bytes are not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Fewer bytes than the structure needs.
    #[error("message is shorter than its structure")]
    Short,
    /// The header's message size is smaller than the header.
    #[error("message size is smaller than the header of 16 bytes")]
    Size,
    /// A type other than command and reply.
    #[error("unknown message type")]
    Kind,
    /// Contradictory flags, or a missing flag.
    #[error("contradictory flags")]
    Flags,
    /// A count that does not fit the bytes that follow or the format.
    #[error("count does not match the payload")]
    Count,
    /// The version data is not the JSON the specification describes.
    #[error("malformed version data")]
    Json,
}

/// The first `N` bytes from `offset`, or [`Malformed::Short`].
fn array<const N: usize>(bytes: &[u8], offset: usize) -> Result<[u8; N], Malformed> {
    let end = offset.checked_add(N).ok_or(Malformed::Short)?;
    let slice = bytes.get(offset..end).ok_or(Malformed::Short)?;
    slice.try_into().map_err(|_| Malformed::Short)
}

fn get16(bytes: &[u8], offset: usize) -> Result<u16, Malformed> {
    array(bytes, offset).map(u16::from_le_bytes)
}

fn get32(bytes: &[u8], offset: usize) -> Result<u32, Malformed> {
    array(bytes, offset).map(u32::from_le_bytes)
}

fn get64(bytes: &[u8], offset: usize) -> Result<u64, Malformed> {
    array(bytes, offset).map(u64::from_le_bytes)
}

/// Appends 32-bit fields in order.
fn put32(out: &mut Vec<u8>, fields: &[u32]) {
    for field in fields {
        out.extend_from_slice(&field.to_le_bytes());
    }
}

/// Appends 64-bit fields in order.
fn put64(out: &mut Vec<u8>, fields: &[u64]) {
    for field in fields {
        out.extend_from_slice(&field.to_le_bytes());
    }
}
