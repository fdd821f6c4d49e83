//! One copy or fill job, executed in pieces.

use super::DmaTest;
use crate::endpoint::DmaError;
use bytes::Bytes;

/// Bytes of one piece of a job. A job buffers one piece.
const PIECE: u32 = 16 << 10;
/// A job pauses while at least this number of posted bytes is queued for the link.
const MAX_POSTED: usize = 64 << 10;

/// `STATUS` bits 15:8 of a job with invalid registers. If a job fails later, the bits are the
/// number of the [`DmaError`].
pub(super) const INVALID: u8 = 6;

#[derive(Clone, Copy, Debug)]
enum Source {
    Memory(u64),
    Pattern(u32),
}

/// A job in progress.
#[derive(Debug)]
pub(super) struct Job {
    source: Source,
    destination: u64,
    done: u32,
    length: u32,
    /// The outstanding read.
    reading: Option<u64>,
}

impl Job {
    pub(super) fn copy(source: u64, destination: u64, length: u32) -> Self {
        Self { source: Source::Memory(source), destination, done: 0, length, reading: None }
    }

    pub(super) fn fill(pattern: u32, destination: u64, length: u32) -> Self {
        Self { source: Source::Pattern(pattern), destination, done: 0, length, reading: None }
    }

    fn piece(&self) -> u32 {
        PIECE.min(self.length - self.done)
    }
}

impl DmaTest {
    /// Continues the job as long as no read is outstanding and the link takes the writes.
    pub(super) fn advance(&mut self) {
        while let Some(job) = &mut self.job {
            if job.reading.is_some() || self.endpoint.posted_backlog() >= MAX_POSTED {
                return;
            }
            if job.done == job.length {
                self.end(Ok(()));
                return;
            }
            let piece = job.piece();
            match job.source {
                Source::Memory(source) => {
                    let id = self.next_read;
                    self.next_read += 1;
                    job.reading = Some(id);
                    let at = source.wrapping_add(u64::from(job.done));
                    self.endpoint.dma_read(id, at, piece as usize);
                    self.take_events();
                }
                Source::Pattern(pattern) => {
                    let bytes = pattern.to_le_bytes();
                    let data: Vec<u8> =
                        (job.done..job.done + piece).map(|i| bytes[i as usize & 3]).collect();
                    self.write_piece(Bytes::from(data));
                }
            }
        }
    }

    pub(super) fn read_done(&mut self, id: u64, result: Result<Bytes, DmaError>) {
        let Some(job) = self.job.as_mut().filter(|job| job.reading == Some(id)) else { return };
        job.reading = None;
        match result {
            Ok(data) => self.write_piece(data),
            Err(error) => self.end(Err(error as u8)),
        }
    }

    fn write_piece(&mut self, data: Bytes) {
        let Some(job) = &mut self.job else { return };
        if !self.endpoint.is_bus_master() {
            self.end(Err(DmaError::BusMasterDisabled as u8));
            return;
        }
        let at = job.destination.wrapping_add(u64::from(job.done));
        job.done += data.len() as u32;
        self.endpoint.dma_write(at, data);
    }
}
