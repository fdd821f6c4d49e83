//! A namespace in memory.

use super::{Media, done};
use crate::record::new_incarnation;
use bytes::{Bytes, BytesMut};
use nvme::block::{Completion, Error, Operation, Request};
use wire::Arena;

/// Page size in bytes. A read within one page needs no copy.
const PAGE: usize = 4096;
/// Number of pages of a unit. A unit that was never written uses no memory.
const UNIT: usize = 16;
/// Size in bytes of a memory block for reads across pages.
const READS: usize = 256 << 10;

/// The pages of a unit. An empty page stands for zeroes.
type Unit = Box<[Bytes; UNIT]>;

/// A RAM drive, allocated on write.
#[derive(Debug)]
pub struct RamMedia {
    units: Vec<Option<Unit>>,
    size: u64,
    incarnation: u64,
    arena: Arena,
}

impl RamMedia {
    /// A RAM drive with `size` bytes of zeroes.
    pub fn new(size: u64) -> Self {
        let units = size.div_ceil((PAGE * UNIT) as u64);
        let units = usize::try_from(units).expect("fits the address space");
        Self {
            units: std::iter::repeat_with(|| None).take(units).collect(),
            size,
            incarnation: new_incarnation(),
            arena: Arena::new(READS),
        }
    }

    fn inside(&self, offset: u64, length: u64) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.size)
    }

    /// The bytes of a page; `None` if the page was never written.
    fn page(&self, page: usize) -> Option<&Bytes> {
        let unit = self.units[page / UNIT].as_ref()?;
        Some(&unit[page % UNIT]).filter(|page| !page.is_empty())
    }

    fn read(&mut self, offset: u64, length: usize) -> Bytes {
        let (page, from) = (offset as usize / PAGE, offset as usize % PAGE);
        if from + length <= PAGE {
            let zeroes = || Bytes::from_static(&[0; PAGE]).slice(..length);
            return self.page(page).map_or_else(zeroes, |page| page.slice(from..from + length));
        }
        let mut out = self.arena.buffer(length);
        for (page, from, bytes) in pieces(offset as usize, length, PAGE) {
            match self.page(page) {
                Some(page) => out.extend_from_slice(&page[from..from + bytes]),
                None => out.resize(out.len() + bytes, 0),
            }
        }
        out.freeze()
    }

    /// Writes bytes. Data that earlier reads have returned do not change.
    fn write(&mut self, offset: u64, mut data: &[u8]) {
        for (page, from, bytes) in pieces(offset as usize, data.len(), PAGE) {
            let piece = data.split_off(..bytes).expect("pieces of the data");
            let unit = self.units[page / UNIT].get_or_insert_default();
            let place = &mut unit[page % UNIT];
            let mut page = match std::mem::take(place).try_into_mut() {
                Ok(page) if page.len() == PAGE => page,
                Err(shared) if bytes < PAGE && !shared.is_empty() => BytesMut::from(&shared[..]),
                _ => BytesMut::zeroed(PAGE),
            };
            page[from..from + bytes].copy_from_slice(piece);
            *place = page.freeze();
        }
    }

    fn zero(&mut self, offset: u64, length: u64) {
        let unit = (PAGE * UNIT) as u64;
        let (mut at, end) = (offset, offset + length);
        while at < end {
            let next = end.min((at / unit + 1) * unit);
            let place = &mut self.units[(at / unit) as usize];
            if next - at == unit {
                *place = None;
            } else if place.is_some() {
                for (page, from, bytes) in pieces(at as usize, (next - at) as usize, PAGE) {
                    if bytes < PAGE && self.page(page).is_some() {
                        self.write((page * PAGE + from) as u64, &[0; PAGE][..bytes]);
                    } else if let Some(unit) = &mut self.units[page / UNIT]
                        && bytes == PAGE
                    {
                        unit[page % UNIT] = Bytes::new();
                    }
                }
            }
            at = next;
        }
    }
}

/// The parts of a range by pages of `page` units: page number, offset in the page, and length.
pub(super) fn pieces(
    mut at: usize,
    mut left: usize,
    page: usize,
) -> impl Iterator<Item = (usize, usize, usize)> {
    std::iter::from_fn(move || {
        let from = at % page;
        let length = left.min(page - from);
        let piece = (at / page, from, length);
        at += length;
        left -= length;
        (length > 0).then_some(piece)
    })
}

impl Media for RamMedia {
    fn start(&mut self, request: Request) -> Option<Completion> {
        Some(match request.operation {
            Operation::Read { offset, length } if self.inside(offset, length as u64) => {
                Ok(self.read(offset, length))
            }
            Operation::Write { offset, data } if self.inside(offset, data.len() as u64) => {
                self.write(offset, &data);
                done()
            }
            Operation::WriteZeroes { offset, length } | Operation::Discard { offset, length }
                if self.inside(offset, length) =>
            {
                self.zero(offset, length);
                done()
            }
            Operation::Flush => done(),
            _ => Err(Error::Internal),
        })
    }

    fn size(&self) -> u64 {
        self.size
    }

    /// A new number at each start, because RAM loses the contents.
    fn incarnation(&self) -> u64 {
        self.incarnation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::file::tests::run;
    use proptest::prelude::*;

    #[test]
    fn ranges_across_chunks_keep_their_bytes() {
        let mut media = RamMedia::new(4 * PAGE as u64);
        let offset = PAGE as u64 - 512;
        let data = Bytes::from((0..PAGE + 1024).map(|i| (i / 512) as u8 + 1).collect::<Vec<_>>());
        run(&mut media, Operation::Write { offset, data: data.clone() }).unwrap();
        let read = Operation::Read { offset, length: data.len() };
        assert_eq!(run(&mut media, read.clone()), Ok(data));
        run(&mut media, Operation::WriteZeroes { offset: 0, length: 3 * PAGE as u64 }).unwrap();
        assert!(run(&mut media, read).unwrap().iter().all(|byte| *byte == 0));
        let beyond = Operation::Read { offset: 4 * PAGE as u64, length: 512 };
        assert_eq!(run(&mut media, beyond), Err(Error::Internal));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Read(usize, usize),
        Write(usize, usize, u8),
        Zero(usize, usize),
    }

    const SIZE: usize = 2 * PAGE * UNIT + 512;

    fn step() -> impl Strategy<Value = Step> {
        let length = prop_oneof![Just(512usize), Just(PAGE), Just(3 * PAGE), Just(PAGE * UNIT)];
        (0..3u8, 0..SIZE / 512, length, any::<u8>()).prop_map(|(kind, at, length, value)| {
            let (at, length) = (at * 512, length.min(SIZE - at * 512));
            match kind {
                0 => Step::Read(at, length),
                1 => Step::Write(at, length, value),
                _ => Step::Zero(at, length),
            }
        })
    }

    proptest! {
        /// Compares the medium with an array of bytes. Data that earlier reads have returned do not
        /// change.
        #[test]
        fn ram_media_matches_byte_array(steps in prop::collection::vec(step(), 0..40)) {
            let mut media = RamMedia::new(SIZE as u64);
            let (mut model, mut kept) = (vec![0; SIZE], Vec::new());
            for step in steps {
                match step {
                    Step::Read(at, length) => {
                        let read = Operation::Read { offset: at as u64, length };
                        let expected = model[at..at + length].to_vec();
                        kept.push((run(&mut media, read).unwrap(), expected));
                    }
                    Step::Write(at, length, value) => {
                        let data = Bytes::from(vec![value; length]);
                        run(&mut media, Operation::Write { offset: at as u64, data }).unwrap();
                        model[at..at + length].fill(value);
                    }
                    Step::Zero(at, length) => {
                        let (offset, length) = (at as u64, length as u64);
                        run(&mut media, Operation::WriteZeroes { offset, length }).unwrap();
                        model[at..at + length as usize].fill(0);
                    }
                }
                for (read, expected) in &kept {
                    prop_assert_eq!(&read[..], &expected[..]);
                }
            }
        }
    }
}
