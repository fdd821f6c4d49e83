//! A namespace in memory.

use super::{Media, done};
use crate::record::new_incarnation;
use bytes::Bytes;
use nvme::block::{Completion, Error, Operation, Request};
use wire::Arena;

/// The unit of allocation: pages never written cost nothing.
const PAGE: usize = 64 << 10;

/// Blocks of memory for what is read.
const READS: usize = 256 << 10;

/// A RAM drive, allocated as it is written.
#[derive(Debug)]
pub struct RamMedia {
    pages: Vec<Option<Box<[u8]>>>,
    size: u64,
    incarnation: u64,
    /// For what is read.
    arena: Arena,
}

impl RamMedia {
    /// `size` bytes of zeroes.
    pub fn new(size: u64) -> Self {
        let count = usize::try_from(size.div_ceil(PAGE as u64)).expect("fits the address space");
        Self {
            pages: std::iter::repeat_with(|| None).take(count).collect(),
            size,
            incarnation: new_incarnation(),
            arena: Arena::new(READS),
        }
    }

    fn inside(&self, offset: u64, length: u64) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.size)
    }

    fn read(&mut self, offset: u64, length: usize) -> Bytes {
        let mut out = self.arena.buffer(length);
        for (page, from, bytes) in pieces(offset, length) {
            match &self.pages[page] {
                Some(data) => out.extend_from_slice(&data[from..from + bytes]),
                None => out.resize(out.len() + bytes, 0),
            }
        }
        out.freeze()
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        let mut at = 0;
        for (page, from, bytes) in pieces(offset, data.len()) {
            let place = self.pages[page].get_or_insert_with(|| vec![0; PAGE].into());
            place[from..from + bytes].copy_from_slice(&data[at..at + bytes]);
            at += bytes;
        }
    }

    fn zero(&mut self, offset: u64, length: u64) {
        for (page, from, bytes) in pieces(offset, length as usize) {
            if bytes == PAGE {
                self.pages[page] = None;
            } else if let Some(data) = &mut self.pages[page] {
                data[from..from + bytes].fill(0);
            }
        }
    }
}

/// The parts of a range by page: (page, offset in it, bytes).
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let (mut at, mut left) = (offset as usize, length);
    std::iter::from_fn(move || {
        let from = at % PAGE;
        let bytes = left.min(PAGE - from);
        let piece = (at / PAGE, from, bytes);
        at += bytes;
        left -= bytes;
        (bytes > 0).then_some(piece)
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

    /// A new one at each start: RAM loses its contents.
    fn incarnation(&self) -> u64 {
        self.incarnation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::file::tests::run;

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
}
