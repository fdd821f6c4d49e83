//! Opens an image: locks the file and checks its type. If the start fails, changes are undone.

use super::FileOptions;
use super::lock::{lock, patiently};
use crate::about;
use crate::files::{File as _, SystemFile, leads_to};
use crate::media::device::BlockDevice;
use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// An open and locked image.
#[derive(Debug)]
pub(super) struct Opened {
    pub file: SystemFile,
    pub metadata: Metadata,
    /// Length of the image in bytes.
    pub length: u64,
    /// Whether the image is served read-only: on request, or because the device cannot be written.
    pub read_only: bool,
    /// Whether this start created the file.
    pub created: bool,
    pub undo: Undo,
}

impl Opened {
    /// Opens and locks `path`. Creates the file if it does not exist and `wanted` has a size. Opens
    /// a block device exclusively (`O_EXCL`, open(2)) and checks it. Error: a sentence without the
    /// path.
    pub(super) fn new(path: &Path, wanted: FileOptions) -> io::Result<Self> {
        let device =
            std::fs::metadata(path).ok().and_then(|found| BlockDevice::from_metadata(&found));
        let read_only = wanted.read_only || device.as_ref().is_some_and(BlockDevice::is_read_only);
        let mut options = OpenOptions::new();
        // The open must not wait for the other end of a pipe.
        let mut flags = OFlags::NONBLOCK;
        flags.set(OFlags::EXCL, device.is_some());
        options.read(true).write(!read_only).custom_flags(flags.bits() as i32);
        let opened = patiently(io::ErrorKind::ResourceBusy, || options.open(path));
        let (file, created) = match (opened, &device) {
            (Err(error), None) if error.kind() == io::ErrorKind::NotFound && wanted.creates() => {
                // `create_new`: only the process that has created a file may remove it again.
                let file = options.create_new(true).open(path);
                (file.map_err(|error| about("cannot create it", error))?, true)
            }
            (Err(error), Some(device)) if error.kind() == io::ErrorKind::ResourceBusy => {
                return Err(device.in_use());
            }
            (opened, _) => (opened.map_err(|error| about("cannot open", error))?, false),
        };
        let metadata = file.metadata().map_err(|error| about("cannot stat", error))?;
        let path = path.to_owned();
        let mut undo = Undo { file: file.try_clone()?, path, created, length: None };
        if let Err(error) = lock(&file) {
            // Another process serves the file.
            undo.created &= error.kind() != io::ErrorKind::WouldBlock;
            return Err(about("in use by another process", error));
        }
        if !undo.is_at_path() || BlockDevice::from_metadata(&metadata) != device {
            return Err(io::Error::other("was removed or replaced while it was opened"));
        }
        check_kind(&metadata)?;
        let file = SystemFile::from(file);
        let length = file.len().map_err(|error| about("cannot find its end", error))?;
        if let Some(device) = device {
            device.check_block(&file, wanted.block)?;
            // A read-only device is safe without the option.
            if !read_only && !wanted.use_existing_data {
                return Err(io::Error::other(
                    "a block device: the host may overwrite what it has; say use-existing-data, or \
                     ro",
                ));
            }
        }
        Ok(Self { file, metadata, length, read_only, created, undo })
    }
}

/// Checks that `path` is, or can become, an image. Error: a sentence without the path.
pub(super) fn check(path: &Path, wanted: FileOptions) -> io::Result<()> {
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound && wanted.creates() => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let found = folder.unwrap_or(Path::new(".")).metadata();
            found.map(drop).map_err(|error| about("cannot create it", error))
        }
        Err(error) => Err(about("cannot open", error)),
        Ok(found) => check_kind(&found),
    }
}

/// Checks that a file can be an image.
fn check_kind(found: &Metadata) -> io::Result<()> {
    match found.is_file() || BlockDevice::from_metadata(found).is_some() {
        true => Ok(()),
        false => Err(io::Error::other("is neither a regular file nor a block device")),
    }
}

/// Undoes a failed start on drop: removes a created file, and restores the length of an extended
/// file.
#[derive(Debug)]
pub(super) struct Undo {
    file: File,
    path: PathBuf,
    created: bool,
    /// The old length of an extended file.
    pub length: Option<u64>,
}

impl Undo {
    /// Keeps the file as it is, because the start was successful.
    pub(super) fn disarm(mut self) {
        (self.created, self.length) = (false, None);
    }

    fn is_at_path(&self) -> bool {
        self.file.metadata().is_ok_and(|file| leads_to(&self.path, &file))
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        // A failed reservation may have allocated space after the end of the file.
        if let Some(length) = self.length {
            let _ = self.file.set_len(length);
        }
        if self.created && self.is_at_path() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
