//! A namespace in memory that several threads serve.

use super::{Media, done};
use crate::record::new_incarnation;
use bytes::Bytes;
use nvme::block::{Completion, Error, Operation, Request};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};
use wire::Arena;

/// Bytes of a word, which is read and written at once.
const WORD: usize = 8;
/// Words of a unit: 64 KiB. A unit that was never written uses no memory.
const UNIT: usize = 8192;
/// Size in bytes of a memory block for reads.
const READS: usize = 256 << 10;

/// Words of a namespace, which commands of several threads may access at the same time.
type Unit = Box<[AtomicU64]>;

/// A RAM drive that threads share: each thread has a clone. Threads share the contents and nothing
/// that an access changes, except units at their first write. If commands of two threads access the
/// same block at the same time, the block may have words of both, as NVMe permits without atomicity
/// of such commands (AWUN, NVMe 1.4, section 6.4).
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
        let units = size.div_ceil((WORD * UNIT) as u64);
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

    fn read(&mut self, offset: u64, length: usize) -> Bytes {
        let mut out = self.arena.buffer(length);
        out.resize(length, 0);
        fence(Ordering::Acquire);
        let mut rest = &mut *out;
        for (unit, from, words) in pieces(offset, length) {
            let (place, after) = rest.split_at_mut(words * WORD);
            rest = after;
            let Some(unit) = self.units[unit].get() else { continue };
            let words = unit[from..from + words].iter();
            for (place, word) in place.as_chunks_mut::<WORD>().0.iter_mut().zip(words) {
                *place = word.load(Ordering::Relaxed).to_ne_bytes();
            }
        }
        out.freeze()
    }

    fn write(&self, offset: u64, mut data: &[u8]) {
        for (unit, from, words) in pieces(offset, data.len()) {
            let piece = data.split_off(..words * WORD).expect("pieces of the data");
            let unit = self.units[unit].get_or_init(new_unit);
            let words = unit[from..from + words].iter();
            for (value, word) in piece.as_chunks::<WORD>().0.iter().zip(words) {
                word.store(u64::from_ne_bytes(*value), Ordering::Relaxed);
            }
        }
        fence(Ordering::Release);
    }

    fn zero(&self, offset: u64, length: u64) {
        for (unit, from, words) in pieces(offset, length as usize) {
            let Some(unit) = self.units[unit].get() else { continue };
            unit[from..from + words].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        fence(Ordering::Release);
    }
}

fn new_unit() -> Unit {
    std::iter::repeat_with(|| AtomicU64::new(0)).take(UNIT).collect()
}

/// The parts of a range by unit: number of the unit, first word in the unit, number of words.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let (mut at, mut left) = (offset as usize / WORD, length / WORD);
    std::iter::from_fn(move || {
        let from = at % UNIT;
        let words = left.min(UNIT - from);
        let piece = (at / UNIT, from, words);
        at += words;
        left -= words;
        (words > 0).then_some(piece)
    })
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
