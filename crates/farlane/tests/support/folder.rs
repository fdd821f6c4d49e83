//! Folders for the files of tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Creates an empty folder for the logs and disks of a test. The folder remains after the test.
pub fn kept(name: &str) -> PathBuf {
    empty("guest", name)
}

/// Creates an empty folder with this name, for tests of one `kind`.
pub fn empty(kind: &str, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(kind).join(name);
    // Removes files of a previous run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    folder
}

/// Creates a disk image of zeros.
pub fn empty_disk(path: &Path, bytes: u64) {
    let file = fs::File::create(path).and_then(|file| file.set_len(bytes));
    file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// A folder for sockets, whose paths must be short. The folder is removed on drop.
pub struct Sockets(PathBuf);

impl Sockets {
    /// Creates an empty folder.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("farlane-{}-{count}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        Self(folder)
    }

    /// Returns the path of the folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a socket in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
