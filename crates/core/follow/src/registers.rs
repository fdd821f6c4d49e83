//! A controller's registers, as host software wrote them.

use crate::Ring;
use wire::nvme::register::{
    ACQ, AQA, ASQ, AdminQueueAttributes, CAP, CC, Capabilities, Configuration,
};

/// Size in bytes of the registers that are stored: up to the end of ACQ.
const BYTES: u64 = ACQ + 8;
/// The byte of CAP whose lower half is DSTRD (NVM Express 1.4, section 3.1.1, figure 69).
const STRIDE: u64 = CAP + 4;

/// Registers up to ACQ as written, and the doorbell stride as read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Registers {
    words: [[u8; 8]; BYTES as usize / 8],
    /// CAP.DSTRD, once it is known.
    pub stride: Option<u8>,
}

/// Whether a write of `bytes` at `offset` overlaps `length` bytes at `at`. Offsets are bytes in BAR
/// 0.
pub fn touches(offset: u64, bytes: &[u8], at: u64, length: u64) -> bool {
    offset < at + length && at < offset.saturating_add(bytes.len() as u64)
}

impl Registers {
    /// Handles a read of the registers at `offset` that returned `bytes`.
    pub fn read(&mut self, offset: u64, bytes: &[u8]) {
        if let Some((_, byte)) = (offset..).zip(bytes).find(|(at, _)| *at == STRIDE) {
            let bits = u64::from(*byte) << (8 * (STRIDE - CAP));
            self.stride = Some(Capabilities::from_bits(bits).doorbell_stride);
        }
    }

    /// Handles a write of `bytes` to the registers at `offset`.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (at, byte) in (offset..).zip(bytes).take_while(|(at, _)| *at < BYTES) {
            self.words.as_flattened_mut()[at as usize] = *byte;
        }
    }

    /// The stored bytes, by offset.
    pub fn bytes(&self) -> [u8; BYTES as usize] {
        let mut bytes = [0; BYTES as usize];
        bytes.copy_from_slice(self.words.as_flattened());
        bytes
    }

    /// The 8 bytes at a multiple of 8.
    pub fn u64(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.words[at as usize / 8])
    }

    fn u32(&self, at: u64) -> u32 {
        (self.u64(at & !7) >> ((at & 4) * 8)) as u32
    }

    /// The register CC.
    pub fn configuration(&self) -> Configuration {
        Configuration::from_bits(self.u32(CC))
    }

    /// Size of a memory page in bytes: 2^(12 + CC.MPS).
    pub fn page(&self) -> usize {
        1 << (12 + self.configuration().page)
    }

    /// The admin submission queue and the admin completion queue; `None` while AQA, ASQ and ACQ
    /// have values that no controller accepts.
    pub fn admin_queues(&self) -> Option<(Ring, Ring)> {
        let sizes = AdminQueueAttributes::from_bits(self.u32(AQA));
        let submission = Ring::submission(self.u64(ASQ) & !0xfff, sizes.sq_size);
        let completion = Ring::completion(self.u64(ACQ) & !0xfff, sizes.cq_size);
        submission.possible().zip(completion.possible())
    }

    /// Sets CC to 0, as a controller reset does.
    pub fn reset(&mut self) {
        self.write(CC, &[0; 4]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_queues_are_where_the_registers_put_them() {
        let mut registers = Registers::default();
        assert_eq!(registers.admin_queues(), None, "no entries");
        registers.write(AQA, &[31, 0, 15, 0]);
        registers.write(ASQ, &0x1_2345_6000u64.to_le_bytes());
        registers.write(ACQ, &0x8000u32.to_le_bytes());
        let rings = (Ring::submission(0x1_2345_6000, 31), Ring::completion(0x8000, 15));
        assert_eq!(registers.admin_queues(), Some(rings));
        registers.write(CC, &0x0046_0081_u32.to_le_bytes());
        assert_eq!((registers.page(), registers.configuration().enable), (8192, true));
        registers.reset();
        assert!(!registers.configuration().enable && registers.admin_queues().is_some());
    }

    #[test]
    fn writes_touch_the_registers_whose_bytes_they_have() {
        let at = |offset, length| touches(offset, &[0; 8][..length], CC, 4);
        assert!(at(CC, 4) && at(CC + 3, 1) && at(CC - 4, 8));
        assert!(!at(CC - 4, 4) && !at(CC + 4, 4));
    }

    #[test]
    fn stride_is_learnt_from_the_byte_that_has_it() {
        let mut registers = Registers::default();
        registers.read(0, &[0xff; 4]);
        assert_eq!(registers.stride, None);
        registers.read(2, &[0xff, 0xff, 0x12, 0xff]);
        assert_eq!(registers.stride, Some(2));
    }
}
