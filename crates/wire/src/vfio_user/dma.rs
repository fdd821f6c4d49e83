//! DMA ranges, and DMA by message (specification, VFIO_USER_DMA_MAP,
//! _DMA_UNMAP, _DMA_READ and _DMA_WRITE).

use super::{Malformed, get32, get64, put32, put64};

/// VFIO_DMA_MAP_FLAG_READ: the device may read the range.
pub const DMA_FLAG_READ: u32 = 1 << 0;

/// VFIO_DMA_MAP_FLAG_WRITE: the device may write the range.
pub const DMA_FLAG_WRITE: u32 = 1 << 1;

/// VFIO_DMA_UNMAP_FLAG_ALL (linux/vfio.h): address and size are 0, everything
/// goes. The specification calls the flags unused; QEMU sends this one.
pub const DMA_UNMAP_FLAG_ALL: u32 = 1 << 1;

/// The payload of VFIO_USER_DMA_MAP. The reply has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaMap {
    /// [`DMA_FLAG_READ`] and [`DMA_FLAG_WRITE`].
    pub flags: u32,
    /// Byte offset in the file descriptor that comes with the message.
    pub offset: u64,
    /// First DMA address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

impl DmaMap {
    /// Bytes of the payload.
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

/// The payload of VFIO_USER_DMA_UNMAP and of its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaUnmap {
    /// Largest reply payload the client takes, in bytes.
    pub argsz: u32,
    /// [`DMA_UNMAP_FLAG_ALL`] or 0.
    pub flags: u32,
    /// First DMA address of a range that was mapped.
    pub address: u64,
    /// Bytes of that range.
    pub size: u64,
}

impl DmaUnmap {
    /// Bytes of the payload.
    pub const LENGTH: usize = 24;

    /// Reads the payload of either direction.
    ///
    /// # Errors
    /// [`Malformed::Short`] below 24 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        Ok(Self {
            argsz: get32(bytes, 0)?,
            flags: get32(bytes, 4)?,
            address: get64(bytes, 8)?,
            size: get64(bytes, 16)?,
        })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put32(out, &[self.argsz, self.flags]);
        put64(out, &[self.address, self.size]);
    }
}

/// The fixed part of VFIO_USER_DMA_READ and _DMA_WRITE; the data follows in a
/// write and in the reply to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaAccess {
    /// DMA address.
    pub address: u64,
    /// Bytes.
    pub count: u64,
}

impl DmaAccess {
    /// Bytes of the fixed part.
    pub const LENGTH: usize = 16;

    /// Reads the fixed part.
    ///
    /// # Errors
    /// [`Malformed::Short`] below 16 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        Ok(Self { address: get64(bytes, 0)?, count: get64(bytes, 8)? })
    }

    /// Appends the fixed part.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put64(out, &[self.address, self.count]);
    }
}
