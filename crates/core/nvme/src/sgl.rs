//! Scatter gather lists: the place of a command's data in host memory (NVMe 1.4, section 4.4).

use crate::failure::Failure;
use crate::prp::{MemoryRange, MemoryRanges};
use wire::nvme::{SglDescriptor, SglKind, StatusCode};

/// The address that stands for discarded bytes (bit bucket). No range has this address, because
/// ranges begin at multiples of 4.
pub(crate) const NOWHERE: u64 = u64::MAX;

/// Size of a descriptor in bytes.
const ENTRY: usize = SglDescriptor::LENGTH;
/// The maximum number of descriptors per read of host memory.
const BATCH: usize = 256;
/// The maximum number of descriptors of a command.
const MOST: usize = 4096;

/// The descriptors of a segment that were not read yet.
#[derive(Debug, PartialEq, Eq)]
struct Segment {
    address: u64,
    length: usize,
    last: bool,
}

/// The walk from SGL entry 1 to all ranges of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Whether the data go to the host.
    to_host: bool,
    /// Bytes whose address is not yet known.
    remaining: usize,
    ranges: MemoryRanges,
    segment: Option<Segment>,
    /// Number of descriptors so far.
    descriptors: usize,
}

impl Walk {
    /// Starts with SGL entry 1 of the command, for `length` bytes to or from the host.
    pub(crate) fn new(first: SglDescriptor, length: usize, to_host: bool) -> Result<Self, Failure> {
        let (ranges, segment) = (MemoryRanges::new(), None);
        let mut walk = Self { to_host, remaining: length, ranges, segment, descriptors: 0 };
        walk.take(first, true)?;
        walk.check_end()?;
        Ok(walk)
    }

    /// The next descriptors to read: address and number of bytes; `None` if none are needed.
    pub(crate) fn next_list(&self) -> Option<(u64, usize)> {
        self.segment.as_ref().map(|segment| (segment.address, segment.length.min(BATCH * ENTRY)))
    }

    /// Adds descriptors that were read.
    pub(crate) fn add_list(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let segment = self.segment.take().expect("a segment was asked for");
        let rest = segment.length - bytes.len();
        let entries = bytes.as_chunks::<ENTRY>().0;
        for (descriptor, left) in entries.iter().zip((0..entries.len()).rev()) {
            // The last descriptor of a segment leads to the next segment, except in the last
            // segment.
            let may_lead = rest == 0 && left == 0 && !segment.last;
            self.take(SglDescriptor::decode(descriptor), may_lead)?;
            if self.is_complete() {
                return Ok(());
            }
        }
        if rest > 0 {
            let address = segment.address.wrapping_add(bytes.len() as u64);
            self.segment = Some(Segment { address, length: rest, ..segment });
        } else if self.segment.is_none() && !segment.last {
            return Err(invalid(StatusCode::INVALID_SGL_SEGMENT));
        }
        self.check_end()
    }

    /// Whether all ranges are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.remaining == 0
    }

    /// The ranges known so far.
    pub(crate) fn ranges(&self) -> &[MemoryRange] {
        &self.ranges
    }

    /// Adds a range that no descriptor describes.
    pub(crate) fn append(&mut self, range: MemoryRange) {
        self.ranges.push(range);
    }

    fn take(&mut self, descriptor: SglDescriptor, may_lead: bool) -> Result<(), Failure> {
        self.descriptors += 1;
        if self.descriptors > MOST {
            return Err(invalid(StatusCode::INVALID_SGL_COUNT));
        }
        let SglDescriptor { address, length, .. } = descriptor;
        let kind = SglKind::from_number(descriptor.kind).filter(|_| descriptor.subtype == 0);
        match kind.ok_or(invalid(StatusCode::SGL_TYPE_INVALID))? {
            SglKind::DataBlock => {
                if address & 3 != 0 || length & 3 != 0 {
                    return Err(invalid(StatusCode::SGL_GRANULARITY_INVALID));
                }
                self.push(address, length);
            }
            // A bit bucket is ignored if the data come from the host (figure 115).
            SglKind::BitBucket if !self.to_host => {}
            SglKind::BitBucket => self.push(NOWHERE, length),
            kind => {
                let whole = length != 0 && length.is_multiple_of(ENTRY as u32);
                if !may_lead || !whole || address & 7 != 0 {
                    return Err(invalid(StatusCode::INVALID_SGL_SEGMENT));
                }
                let (length, last) = (length as usize, kind == SglKind::LastSegment);
                self.segment = Some(Segment { address, length, last });
            }
        }
        Ok(())
    }

    /// Fails if the SGL is shorter than the data. It may be longer.
    fn check_end(&self) -> Result<(), Failure> {
        if self.remaining > 0 && self.segment.is_none() {
            return Err(invalid(StatusCode::DATA_SGL_LENGTH_INVALID));
        }
        Ok(())
    }

    fn push(&mut self, address: u64, length: u32) {
        let length = self.remaining.min(length as usize);
        self.remaining -= length;
        if length > 0 {
            self.ranges.push(MemoryRange { address, length });
        }
    }
}

/// A failure because of the data pointer, or of the segments that it leads to.
fn invalid(code: StatusCode) -> Failure {
    Failure::field(code, 24, 0)
}
