//! VFIO_USER_DEVICE_GET_IRQ_INFO and _SET_IRQS (specification, sections of those names; `struct
//! vfio_irq_info` and `struct vfio_irq_set` in linux/vfio.h).

use super::{Malformed, get32, put32};
use bytes::Bytes;

/// VFIO_IRQ_INFO_EVENTFD: can be signalled by eventfd.
pub const IRQ_INFO_EVENTFD: u32 = 1 << 0;
/// VFIO_IRQ_INFO_MASKABLE: can be masked and unmasked.
pub const IRQ_INFO_MASKABLE: u32 = 1 << 1;
/// VFIO_IRQ_INFO_AUTOMASKED: masks itself when triggered.
pub const IRQ_INFO_AUTOMASKED: u32 = 1 << 2;

/// Interrupt types of a PCI device (linux/vfio.h, VFIO_PCI_*_IRQ_INDEX).
pub mod irq_index {
    /// INTx, one interrupt.
    pub const INTX: u32 = 0;
    /// MSI.
    pub const MSI: u32 = 1;
    /// MSI-X.
    pub const MSIX: u32 = 2;
    /// The device requests to be released; QEMU then starts an unplug.
    pub const REQ: u32 = 4;
    /// VFIO_PCI_NUM_IRQS.
    pub const COUNT: u32 = 5;
}

layout! {
    payload
    /// The payload of GET_IRQ_INFO and of its reply.
    pub struct IrqInfo: 16, {
        /// Request: largest reply payload in bytes. Reply: bytes of this payload.
        argsz: u32 = 0,
        /// Bits [`IRQ_INFO_EVENTFD`], [`IRQ_INFO_MASKABLE`] and [`IRQ_INFO_AUTOMASKED`].
        flags: u32 = 4,
        /// Interrupt type, see [`irq_index`].
        index: u32 = 8,
        /// Number of interrupts of the type.
        count: u32 = 12,
    }
}

/// The data of SET_IRQS (VFIO_IRQ_SET_DATA_*).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IrqData {
    /// None: the action applies to all interrupts of the range.
    None,
    /// One byte per interrupt: the action applies where the byte is not 0.
    Bool(Bytes),
    /// Event file descriptors with the message, or none to remove the present ones.
    Eventfd,
}

numbers! {
    /// The action of SET_IRQS (VFIO_IRQ_SET_ACTION_*): bits of its flags.
    pub enum IrqAction: u32 {
        /// Masks the interrupts.
        Mask = 0x08,
        /// Unmasks the interrupts.
        Unmask = 0x10,
        /// Signals the interrupts, or sets how they are signalled.
        Trigger = 0x20,
    }
}

/// The payload of SET_IRQS. The reply has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IrqSet {
    /// The data.
    pub data: IrqData,
    /// The action.
    pub action: IrqAction,
    /// Interrupt type, see [`irq_index`].
    pub index: u32,
    /// The first interrupt.
    pub start: u32,
    /// Number of interrupts; 0 with [`IrqData::None`] and [`IrqAction::Trigger`] disables the whole
    /// type.
    pub count: u32,
}

const DATA_NONE: u32 = 1 << 0;
const DATA_BOOL: u32 = 1 << 1;
const DATA_EVENTFD: u32 = 1 << 2;
const DATA_MASK: u32 = 7;

impl IrqSet {
    /// Size in bytes without booleans.
    pub const LENGTH: usize = 20;

    /// Reads the payload.
    ///
    /// # Errors
    /// [`Malformed::Short`] below 20 bytes, [`Malformed::Flags`] unless
    /// exactly one data flag and one action flag are set,
    /// [`Malformed::Count`] for fewer booleans than `count`.
    pub fn decode(bytes: &Bytes) -> Result<Self, Malformed> {
        let flags = get32(bytes, 4)?;
        let count = get32(bytes, 16)?;
        let action = IrqAction::from_number(flags & !DATA_MASK).ok_or(Malformed::Flags)?;
        let data = match flags & DATA_MASK {
            DATA_NONE => IrqData::None,
            DATA_EVENTFD => IrqData::Eventfd,
            DATA_BOOL => {
                let all = bytes.slice(Self::LENGTH..);
                if all.len() < count as usize {
                    return Err(Malformed::Count);
                }
                IrqData::Bool(all.slice(..count as usize))
            }
            _ => return Err(Malformed::Flags),
        };
        Ok(Self { data, action, index: get32(bytes, 8)?, start: get32(bytes, 12)?, count })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (data, booleans): (u32, &[u8]) = match &self.data {
            IrqData::None => (DATA_NONE, &[]),
            IrqData::Bool(booleans) => (DATA_BOOL, booleans),
            IrqData::Eventfd => (DATA_EVENTFD, &[]),
        };
        let argsz = (Self::LENGTH + booleans.len()) as u32;
        put32(out, &[argsz, data | self.action as u32, self.index, self.start, self.count]);
        out.extend_from_slice(booleans);
    }
}
