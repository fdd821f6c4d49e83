//! The packages' files that `tests/guest/fetch` and `tests/guest/initramfs` lay out.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::support::tshark::fetched;

/// What a guest is started from.
pub struct Cache {
    /// QEMU with vfio-user.
    pub qemu: PathBuf,
    /// A stock Debian kernel.
    pub kernel: PathBuf,
    /// The guest's userland.
    pub initramfs: PathBuf,
}

impl Cache {
    /// The cache, filled first if it is not.
    ///
    /// # Panics
    ///
    /// When it cannot be filled: a guest test that cannot run has failed.
    pub fn ready() -> &'static Self {
        static CACHE: OnceLock<Cache> = OnceLock::new();
        CACHE.get_or_init(|| {
            let folder = fetched(&["guest/fetch", "guest/initramfs"]);
            Self {
                qemu: folder.join("qemu-system-x86_64"),
                kernel: folder.join("vmlinuz"),
                initramfs: folder.join("initramfs.cpio"),
            }
        })
    }
}
