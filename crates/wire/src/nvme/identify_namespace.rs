//! The Identify Namespace data structure (section 5.15.2.1, figure 245) and
//! the lists that Identify returns.

use super::IDENTIFY;
use super::field::{array, put, u16_at, u64_at, u128_at};

/// LBA format (figure 246).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LbaFormat {
    /// MS, metadata bytes a block.
    pub metadata: u16,
    /// LBADS, data bytes a block as a power of two.
    pub data_shift: u8,
    /// RP, 2 bits: relative performance, 0 is best.
    pub performance: u8,
}

/// Identify Namespace data with one LBA format. Fields that are not here are
/// zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdentifyNamespace {
    /// NSZE, size in blocks.
    pub size: u64,
    /// NCAP, capacity in blocks.
    pub capacity: u64,
    /// NUSE, blocks in use.
    pub utilization: u64,
    /// NSFEAT, features: bit 4, the optimal I/O fields are valid.
    pub features: u8,
    /// NLBAF, LBA formats, 0's based.
    pub lba_formats: u8,
    /// FLBAS, the format in use.
    pub formatted: u8,
    /// DLFEAT, what deallocated blocks read as and how Write Zeroes does it.
    pub deallocate_features: u8,
    /// NVMCAP, bytes of media behind it.
    pub media_capacity: u128,
    /// NPWG, preferred write granularity, 0's based blocks.
    pub write_granularity: u16,
    /// NPWA, preferred write alignment, 0's based blocks.
    pub write_alignment: u16,
    /// NPDG, preferred deallocate granularity, 0's based blocks.
    pub deallocate_granularity: u16,
    /// NPDA, preferred deallocate alignment, 0's based blocks.
    pub deallocate_alignment: u16,
    /// NOWS, optimal write size, 0's based blocks.
    pub optimal_write: u16,
    /// NSATTR: bit 0, write protected.
    pub attributes: u8,
    /// NGUID; zero if there is none.
    pub nguid: [u8; 16],
    /// EUI64; zero if there is none.
    pub eui64: [u8; 8],
    /// LBAF0.
    pub lba_format: LbaFormat,
}

impl IdentifyNamespace {
    /// NSATTR bit 0.
    pub const WRITE_PROTECTED: u8 = 1;

    /// From the bytes of the structure; the LBA format is the one in use.
    pub fn decode(b: &[u8; IDENTIFY]) -> Self {
        let format = 128 + usize::from(b[26] & 15) * 4;
        Self {
            size: u64_at(b, 0),
            capacity: u64_at(b, 8),
            utilization: u64_at(b, 16),
            features: b[24],
            lba_formats: b[25],
            formatted: b[26],
            deallocate_features: b[33],
            media_capacity: u128_at(b, 48),
            write_granularity: u16_at(b, 64),
            write_alignment: u16_at(b, 66),
            deallocate_granularity: u16_at(b, 68),
            deallocate_alignment: u16_at(b, 70),
            optimal_write: u16_at(b, 72),
            attributes: b[99],
            nguid: array(b, 104),
            eui64: array(b, 120),
            lba_format: LbaFormat {
                metadata: u16_at(b, format),
                data_shift: b[format + 2],
                performance: b[format + 3] & 3,
            },
        }
    }

    /// To the bytes of the structure; the LBA format becomes number 0.
    pub fn encode(&self) -> [u8; IDENTIFY] {
        let mut b = [0; IDENTIFY];
        put(&mut b, 0, self.size.to_le_bytes());
        put(&mut b, 8, self.capacity.to_le_bytes());
        put(&mut b, 16, self.utilization.to_le_bytes());
        b[24] = self.features;
        b[25] = self.lba_formats;
        b[26] = self.formatted;
        b[33] = self.deallocate_features;
        put(&mut b, 48, self.media_capacity.to_le_bytes());
        put(&mut b, 64, self.write_granularity.to_le_bytes());
        put(&mut b, 66, self.write_alignment.to_le_bytes());
        put(&mut b, 68, self.deallocate_granularity.to_le_bytes());
        put(&mut b, 70, self.deallocate_alignment.to_le_bytes());
        put(&mut b, 72, self.optimal_write.to_le_bytes());
        b[99] = self.attributes;
        put(&mut b, 104, self.nguid);
        put(&mut b, 120, self.eui64);
        put(&mut b, 128, self.lba_format.metadata.to_le_bytes());
        b[130] = self.lba_format.data_shift;
        b[131] = self.lba_format.performance & 3;
        b
    }
}

/// A namespace identification descriptor (section 5.15.2.3, figure 249).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceDescriptor {
    /// NIDT 1.
    Eui64([u8; 8]),
    /// NIDT 2.
    Nguid([u8; 16]),
    /// NIDT 3.
    Uuid([u8; 16]),
}

impl NamespaceDescriptor {
    /// Descriptors laid end to end, zeroes after them. At most one of each
    /// kind is meaningful, so they always fit.
    pub fn list(descriptors: &[Self]) -> [u8; IDENTIFY] {
        let mut b = [0; IDENTIFY];
        let mut at = 0;
        for descriptor in descriptors {
            let (kind, id): (u8, &[u8]) = match descriptor {
                Self::Eui64(id) => (1, id),
                Self::Nguid(id) => (2, id),
                Self::Uuid(id) => (3, id),
            };
            b[at] = kind;
            b[at + 1] = id.len() as u8;
            b[at + 4..at + 4 + id.len()].copy_from_slice(id);
            at += 4 + id.len();
        }
        b
    }
}

/// A namespace ID list: up to 1024 ascending IDs (figure 133).
pub fn namespace_list(ids: impl IntoIterator<Item = u32>) -> [u8; IDENTIFY] {
    let mut b = [0; IDENTIFY];
    for (index, id) in ids.into_iter().take(IDENTIFY / 4).enumerate() {
        put(&mut b, index * 4, id.to_le_bytes());
    }
    b
}

/// A controller list: a count and up to 2047 ascending IDs (figure 132).
pub fn controller_list(ids: impl IntoIterator<Item = u16>) -> [u8; IDENTIFY] {
    let mut b = [0; IDENTIFY];
    let mut count = 0u16;
    for id in ids.into_iter().take(IDENTIFY / 2 - 1) {
        count += 1;
        put(&mut b, usize::from(count) * 2, id.to_le_bytes());
    }
    put(&mut b, 0, count.to_le_bytes());
    b
}
