//! The record of a file that is being opened.

use super::checksums::Checksums;
use super::open::Opened;
use crate::files::File;
use crate::record::{Found, ImageRecord, RecordKeeper, RecordStore, new_incarnation};
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The record of an opened file, and the keeper that updates it.
pub(super) struct OpenedRecord {
    pub keeper: Option<RecordKeeper>,
    pub incarnation: u64,
    /// Number of bytes of the file that were served before.
    pub size: u64,
    /// Messages for the user.
    pub notes: Vec<String>,
    /// The checksums of the contents, if they have any.
    pub checksums: Option<Checksums>,
}

impl OpenedRecord {
    /// Reads a record and compares it with the file; does not write the record. `fresh` states that
    /// the file is new and has no record. Syncs `file` if a killed process has written to it. Also
    /// returns whether the record describes the present contents. Error: a sentence without the
    /// file's name; `help` is the end of the sentence.
    fn read(
        store: Box<dyn RecordStore>,
        (found, fresh): (&Found, bool),
        boot: &str,
        file: Option<&dyn File>,
        help: &str,
    ) -> io::Result<(Self, bool)> {
        let record = store.name();
        let (mut keeper, comparison) =
            RecordKeeper::open(store, found, boot, fresh).map_err(|error| {
                io::Error::new(error.kind(), format!("its record {record} {error}{help}"))
            })?;
        let killed = keeper.is_dirty();
        let mut notes = Vec::from_iter(comparison.note);
        notes.extend(
            file.and_then(|file| keeper.sync_dirty(file))
                .map(|error| format!("cannot be synced: {error}: its contents count as new")),
        );
        let (incarnation, size) = (keeper.incarnation(), comparison.size);
        let checksums = match file {
            Some(file) if keeper.checksums() => Some(Checksums::open(file, size, killed)?),
            _ => None,
        };
        Ok((Self { keeper: Some(keeper), incarnation, size, notes, checksums }, comparison.same))
    }

    /// Reads the record of contents in a drive, which must exist. Error: a sentence without the
    /// file's name.
    pub(super) fn in_drive(
        store: Box<dyn RecordStore>,
        file: &dyn File,
        boot: &str,
    ) -> io::Result<Self> {
        let found = Found::in_drive(file.len()?);
        Ok(Self::read(store, (&found, false), boot, Some(file), "")?.0)
    }

    /// Reads the record of an image. Error: a sentence without the file's name.
    pub(super) fn open(path: &Path, opened: &Opened, boot: &str) -> io::Result<Self> {
        let read_only = opened.read_only;
        let found = Found::new(&opened.metadata, opened.length);
        let Some(image) = ImageRecord::for_image(path, &opened.metadata) else {
            let note = "has no place for a record, so its contents count as new at each start";
            let (incarnation, notes) = match read_only {
                true => (unchanged(&opened.metadata, opened.length), Vec::new()),
                false => (new_incarnation(), vec![note.to_owned()]),
            };
            let (keeper, size) = (None, opened.length);
            return Ok(Self { keeper, incarnation, size, notes, checksums: None });
        };
        let (record, exists) = (image.name(), image.exists());
        let keeps = !read_only && image.is_writable();
        let file = keeps.then_some(&opened.file as &dyn File);
        let help = "; remove the record to accept the contents as new";
        let (mut read, same) =
            Self::read(Box::new(image), (&found, opened.created), boot, file, help)?;
        if keeps {
            return Ok(read);
        }
        read.keeper = None;
        if !read_only {
            if exists {
                // The next write would make the old record wrong.
                return Err(io::Error::other(format!(
                    "its record {record} cannot be replaced: remove the record, or make the folder \
                     writable"
                )));
            }
            read.notes.push(format!(
                "cannot write the record {record}: the contents count as new at each start"
            ));
            read.incarnation = new_incarnation();
        } else if !same {
            read.incarnation = unchanged(&opened.metadata, opened.length);
        }
        Ok(read)
    }
}

/// The incarnation of read-only contents without a record.
fn unchanged(metadata: &Metadata, length: u64) -> u64 {
    // The hash has constant keys, so the number is not random, unlike in `new_incarnation`.
    let mut hasher = DefaultHasher::new();
    let modified = (metadata.mtime(), metadata.mtime_nsec());
    (metadata.dev(), metadata.ino(), length, modified).hash(&mut hasher);
    hasher.finish().max(1)
}
