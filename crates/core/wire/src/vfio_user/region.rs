//! VFIO_USER_DEVICE_GET_REGION_INFO and _GET_REGION_IO_FDS (specification, sections of those names;
//! `struct vfio_region_info` and its capability chain in linux/vfio.h).

use super::{Malformed, get16, get32, get64, put32, put64};

/// VFIO_REGION_INFO_FLAG_READ.
pub const REGION_FLAG_READ: u32 = 1 << 0;
/// VFIO_REGION_INFO_FLAG_WRITE.
pub const REGION_FLAG_WRITE: u32 = 1 << 1;
/// VFIO_REGION_INFO_FLAG_MMAP: a file descriptor comes with the reply.
pub const REGION_FLAG_MMAP: u32 = 1 << 2;
/// VFIO_REGION_INFO_FLAG_CAPS: a capability chain follows.
pub const REGION_FLAG_CAPS: u32 = 1 << 3;

/// VFIO_REGION_INFO_CAP_SPARSE_MMAP, version 1.
const CAP_SPARSE_MMAP: u16 = 1;
/// VFIO_REGION_INFO_CAP_MSIX_MAPPABLE, version 1, no body.
const CAP_MSIX_MAPPABLE: u16 = 3;
/// `struct vfio_info_cap_header`.
const CAP_HEADER: usize = 8;
/// The maximum number of capabilities of a chain. A longer chain counts as circular.
const CAP_LIMIT: usize = 16;

/// Region indexes of a PCI device (linux/vfio.h, VFIO_PCI_*_REGION_INDEX).
pub mod region_index {
    /// The last of the six BARs.
    pub const BAR5: u32 = 5;
    /// Expansion ROM.
    pub const ROM: u32 = 6;
    /// Configuration space.
    pub const CONFIG: u32 = 7;
    /// VFIO_PCI_NUM_REGIONS.
    pub const COUNT: u32 = 9;
}

layout! {
    payload
    /// A part of a region that can be mapped (`struct vfio_region_sparse_mmap_area`).
    pub struct SparseArea: 16, {
        /// Byte offset in the region; added to the region's file offset for mmap.
        offset: u64 = 0,
        /// Number of bytes.
        size: u64 = 8,
    }
}

/// The payload of GET_REGION_INFO and of its reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionInfo {
    /// Request: largest reply payload in bytes. Reply: bytes needed for the
    /// full payload, which may be more than the request allowed.
    pub argsz: u32,
    /// `REGION_FLAG_*`; [`REGION_FLAG_CAPS`] is set by
    /// [`encode_reply`](Self::encode_reply) as needed.
    pub flags: u32,
    /// Region index, see [`region_index`].
    pub index: u32,
    /// Size of the region in bytes; 0 if there is none.
    pub size: u64,
    /// File offset of the region, for mmap.
    pub offset: u64,
    /// The areas of the sparse-mmap capability; without areas there is no such capability.
    pub areas: Vec<SparseArea>,
    /// Whether the capability that allows mapping over the MSI-X table is present.
    pub msix_mappable: bool,
}

impl RegionInfo {
    /// Size in bytes without capabilities.
    pub const LENGTH: usize = 32;

    /// Decodes the payload of a request or of a reply. Includes the capabilities defined here if
    /// `bytes` has all `argsz` bytes; skips other capabilities.
    ///
    /// # Errors
    /// [`Malformed::Short`] if the structure or a capability does not fit,
    /// [`Malformed::Count`] for a circular or overlong chain.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut info = Self {
            argsz: get32(bytes, 0)?,
            flags: get32(bytes, 4)?,
            index: get32(bytes, 8)?,
            size: get64(bytes, 16)?,
            offset: get64(bytes, 24)?,
            areas: Vec::new(),
            msix_mappable: false,
        };
        let mut at = get32(bytes, 12)? as usize;
        let whole = bytes.len() >= info.argsz as usize;
        if info.flags & REGION_FLAG_CAPS == 0 || !whole {
            return Ok(info);
        }
        for _ in 0..CAP_LIMIT {
            if at == 0 {
                return Ok(info);
            }
            match get16(bytes, at)? {
                CAP_SPARSE_MMAP => info.areas = decode_areas(bytes, at + CAP_HEADER)?,
                CAP_MSIX_MAPPABLE => info.msix_mappable = true,
                _ => {}
            }
            at = get32(bytes, at + 4)? as usize;
        }
        Err(Malformed::Count)
    }

    /// Appends the request for region `index`, with at most `argsz` bytes in the reply.
    pub fn encode_request(&self, out: &mut Vec<u8>) {
        put32(out, &[self.argsz, 0, self.index, 0]);
        put64(out, &[0, 0]);
    }

    /// Appends the reply, with capabilities only if all of it fits in `argsz` bytes (specification,
    /// "Message sizes"). Their offset is always given: QEMU first requests 32 bytes, and treats a
    /// capability flag without an offset as an error.
    pub fn encode_reply(&self, argsz: u32, out: &mut Vec<u8>) {
        let sparse = if self.areas.is_empty() { 0 } else { CAP_HEADER + 8 + self.areas.len() * 16 };
        let msix = if self.msix_mappable { CAP_HEADER } else { 0 };
        let length = Self::LENGTH + sparse + msix;
        let caps = length > Self::LENGTH;
        let fits = length <= argsz as usize;
        let flags = self.flags | if caps { REGION_FLAG_CAPS } else { 0 };
        let cap_offset = if caps { Self::LENGTH as u32 } else { 0 };
        put32(out, &[length as u32, flags, self.index, cap_offset]);
        put64(out, &[self.size, self.offset]);
        if !fits {
            return;
        }
        if sparse > 0 {
            let next = if msix > 0 { (Self::LENGTH + sparse) as u32 } else { 0 };
            put32(out, &[u32::from(CAP_SPARSE_MMAP) | 1 << 16, next, self.areas.len() as u32, 0]);
            self.areas.iter().for_each(|area| area.encode(out));
        }
        if msix > 0 {
            put32(out, &[u32::from(CAP_MSIX_MAPPABLE) | 1 << 16, 0]);
        }
    }
}

fn decode_areas(bytes: &[u8], at: usize) -> Result<Vec<SparseArea>, Malformed> {
    let count = get32(bytes, at)? as usize;
    if bytes.len() / 16 < count {
        return Err(Malformed::Short);
    }
    let area = |i| bytes.get(at + 8 + i * SparseArea::LENGTH..).unwrap_or_default();
    (0..count).map(|i| SparseArea::decode(area(i))).collect()
}

/// VFIO_USER_IO_FD_TYPE_IOEVENTFD.
pub const IO_FD_TYPE_IOEVENTFD: u32 = 0;

layout! {
    payload
    /// A sub-region whose writes can be signalled by an eventfd.
    pub struct IoFd: 40, {
        /// Byte offset in the region.
        offset: u64 = 0,
        /// Bytes; 0 if the access size does not matter.
        size: u64 = 8,
        /// Index of the file descriptor in the reply.
        fd_index: u32 = 16,
        /// [`IO_FD_TYPE_IOEVENTFD`] or another mechanism.
        kind: u32 = 20,
        /// Flags of the mechanism.
        flags: u32 = 24,
        /// `datamatch` or `user_data`.
        data: u64 = 32,
    }
}

/// The payload of GET_REGION_IO_FDS and of its reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionIoFds {
    /// Request: largest reply payload in bytes. Reply: bytes needed.
    pub argsz: u32,
    /// Zero.
    pub flags: u32,
    /// Region index, see [`region_index`].
    pub index: u32,
    /// The sub-regions; none in a request.
    pub entries: Vec<IoFd>,
}

impl RegionIoFds {
    /// Size in bytes without entries.
    pub const LENGTH: usize = 16;

    /// Decodes the payload of a request or of a reply.
    ///
    /// # Errors
    /// [`Malformed::Short`] if the structure or an entry does not fit.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let count = get32(bytes, 12)? as usize;
        if bytes.len() / IoFd::LENGTH < count {
            return Err(Malformed::Short);
        }
        let at = |i| bytes.get(Self::LENGTH + i * IoFd::LENGTH..).unwrap_or_default();
        let entries = (0..count).map(|i| IoFd::decode(at(i))).collect::<Result<_, _>>()?;
        Ok(Self {
            argsz: get32(bytes, 0)?,
            flags: get32(bytes, 4)?,
            index: get32(bytes, 8)?,
            entries,
        })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put32(out, &[self.argsz, self.flags, self.index, self.entries.len() as u32]);
        self.entries.iter().for_each(|entry| entry.encode(out));
    }
}
