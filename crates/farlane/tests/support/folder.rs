//! Where a test keeps its files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A fresh folder for a test's logs and disks, kept for a look afterwards.
pub fn kept(name: &str) -> PathBuf {
    empty("guest", name)
}

/// A fresh folder of that name, of tests of one `kind`.
pub fn empty(kind: &str, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(kind).join(name);
    // Leftovers of the run before, if any.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    folder
}

/// A disk of zeros.
pub fn empty_disk(path: &Path, bytes: u64) {
    let file = fs::File::create(path).and_then(|file| file.set_len(bytes));
    file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// A folder for sockets, whose paths must be short; removed on drop.
pub struct Sockets(PathBuf);

impl Sockets {
    /// An empty folder.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("farlane-{}-{count}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        Self(folder)
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The path of a socket in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
