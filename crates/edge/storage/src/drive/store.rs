//! The records of an open drive.

use super::backend::Backend;
use super::metadata::Metadata;
use super::version::Formats;
use super::{CONTENTS, Change, LOCK, METADATA, Records, contents};
use crate::about;
use crate::files::{Access, File, Folder, replace};
use std::fmt::Debug;
use std::io;
use std::sync::{Mutex, MutexGuard};

/// Number of bytes copied at once.
const COPY: usize = 1 << 20;

/// The locked folder of a drive, and the records of the drive.
#[derive(Debug)]
pub(super) struct Store {
    folder: Box<dyn Folder>,
    contents: Box<dyn Folder>,
    version: u64,
    state: Mutex<State>,
    /// The lock is dropped last, so that the next process finds a closed database.
    _lock: Lock,
}

/// A lock of the folder.
pub(super) type Lock = Box<dyn Debug + Send + Sync>;

#[derive(Debug)]
struct State {
    /// The records as of the last successful commit.
    records: Records,
    /// The open database; `None` after an error.
    metadata: Option<Metadata>,
}

impl Store {
    /// The drive in a locked folder, with the database that `write_records` has returned.
    pub(super) fn new(
        folder: Box<dyn Folder>,
        lock: Lock,
        version: u64,
        metadata: Metadata,
        records: Records,
    ) -> io::Result<Self> {
        // A copy of the drive may lack the empty folder.
        let contents = match folder.folder(CONTENTS) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                folder.create_folder(CONTENTS)?;
                folder.folder(CONTENTS)?
            }
            result => result.map_err(|error| about(CONTENTS, error))?,
        };
        let state = Mutex::new(State { records, metadata: Some(metadata) });
        Ok(Self { folder, contents, version, state, _lock: lock })
    }

    /// Opens a drive; also returns messages for the user.
    pub(super) fn open(
        folder: Box<dyn Folder>,
        formats: &Formats,
    ) -> io::Result<(Self, Vec<String>)> {
        let names = folder.list()?;
        check_drive(&names)?;
        let lock = lock(&*folder)?;
        let of_metadata = |error| about(METADATA, error);
        let file = Backend(folder.open(METADATA, Access::Write).map_err(of_metadata)?);
        let (mut metadata, version, mut records) = Metadata::open(file).map_err(of_metadata)?;
        formats.check(version)?;
        let mut notices = Vec::new();
        if version < formats.newest {
            // The database is closed first, so that the copy needs no repair.
            drop(metadata);
            let copy = keep_copy(&*folder, version)?;
            records = formats.migrate(version, records)?;
            metadata = write_records(&*folder, formats.newest, &records)?;
            let newest = formats.newest;
            notices.push(format!("migrated from version {version} to {newest}; {copy} is older"));
        }
        let store = Self::new(folder, lock, formats.newest, metadata, records)?;
        notices.extend(store.remove_leftovers()?);
        Ok((store, notices))
    }

    /// Removes the remains of interrupted changes; returns messages for the user.
    fn remove_leftovers(&self) -> io::Result<Vec<String>> {
        for name in self.folder.list()? {
            if name.starts_with(METADATA) && name.ends_with(".new") {
                self.folder.remove(&name)?;
            }
        }
        let (records, names) = (self.records(), self.contents.list()?);
        let unnamed = names.iter().filter(|name| {
            // farlane has no files with other names.
            contents::key(name).is_ok_and(|key| !records.contains_key(&key))
        });
        let remove = |name: &String| match self.contents.remove(name) {
            Ok(()) => format!("removed {CONTENTS}/{name}: it has no record"),
            Err(error) => format!("cannot remove {CONTENTS}/{name}, which has no record: {error}"),
        };
        Ok(unnamed.map(remove).collect())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no committer panics with the lock")
    }

    /// The folder of the contents.
    pub(super) fn contents(&self) -> &dyn Folder {
        &*self.contents
    }

    pub(super) fn records(&self) -> Records {
        self.state().records.clone()
    }

    pub(super) fn record(&self, name: &str) -> Option<Vec<u8>> {
        self.state().records.get(name).cloned()
    }

    /// Makes all changes durable, or none. Error: as
    /// [`DriveFolder::commit`](super::DriveFolder::commit).
    pub(super) fn commit(&self, changes: &[Change]) -> io::Result<()> {
        self.commit_to(&mut self.state(), changes)
    }

    /// Replaces a record if it exists.
    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        match state.records.contains_key(name) {
            true => self.commit_to(&mut state, &[(name.to_owned(), Some(bytes.to_vec()))]),
            false => Ok(()),
        }
    }

    fn commit_to(&self, state: &mut State, changes: &[Change]) -> io::Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let metadata = match state.metadata.take() {
            Some(metadata) => metadata,
            None => self.write_again(&state.records)?,
        };
        if let Err(error) = metadata.commit(changes) {
            drop(metadata);
            // The state of the disk is unknown, because Linux reports a page that could not be
            // written only once. Therefore the records before the change are written to another
            // file.
            state.metadata = self.write_again(&state.records).ok();
            return Err(error);
        }
        state.metadata = Some(metadata);
        for (name, bytes) in changes {
            match bytes {
                Some(bytes) => drop(state.records.insert(name.clone(), bytes.clone())),
                None => drop(state.records.remove(name)),
            }
        }
        Ok(())
    }

    fn write_again(&self, records: &Records) -> io::Result<Metadata> {
        write_records(&*self.folder, self.version, records)
    }
}

/// Fails if a folder with these entries is not a drive.
pub(super) fn check_drive(names: &[String]) -> io::Result<()> {
    let has = |name: &str| names.iter().any(|known| known == name);
    if has(METADATA) {
        return Ok(());
    }
    let why = match has(LOCK) {
        true => "is not a drive: its creation was interrupted",
        false => "is not a drive: drive.redb is missing",
    };
    Err(io::Error::new(io::ErrorKind::NotFound, why))
}

/// Locks a folder exclusively.
pub(super) fn lock(folder: &dyn Folder) -> io::Result<Lock> {
    let lock = folder.lock(LOCK, false).map_err(|error| about("cannot lock it", error))?;
    lock.ok_or_else(|| io::Error::new(io::ErrorKind::ResourceBusy, "in use by another process"))
}

/// Writes all records to a new database, which then replaces the old one. A crash leaves either the
/// old or the new database.
pub(super) fn write_records(
    folder: &dyn Folder,
    version: u64,
    records: &Records,
) -> io::Result<Metadata> {
    replace(folder, METADATA, |file| Metadata::create(Backend(file), version, records))
}

/// Makes a durable copy of the database before a migration; returns the name of the copy.
fn keep_copy(folder: &dyn Folder, version: u64) -> io::Result<String> {
    let name = format!("{METADATA}.v{version}");
    let from = folder.open(METADATA, Access::Read)?;
    replace(folder, &name, |to| {
        copy(&*from, &*to)?;
        to.sync_data()
    })?;
    Ok(name)
}

fn copy(from: &dyn File, to: &dyn File) -> io::Result<()> {
    let (mut at, end) = (0, from.len()?);
    let mut bytes = vec![0; COPY];
    while at < end {
        let part = bytes.len().min((end - at) as usize);
        from.read_at(&mut bytes[..part], at)?;
        to.write_at(&bytes[..part], at)?;
        at += part as u64;
    }
    Ok(())
}
