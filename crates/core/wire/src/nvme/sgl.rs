//! Scatter gather list descriptors (section 4.4, figures 112 to 117).

use super::Command;

numbers! {
    /// The kind of a descriptor, four bits (figure 113).
    pub enum SglKind: u8 {
        /// 0h: a range of host memory.
        DataBlock = 0,
        /// 1h: bytes of a read that are discarded.
        BitBucket = 1,
        /// 2h: address of the next segment.
        Segment = 2,
        /// 3h: address of the last segment.
        LastSegment = 3,
    }
}

layout! {
    decode encode
    /// A descriptor. Its address, if any, is in host memory.
    #[derive(Default)]
    pub struct SglDescriptor: 16, {
        /// Address of a range or a segment; reserved in a bit bucket.
        address: u64 = 0,
        /// Length of the range or of the segment in bytes.
        length: u32 = 8,
        /// Subtype, 4 bits: 0h, the address is in host memory (figure 114).
        subtype: u8 = 15 [0, 4],
        /// Type, 4 bits: see [`SglKind`].
        kind: u8 = 15 [4, 4],
    }
}

impl Command {
    /// SGL entry 1, in the place of the PRP entries (figure 105).
    pub fn sgl1(&self) -> SglDescriptor {
        let mut bytes = [0; SglDescriptor::LENGTH];
        bytes[..8].copy_from_slice(&self.prp1.to_le_bytes());
        bytes[8..].copy_from_slice(&self.prp2.to_le_bytes());
        SglDescriptor::decode(&bytes)
    }

    /// A copy of this command with another SGL entry 1.
    pub fn with_sgl1(self, descriptor: SglDescriptor) -> Self {
        let bytes = descriptor.encode();
        let half = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        Self { psdt: 1, prp1: half(0), prp2: half(8), ..self }
    }
}
