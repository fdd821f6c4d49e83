//! Opens an image: locks it, checks its type, and leaves nothing behind if the start fails.

use crate::about;
use crate::media::leads_to;
use crate::storage::{File as _, SystemFile};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A locked image.
#[derive(Debug)]
pub(super) struct Opened {
    pub file: SystemFile,
    pub metadata: Metadata,
    /// Its length in bytes.
    pub length: u64,
    /// This start created it.
    pub created: bool,
    pub undo: Undo,
}

impl Opened {
    /// Opens and locks `path`; with `create`, creates it if it does not exist.
    /// Error: a sentence without the path.
    pub fn new(path: &Path, read_only: bool, create: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // Opening must not wait for the far end of a pipe.
        options.read(true).write(!read_only).custom_flags(OFlags::NONBLOCK.bits() as i32);
        let (file, created) = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && create => {
                // Only the process that creates a file may remove it again.
                let file = options.create_new(true).open(path);
                (file.map_err(|error| about("cannot create it", error))?, true)
            }
            opened => (opened.map_err(|error| about("cannot open", error))?, false),
        };
        let metadata = file.metadata().map_err(|error| about("cannot stat", error))?;
        let path = path.to_owned();
        let mut undo = Undo { file: file.try_clone()?, path, created, length: None };
        if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Another process serves it.
            undo.created &= error != Errno::WOULDBLOCK;
            return Err(about("in use by another process", error.into()));
        }
        if !undo.is_at_path() {
            return Err(io::Error::other("was removed or replaced while it was opened"));
        }
        if !metadata.is_file() && !metadata.file_type().is_block_device() {
            return Err(io::Error::other("neither a regular file nor a block device"));
        }
        let file = SystemFile::from(file);
        let length = file.len().map_err(|error| about("cannot find its end", error))?;
        Ok(Self { file, metadata, length, created, undo })
    }
}

/// Undoes a failed start when dropped: removes a file that the start created, and restores the
/// length of one that it grew.
#[derive(Debug)]
pub(super) struct Undo {
    file: File,
    path: PathBuf,
    created: bool,
    /// The old length of a file that grows.
    pub length: Option<u64>,
}

impl Undo {
    /// Keeps the file: it is served now.
    pub fn disarm(mut self) {
        (self.created, self.length) = (false, None);
    }

    fn is_at_path(&self) -> bool {
        self.file.metadata().is_ok_and(|file| leads_to(&self.path, &file))
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        // A reservation that failed may have taken space beyond the end.
        if let Some(length) = self.length {
            let _ = self.file.set_len(length);
        }
        if self.created && self.is_at_path() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
