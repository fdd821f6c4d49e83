//! Options of a file as a medium.

use super::open::Opened;
use std::io;

/// The way to execute reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aio {
    /// Threads with `pread` and `pwrite`.
    Threads,
    /// io_uring(7), or threads if io_uring is not available. The default, because io_uring is the
    /// fastest way (docs/performance.md, "Media in files").
    #[default]
    IoUring,
    /// io_uring without the page cache (`O_DIRECT`, open(2)), or threads if io_uring or direct I/O
    /// is not available.
    IoUringDirect,
}

/// Options for opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Creates the file, or extends it to this number of bytes. A longer file is never truncated,
    /// and a block device never changed.
    pub size: Option<u64>,
    /// Whether the part added by `size` is allocated on write instead of reserved.
    pub sparse: bool,
    /// Whether writes are rejected; then no record is written.
    pub read_only: bool,
    /// Whether a block device is served with its existing data. Otherwise a block device is served
    /// only read-only.
    pub use_existing_data: bool,
    /// Block size of the namespace in bytes. A block device with larger blocks is an error.
    pub block: u32,
    /// The way to execute reads and writes.
    pub aio: Aio,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            size: None,
            sparse: false,
            read_only: false,
            use_existing_data: false,
            block: 512,
            aio: Aio::default(),
        }
    }
}

impl FileOptions {
    /// Whether the file is created if it does not exist.
    pub(super) fn creates(&self) -> bool {
        self.size.is_some() && !self.read_only
    }
}

/// The number of bytes to serve: `size`, or `have` bytes as before with `None`. Error: if the file
/// cannot have `size` bytes.
pub(super) fn served_size(have: u64, opened: &Opened, size: Option<u64>) -> io::Result<u64> {
    let (length, fixed) = (opened.length, !opened.metadata.is_file());
    let Some(size) = size else { return Ok(have) };
    if size < have {
        return Err(io::Error::other(format!(
            "is {have} bytes long, more than size={size}; it is not shortened"
        )));
    }
    if size > length && (fixed || opened.read_only) {
        let kind = if fixed { "a block device" } else { "read-only" };
        return Err(io::Error::other(format!(
            "is {length} bytes long and {kind}, so size={size} cannot be reached"
        )));
    }
    Ok(size)
}
