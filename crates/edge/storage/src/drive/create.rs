//! Creates a drive. A folder is a drive if it has a database, which is written last.

use super::metadata::Metadata;
use super::store::{Lock, Store, lock, write_records};
use super::{CONTENTS, LOCK, METADATA, METADATA_NEW, NewContents, Records, contents};
use crate::about;
use crate::files::Folder;
use std::io;

/// Creates the drive `name` in `parent`. Error: a sentence without the folder's name. After an
/// error no file is left.
pub(super) fn create(
    parent: &dyn Folder,
    name: &str,
    records: Records,
    contents: &[NewContents],
    version: u64,
) -> io::Result<Store> {
    let made = match parent.create_folder(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        result => result.map(|()| true).map_err(|error| about("cannot create it", error))?,
    };
    let folder = parent.folder(name)?;
    let result = claim(&*folder).and_then(|lock| {
        let filled = fill(&*folder, records, contents, version).and_then(|(metadata, records)| {
            parent.sync()?;
            Ok((metadata, records))
        });
        if filled.is_err() {
            // The next creation removes files that cannot be removed now.
            let _ = clear(&*folder);
            if made {
                let _ = folder.remove(LOCK);
            }
        }
        let (metadata, records) = filled?;
        Store::new(parent.folder(name)?, lock, version, metadata, records)
    });
    if result.is_err() && made {
        // If another process uses the folder now, it is not empty, and the removal fails.
        let _ = parent.remove_folder(name);
    }
    result
}

/// Locks a folder that is empty, or that has only the remains of an interrupted creation.
fn claim(folder: &dyn Folder) -> io::Result<Lock> {
    let check = || {
        let names = folder.list()?;
        let has = |name: &str| names.iter().any(|known| known == name);
        let of_creation = |name: &String| [LOCK, METADATA_NEW, CONTENTS].contains(&name.as_str());
        match names.is_empty() || (has(LOCK) && names.iter().all(of_creation)) {
            true => Ok(()),
            false if has(METADATA) => {
                Err(io::Error::new(io::ErrorKind::AlreadyExists, "already is a drive"))
            }
            false => Err(io::Error::new(
                io::ErrorKind::DirectoryNotEmpty,
                "is neither empty nor a drive",
            )),
        }
    };
    check()?;
    let lock = lock(folder)?;
    // Another process may have created a drive before the lock.
    check()?;
    // From now on, the lock file marks all other files as the remains of a creation.
    folder.sync()?;
    Ok(lock)
}

/// Creates the files of a drive in a claimed folder.
fn fill(
    folder: &dyn Folder,
    mut records: Records,
    contents: &[NewContents],
    version: u64,
) -> io::Result<(Metadata, Records)> {
    clear(folder)?;
    folder.create_folder(CONTENTS)?;
    let place = folder.folder(CONTENTS)?;
    for new in contents {
        let (key, record) = contents::create(&*place, new)?;
        records.extend(record.map(|record| (key, record)));
    }
    folder.sync()?;
    let metadata = write_records(folder, version, &records)?;
    Ok((metadata, records))
}

/// Removes all files except the lock file.
fn clear(folder: &dyn Folder) -> io::Result<()> {
    for name in folder.list()? {
        match name.as_str() {
            LOCK => {}
            CONTENTS => {
                let place = folder.folder(CONTENTS)?;
                place.list()?.iter().try_for_each(|name| place.remove(name))?;
                folder.remove_folder(CONTENTS)?;
            }
            name => folder.remove(name)?,
        }
    }
    Ok(())
}
