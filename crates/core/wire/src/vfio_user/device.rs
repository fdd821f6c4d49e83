//! VFIO_USER_DEVICE_GET_INFO (specification, section of that name;
//! `struct vfio_device_info` in linux/vfio.h).

use super::Malformed;

/// VFIO_DEVICE_FLAGS_RESET: VFIO_USER_DEVICE_RESET works.
pub const DEVICE_FLAGS_RESET: u32 = 1 << 0;

/// VFIO_DEVICE_FLAGS_PCI: a PCI device.
pub const DEVICE_FLAGS_PCI: u32 = 1 << 1;

layout! {
    payload
    /// The payload of the request and of its reply.
    pub struct DeviceInfo: 16, {
        /// In a request: the maximum payload of the reply in bytes. In a reply: the size of the
        /// payload in bytes.
        argsz: u32 = 0,
        /// [`DEVICE_FLAGS_RESET`] and [`DEVICE_FLAGS_PCI`].
        flags: u32 = 4,
        /// Number of regions. Regions have indexes from 0.
        num_regions: u32 = 8,
        /// Number of interrupt types. Interrupt types have indexes from 0.
        num_irqs: u32 = 12,
    }
}
