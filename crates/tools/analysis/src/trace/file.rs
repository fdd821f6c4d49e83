//! Reads one trace file. Its chunks are found even if some are damaged or overwritten.

use report::Failure;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use wire::trace::{CHUNK_HEADER, ChunkHeader, Header, Records, SYNC, Timed};

/// Bytes searched at a time for the next chunk.
const WINDOW: usize = 64 << 10;
/// Maximum number of chunks with a good header and bad records. Beyond this number the rest of the
/// file is not searched, because each such chunk costs a checksum.
const MOST_BAD: u32 = 1000;
/// Maximum length of a file's header in bytes.
const MOST_HEADER: usize = 4096;

/// The latest time of a record in nanoseconds, 146 years. Later times are replaced by this time, so
/// that differences of times and clocks cannot overflow.
const LATEST: u64 = 1 << 62;

/// An item of a file, in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A record.
    Record(Timed<'a>),
    /// Missing records; their number, if known.
    Gap(Option<u64>),
}

#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    chunk: ChunkHeader,
    /// Bytes of records in the file.
    have: u32,
}

/// An open trace file and its chunks.
#[derive(Debug)]
pub struct TraceFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Header of the file.
    pub header: Header,
    /// Whether the file ends in the middle of a chunk, for example because the node was killed.
    pub cut: bool,
    /// Number of bytes that belong to no chunk or to a damaged chunk.
    pub damaged: u64,
    source: Source,
    chunks: Vec<Place>,
}

impl TraceFile {
    /// Opens a file and searches its chunks.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        Self::read_from(path, Source::File(File::open(path).map_err(|e| failed(path, e))?))
    }

    /// Opens a file in memory; `path` is its name in messages.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self, Failure> {
        Self::read_from(path, Source::Memory(bytes))
    }

    fn read_from(path: &Path, source: Source) -> Result<Self, Failure> {
        let mut head = vec![0; MOST_HEADER];
        let have = source.read_at(0, &mut head).map_err(|error| failed(path, error))?;
        let (header, at) = Header::decode(&head[..have]).map_err(|error| failed(path, error))?;
        let (path, chunks) = (path.to_owned(), Vec::new());
        let mut trace = Self { path, header, cut: false, damaged: 0, source, chunks };
        trace.find_chunks(at as u64).map_err(|error| failed(&trace.path, error))?;
        // By time first, because chunk numbers wrap at 2^32.
        trace.chunks.sort_by_key(|place| (place.chunk.start_ns, place.chunk.number));
        trace.chunks.dedup_by_key(|place| place.chunk.number);
        Ok(trace)
    }

    fn find_chunks(&mut self, mut at: u64) -> io::Result<()> {
        let mut bad = 0;
        let mut bytes = Vec::new();
        loop {
            let mut head = [0; CHUNK_HEADER];
            let have = self.source.read_at(at, &mut head)?;
            if have == 0 || bad > MOST_BAD {
                return Ok(());
            }
            let found = ChunkHeader::decode(&head[..have]);
            if let Some(chunk) = found {
                bytes.resize(chunk.length as usize, 0);
                let have = self.source.read_at(at + CHUNK_HEADER as u64, &mut bytes)?;
                let cut = have < bytes.len();
                if cut || chunk.covers(&bytes) {
                    self.cut |= cut;
                    self.chunks.push(Place { offset: at, chunk, have: have as u32 });
                    at += (CHUNK_HEADER + have) as u64;
                    continue;
                }
                bad += 1;
            }
            let next = self.next_sync(at + 1)?;
            // The rest of a chunk that was overwritten is not damaged.
            self.damaged += if self.header.ring { 0 } else { next - at };
            at = next;
        }
    }

    /// Returns the next possible start of a chunk, or the end of the file.
    fn next_sync(&self, mut at: u64) -> io::Result<u64> {
        let mut window = vec![0; WINDOW];
        loop {
            let have = self.source.read_at(at, &mut window)?;
            let found = window[..have].windows(SYNC.len()).position(|bytes| bytes == SYNC);
            if let Some(position) = found {
                return Ok(at + position as u64);
            }
            if have < WINDOW {
                return Ok(at + have as u64);
            }
            at += (WINDOW - SYNC.len() + 1) as u64;
        }
    }

    /// Passes all items to `sink` in order. Returns the number of invalid records.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn read(&self, mut sink: impl FnMut(Item<'_>)) -> Result<u64, Failure> {
        let mut bytes = Vec::new();
        let (mut expected, mut bad, mut last) = (0, 0, 0);
        for Place { offset, chunk, have } in &self.chunks {
            if chunk.number != expected {
                sink(Item::Gap(None));
            }
            if chunk.lost > 0 {
                sink(Item::Gap(Some(u64::from(chunk.lost))));
            }
            expected = chunk.number.wrapping_add(1);
            bytes.resize(*have as usize, 0);
            let read = self.source.read_at(offset + CHUNK_HEADER as u64, &mut bytes);
            read.map_err(|error| failed(&self.path, error))?;
            let mut records = Records::new(chunk.start_ns, &bytes);
            for Timed { at_ns, record } in records.by_ref() {
                // Times of damaged records may decrease, other times never do.
                last = at_ns.clamp(last, LATEST);
                sink(Item::Record(Timed { at_ns: last, record }));
            }
            bad += records.bad();
        }
        Ok(bad)
    }
}

fn failed(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure(format!("{}: {why}", path.display()))
}

/// The source of the file's bytes.
#[derive(Debug)]
enum Source {
    File(File),
    Memory(Vec<u8>),
}

impl Source {
    /// Reads until `bytes` are full or the file ends.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let mut have = 0;
        while have < bytes.len() {
            match self.read_some(offset + have as u64, &mut bytes[have..]) {
                Ok(0) => break,
                Ok(more) => have += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(have)
    }

    fn read_some(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read_at(bytes, offset),
            Self::Memory(all) => {
                let start = usize::try_from(offset).unwrap_or(all.len()).min(all.len());
                let length = bytes.len().min(all.len() - start);
                bytes[..length].copy_from_slice(&all[start..start + length]);
                Ok(length)
            }
        }
    }
}
