//! Versions of the format of drives, and the migrations between versions.

use super::Records;
use std::io;

/// The version that this program writes, and the newest version that it reads. A version defines
/// the meaning of records and the layout of the folder.
pub const VERSION: u64 = 2;

/// Converts records to the next version. Error: a text about the fault in the records.
type Migration = fn(Records) -> Result<Records, String>;

/// The versions that a program reads.
#[derive(Debug)]
pub(super) struct Formats {
    pub newest: u64,
    /// The migration from the given version to the next one.
    pub migrations: &'static [(u64, Migration)],
}

impl Formats {
    /// The versions of this program. Version 1 is the first; version 2 may have checksums.
    pub(super) const KNOWN: Self = Self { newest: VERSION, migrations: &[(1, Ok)] };

    /// Fails if a version cannot be read.
    pub(super) fn check(&self, version: u64) -> io::Result<()> {
        let newest = self.newest;
        if version > newest {
            return Err(io::Error::other(format!(
                "has format version {version}, but this program reads up to {newest}"
            )));
        }
        (version..newest).try_for_each(|version| self.step(version).map(|_| ()))
    }

    /// Converts `records` from `version` to the newest version. Error: a migration is missing or
    /// fails.
    pub(super) fn migrate(&self, version: u64, records: Records) -> io::Result<Records> {
        (version..self.newest).try_fold(records, |records, version| {
            self.step(version)?(records).map_err(|error| {
                io::Error::other(format!("cannot be migrated from version {version}: {error}"))
            })
        })
    }

    fn step(&self, version: u64) -> io::Result<Migration> {
        let step = self.migrations.iter().find(|(from, _)| *from == version);
        let (_, migration) = step.ok_or_else(|| {
            let newest = self.newest;
            let why = format!("has format version {version}, but this program reads {newest}");
            io::Error::other(why)
        })?;
        Ok(*migration)
    }
}
