//! A namespace in memory that several threads serve.

use super::ram::pieces;
use super::{Media, done};
use crate::record::new_incarnation;
use bytes::Bytes;
use nvme::block::{Completion, Error, Operation, Request};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};
use wire::Arena;

/// Bytes of a word, which is read and written at once.
const WORD: usize = 8;
/// Words of a page: 4 KiB.
const PAGE: usize = 512;
/// Pages of a unit: 64 KiB. A unit that was never written uses no memory.
const UNIT: usize = 16;
/// Size in bytes of a memory block for reads.
const READS: usize = 256 << 10;

/// A page. A read or write of a part of a page is atomic, so each block is written completely or not
/// at all (AWUN, NVMe 1.4, section 6.4). Pages share no cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Page {
    /// Odd while a thread writes; grows with each write.
    version: AtomicU64,
    words: [AtomicU64; PAGE],
}

impl Page {
    fn zeroed() -> Self {
        Self { version: AtomicU64::new(0), words: [const { AtomicU64::new(0) }; PAGE] }
    }

    /// Reads words from `from` on.
    fn read(&self, from: usize, out: &mut [[u8; WORD]]) {
        loop {
            let before = self.version.load(Ordering::Acquire);
            if before.is_multiple_of(2) {
                for (place, word) in out.iter_mut().zip(&self.words[from..]) {
                    *place = word.load(Ordering::Relaxed).to_ne_bytes();
                }
                fence(Ordering::Acquire);
                if self.version.load(Ordering::Relaxed) == before {
                    return;
                }
            }
            // Only commands for the same page at the same time get here.
            std::thread::yield_now();
        }
    }

    /// Writes words from `from` on.
    fn write(&self, from: usize, values: impl Iterator<Item = u64>) {
        let free = |version: u64| version.is_multiple_of(2).then_some(version + 1);
        let before = loop {
            match self.version.fetch_update(Ordering::Acquire, Ordering::Relaxed, free) {
                Ok(before) => break before,
                Err(_) => std::thread::yield_now(),
            }
        };
        fence(Ordering::Release);
        for (value, word) in values.zip(&self.words[from..]) {
            word.store(value, Ordering::Relaxed);
        }
        self.version.store(before + 2, Ordering::Release);
    }
}

type Unit = Box<[Page]>;

/// A RAM drive that threads share: each thread has a clone. Threads share the contents and nothing
/// that an access changes, except units at their first write, and pages that they access at the same
/// time.
#[derive(Debug)]
pub struct SharedRam {
    units: Arc<[OnceLock<Unit>]>,
    size: u64,
    incarnation: u64,
    arena: Arena,
}

impl Clone for SharedRam {
    fn clone(&self) -> Self {
        let (units, arena) = (self.units.clone(), Arena::new(READS));
        Self { units, arena, ..*self }
    }
}

impl SharedRam {
    /// A RAM drive with `size` bytes of zeroes.
    pub fn new(size: u64) -> Self {
        let units = size.div_ceil((WORD * PAGE * UNIT) as u64);
        Self {
            units: (0..units).map(|_| OnceLock::new()).collect(),
            size,
            incarnation: new_incarnation(),
            arena: Arena::new(READS),
        }
    }

    /// Whether a range consists of words inside of the namespace.
    fn takes(&self, offset: u64, length: u64) -> bool {
        let whole = offset.is_multiple_of(WORD as u64) && length.is_multiple_of(WORD as u64);
        whole && offset.checked_add(length).is_some_and(|end| end <= self.size)
    }

    /// The page of this number, unless its unit was never written.
    fn page(&self, page: usize) -> Option<&Page> {
        Some(&self.units[page / UNIT].get()?[page % UNIT])
    }

    fn read(&mut self, offset: u64, length: usize) -> Bytes {
        let mut out = self.arena.buffer(length);
        out.resize(length, 0);
        let mut rest = out.as_chunks_mut::<WORD>().0;
        for (page, from, words) in words(offset, length) {
            let place = rest.split_off_mut(..words).expect("pieces of the range");
            if let Some(page) = self.page(page) {
                page.read(from, place);
            }
        }
        out.freeze()
    }

    fn write(&self, offset: u64, data: &[u8]) {
        let mut rest = data.as_chunks::<WORD>().0;
        for (page, from, words) in words(offset, data.len()) {
            let values = rest.split_off(..words).expect("pieces of the data");
            let unit = self.units[page / UNIT].get_or_init(new_unit);
            unit[page % UNIT].write(from, values.iter().map(|value| u64::from_ne_bytes(*value)));
        }
    }

    fn zero(&self, offset: u64, length: u64) {
        for (page, from, words) in words(offset, length as usize) {
            if let Some(page) = self.page(page) {
                page.write(from, std::iter::repeat_n(0, words));
            }
        }
    }
}

fn new_unit() -> Unit {
    std::iter::repeat_with(Page::zeroed).take(UNIT).collect()
}

/// The parts of a range of bytes by page: page number, first word in the page, number of words.
fn words(offset: u64, length: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    pieces(offset as usize / WORD, length / WORD, PAGE)
}

impl Media for SharedRam {
    fn start(&mut self, request: Request) -> Option<Completion> {
        Some(match request.operation {
            Operation::Read { offset, length } if self.takes(offset, length as u64) => {
                Ok(self.read(offset, length))
            }
            Operation::Write { offset, data } if self.takes(offset, data.len() as u64) => {
                self.write(offset, &data);
                done()
            }
            Operation::WriteZeroes { offset, length } | Operation::Discard { offset, length }
                if self.takes(offset, length) =>
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
    use std::sync::atomic::AtomicBool;

    /// Two threads write the same block, and a third one reads it.
    #[test]
    fn a_block_has_the_bytes_of_one_write() {
        const BLOCK: usize = 4096;
        let ram = SharedRam::new(1 << 20);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers = [1u8, 2].map(|byte| {
                let ram = ram.clone();
                scope.spawn(move || (0..20_000).for_each(|_| ram.write(0x3000, &[byte; BLOCK])))
            });
            let (mut reader, ended) = (ram.clone(), &ended);
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    let block = reader.read(0x3000, BLOCK);
                    assert!(block.iter().all(|byte| *byte == block[0]), "bytes of two writes");
                }
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            ended.store(true, Ordering::Relaxed);
        });
    }
}
