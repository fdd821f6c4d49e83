//! The thread that writes a trace, so that no node waits for a disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use wire::trace::{CHUNK_HEADER, ChunkHeader, Records};

/// A chunk to write.
#[derive(Debug)]
pub(super) struct Chunk {
    pub start_ns: u64,
    pub lost: u32,
    /// The records, after room for the header.
    pub bytes: Vec<u8>,
}

/// The positions of chunks in the file.
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

/// A function that the writer calls at once after an error.
pub type OnError = Box<dyn FnMut(&io::Error) + Send>;

/// Writes chunks into a file.
pub(super) struct Writer {
    pub file: File,
    pub layout: Layout,
    /// Set when a chunk cannot be written. Later chunks are dropped until the flag is cleared.
    pub failed: Arc<AtomicBool>,
    pub on_error: OnError,
}

impl Writer {
    /// Writes all chunks, and returns their memory. Returns the bytes written.
    /// Error: the first error.
    pub(super) fn write(
        mut self,
        full: &Receiver<Chunk>,
        empty: &SyncSender<Vec<u8>>,
    ) -> io::Result<u64> {
        let (mut number, mut written, mut result) = (0u32, 0, Ok(()));
        let (mut failing, mut dropped) = (false, 0u32);
        for Chunk { start_ns, lost, mut bytes } in full {
            let again = failing && !self.failed.load(Ordering::Relaxed);
            failing &= !again;
            dropped = dropped.saturating_add(lost);
            if !failing {
                let header = ChunkHeader::new(number, dropped, start_ns, &bytes[CHUNK_HEADER..]);
                bytes[..CHUNK_HEADER].copy_from_slice(&header.encode());
                match self.write_chunk(&bytes, again) {
                    Ok(()) => {
                        number = number.wrapping_add(1);
                        written += bytes.len() as u64;
                        dropped = 0;
                    }
                    Err(error) => {
                        failing = true;
                        self.failed.store(true, Ordering::Relaxed);
                        (self.on_error)(&error);
                        result = result.and(Err(error));
                    }
                }
            }
            if failing {
                let records = Records::new(start_ns, &bytes[CHUNK_HEADER..]).count();
                dropped = dropped.saturating_add(records as u32);
            }
            // The recorder may have ended.
            let _ = empty.try_send(bytes);
        }
        result.map(|()| written)
    }

    /// Writes one chunk, or leaves its place to the next. With `again`, the place may hold a part
    /// of a failed chunk.
    fn write_chunk(&mut self, bytes: &[u8], again: bool) -> io::Result<()> {
        let at = self.layout.take(bytes.len() as u64);
        let cut = match self.layout.ring {
            None if again => self.file.set_len(at),
            _ => Ok(()),
        };
        let wrote = cut.and_then(|()| self.file.write_all_at(bytes, at));
        if wrote.is_err() {
            self.layout.next = at;
        }
        wrote
    }
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
