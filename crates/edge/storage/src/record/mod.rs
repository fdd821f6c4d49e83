//! The record of a file. It identifies the contents over restarts, killed processes and crashes of
//! the machine, and shows whether data may have been lost. The record is a small text: for an image
//! a file next to the image (`docs/nvme.md`, "Contents of a file"), in a drive one of the drive's
//! records (`docs/drive.md`, "Crashes"). Both have the same rules.

mod image;
mod keeper;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub(crate) use image::ImageRecord;
pub(crate) use keeper::{RecordKeeper, RecordStore};

use crate::media::Layout;
use std::fmt;
use std::fs::Metadata;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::UNIX_EPOCH;

/// The version of the format. The program reads and writes only this version.
const VERSION: u64 = 1;
/// A value that the file system or the kernel does not report.
const UNKNOWN: &str = "-";
/// The algorithm of checksums.
const CRC32C: &str = "crc32c";

/// The last known state of a file's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// A number that changes when data may have been lost.
    pub incarnation: u64,
    /// Number of bytes of the file that are served.
    pub size: u64,
    /// The identity of the file; `None` in a drive, because a drive may be copied.
    pub file: Option<Identity>,
    /// Whether the file was written since the last orderly shutdown.
    pub dirty: bool,
    /// The boot in which the file was last written (boot_id in random(4)).
    pub boot: String,
    /// Whether the file has checksums behind the data.
    pub checksums: bool,
}

/// Distinguishes a file from other files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The inode number. The device number is not stored: it may change with a restart of the
    /// machine.
    pub inode: u64,
    /// The time at which the inode was created, because inode numbers are reused. For a block
    /// device, the sequence number of the disk.
    pub birth: String,
}

impl Identity {
    fn is(&self, other: &Self) -> bool {
        let unknown = self.birth == UNKNOWN || other.birth == UNKNOWN;
        self.inode == other.inode && (unknown || self.birth == other.birth)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.dirty { "dirty" } else { "clean" };
        if self.file.is_some() {
            writeln!(
                f,
                "# Which contents the file beside this one has: written by farlane device."
            )?;
            writeln!(f, "# Without it the contents count as new.")?;
        }
        writeln!(f, "version = {VERSION}")?;
        writeln!(f, "incarnation = {:016x}", self.incarnation)?;
        writeln!(f, "size = {}", self.size)?;
        if let Some(Identity { inode, birth }) = &self.file {
            writeln!(f, "inode = {inode}\nbirth = {birth}")?;
        }
        writeln!(f, "state = {state}")?;
        writeln!(f, "boot = {}", self.boot)?;
        if self.checksums {
            writeln!(f, "checksums = {CRC32C}")?;
        }
        Ok(())
    }
}

impl Record {
    /// The record of new contents of `size` bytes in a drive.
    pub(crate) fn new(size: u64, checksums: bool) -> Self {
        let (incarnation, boot) = (new_incarnation(), UNKNOWN.into());
        Self { incarnation, size, file: None, dirty: false, boot, checksums }
    }

    /// The least number of bytes of the file.
    pub(crate) fn file_length(&self) -> u64 {
        // A size without a layout is larger than any file.
        let length = || Layout::file_length(self.size).unwrap_or(u64::MAX);
        if self.checksums { length() } else { self.size }
    }

    /// Parses the text. It has every key once, in any order; in a drive, inode and birth are
    /// absent; without checksums, their algorithm is. Error: the fault, as a text to follow the record's name.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        const KEYS: [&str; 8] =
            ["version", "incarnation", "size", "inode", "birth", "state", "boot", "checksums"];
        let text = str::from_utf8(text).map_err(|_| "is not UTF-8 text".to_owned())?;
        let mut values: [Option<&str>; KEYS.len()] = [None; KEYS.len()];
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once('=').ok_or_else(|| bad("line", line))?;
            let (key, value) = (key.trim(), value.trim());
            if key == "version" && value.parse() != Ok(VERSION) {
                return Err(format!("has version '{value}', but this program reads {VERSION}"));
            }
            let index = KEYS.iter().position(|known| *known == key);
            let place = &mut values[index.ok_or_else(|| bad("key", key))?];
            if value.is_empty() || place.replace(value).is_some() {
                return Err(format!("has an empty or a second '{key}'"));
            }
        }
        let get = |index: usize| values[index].ok_or_else(|| format!("lacks '{}'", KEYS[index]));
        get(0)?;
        let number = |index, radix| {
            u64::from_str_radix(get(index)?, radix)
                .map_err(|_| bad(KEYS[index], values[index].unwrap_or_default()))
        };
        let file = match (values[3], values[4]) {
            (None, None) => None,
            _ => Some(Identity { inode: number(3, 10)?, birth: get(4)?.to_owned() }),
        };
        Ok(Self {
            incarnation: number(1, 16)?,
            size: number(2, 10)?,
            dirty: match get(5)? {
                "clean" => false,
                "dirty" => true,
                state => return Err(bad("state", state)),
            },
            boot: get(6)?.to_owned(),
            checksums: match values[7] {
                None => false,
                Some(CRC32C) if file.is_none() => true,
                Some(other) => return Err(bad("checksums", other)),
            },
            file,
        })
    }
}

fn bad(field: &str, value: &str) -> String {
    // The value may be very long in a hostile record.
    let short: String = value.chars().take(40).collect();
    format!("has an invalid {field} '{}'", short.escape_debug())
}

/// The present state of a file, to compare with its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The identity of the file, as in [`Record`].
    pub file: Option<Identity>,
    /// Length of the file in bytes.
    pub length: u64,
    /// Whether the file is a block device, whose node may be another disk after a restart of the
    /// machine.
    pub device: bool,
}

impl Found {
    /// The state of an open file of `length` bytes.
    pub(crate) fn new(metadata: &Metadata, length: u64) -> Self {
        let device = metadata.file_type().is_block_device();
        let birth = if device { disk_sequence(metadata.rdev()) } else { birth(metadata) };
        let birth = birth.unwrap_or(UNKNOWN.into());
        Self { file: Some(Identity { inode: metadata.ino(), birth }), length, device }
    }

    /// The state of a drive's contents in a file of `length` bytes.
    pub(crate) fn in_drive(length: u64) -> Self {
        Self { file: None, length, device: false }
    }

    fn is_of(&self, record: &Record) -> bool {
        match (&self.file, &record.file) {
            (Some(found), Some(recorded)) => found.is(recorded),
            (found, recorded) => found == recorded,
        }
    }
}

/// The time at which the inode was created: seconds and nanoseconds since 1970; `None` if unknown.
fn birth(metadata: &Metadata) -> Option<String> {
    let since = metadata.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{}.{:09}", since.as_secs(), since.subsec_nanos()))
}

/// The sequence number of the disk behind a block device (Linux 5.15 and later). The number changes
/// when a loop device gets another file (Documentation/ABI/stable/sysfs-block, `diskseq`).
fn disk_sequence(device: u64) -> Option<String> {
    use rustix::fs::{major, minor};
    let folder = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    // For a partition, the number is in the folder of the disk.
    let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).ok();
    let text = read("diskseq").or_else(|| read("../diskseq"))?;
    Some(format!("disk-{}", text.trim()))
}

/// The result of comparing a file with its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Whether the record describes the present contents; otherwise the contents are new.
    pub same: bool,
    /// Number of bytes to serve.
    pub size: u64,
    /// A message for the user.
    pub note: Option<String>,
}

/// Compares a file with its record, in the boot `boot`. Error: if the file is shorter than in the
/// record, most likely because it is an incomplete copy.
fn compare(record: Option<&Record>, found: &Found, boot: &str) -> Result<Comparison, String> {
    let fresh = |note: Option<&str>| Comparison {
        same: false,
        size: found.length,
        note: note.map(|why| format!("{why}: its contents count as new")),
    };
    let Some(record) = record else { return Ok(fresh(None)) };
    let size = record.file_length();
    if found.length < size {
        let length = found.length;
        return Err(format!("gives {size} bytes, but the file has only {length}"));
    }
    let same_boot = boot != UNKNOWN && record.boot == boot;
    if !found.is_of(record) {
        return Ok(fresh(Some("is not the file that its record describes")));
    }
    if found.device && !same_boot {
        return Ok(fresh(Some("is a block device and the machine was rebooted")));
    }
    let size = record.size;
    if record.dirty && !same_boot {
        let why = "was being written when the machine went down";
        return Ok(Comparison { size, ..fresh(Some(why)) });
    }
    let note = (record.file_length() < found.length).then(|| {
        format!("is {} bytes long, of which {size} are used; 'size=' grows it", found.length)
    });
    Ok(Comparison { same: true, size, note })
}

/// The identity of this boot of the machine. If the kernel does not report it, `UNKNOWN`, which
/// matches no boot.
pub(crate) fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Some(text.trim()).filter(|id| !id.is_empty()).unwrap_or(UNKNOWN).to_owned()
}

/// A random number for new contents; never 0.
pub(crate) fn new_incarnation() -> u64 {
    RandomState::new().build_hasher().finish().max(1)
}
