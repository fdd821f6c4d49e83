//! The 16 bytes before every payload (specification, "Header").

use super::{Malformed, get16, get32};
use std::num::NonZeroU32;

const TYPE_MASK: u32 = 0xf;
const TYPE_COMMAND: u32 = 0;
const TYPE_REPLY: u32 = 1;
const FLAG_NO_REPLY: u32 = 1 << 4;
const FLAG_ERROR: u32 = 1 << 5;

numbers! {
    /// Command numbers (specification, "Commands"; 14 is QEMU's and SPDK's name
    /// for a message that the specification has since dropped).
    pub enum Command: u16 {
        /// VFIO_USER_VERSION, client to server.
        Version = 1,
        /// VFIO_USER_DMA_MAP, client to server.
        DmaMap = 2,
        /// VFIO_USER_DMA_UNMAP, client to server.
        DmaUnmap = 3,
        /// VFIO_USER_DEVICE_GET_INFO, client to server.
        DeviceGetInfo = 4,
        /// VFIO_USER_DEVICE_GET_REGION_INFO, client to server.
        DeviceGetRegionInfo = 5,
        /// VFIO_USER_DEVICE_GET_REGION_IO_FDS, client to server.
        DeviceGetRegionIoFds = 6,
        /// VFIO_USER_DEVICE_GET_IRQ_INFO, client to server.
        DeviceGetIrqInfo = 7,
        /// VFIO_USER_DEVICE_SET_IRQS, client to server.
        DeviceSetIrqs = 8,
        /// VFIO_USER_REGION_READ, client to server.
        RegionRead = 9,
        /// VFIO_USER_REGION_WRITE, client to server.
        RegionWrite = 10,
        /// VFIO_USER_DMA_READ, server to client.
        DmaRead = 11,
        /// VFIO_USER_DMA_WRITE, server to client.
        DmaWrite = 12,
        /// VFIO_USER_DEVICE_RESET, client to server.
        DeviceReset = 13,
        /// VFIO_USER_DIRTY_PAGES, client to server; obsolete.
        DirtyPages = 14,
        /// VFIO_USER_REGION_WRITE_MULTI, client to server.
        RegionWriteMulti = 15,
        /// VFIO_USER_DEVICE_FEATURE, client to server.
        DeviceFeature = 16,
        /// VFIO_USER_MIG_DATA_READ, client to server.
        MigDataRead = 17,
        /// VFIO_USER_MIG_DATA_WRITE, client to server.
        MigDataWrite = 18,
    }
}

impl Command {
    /// The number in the header.
    pub const fn number(self) -> u16 {
        self as u16
    }
}

/// The type bits of the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A command.
    Command,
    /// The answer to a command with the same message ID.
    Reply,
}

/// The header of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Message ID, chosen by the sender of the command and echoed in the
    /// reply. Not unique: SPDK always sends 0.
    pub id: u16,
    /// Command number; not a [`Command`], because unknown commands are answered too.
    pub command: u16,
    /// Size of the whole message in bytes, including the header.
    pub size: u32,
    /// Command or reply.
    pub kind: Kind,
    /// In a command: whether no reply is expected.
    pub no_reply: bool,
    /// In a reply: the errno, if the Error flag is set. A peer may send 0.
    pub error: Option<u32>,
}

impl Header {
    /// Size of the header in bytes.
    pub const SIZE: usize = 16;

    /// A command with `payload` bytes after the header.
    pub fn command(id: u16, command: Command, payload: usize) -> Self {
        Self {
            id,
            command: command.number(),
            size: (Self::SIZE + payload) as u32,
            kind: Kind::Command,
            no_reply: false,
            error: None,
        }
    }

    /// The reply to this command, with `payload` bytes after the header.
    #[must_use]
    pub fn reply(&self, payload: usize) -> Self {
        Self {
            size: (Self::SIZE + payload) as u32,
            kind: Kind::Reply,
            no_reply: false,
            error: None,
            ..*self
        }
    }

    /// The reply that refuses this command. The errno is not zero, because
    /// QEMU reads an error reply with errno 0 as success.
    #[must_use]
    pub fn error_reply(&self, errno: NonZeroU32) -> Self {
        Self { error: Some(errno.get()), ..self.reply(0) }
    }

    /// Number of bytes that follow the header.
    pub fn payload(&self) -> usize {
        (self.size as usize).saturating_sub(Self::SIZE)
    }

    /// Reads a header.
    ///
    /// # Errors
    /// [`Malformed::Short`] below 16 bytes, [`Malformed::Size`] for a message
    /// size below 16, [`Malformed::Kind`] for a type other than 0 and 1.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let flags = get32(bytes, 8)?;
        let error = get32(bytes, 12)?;
        let size = get32(bytes, 4)?;
        if (size as usize) < Self::SIZE {
            return Err(Malformed::Size);
        }
        let kind = match flags & TYPE_MASK {
            TYPE_COMMAND => Kind::Command,
            TYPE_REPLY => Kind::Reply,
            _ => return Err(Malformed::Kind),
        };
        Ok(Self {
            id: get16(bytes, 0)?,
            command: get16(bytes, 2)?,
            size,
            kind,
            no_reply: flags & FLAG_NO_REPLY != 0,
            error: (flags & FLAG_ERROR != 0).then_some(error),
        })
    }

    /// Encodes the header in 16 bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut flags = match self.kind {
            Kind::Command => TYPE_COMMAND,
            Kind::Reply => TYPE_REPLY,
        };
        if self.no_reply {
            flags |= FLAG_NO_REPLY;
        }
        if self.error.is_some() {
            flags |= FLAG_ERROR;
        }
        let mut out = [0; Self::SIZE];
        out[0..2].copy_from_slice(&self.id.to_le_bytes());
        out[2..4].copy_from_slice(&self.command.to_le_bytes());
        out[4..8].copy_from_slice(&self.size.to_le_bytes());
        out[8..12].copy_from_slice(&flags.to_le_bytes());
        out[12..16].copy_from_slice(&self.error.unwrap_or(0).to_le_bytes());
        out
    }
}
