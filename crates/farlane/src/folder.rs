//! Folders for a while.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A new folder among those for temporary files that goes with the value.
pub struct Folder(pub PathBuf);

impl Folder {
    /// With `what` in its name.
    ///
    /// # Errors
    /// Names the folder if it cannot be made.
    pub fn new(what: &str) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("farlane-{what}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let named = |error| io::Error::other(format!("{}: {error}", path.display()));
        fs::create_dir_all(&path).map_err(named)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
