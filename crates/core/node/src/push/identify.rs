//! The LBA format of a namespace, from Identify data as the controller writes them.

use nvme::MemoryRanges;
use wire::nvme::{IDENTIFY, IdentifyNamespace};

/// Double words of the data.
const DWORDS: usize = IDENTIFY / 4;

/// Identify Namespace data that are on their way to the host.
#[derive(Debug)]
pub(super) struct Capture {
    ranges: MemoryRanges,
    data: Box<[u8; IDENTIFY]>,
    /// The double words received so far.
    came: Box<[bool; DWORDS]>,
}

impl Capture {
    /// Data for these ranges, which have 4096 bytes in total.
    pub(super) fn new(ranges: MemoryRanges) -> Self {
        Self { ranges, data: Box::new([0; IDENTIFY]), came: Box::new([false; DWORDS]) }
    }

    /// Handles bytes that the controller writes at `address`.
    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) {
        let mut begin = 0;
        for range in &self.ranges {
            let end = address.saturating_add(bytes.len() as u64);
            let (from, to) = (
                range.address.max(address),
                (range.address.saturating_add(range.length as u64)).min(end),
            );
            if from < to {
                let at = begin + (from - range.address) as usize;
                let source = &bytes[(from - address) as usize..(to - address) as usize];
                self.data[at..at + source.len()].copy_from_slice(source);
                // A partial double word stays unknown.
                self.came[at.div_ceil(4)..(at + source.len()) / 4].fill(true);
            }
            begin += range.length;
        }
    }

    /// The binary logarithm of a block's bytes; `None` if it is not certain: parts are missing, the
    /// namespace does not exist, or blocks have metadata (NVM Express 1.4, figures 245 and 246).
    pub(super) fn block_shift(&self) -> Option<u8> {
        // NSZE, FLBAS, and the 16 formats from byte 128 on.
        let needed = [0..2, 6..7, 32..48];
        if !needed.into_iter().all(|dwords| self.came[dwords].iter().all(|came| *came)) {
            return None;
        }
        let data = IdentifyNamespace::decode(&self.data);
        let format = data.lba_format;
        // Bits 6:5 of FLBAS extend the number of the format (NVM Express 2.0).
        let certain = data.size > 0 && data.formatted & 0x60 == 0 && format.metadata == 0;
        (certain && (9..=16).contains(&format.data_shift)).then_some(format.data_shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvme::MemoryRange;
    use wire::nvme::LbaFormat;

    fn data(format: LbaFormat, size: u64) -> [u8; IDENTIFY] {
        let data = IdentifyNamespace { size, formatted: 1, ..Default::default() };
        data.encode_with(&[LbaFormat::default(), format])
    }

    fn captured(data: &[u8]) -> Option<u8> {
        // Two ranges, written in pieces of 256 bytes.
        let ranges = [(0x1_0c00, 1024), (0x8000, 3072)];
        let mut capture = Capture::new(
            ranges.map(|(address, length)| MemoryRange { address, length }).into_iter().collect(),
        );
        for (piece, bytes) in data.chunks(256).enumerate() {
            let at = piece as u64 * 256;
            capture.write(if at < 1024 { 0x1_0c00 + at } else { 0x8000 + at - 1024 }, bytes);
        }
        capture.block_shift()
    }

    #[test]
    fn block_size_is_captured_from_format_in_use() {
        let format = LbaFormat { metadata: 0, data_shift: 12, performance: 0 };
        assert_eq!(captured(&data(format, 100)), Some(12));
        assert_eq!(captured(&data(format, 0)), None, "no such namespace");
        let metadata = LbaFormat { metadata: 8, ..format };
        assert_eq!(captured(&data(metadata, 100)), None);
        assert_eq!(captured(&data(LbaFormat { data_shift: 0, ..format }, 100)), None);
        assert_eq!(captured(&data(format, 100)[..128]), None, "the formats did not come");
        let mut extended = data(format, 100);
        extended[26] |= 0x20;
        assert_eq!(captured(&extended), None);
    }
}
