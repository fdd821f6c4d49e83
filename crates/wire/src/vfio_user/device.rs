//! VFIO_USER_DEVICE_GET_INFO (specification, section of that name;
//! `struct vfio_device_info` in linux/vfio.h).

use super::{Malformed, get32, put32};

/// VFIO_DEVICE_FLAGS_RESET: VFIO_USER_DEVICE_RESET works.
pub const DEVICE_FLAGS_RESET: u32 = 1 << 0;

/// VFIO_DEVICE_FLAGS_PCI: a PCI device.
pub const DEVICE_FLAGS_PCI: u32 = 1 << 1;

/// The payload of the request and of its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Request: largest reply payload in bytes. Reply: bytes of this payload.
    pub argsz: u32,
    /// [`DEVICE_FLAGS_RESET`] and [`DEVICE_FLAGS_PCI`].
    pub flags: u32,
    /// Regions, numbered from 0.
    pub num_regions: u32,
    /// Interrupt types, numbered from 0.
    pub num_irqs: u32,
}

impl DeviceInfo {
    /// Bytes of the payload.
    pub const LENGTH: usize = 16;

    /// Reads the payload of either direction.
    ///
    /// # Errors
    /// [`Malformed::Short`] below 16 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        Ok(Self {
            argsz: get32(bytes, 0)?,
            flags: get32(bytes, 4)?,
            num_regions: get32(bytes, 8)?,
            num_irqs: get32(bytes, 12)?,
        })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put32(out, &[self.argsz, self.flags, self.num_regions, self.num_irqs]);
    }
}
