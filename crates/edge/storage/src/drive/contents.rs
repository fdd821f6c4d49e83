//! Contents of namespaces: one file per namespace, with a record that identifies the contents.

use super::Change;
use super::store::Store;
use super::{CONTENTS, Records};
use crate::about;
use crate::files::{Access, Folder, grow};
use crate::media::FileMedia;
use crate::record::{Record, RecordStore};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The longest name of contents, in bytes.
const NAME: usize = 64;

/// Contents to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewContents {
    /// Name of the file: 1 to 64 ASCII letters, digits and hyphens. Never reuse a name in a drive.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Whether space is allocated on write instead of reserved; writes may then fail on a full
    /// disk.
    pub sparse: bool,
    /// Whether the contents have checksums, which each read verifies.
    pub checksums: bool,
}

/// The record of contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentsInfo {
    /// Name of the file.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// The same as [`Media::incarnation`](crate::media::Media::incarnation), unless the machine has
    /// crashed since the contents were written.
    pub incarnation: u64,
    /// Whether the contents were written since they were last closed in order.
    pub dirty: bool,
    /// Whether the contents have checksums.
    pub checksums: bool,
}

/// The name of the record of contents. Error: if `name` is not a valid name of contents.
pub(super) fn key(name: &str) -> io::Result<String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if (1..=NAME).contains(&name.len()) && name.bytes().all(good) {
        return Ok(format!("{CONTENTS}/{name}"));
    }
    let shown = name.escape_debug();
    let why = format!("invalid name '{shown}': expected 1 to {NAME} letters, digits and hyphens");
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// All contents that have a record.
pub(super) fn list(records: &Records) -> io::Result<Vec<ContentsInfo>> {
    let prefix = format!("{CONTENTS}/");
    let named =
        records.iter().filter_map(|(key, bytes)| Some((key, key.strip_prefix(&prefix)?, bytes)));
    named
        .map(|(key, name, bytes)| {
            let record = Record::parse(bytes).map_err(|error| {
                io::Error::new(io::ErrorKind::InvalidData, format!("the record {key} {error}"))
            })?;
            let Record { incarnation, size, dirty, checksums, .. } = record;
            Ok(ContentsInfo { name: name.to_owned(), size, incarnation, dirty, checksums })
        })
        .collect()
}

/// Creates contents in their folder, durably; returns the change that makes the contents part of
/// the drive. Replaces an existing file of this name, which must have no record.
pub(super) fn create(folder: &dyn Folder, new: &NewContents) -> io::Result<Change> {
    let NewContents { name, size, sparse, checksums } = new;
    let key = key(name)?;
    let record = Record::new(*size, *checksums);
    let make = || {
        if folder.list()?.contains(name) {
            folder.remove(name)?;
        }
        let file = folder.open(name, Access::CreateNew)?;
        grow(&*file, 0, record.file_length(), *sparse)?;
        folder.sync()
    };
    if let Err(error) = make() {
        let _ = folder.remove(name);
        return Err(about(format!("{CONTENTS}/{name}"), error));
    }
    Ok((key, Some(record.to_string().into())))
}

/// Opens contents. Messages contain `path` as the name of the file.
pub(super) fn open(
    store: &Arc<Store>,
    name: &str,
    path: PathBuf,
    boot: &str,
) -> io::Result<FileMedia> {
    let key = key(name)?;
    if store.record(&key).is_none() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "these contents have no record"));
    }
    let file = store.contents().open(name, Access::Write)?;
    let record = Box::new(ContentsRecord { store: store.clone(), key });
    FileMedia::in_drive(file, path.display().to_string(), record, boot)
}

/// Removes contents that have no record.
pub(super) fn remove(folder: &dyn Folder, name: &str) -> io::Result<()> {
    folder.remove(name)?;
    folder.sync()
}

/// The record of open contents. A record that was removed from the drive is not written again.
#[derive(Debug)]
struct ContentsRecord {
    store: Arc<Store>,
    key: String,
}

impl RecordStore for ContentsRecord {
    fn name(&self) -> String {
        self.key.clone()
    }

    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.store.record(&self.key))
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.store.replace(&self.key, bytes)
    }

    fn remove(&mut self) -> io::Result<()> {
        // Contents without a record will be removed.
        let Some(bytes) = self.store.record(&self.key) else { return Ok(()) };
        let Record { size, checksums, .. } = Record::parse(&bytes).map_err(io::Error::other)?;
        self.replace(Record::new(size, checksums).to_string().as_bytes())
    }
}
