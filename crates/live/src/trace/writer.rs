//! The thread that writes a trace, so that no node waits for a disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender};
use wire::trace::{CHUNK_HEADER, ChunkHeader};

/// A chunk to write.
#[derive(Debug)]
pub(super) struct Chunk {
    pub start_ns: u64,
    pub lost: u32,
    /// The records, behind room for the header.
    pub bytes: Vec<u8>,
}

/// Where chunks go in the file.
#[derive(Debug)]
pub(super) struct Layout {
    /// The offset of the next chunk.
    pub next: u64,
    /// The first byte and the length of the ring; `None` if the file grows.
    pub ring: Option<(u64, u64)>,
}

impl Layout {
    /// Allocates `length` bytes; returns their offset.
    fn take(&mut self, length: u64) -> u64 {
        if let Some((start, size)) = self.ring
            && self.next + length > start + size
        {
            self.next = start;
        }
        let at = self.next;
        self.next += length;
        at
    }
}

/// Writes all chunks, and returns their memory. Returns the bytes written.
/// Error: the first error; later chunks are dropped.
pub(super) fn write(
    file: &File,
    mut layout: Layout,
    full: &Receiver<Chunk>,
    empty: &SyncSender<Vec<u8>>,
) -> io::Result<u64> {
    let (mut number, mut written, mut result) = (0u32, 0, Ok(()));
    for Chunk { start_ns, lost, mut bytes } in full {
        if result.is_ok() {
            let header = ChunkHeader::new(number, lost, start_ns, &bytes[CHUNK_HEADER..]);
            bytes[..CHUNK_HEADER].copy_from_slice(&header.encode());
            number = number.wrapping_add(1);
            result = file.write_all_at(&bytes, layout.take(bytes.len() as u64));
            written += bytes.len() as u64;
        }
        // The recorder may have ended.
        let _ = empty.try_send(bytes);
    }
    result.map(|()| written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_its_bounds() {
        let mut ring = Layout { next: 90, ring: Some((100, 50)) };
        let places: Vec<u64> = [20, 20, 20, 20, 30].map(|length| ring.take(length)).into();
        assert_eq!(places, [90, 110, 130, 100, 120]);
        let mut line = Layout { next: 0, ring: None };
        assert_eq!([line.take(1 << 40), line.take(1)], [0, 1 << 40]);
    }
}
