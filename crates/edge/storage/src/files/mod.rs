//! Files and folders as media and drives use them, apart from the machine's: a test replaces
//! them by a model that loses what was not synced.

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
/// Nothing is durable before [`sync_data`](Self::sync_data) returns. Every method reports what the
/// system says; `StorageFull` and `ReadOnlyFilesystem` are among the kinds of errors.
#[expect(clippy::len_without_is_empty, reason = "nobody asks for that")]
pub trait File: Debug + Send + Sync {
    /// Fills `bytes` from `offset` on. Error: `UnexpectedEof` beyond the end.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`; the file grows as needed. After an error any part may
    /// have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Its length.
    fn len(&self) -> io::Result<u64>;

    /// Cuts it, or makes it longer by bytes that read as zeroes and have no space reserved.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Makes everything written so far durable, and the length too (fdatasync(2)). After an error
    /// any part of it may be lost, also if a later call succeeds.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes a range inside the file read as zeroes; its space stays reserved.
    fn zero_range(&self, offset: u64, length: u64) -> io::Result<()>;

    /// Gives the space of a range inside the file back; it reads as zeroes then.
    /// Error: `Unsupported` where the file system has no holes.
    fn punch_hole(&self, offset: u64, length: u64) -> io::Result<()>;

    /// The free bytes of its file system; `None` if it does not say.
    fn free_space(&self) -> Option<u64>;

    /// Reserves the space of a range; the file grows as needed.
    /// Error: `Unsupported` where the file system cannot reserve.
    fn allocate(&self, offset: u64, length: u64) -> io::Result<()>;

    /// The file's descriptor, if the machine itself keeps it: what is read and written by it is
    /// as if by [`read_at`](Self::read_at) and [`write_at`](Self::write_at).
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// How [`Folder::open`] opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It must exist, and is read only.
    Read,
    /// It must exist.
    Write,
    /// It is created if it does not exist.
    Create,
    /// It must not exist.
    CreateNew,
}

/// An open folder. Changes of its entries are not durable before [`sync`](Self::sync) returns,
/// whatever is synced of the files.
pub trait Folder: Debug + Send + Sync {
    /// Opens a file in it.
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn File>>;

    /// Locks a file in it, which is created unless the lock is shared, until the value is dropped;
    /// `None` if another process has a lock that forbids it.
    /// Error: `NotFound` if there is no file and the lock is shared.
    fn lock(&self, name: &str, shared: bool) -> io::Result<Option<Box<dyn Debug + Send + Sync>>>;

    /// A folder in it, which must exist.
    fn folder(&self, name: &str) -> io::Result<Box<dyn Folder>>;

    /// Creates a folder in it.
    fn create_folder(&self, name: &str) -> io::Result<()>;

    /// Removes an empty folder.
    fn remove_folder(&self, name: &str) -> io::Result<()>;

    /// The names of everything in it, sorted.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Renames a file; one that has the name `to` is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all changes of its entries durable.
    fn sync(&self) -> io::Result<()>;
}

/// Whether `path` leads to the file with this metadata.
pub(crate) fn leads_to(path: &Path, file: &Metadata) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|named| (named.dev(), named.ino()) == (file.dev(), file.ino()))
}
