//! The interface of files and folders for media and drives. Tests replace the files of the machine
//! by a model that loses unsynced data.

#[cfg(test)]
pub(crate) mod crash;
mod grow;
mod replace;
mod system;
#[cfg(test)]
mod tests;

pub(crate) use grow::{check_limit, grow};
pub(crate) use replace::{remove_if_there, replace};
pub use system::{SystemFile, SystemFolder};

use std::fmt::Debug;
use std::fs::Metadata;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// An open file. Several threads may use it at once. Offsets and lengths are in bytes.
///
/// No write is durable before [`sync_data`](Self::sync_data) returns. Every method returns the
/// error of the system, such as `StorageFull` or `ReadOnlyFilesystem`.
#[expect(clippy::len_without_is_empty, reason = "nobody asks for that")]
pub trait File: Debug + Send + Sync {
    /// Fills `bytes` from `offset` on. Error: `UnexpectedEof` beyond the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`; the file grows as needed. After an error any part may
    /// have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Shortens the file, or extends it by bytes that read as zeroes and have no space reserved.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Makes all written bytes and the length durable (fdatasync(2)). After an error any part of
    /// these bytes may be lost, even if a later call succeeds.
    fn sync_data(&self) -> io::Result<()>;

    /// As [`write_at`](Self::write_at), and makes these bytes durable. Other written bytes need not
    /// become durable.
    fn write_durably_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes a range inside the file read as zeroes. The space stays reserved.
    fn zero_range(&self, offset: u64, length: u64) -> io::Result<()>;

    /// Frees the space of a range inside the file, which then reads as zeroes. Error: `Unsupported`
    /// if the file system has no holes.
    fn punch_hole(&self, offset: u64, length: u64) -> io::Result<()>;

    /// Number of free bytes in the file system with this file; `None` if unknown.
    fn free_space(&self) -> Option<u64>;

    /// Reserves the space of a range; the file grows as needed. Error: `Unsupported` if the file
    /// system cannot reserve space.
    fn allocate(&self, offset: u64, length: u64) -> io::Result<()>;

    /// The descriptor of a file of the machine; `None` for other files. Reads and writes through
    /// the descriptor are equivalent to [`read_at`](Self::read_at) and
    /// [`write_at`](Self::write_at).
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// How [`Folder::open`] opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The file must exist, and is opened read-only.
    Read,
    /// The file must exist, and is opened for reading and writing.
    Write,
    /// The file is created if it does not exist.
    Create,
    /// The file must not exist.
    CreateNew,
}

/// An open folder. Changes of entries are not durable before [`sync`](Self::sync) returns, even if
/// the files are synced.
pub trait Folder: Debug + Send + Sync {
    /// Opens a file in the folder.
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn File>>;

    /// Locks a file in the folder until the returned value is dropped. Creates the file unless the
    /// lock is shared. `None` if another process has a conflicting lock. Error: `NotFound` for a
    /// shared lock if the file does not exist.
    fn lock(&self, name: &str, shared: bool) -> io::Result<Option<Box<dyn Debug + Send + Sync>>>;

    /// Opens an existing folder in this folder.
    fn folder(&self, name: &str) -> io::Result<Box<dyn Folder>>;

    /// Creates a folder in this folder.
    fn create_folder(&self, name: &str) -> io::Result<()>;

    /// Removes an empty folder in this folder.
    fn remove_folder(&self, name: &str) -> io::Result<()>;

    /// The names of all entries, sorted.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Renames a file; replaces an existing file with the name `to`.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all changes of the folder's entries durable.
    fn sync(&self) -> io::Result<()>;
}

/// Whether the file at `path` is the file with this metadata.
pub(crate) fn leads_to(path: &Path, file: &Metadata) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|named| (named.dev(), named.ino()) == (file.dev(), file.ino()))
}
