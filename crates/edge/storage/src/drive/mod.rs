//! A drive in a folder: records, and contents of namespaces. `docs/drive.md` specifies the formats,
//! and the state after a crash.
//!
//! A record has a name and bytes. The crate `nvme` defines the meaning of the bytes, except for
//! records whose names begin with `contents/`. Only this module uses these records, one for each
//! file of contents.

mod backend;
mod committer;
mod contents;
mod create;
mod metadata;
mod session;
mod show;
mod store;
#[cfg(test)]
mod tests;
mod version;

pub use committer::{Committed, Committer};
pub use contents::{ContentsInfo, NewContents};
pub use session::{Place, Session};
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

/// A change of one record: the name, and the new bytes or `None` to remove the record.
pub type Change = (String, Option<Vec<u8>>);

/// The embedded database with the records.
const METADATA: &str = "drive.redb";
/// The temporary file of a new database, which replaces [`METADATA`] when the new database is
/// complete.
const METADATA_NEW: &str = "drive.redb.new";
/// The lock file of a drive, which is empty.
const LOCK: &str = "lock";
/// The folder with the contents of namespaces.
const CONTENTS: &str = "contents";

/// The folder of a drive. This process holds the lock until all clones and all media of the drive
/// are dropped.
#[derive(Clone, Debug)]
pub struct DriveFolder {
    store: Arc<Store>,
    /// The path of the folder for messages; the folder may have been moved.
    path: PathBuf,
    boot: String,
}

impl DriveFolder {
    /// Creates a drive with `records` and `contents` in a folder that does not exist or is empty.
    /// Removes the remains of an interrupted creation. No name in `records` may begin with
    /// `contents/`.
    ///
    /// # Errors
    /// A sentence with the path of the folder. After an error no file is left.
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

    /// Opens a drive. Removes contents that have no record. Also returns messages for the user.
    ///
    /// # Errors
    /// A sentence with the path of the folder: the folder is not a drive, another process uses the
    /// drive, or its format is newer than [`VERSION`].
    pub fn open(path: &Path) -> io::Result<(Self, Vec<String>)> {
        let open = || {
            let folder = SystemFolder::open(path)?;
            Self::open_in(Box::new(folder), path, &Formats::KNOWN, &boot_id())
        };
        open().map_err(|error| about(path.display(), error))
    }

    /// As [`open`](Self::open), in any folder. Errors do not contain the path of the folder.
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
    /// If a record of contents is damaged; the message contains its name.
    pub fn contents(&self) -> io::Result<Vec<ContentsInfo>> {
        contents::list(&self.records())
    }

    /// Makes all changes durable, or none of them. This waits for the disk. In a loop that must not
    /// wait, use a [`Committer`].
    ///
    /// # Errors
    /// After an error no change is applied. But if the machine crashes before the next commit, all
    /// changes may be present after the crash. The next commit tries to repair the cause of the
    /// error.
    pub fn commit(&self, changes: &[Change]) -> io::Result<()> {
        self.store.commit(changes).map_err(|error| about(self.path.display(), error))
    }

    /// Creates contents that read as zeroes. Commit the returned change to make the contents a part
    /// of the drive. Otherwise the next [`open`](Self::open) removes them.
    ///
    /// # Errors
    /// A sentence with the path of the contents, for example if the disk is full. After an error no
    /// file is left.
    pub fn create_contents(&self, new: &NewContents) -> io::Result<Change> {
        let create = || {
            if self.store.record(&contents::key(&new.name)?).is_some() {
                return Err(about(&new.name, io::ErrorKind::AlreadyExists.into()));
            }
            contents::create(self.store.contents(), new)
        };
        create().map_err(|error| about(self.path.display(), error))
    }

    /// Opens contents that have a record. Open contents only once at a time.
    ///
    /// # Errors
    /// A sentence with the path of the contents.
    pub fn open_contents(&self, name: &str) -> io::Result<FileMedia> {
        contents::open(&self.store, name, self.path.join(CONTENTS).join(name), &self.boot)
            .map_err(|error| about(self.path.join(CONTENTS).join(name).display(), error))
    }

    /// The change that removes the record of contents. After the commit of this change,
    /// [`remove_contents`](Self::remove_contents) frees the space.
    ///
    /// # Errors
    /// If `name` is not a valid name of contents.
    pub fn forget_contents(name: &str) -> io::Result<Change> {
        Ok((contents::key(name)?, None))
    }

    /// Removes contents that have no record, even if they are open. The next [`open`](Self::open)
    /// also removes such contents.
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
