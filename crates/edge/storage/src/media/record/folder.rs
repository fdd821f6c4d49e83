//! The location of a record, and its atomic replacement: a crash leaves the old record or the
//! new one.

use super::RecordStore;
use crate::media::leads_to;
use rustix::fs::{Access, Gid, Mode, OFlags, Uid, access, fchmod, fchown};
use std::fmt::Debug;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The longest record in bytes.
const MAX_BYTES: u64 = 4096;

/// The steps of replacing a record that is a file. Nothing is durable before
/// [`sync`](Self::sync), and the new bytes not before [`sync_new`](Self::sync_new).
pub(in crate::media) trait Folder: Debug + Send {
    /// The record's path.
    fn name(&self) -> String;
    /// The record's bytes, if there is one.
    fn read(&self) -> io::Result<Option<Vec<u8>>>;
    /// Writes a new file in the same folder.
    fn write_new(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes the bytes of the new file durable.
    fn sync_new(&mut self) -> io::Result<()>;
    /// Replaces the record by the new file.
    fn rename_new(&mut self) -> io::Result<()>;
    /// Removes the record.
    fn remove(&mut self) -> io::Result<()>;
    /// Makes renames and removals durable.
    fn sync(&mut self) -> io::Result<()>;
}

impl<F: Folder> RecordStore for F {
    fn name(&self) -> String {
        Folder::name(self)
    }

    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        Folder::read(self)
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_new(bytes)?;
        self.sync_new()?;
        self.rename_new()?;
        self.sync()
    }

    fn remove(&mut self) -> io::Result<()> {
        Folder::remove(self)?;
        self.sync()
    }
}

/// The folder of an image: the record `disk.img.farlane` is next to `disk.img`.
#[derive(Debug)]
pub(in crate::media) struct ImageFolder {
    /// The record's path.
    pub record: PathBuf,
    new: PathBuf,
    folder: PathBuf,
    /// Metadata of the image: the record gets its mode and owner.
    image: Metadata,
    file: Option<File>,
}

impl ImageFolder {
    /// The folder of the image that `path` leads to, through symbolic links; `None` if it is in
    /// no folder.
    pub fn image(path: &Path, image: &Metadata) -> Option<Self> {
        let path = std::fs::canonicalize(path).ok()?;
        // A path below /proc may lead to a file that was removed or never had a name.
        if !leads_to(&path, image) {
            return None;
        }
        let with = |suffix: &str| {
            let mut name = path.file_name()?.to_owned();
            name.push(suffix);
            Some(path.with_file_name(name))
        };
        Some(Self {
            record: with(".farlane")?,
            new: with(".farlane.new")?,
            folder: path.parent()?.to_owned(),
            image: image.clone(),
            file: None,
        })
    }

    /// Whether files can be created in it.
    pub fn is_writable(&self) -> bool {
        access(&self.folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    }
}

impl Folder for ImageFolder {
    fn name(&self) -> String {
        self.record.display().to_string()
    }

    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        // Opening must not wait for the far end of a pipe.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(&self.record) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn write_new(&mut self, bytes: &[u8]) -> io::Result<()> {
        // A killed process may have left one.
        match std::fs::remove_file(&self.new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.new)?;
        // A process that may not change the owner stays the owner.
        let (owner, group) = (Uid::from_raw(self.image.uid()), Gid::from_raw(self.image.gid()));
        let _ = fchown(&file, Some(owner), Some(group));
        fchmod(&file, Mode::from_raw_mode(self.image.mode() & 0o666))?;
        let written = file.write_all(bytes);
        self.file = Some(file);
        if written.is_err() {
            let _ = std::fs::remove_file(&self.new);
        }
        written
    }

    fn sync_new(&mut self) -> io::Result<()> {
        self.file.take().expect("it was written").sync_all()
    }

    fn rename_new(&mut self) -> io::Result<()> {
        std::fs::rename(&self.new, &self.record)
    }

    fn remove(&mut self) -> io::Result<()> {
        match std::fs::remove_file(&self.record) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        match File::open(&self.folder)?.sync_all() {
            // The file system cannot sync folders.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            result => result,
        }
    }
}
