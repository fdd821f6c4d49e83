//! The packages' files that `tests/guest/fetch` and `tests/guest/initramfs` lay out.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

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
            run("fetch");
            run("initramfs");
            let folder = match std::env::var_os("FARLANE_GUEST_CACHE") {
                Some(folder) => repository().join(folder),
                None => repository().join(".cache/guest"),
            };
            Self {
                qemu: folder.join("qemu-system-x86_64"),
                kernel: folder.join("vmlinuz"),
                initramfs: folder.join("initramfs.cpio"),
            }
        })
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(script: &str) {
    let path = repository().join("tests/guest").join(script);
    let output = Command::new(&path)
        .current_dir(repository())
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        output.status.success(),
        "tests/guest/{script}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}
