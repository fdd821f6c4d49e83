//! The Identify Namespace data structure (section 5.15.2.1, figure 245) and
//! the lists that Identify returns.

use super::IDENTIFY;
use crate::macros::Field;

/// LBA format (figure 246).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LbaFormat {
    /// MS, metadata bytes per block.
    pub metadata: u16,
    /// LBADS, data bytes per block as a power of two.
    pub data_shift: u8,
    /// RP, 2 bits: relative performance, 0 is best.
    pub performance: u8,
}

impl LbaFormat {
    fn bytes(self) -> [u8; Self::SIZE] {
        let [low, high] = self.metadata.to_le_bytes();
        [low, high, self.data_shift, self.performance & 3]
    }
}

impl Field for LbaFormat {
    const SIZE: usize = 4;

    /// The format in use. The list of formats begins at byte `at`; FLBAS (byte 26) selects the
    /// entry.
    fn get(bytes: &[u8], at: usize) -> Self {
        let at = at + usize::from(bytes[26] & 15) * Self::SIZE;
        let (data_shift, performance) = (bytes[at + 2], bytes[at + 3] & 3);
        Self { metadata: Field::get(bytes, at), data_shift, performance }
    }

    /// Writes the format to the entry of the list that FLBAS selects.
    fn put(self, bytes: &mut [u8], at: usize) {
        let at = at + usize::from(bytes[26] & 15) * Self::SIZE;
        self.bytes().put(bytes, at);
    }
}

layout! {
    decode encode
    /// Identify Namespace data with the LBA format in use. Namespace Management uses the same
    /// structure for a namespace to create (figure 268). Other fields are zero.
    #[derive(Default)]
    pub struct IdentifyNamespace: IDENTIFY, {
        /// NSZE, size in blocks.
        size: u64 = 0,
        /// NCAP, capacity in blocks.
        capacity: u64 = 8,
        /// NUSE, blocks in use.
        utilization: u64 = 16,
        /// NSFEAT, features: bit 3, NGUID and EUI-64 are never reused; bit 4, the optimal I/O
        /// fields are valid.
        features: u8 = 24,
        /// NLBAF, LBA formats, 0's based.
        lba_formats: u8 = 25,
        /// FLBAS: bits 3:0, the format in use; bit 4, metadata at the end of each block's data.
        formatted: u8 = 26,
        /// MC: bit 0, metadata may be at the end of each block's data; bit 1, in a separate buffer.
        metadata_capabilities: u8 = 27,
        /// DPC: bits 2:0, types 1 to 3 of end-to-end protection; bits 3 and 4, the first and the
        /// last eight bytes of the metadata.
        protection_capabilities: u8 = 28,
        /// DPS: bits 2:0, the type of end-to-end protection; bit 3, the protection information is
        /// in the first eight bytes of the metadata.
        protection: u8 = 29,
        /// NMIC: bit 0, the namespace may be attached to several controllers.
        sharing: u8 = 30,
        /// RESCAP, reservations: bit 0, persist through power loss; bits 6:1, types 1 to 6 of
        /// reservations; bit 7, Ignore Existing Key as of NVMe 1.3.
        reservations: u8 = 31,
        /// DLFEAT: the value that deallocated blocks read as, and deallocation by Write Zeroes.
        deallocate_features: u8 = 33,
        /// NVMCAP, bytes of media of the namespace.
        media_capacity: u128 = 48,
        /// NPWG, preferred write granularity in blocks, 0's based.
        write_granularity: u16 = 64,
        /// NPWA, preferred write alignment in blocks, 0's based.
        write_alignment: u16 = 66,
        /// NPDG, preferred deallocate granularity in blocks, 0's based.
        deallocate_granularity: u16 = 68,
        /// NPDA, preferred deallocate alignment in blocks, 0's based.
        deallocate_alignment: u16 = 70,
        /// NOWS, optimal write size in blocks, 0's based.
        optimal_write: u16 = 72,
        /// MSSRL, the maximum number of blocks of a source range of Copy (NVM Command Set 1.0,
        /// figure 97).
        copy_range: u16 = 74,
        /// MCL, the maximum number of blocks of a Copy.
        copy_length: u32 = 76,
        /// MSRC, the maximum number of source ranges of a Copy, 0's based.
        copy_ranges: u8 = 80,
        /// ANAGRPID, the group for asymmetric namespace access; 0 if this is not supported.
        access_group: u32 = 92,
        /// NSATTR: bit 0, write protected.
        attributes: u8 = 99,
        /// NVMSETID, the NVM set; 0 if sets are not supported.
        nvm_set: u16 = 100,
        /// NGUID, a globally unique identifier; 0 if there is none.
        nguid: [u8; 16] = 104,
        /// EUI64, an IEEE extended unique identifier; 0 if there is none.
        eui64: [u8; 8] = 120,
        /// The format in use: the entry of LBAF0 to LBAF15 that FLBAS selects.
        lba_format: LbaFormat = 128,
    }
}

impl IdentifyNamespace {
    /// Encodes the structure with up to 16 LBA formats, of which FLBAS selects the format in use
    /// (section 5.15.2.1).
    pub fn encode_with(&self, formats: &[LbaFormat]) -> [u8; IDENTIFY] {
        let mut bytes = self.encode();
        for (number, format) in formats.iter().enumerate() {
            format.bytes().put(&mut bytes, 128 + number * LbaFormat::SIZE);
        }
        bytes
    }

    /// NMIC bit 0: the namespace may be attached to several controllers at the same time.
    pub const SHARED: u8 = 1;
    /// NSATTR bit 0: the namespace is write protected.
    pub const WRITE_PROTECTED: u8 = 1;
    /// NSFEAT bit 3: NGUID and EUI-64 are never reused.
    pub const IDENTIFIERS_NOT_REUSED: u8 = 1 << 3;
    /// DLFEAT bits 2:0: deallocated blocks read as zeroes. If bit 4 is 0, the guard in the
    /// protection information of deallocated blocks is FFFFh.
    pub const DEALLOCATES_TO_ZEROES: u8 = 1;
    /// DLFEAT bit 3: Write Zeroes supports DEAC.
    pub const ZEROES_DEALLOCATE: u8 = 1 << 3;
    /// FLBAS bit 4: metadata at the end of each block's data.
    pub const EXTENDED: u8 = 1 << 4;
}

layout! {
    decode encode
    /// Identify Namespace data that are independent of the I/O command set (NVM Express 2.0,
    /// section 5.17.2.8, figure 280). Other fields are zero.
    #[derive(Default)]
    pub struct IndependentNamespace: IDENTIFY, {
        /// NMIC, as in [`IdentifyNamespace`].
        sharing: u8 = 1,
        /// RESCAP, as in [`IdentifyNamespace`].
        reservations: u8 = 2,
        /// ANAGRPID, as in [`IdentifyNamespace`].
        access_group: u32 = 4,
        /// NSATTR, as in [`IdentifyNamespace`].
        attributes: u8 = 8,
        /// NSTAT: bit 0, ready.
        status: u8 = 14,
    }
}

impl IndependentNamespace {
    /// NSTAT bit 0: the namespace is ready.
    pub const READY: u8 = 1;
}

/// A namespace identification descriptor (section 5.15.2.3, figure 249).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceDescriptor {
    /// NIDT 1, EUI-64.
    Eui64([u8; 8]),
    /// NIDT 2, NGUID.
    Nguid([u8; 16]),
    /// NIDT 3, UUID.
    Uuid([u8; 16]),
    /// NIDT 4, command set identifier (NVM Express 2.0, figure 277): 0 for NVM.
    CommandSet(u8),
}

impl NamespaceDescriptor {
    /// The descriptors end to end, then zeroes. Panics if they do not fit; one descriptor of each
    /// kind always fits.
    pub fn list(descriptors: &[Self]) -> [u8; IDENTIFY] {
        let mut b = [0; IDENTIFY];
        let mut at = 0;
        for descriptor in descriptors {
            let (kind, id): (u8, &[u8]) = match descriptor {
                Self::Eui64(id) => (1, id),
                Self::Nguid(id) => (2, id),
                Self::Uuid(id) => (3, id),
                Self::CommandSet(id) => (4, std::slice::from_ref(id)),
            };
            [kind, id.len() as u8].put(&mut b, at);
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
        id.put(&mut b, index * 4);
    }
    b
}

/// A controller list: a count and up to 2047 ascending IDs (figure 132).
pub fn controller_list(ids: impl IntoIterator<Item = u16>) -> [u8; IDENTIFY] {
    let mut b = [0; IDENTIFY];
    let mut count = 0u16;
    for id in ids.into_iter().take(IDENTIFY / 2 - 1) {
        count += 1;
        id.put(&mut b, usize::from(count) * 2);
    }
    count.put(&mut b, 0);
    b
}

/// The controllers of a controller list (figure 132); `None` unless it has 1 to 2047 ascending IDs.
pub fn decode_controller_list(bytes: &[u8; IDENTIFY]) -> Option<Vec<u16>> {
    let count = usize::from(u16::get(bytes, 0));
    if !(1..IDENTIFY / 2).contains(&count) {
        return None;
    }
    let ids: Vec<u16> = (1..=count).map(|index| u16::get(bytes, index * 2)).collect();
    ids.is_sorted_by(|one, next| one < next).then_some(ids)
}
