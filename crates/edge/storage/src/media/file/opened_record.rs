//! The record of a file that is being opened.

use super::open::Opened;
use crate::files::File;
use crate::media::new_incarnation;
use crate::media::record::{Found, ImageFolder, RecordKeeper, RecordStore};
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The record of an opened file, and the keeper that updates it.
pub(super) struct OpenedRecord {
    pub keeper: Option<RecordKeeper<Box<dyn RecordStore>>>,
    pub incarnation: u64,
    /// Bytes of the file that were served before.
    pub size: u64,
    /// Messages for the user.
    pub notes: Vec<String>,
}

impl OpenedRecord {
    /// Reads the record of contents in a drive, which must be there; writes nothing.
    /// Error: a sentence without the file's name.
    pub fn in_drive(store: Box<dyn RecordStore>, file: &dyn File, boot: &str) -> io::Result<Self> {
        let (record, found) = (store.name(), Found::in_drive(file.len()?));
        let (mut keeper, comparison) =
            RecordKeeper::open(store, &found, boot, false).map_err(|error| {
                io::Error::new(error.kind(), format!("its record {record} {error}"))
            })?;
        let mut notes = Vec::from_iter(comparison.note);
        notes.extend(keeper.sync_dirty(file).map(unsynced));
        let (incarnation, size) = (keeper.incarnation(), comparison.size);
        Ok(Self { keeper: Some(keeper), incarnation, size, notes })
    }

    /// Reads the record; writes nothing. Error: a sentence without the file's name.
    pub fn open(path: &Path, opened: &Opened, boot: &str) -> io::Result<Self> {
        let read_only = opened.read_only;
        let found = Found::new(&opened.metadata, opened.length);
        let Some(folder) = ImageFolder::image(path, &opened.metadata) else {
            let note = "has no place for a record: its contents count as new at each start";
            let (incarnation, notes) = match read_only {
                true => (unchanged(&opened.metadata, opened.length), Vec::new()),
                false => (new_incarnation(), vec![note.to_owned()]),
            };
            return Ok(Self { keeper: None, incarnation, size: opened.length, notes });
        };
        let record = folder.record.display().to_string();
        let (writable, fresh) = (folder.is_writable(), opened.created);
        let store: Box<dyn RecordStore> = Box::new(folder);
        let (mut keeper, mut comparison) =
            RecordKeeper::open(store, &found, boot, fresh).map_err(|error| {
                let help = "remove the record to have the contents accepted as new";
                io::Error::new(error.kind(), format!("its record {record} {error}; {help}"))
            })?;
        if !writable && !read_only && std::fs::symlink_metadata(&record).is_ok() {
            // The old record would vouch for data written now.
            return Err(io::Error::other(format!(
                "its record {record} cannot be replaced: remove the record, or make the folder \
                 writable"
            )));
        }
        let mut notes = Vec::from_iter(comparison.note);
        if comparison.same
            && !read_only
            && let Some(error) = keeper.sync_dirty(&opened.file)
        {
            comparison.same = false;
            notes.push(unsynced(error));
        }
        let incarnation = match (comparison.same, read_only, writable) {
            (true, true, _) => keeper.incarnation(),
            (false, true, _) => unchanged(&opened.metadata, opened.length),
            (_, false, true) => keeper.incarnation(),
            (_, false, false) => {
                notes.push(format!(
                    "no record can be written to {record}: the contents count as new at each start"
                ));
                new_incarnation()
            }
        };
        let keeper = (writable && !read_only).then_some(keeper);
        Ok(Self { keeper, incarnation, size: comparison.size, notes })
    }
}

/// The message about contents of a killed process that could not be made durable.
fn unsynced(error: io::Error) -> String {
    format!("cannot be synced: {error}: its contents count as new")
}

/// The number of contents without a record that this node never writes.
fn unchanged(metadata: &Metadata, length: u64) -> u64 {
    // Unlike `new_incarnation` it is no random number: the hasher's keys are constant.
    let mut hasher = DefaultHasher::new();
    let modified = (metadata.mtime(), metadata.mtime_nsec());
    (metadata.dev(), metadata.ino(), length, modified).hash(&mut hasher);
    hasher.finish().max(1)
}
