//! Records in an embedded database (redb).

use super::{Change, Records};
use redb::{Builder, Database, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition};
use std::io;

/// Records by name.
const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");
/// The version of the format, with the key `FORMAT_VERSION`.
const FORMAT: TableDefinition<'_, &str, u64> = TableDefinition::new("format");
const FORMAT_VERSION: &str = "version";

/// Memory for pages of the database in bytes: more than the records of a drive need.
const CACHE: usize = 1 << 20;

/// An open database.
#[derive(Debug)]
pub(super) struct Metadata(Database);

impl Metadata {
    /// Creates a database with these records in empty storage, durably.
    pub(super) fn create(
        storage: impl StorageBackend,
        version: u64,
        records: &Records,
    ) -> io::Result<Self> {
        let create = || -> Result<_, redb::Error> {
            let metadata = Self(builder().create_with_backend(storage)?);
            let transaction = metadata.0.begin_write()?;
            transaction.open_table(FORMAT)?.insert(FORMAT_VERSION, version)?;
            let mut table = transaction.open_table(RECORDS)?;
            for (name, bytes) in records {
                table.insert(name.as_str(), bytes.as_slice())?;
            }
            drop(table);
            transaction.commit()?;
            Ok(metadata)
        };
        create().map_err(io_error)
    }

    /// Opens a database, and repairs it after a crash. Returns the version of the format and all
    /// records too.
    pub(super) fn open(storage: impl StorageBackend) -> io::Result<(Self, u64, Records)> {
        if storage.len()? == 0 {
            // redb would create a new database.
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty"));
        }
        let open = || -> Result<_, redb::Error> {
            let metadata = Self(builder().create_with_backend(storage)?);
            let transaction = metadata.0.begin_read()?;
            let version = transaction.open_table(FORMAT)?.get(FORMAT_VERSION)?;
            let version = version.map(|version| version.value());
            let mut records = Records::new();
            for entry in transaction.open_table(RECORDS)?.iter()? {
                let (name, bytes) = entry?;
                records.insert(name.value().to_owned(), bytes.value().to_vec());
            }
            Ok((metadata, version, records))
        };
        let (metadata, version, records) = open().map_err(io_error)?;
        let version = version.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "the format's version is missing")
        })?;
        Ok((metadata, version, records))
    }

    /// Makes all changes durable, or none. After an error the database cannot be used until it is
    /// opened again, because its contents are uncertain.
    pub(super) fn commit(&self, changes: &[Change]) -> io::Result<()> {
        let commit = || -> Result<_, redb::Error> {
            let transaction = self.0.begin_write()?;
            let mut table = transaction.open_table(RECORDS)?;
            for (name, bytes) in changes {
                match bytes {
                    Some(bytes) => drop(table.insert(name.as_str(), bytes.as_slice())?),
                    None => drop(table.remove(name.as_str())?),
                }
            }
            drop(table);
            Ok(transaction.commit()?)
        };
        commit().map_err(io_error)
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    // Without this option, redb does not check the pages of a database that was closed in order.
    builder.set_cache_size(CACHE).set_check_integrity_on_open(true);
    builder
}

/// The I/O error of the storage, or the database error as an I/O error.
fn io_error(error: redb::Error) -> io::Error {
    match error {
        redb::Error::Io(error) => error,
        error => io::Error::other(error.to_string()),
    }
}
