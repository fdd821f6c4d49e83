//! Block devices of this machine, and the checks before a device is served.

mod users;

use crate::about;
use rustix::fs::{ioctl_blksszget, major, minor};
use std::fs::Metadata;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// A block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockDevice {
    /// `major:minor`, as in sysfs.
    number: String,
}

impl BlockDevice {
    /// The block device with this metadata; `None` for other files.
    pub(super) fn from_metadata(metadata: &Metadata) -> Option<Self> {
        let device = metadata.rdev();
        let number = format!("{}:{}", major(device), minor(device));
        metadata.file_type().is_block_device().then_some(Self { number })
    }

    /// Whether the kernel rejects writes to the device, because of a write-protected medium or
    /// `blockdev --setro` (`disk_ro_show` in linux/block/genhd.c).
    pub(super) fn is_read_only(&self) -> bool {
        let ro = std::fs::read_to_string(format!("/sys/dev/block/{}/ro", self.number));
        ro.is_ok_and(|text| text.trim() != "0")
    }

    /// The error for a device that is in use, without the device's name.
    pub(super) fn in_use(&self) -> io::Error {
        let user = users::user_of(Path::new("/"), &self.number);
        let user = user.unwrap_or_else(|| "in use by another program or by the kernel".into());
        io::Error::new(io::ErrorKind::ResourceBusy, user)
    }

    /// Fails if the blocks of the device are larger than the blocks of the namespace (`block`
    /// bytes).
    ///
    /// # Errors
    /// A sentence without the device's name.
    pub(super) fn check_block(&self, file: impl AsFd, block: u32) -> io::Result<()> {
        let logical = ioctl_blksszget(file);
        let logical = logical.map_err(|error| about("cannot get its block size", error.into()))?;
        if logical <= block {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "its blocks of {logical} bytes exceed the namespace's {block}; use block={logical}"
        )))
    }
}
