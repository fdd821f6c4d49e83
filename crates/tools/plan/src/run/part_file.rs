//! A part of the tables: a file, or bytes in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Cursor, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

type Bytes = Arc<Mutex<Vec<u8>>>;

/// The parts in memory, by the name that a file would have.
#[derive(Debug, Default)]
pub(super) struct MemoryParts(Mutex<BTreeMap<PathBuf, Bytes>>);

/// A part that is being written.
#[derive(Debug)]
pub(super) enum PartFile {
    File(BufWriter<File>),
    Memory(Bytes),
}

impl PartFile {
    /// Begins a part, in `memory` if there is one.
    pub fn create(path: PathBuf, memory: Option<&MemoryParts>) -> io::Result<Self> {
        let Some(MemoryParts(parts)) = memory else {
            return File::create(path).map(BufWriter::new).map(Self::File);
        };
        let bytes = Bytes::default();
        parts.lock().expect("no writer panics").insert(path, bytes.clone());
        Ok(Self::Memory(bytes))
    }

    /// Opens a part that was written. The bytes of a part in memory are removed.
    pub fn open(path: PathBuf, memory: Option<&MemoryParts>) -> io::Result<Box<dyn BufRead>> {
        let Some(MemoryParts(parts)) = memory else {
            return Ok(Box::new(BufReader::with_capacity(1 << 18, File::open(path)?)));
        };
        let bytes = parts.lock().expect("no writer panics").remove(&path);
        let bytes = bytes.ok_or(io::ErrorKind::NotFound)?;
        let bytes = std::mem::take(&mut *bytes.lock().expect("no writer panics"));
        Ok(Box::new(Cursor::new(bytes)))
    }
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Memory(part) => part.lock().expect("no writer panics").write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Memory(_) => Ok(()),
        }
    }
}
