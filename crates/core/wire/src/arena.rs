//! Memory for short-lived bytes.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// The maximum number of blocks kept for reuse.
const BLOCKS: usize = 8;

/// Memory for short-lived bytes. The arena splits blocks into pieces, and reuses a block once all
/// its pieces are dropped. Thus most pieces need no allocation. A long-lived piece keeps its whole
/// block alive.
#[derive(Debug)]
pub struct Arena {
    size: usize,
    block: BytesMut,
    /// Used blocks, oldest first.
    used: VecDeque<BytesMut>,
}

impl Arena {
    /// An empty arena whose blocks will have `size` bytes.
    pub fn new(size: usize) -> Self {
        Self { size, block: BytesMut::new(), used: VecDeque::new() }
    }

    /// An empty buffer for `length` bytes; a separate allocation if `length` exceeds the block
    /// size.
    pub fn buffer(&mut self, length: usize) -> BytesMut {
        if length > self.size {
            return BytesMut::with_capacity(length);
        }
        let block = self.block(length);
        let rest = block.split_off(length);
        std::mem::replace(block, rest)
    }

    /// A buffer with room for at least `least` bytes; `least` is at most the block size. The caller
    /// appends bytes to the buffer and splits them off.
    pub fn block(&mut self, least: usize) -> &mut BytesMut {
        if self.block.capacity() < least {
            self.next_block();
        }
        &mut self.block
    }

    /// A copy of `bytes`.
    pub fn copy(&mut self, bytes: &[u8]) -> Bytes {
        let mut buffer = self.buffer(bytes.len());
        buffer.extend_from_slice(bytes);
        buffer.freeze()
    }

    fn next_block(&mut self) {
        if self.block.try_reclaim(self.size) {
            return;
        }
        let free = self.used.front_mut().is_some_and(|oldest| oldest.try_reclaim(self.size));
        let oldest = if free || self.used.len() == BLOCKS { self.used.pop_front() } else { None };
        let next = oldest.filter(|_| free).unwrap_or_else(|| BytesMut::with_capacity(self.size));
        self.used.push_back(std::mem::replace(&mut self.block, next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_used_again_once_their_pieces_are_dropped() {
        let mut arena = Arena::new(256);
        let pieces: Vec<Bytes> = (0..40).map(|number| arena.copy(&[number; 64])).collect();
        for (number, piece) in (0..).zip(&pieces) {
            assert_eq!(piece[..], [number; 64]);
        }
        assert_eq!(arena.buffer(300).capacity(), 300);
        let places: Vec<_> = pieces.iter().map(|piece| piece.as_ptr()).collect();
        drop(pieces);
        for number in 0..100 {
            let piece = arena.copy(&[number; 64]);
            assert_eq!(piece[..], [number; 64]);
            assert!(places.contains(&piece.as_ptr()), "piece {number} has new memory");
        }
    }
}
