//! Reads small files that others may replace, lengthen or turn into something else.

use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes of the longest file that is read.
const MAX_FILE: u64 = 1 << 20;

/// A regular file, opened without blocking on a pipe or a device, and its status.
pub(crate) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let status = file.metadata()?;
    if !status.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok((file, status))
}

/// The contents of `file`, at most 1 MiB.
pub(crate) fn contents(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::other("longer than 1 MiB"));
    }
    Ok(bytes)
}
