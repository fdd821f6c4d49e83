//! The bytes of a drive, sparse: unwritten bytes are computed.

use crate::memory::take_memory;
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use workload::pattern::fill;

/// Bytes of a stored page.
const PAGE: usize = 4096;

/// The contents of a drive. Memory grows with the distinct pages written, not with time.
#[derive(Debug)]
pub(crate) struct Store {
    seed: u64,
    pub(super) pages: BTreeMap<u64, Box<[u8; PAGE]>>,
    /// Memory for the next reads.
    memory: BytesMut,
}

impl Store {
    /// A drive that holds version 0 of the pattern of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, pages: BTreeMap::new(), memory: BytesMut::new() }
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Reads `length` bytes; offset and length are multiples of 8.
    pub fn read(&mut self, offset: u64, length: usize) -> Bytes {
        let mut out = take_memory(&mut self.memory, length);
        for (page, inside, range) in pieces(offset, length) {
            let place = &mut out[range.clone()];
            match self.pages.get(&page) {
                Some(bytes) => place.copy_from_slice(&bytes[inside..inside + range.len()]),
                None => fill(self.seed, page * PAGE as u64 + inside as u64, 0, place),
            }
        }
        out.freeze()
    }

    /// Writes bytes; offset and length are multiples of 8.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let seed = self.seed;
        for (page, inside, range) in pieces(offset, data.len()) {
            let bytes = self.pages.entry(page).or_insert_with(|| {
                let mut bytes = Box::new([0; PAGE]);
                if range.len() < PAGE {
                    fill(seed, page * PAGE as u64, 0, &mut bytes[..]);
                }
                bytes
            });
            bytes[inside..inside + range.len()].copy_from_slice(&data[range]);
        }
    }
}

/// (page, offset in it, range of the transfer).
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
