//! The contents of a drive. Only written pages use memory; other bytes are computed.

use crate::memory::take_memory;
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use std::ops::Range;
use workload::pattern::fill;

/// Bytes of a stored page.
const PAGE: usize = 4096;

/// The contents of a drive. Memory grows with the number of different pages that were written.
#[derive(Debug)]
pub(crate) struct Store {
    seed: u64,
    pub(super) pages: BTreeMap<u64, Box<[u8; PAGE]>>,
    /// Ranges of pages that read as zeroes: from the first page of a range to the page after its
    /// last one.
    zeroed: BTreeMap<u64, u64>,
    /// A buffer from which reads take their memory.
    memory: BytesMut,
}

impl Store {
    /// A drive that holds version 0 of the pattern of `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, pages: BTreeMap::new(), zeroed: BTreeMap::new(), memory: BytesMut::new() }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The ranges of bytes that were written, in whole pages.
    pub(crate) fn written(&self) -> impl Iterator<Item = Range<u64>> {
        self.pages.keys().map(|page| page * PAGE as u64..(page + 1) * PAGE as u64)
    }

    /// Reads `length` bytes; offset and length are multiples of 8.
    pub(crate) fn read(&mut self, offset: u64, length: usize) -> Bytes {
        let mut out = take_memory(&mut self.memory, length);
        for (page, inside, range) in pieces(offset, length) {
            let place = &mut out[range.clone()];
            match self.pages.get(&page) {
                Some(bytes) => place.copy_from_slice(&bytes[inside..inside + range.len()]),
                None if is_zeroed(&self.zeroed, page) => place.fill(0),
                None => fill(self.seed, page * PAGE as u64 + inside as u64, 0, place),
            }
        }
        out.freeze()
    }

    /// Writes bytes; offset and length are multiples of 8.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        let (seed, zeroed) = (self.seed, &self.zeroed);
        for (page, inside, range) in pieces(offset, data.len()) {
            let bytes = self.pages.entry(page).or_insert_with(|| {
                let mut bytes = Box::new([0; PAGE]);
                if range.len() < PAGE && !is_zeroed(zeroed, page) {
                    fill(seed, page * PAGE as u64, 0, &mut bytes[..]);
                }
                bytes
            });
            bytes[inside..inside + range.len()].copy_from_slice(&data[range]);
        }
    }

    /// Zeroes a range; the memory does not depend on `length`. Offset and length are multiples
    /// of 8.
    pub(crate) fn zero(&mut self, offset: u64, length: u64) {
        let page = PAGE as u64;
        let end = offset + length;
        let (first, last) = (offset.next_multiple_of(page).min(end), end / page * page);
        if first > last {
            return self.write(offset, &[0; PAGE][..length as usize]);
        }
        self.write(offset, &[0; PAGE][..(first - offset) as usize]);
        self.write(last, &[0; PAGE][..(end - last) as usize]);
        self.zero_pages(first / page, last / page);
    }

    fn zero_pages(&mut self, mut first: u64, mut end: u64) {
        if first == end {
            return;
        }
        let mut rest = self.pages.split_off(&first);
        self.pages.append(&mut rest.split_off(&end));
        // Overlapping and adjacent ranges are joined.
        while let Some((from, to)) = self.zeroed.range(..=end).next_back().map(|(a, b)| (*a, *b))
            && to >= first
        {
            self.zeroed.remove(&from);
            (first, end) = (first.min(from), end.max(to));
        }
        self.zeroed.insert(first, end);
    }
}

/// Whether one of the ranges contains the page.
fn is_zeroed(ranges: &BTreeMap<u64, u64>, page: u64) -> bool {
    ranges.range(..=page).next_back().is_some_and(|(_, end)| page < *end)
}

/// Splits a transfer at page borders: page, offset in the page, range of the transfer.
fn pieces(
    offset: u64,
    length: usize,
) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let at = offset + done as u64;
        let inside = (at % PAGE as u64) as usize;
        let piece = (PAGE - inside).min(length - done);
        let range = done..done + piece;
        done += piece;
        Some((at / PAGE as u64, inside, range))
    })
}
