//! Reads a drive without changing it.

use super::metadata::Metadata;
use super::store::check_drive;
use super::{ContentsInfo, DriveFolder, LOCK, METADATA, Records, contents};
use crate::about;
use crate::files::{Access, Folder, SystemFolder};
use redb::StorageBackend;
use redb::backends::InMemoryBackend;
use std::io;
use std::path::Path;

/// The maximum number of attempts to read a database while another process may be changing it.
const ATTEMPTS: usize = 5;

/// The largest database that is read, in bytes. The database is copied to memory.
const LONGEST: u64 = 1 << 30;

/// A snapshot of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Whether another process uses the drive.
    pub in_use: bool,
    /// The version of the format, see [`VERSION`](super::VERSION). Records of another version may
    /// have another meaning.
    pub version: u64,
    /// The records as of a recent commit; if no process uses the drive, as of the last commit.
    pub records: Records,
}

impl Shown {
    /// As [`DriveFolder::contents`].
    ///
    /// # Errors
    /// If a record of contents is damaged; the message names it.
    pub fn contents(&self) -> io::Result<Vec<ContentsInfo>> {
        contents::list(&self.records)
    }
}

impl DriveFolder {
    /// Reads a drive without a change of any file. The drive may be in use by another process, be
    /// on a read-only file system, or have another version. The repair after a crash is done in
    /// memory.
    ///
    /// # Errors
    /// A sentence with the path of the folder.
    pub fn show(path: &Path) -> io::Result<Shown> {
        let show = || show(&SystemFolder::open(path)?);
        show().map_err(|error| about(path.display(), error))
    }
}

/// Reads a drive in any folder. Errors do not contain the path of the folder.
pub(super) fn show(folder: &dyn Folder) -> io::Result<Shown> {
    check_drive(&folder.list()?)?;
    let mut attempt = 0;
    loop {
        // The lock is held during the read, so that no process starts to change the database.
        let lock = match folder.lock(LOCK, true) {
            // A copy of the folder may lack the lock file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            result => Some(result.map_err(|error| about("cannot lock it", error))?),
        };
        let in_use = matches!(lock, Some(None));
        attempt += 1;
        match read(folder) {
            Ok((version, records)) => return Ok(Shown { in_use, version, records }),
            // The database changed during the read, as the checksums show.
            Err(_) if in_use && attempt < ATTEMPTS => {}
            Err(error) if in_use => {
                return Err(about("in use by another process that changes it too fast", error));
            }
            Err(error) => return Err(about(METADATA, error)),
        }
    }
}

fn read(folder: &dyn Folder) -> io::Result<(u64, Records)> {
    let file = folder.open(METADATA, Access::Read)?;
    let length = file.len()?;
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("has {length} bytes")));
    }
    let mut bytes = vec![0; length as usize];
    file.read_at(&mut bytes, 0)?;
    let memory = InMemoryBackend::new();
    memory.set_len(length)?;
    memory.write(0, &bytes)?;
    let (_, version, records) = Metadata::open(memory)?;
    Ok((version, records))
}
