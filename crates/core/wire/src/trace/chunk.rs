//! Chunks: independently readable parts of a trace.

use bytes::{Buf, BufMut};

/// The first bytes of every chunk.
pub const SYNC: [u8; 4] = *b"FLCK";
/// Size of a chunk's header in bytes.
pub const CHUNK_HEADER: usize = 32;
/// The maximum number of bytes of records in a chunk.
pub const MAX_CHUNK: usize = 1 << 20;

/// The header of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    /// Number of bytes of records that follow.
    pub length: u32,
    /// Number of the chunk, from 0.
    pub number: u32,
    /// Records lost before this chunk because they were not written in time.
    pub lost: u32,
    /// Start time on the node's clock, in nanoseconds, to which the records are relative.
    pub start_ns: u64,
    /// CRC-32 of the records.
    pub records_crc: u32,
}

impl ChunkHeader {
    /// The header of a chunk with `records`.
    pub fn new(number: u32, lost: u32, start_ns: u64, records: &[u8]) -> Self {
        let (length, records_crc) = (records.len() as u32, crc32fast::hash(records));
        Self { length, number, lost, start_ns, records_crc }
    }

    /// Encodes the header, with a CRC-32 of its own at the end.
    pub fn encode(&self) -> [u8; CHUNK_HEADER] {
        let mut bytes = [0; CHUNK_HEADER];
        let mut out = &mut bytes[..];
        out.put_slice(&SYNC);
        out.put_u32(self.length);
        out.put_u32(self.number);
        out.put_u32(self.lost);
        out.put_u64(self.start_ns);
        out.put_u32(self.records_crc);
        let crc = crc32fast::hash(&bytes[..CHUNK_HEADER - 4]);
        bytes[CHUNK_HEADER - 4..].copy_from_slice(&crc.to_be_bytes());
        bytes
    }

    /// Decodes a header; `None` if it is invalid.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..CHUNK_HEADER)?;
        let mut rest = bytes.strip_prefix(&SYNC)?;
        let crc = crc32fast::hash(&bytes[..CHUNK_HEADER - 4]);
        if bytes[CHUNK_HEADER - 4..] != crc.to_be_bytes() {
            return None;
        }
        let (length, number, lost) = (rest.get_u32(), rest.get_u32(), rest.get_u32());
        let (start_ns, records_crc) = (rest.get_u64(), rest.get_u32());
        (length as usize <= MAX_CHUNK).then_some(Self {
            length,
            number,
            lost,
            start_ns,
            records_crc,
        })
    }

    /// Whether `records` match length and checksum.
    pub fn covers(&self, records: &[u8]) -> bool {
        records.len() == self.length as usize && crc32fast::hash(records) == self.records_crc
    }
}
