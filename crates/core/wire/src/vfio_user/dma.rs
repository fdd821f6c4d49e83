//! DMA ranges, and DMA by message (specification, VFIO_USER_DMA_MAP,
//! _DMA_UNMAP, _DMA_READ and _DMA_WRITE).

use super::{Malformed, get32, get64, put32, put64};

/// VFIO_DMA_MAP_FLAG_READ: the device may read the range.
pub const DMA_FLAG_READ: u32 = 1 << 0;

/// VFIO_DMA_MAP_FLAG_WRITE: the device may write the range.
pub const DMA_FLAG_WRITE: u32 = 1 << 1;

/// VFIO_DMA_UNMAP_FLAG_ALL (linux/vfio.h): address and size are 0, all ranges are removed. The
/// flags are unused in the specification; QEMU sends this one.
pub const DMA_UNMAP_FLAG_ALL: u32 = 1 << 1;

/// The payload of VFIO_USER_DMA_MAP. The reply has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaMap {
    /// [`DMA_FLAG_READ`] and [`DMA_FLAG_WRITE`].
    pub flags: u32,
    /// Byte offset in the file descriptor of the message.
    pub offset: u64,
    /// First DMA address.
    pub address: u64,
    /// Number of bytes.
    pub size: u64,
}

impl DmaMap {
    /// Size of the payload in bytes.
    pub const LENGTH: usize = 32;

    /// Reads the payload.
    ///
    /// # Errors
    /// [`Malformed::Short`] below 32 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        Ok(Self {
            flags: get32(bytes, 4)?,
            offset: get64(bytes, 8)?,
            address: get64(bytes, 16)?,
            size: get64(bytes, 24)?,
        })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put32(out, &[Self::LENGTH as u32, self.flags]);
        put64(out, &[self.offset, self.address, self.size]);
    }
}

layout! {
    payload
    /// The payload of VFIO_USER_DMA_UNMAP and of its reply.
    pub struct DmaUnmap: 24, {
        /// Largest reply payload the client takes, in bytes.
        argsz: u32 = 0,
        /// [`DMA_UNMAP_FLAG_ALL`] or 0.
        flags: u32 = 4,
        /// First DMA address of a range that was mapped.
        address: u64 = 8,
        /// Size of the range in bytes.
        size: u64 = 16,
    }
}

layout! {
    payload
    /// The fixed part of VFIO_USER_DMA_READ and _DMA_WRITE; the data follows in a
    /// write and in the reply to a read.
    pub struct DmaAccess: 16, {
        /// DMA address.
        address: u64 = 0,
        /// Number of bytes.
        count: u64 = 8,
    }
}
