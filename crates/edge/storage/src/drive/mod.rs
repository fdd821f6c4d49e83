//! A drive that lives in a folder: its records, and the contents of its namespaces. The formats
//! and what a crash leaves are in `docs/drive.md`.
//!
//! A record is bytes with a name. Their meaning belongs to NVMe. Only this module uses the records
//! whose names begin with `contents/`, one for each file of contents.

mod backend;
mod committer;
mod contents;
mod create;
mod metadata;
mod show;
mod store;
#[cfg(test)]
mod tests;
mod version;

pub use committer::{Committed, Committer};
pub use contents::{ContentsInfo, NewContents};
pub use show::Shown;
pub use version::VERSION;

use crate::about;
use crate::files::{Folder, SystemFolder};
use crate::media::FileMedia;
use crate::record::boot_id;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Store;
use version::Formats;

/// All records of a drive: bytes by name.
pub type Records = BTreeMap<String, Vec<u8>>;

/// A change of one record: its name, and its bytes or `None` to remove it.
pub type Change = (String, Option<Vec<u8>>);

/// The embedded database with the records.
const METADATA: &str = "drive.redb";
/// The temporary file of a database that is written anew; it replaces [`METADATA`] when it is
/// complete.
const METADATA_NEW: &str = "drive.redb.new";
/// The lock file of a drive in use; it is empty.
const LOCK: &str = "lock";
/// The folder with the contents of namespaces.
const CONTENTS: &str = "contents";

/// The folder of a drive, locked for this process as long as a clone or a medium of it lives.
#[derive(Clone, Debug)]
pub struct DriveFolder {
    store: Arc<Store>,
    /// The path of the folder for messages; the folder may have been moved.
    path: PathBuf,
    boot: String,
}

impl DriveFolder {
    /// Creates a drive with `records` and `contents` in a folder that does not exist or is empty;
    /// remains of an interrupted creation are removed. The names of `records` do not begin with
    /// `contents/`.
    ///
    /// # Errors
    /// A sentence that names the folder. After an error nothing is left.
    pub fn create(path: &Path, records: Records, contents: &[NewContents]) -> io::Result<Self> {
        let create = || {
            let full = std::path::absolute(path)?;
            let parts = full.parent().zip(full.file_name().and_then(|name| name.to_str()));
            let (parent, name) = parts.ok_or_else(|| io::Error::other("not a folder's name"))?;
            let parent =
                SystemFolder::open(parent).map_err(|error| about(parent.display(), error))?;
            Self::create_in(&parent, name, path, records, contents)
        };
        create().map_err(|error| about(path.display(), error))
    }

    fn create_in(
        parent: &dyn Folder,
        name: &str,
        path: &Path,
        records: Records,
        contents: &[NewContents],
    ) -> io::Result<Self> {
        let store = create::create(parent, name, records, contents, VERSION)?;
        Ok(Self { store: Arc::new(store), path: path.into(), boot: boot_id() })
    }

    /// Opens a drive. Removes contents that have no record.
    ///
    /// # Errors
    /// A sentence that names the folder: it is not a drive, another process uses it, or its format
    /// is newer than [`VERSION`].
    pub fn open(path: &Path) -> io::Result<(Self, Vec<String>)> {
        let open = || {
            let folder = SystemFolder::open(path)?;
            Self::open_in(Box::new(folder), path, &Formats::KNOWN, &boot_id())
        };
        open().map_err(|error| about(path.display(), error))
    }

    /// As [`open`](Self::open), in any folder. Errors do not name the folder.
    fn open_in(
        folder: Box<dyn Folder>,
        path: &Path,
        formats: &Formats,
        boot: &str,
    ) -> io::Result<(Self, Vec<String>)> {
        let (store, notices) = Store::open(folder, formats)?;
        let drive = Self { store: Arc::new(store), path: path.into(), boot: boot.into() };
        Ok((drive, notices))
    }

    /// All records as of the last commit.
    pub fn records(&self) -> Records {
        self.store.records()
    }

    /// The contents that the records name.
    ///
    /// # Errors
    /// If a record of contents is damaged; the message names it.
    pub fn contents(&self) -> io::Result<Vec<ContentsInfo>> {
        contents::list(&self.records())
    }

    /// Makes all changes durable, or none of them. This waits for the disk; a loop that must not
    /// wait uses a [`Committer`].
    ///
    /// # Errors
    /// After an error nothing has changed, unless the machine crashes before the next commit: after
    /// a crash all changes may be present. The next commit tries to repair the cause.
    pub fn commit(&self, changes: &[Change]) -> io::Result<()> {
        self.store.commit(changes).map_err(|error| about(self.path.display(), error))
    }

    /// Creates contents that read as zeroes. They belong to the drive once the returned change is
    /// committed; otherwise the next [`open`](Self::open) removes them.
    ///
    /// # Errors
    /// A sentence that names the contents, for example if the disk is full. After an error nothing
    /// is left.
    pub fn create_contents(&self, new: &NewContents) -> io::Result<Change> {
        let create = || {
            if self.store.record(&contents::key(&new.name)?).is_some() {
                return Err(about(&new.name, io::ErrorKind::AlreadyExists.into()));
            }
            contents::create(self.store.contents(), new)
        };
        create().map_err(|error| about(self.path.display(), error))
    }

    /// The media of contents that have a record. Open them only once.
    ///
    /// # Errors
    /// A sentence that names the contents.
    pub fn open_contents(&self, name: &str) -> io::Result<FileMedia> {
        contents::open(&self.store, name, self.path.join(CONTENTS).join(name), &self.boot)
            .map_err(|error| about(self.path.join(CONTENTS).join(name).display(), error))
    }

    /// The change that removes the record of contents. After its commit
    /// [`remove_contents`](Self::remove_contents) frees their space.
    ///
    /// # Errors
    /// If `name` cannot be a name of contents.
    pub fn forget_contents(name: &str) -> io::Result<Change> {
        Ok((contents::key(name)?, None))
    }

    /// Removes contents that have no record; they may be open. The next [`open`](Self::open) also
    /// removes them.
    ///
    /// # Errors
    /// If the contents have a record, or as unlink(2).
    pub fn remove_contents(&self, name: &str) -> io::Result<()> {
        let remove = || {
            if self.store.record(&contents::key(name)?).is_some() {
                return Err(io::Error::other("the drive still has a record of these contents"));
            }
            contents::remove(self.store.contents(), name)
        };
        remove().map_err(|error| about(self.path.join(CONTENTS).join(name).display(), error))
    }
}
