//! Updates the record of one file while the file is served.

use super::{Comparison, Found, Record, compare, new_incarnation};
use crate::about;
use crate::files::File;
use std::fmt::Debug;
use std::io;

/// The place of a record.
pub(crate) trait RecordStore: Debug + Send {
    /// Name of the record for messages.
    fn name(&self) -> String;
    /// The bytes of the record; `None` if it does not exist.
    fn read(&self) -> io::Result<Option<Vec<u8>>>;
    /// Replaces the record durably. A crash leaves either the old or the new record.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Removes or invalidates the record durably, so that the contents count as new at the next
    /// start.
    fn remove(&mut self) -> io::Result<()>;
}

/// The state of the stored record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    /// The stored record is up to date.
    Current,
    /// The stored record is older, or does not exist.
    Old,
    /// The record could not be written and was removed: the contents count as new at the next
    /// start.
    Removed,
}

/// The record of a file that is served.
#[derive(Debug)]
pub(crate) struct RecordKeeper {
    pub store: Box<dyn RecordStore>,
    record: Record,
    boot: String,
    stored: Stored,
}

impl RecordKeeper {
    /// Reads the record of the file `found`; does not write it. `fresh` states that the file is new
    /// and has no record. Error: a sentence without the record's name.
    pub(crate) fn open(
        store: Box<dyn RecordStore>,
        found: &Found,
        boot: &str,
        fresh: bool,
    ) -> io::Result<(Self, Comparison)> {
        let read = || store.read().map_err(|error| about("cannot be read", error));
        let text = if fresh { None } else { read()? };
        let record = text.map(|text| Record::parse(&text)).transpose().map_err(io::Error::other)?;
        let comparison = compare(record.as_ref(), found, boot).map_err(io::Error::other)?;
        let (record, stored) = match record {
            Some(record) if comparison.same => (record, Stored::Current),
            old => {
                let record = Record {
                    incarnation: new_incarnation(),
                    size: comparison.size,
                    file: found.file.clone(),
                    dirty: false,
                    boot: boot.to_owned(),
                    checksums: old.is_some_and(|old| old.checksums),
                };
                (record, Stored::Old)
            }
        };
        Ok((Self { store, record, boot: boot.to_owned(), stored }, comparison))
    }

    /// The incarnation of the contents.
    pub(crate) fn incarnation(&self) -> u64 {
        self.record.incarnation
    }

    /// Whether the file has checksums behind the data.
    pub(crate) fn checksums(&self) -> bool {
        self.record.checksums
    }

    /// Whether writes need no further [`mark_dirty`](Self::mark_dirty).
    pub(crate) fn is_dirty(&self) -> bool {
        self.stored == Stored::Removed || (self.stored == Stored::Current && self.record.dirty)
    }

    /// Stores the record of a file that is served with `size` durable bytes, unless the record is
    /// stored already. Error: as [`store`](Self::store).
    pub(crate) fn begin(&mut self, size: u64) -> io::Result<Option<io::Error>> {
        if self.stored == Stored::Current && self.record.size == size {
            return Ok(None);
        }
        self.store(Record { size, ..self.record.clone() })
    }

    /// Marks the file durably as dirty. Call this before the first write is acknowledged. Error: as
    /// [`store`](Self::store); then the file must not be written.
    pub(crate) fn mark_dirty(&mut self) -> io::Result<Option<io::Error>> {
        if self.is_dirty() {
            return Ok(None);
        }
        self.store(Record { dirty: true, boot: self.boot.clone(), ..self.record.clone() })
    }

    /// Marks the file as clean. Call this when all data are durable. Error: as
    /// [`store`](Self::store).
    pub(crate) fn mark_clean(&mut self) -> io::Result<Option<io::Error>> {
        if self.stored == Stored::Removed || !self.record.dirty {
            return Ok(None);
        }
        self.store(Record { dirty: false, boot: self.boot.clone(), ..self.record.clone() })
    }

    /// Records that data may have been lost, so that the contents count as new at the next start.
    /// Error: if the record cannot be removed. Then later records have a new incarnation.
    pub(crate) fn discard(&mut self) -> io::Result<()> {
        if self.stored == Stored::Removed {
            return Ok(());
        }
        self.renew();
        self.remove()
    }

    /// Makes the writes of a killed process durable, because they may not be on the medium yet. If
    /// this fails, the contents count as new; returns the error.
    pub(crate) fn sync_dirty(&mut self, file: &dyn File) -> Option<io::Error> {
        if !self.is_dirty() {
            return None;
        }
        let error = file.sync_data().err()?;
        self.renew();
        Some(error)
    }

    /// Gives the contents a new incarnation, which is stored with the next change.
    fn renew(&mut self) {
        self.record.incarnation = new_incarnation();
        self.stored = Stored::Old;
    }

    fn remove(&mut self) -> io::Result<()> {
        self.store.remove()?;
        self.stored = Stored::Removed;
        Ok(())
    }

    /// Stores a record durably. If this fails, removes the stored record, which is safe, and
    /// returns the error as the value. Error: if the record can neither be written nor removed.
    fn store(&mut self, record: Record) -> io::Result<Option<io::Error>> {
        self.stored = Stored::Old;
        self.record = record;
        if self.replace().is_err() {
            // On a full file system, the removal makes room for a new record.
            self.remove()?;
            if let Err(error) = self.replace() {
                // The new record may exist, but may not be durable.
                self.remove()?;
                return Ok(Some(error));
            }
        }
        self.stored = Stored::Current;
        Ok(None)
    }

    fn replace(&mut self) -> io::Result<()> {
        self.store.replace(self.record.to_string().as_bytes())
    }
}
