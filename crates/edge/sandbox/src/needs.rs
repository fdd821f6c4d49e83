//! What a node keeps.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// What a node does with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads files, lists folders. If the path names a device, also controls it (ioctl(2)).
    Read,
    /// Also creates, writes, renames and removes files.
    Write,
    /// Creates and opens folders, creates and removes sockets.
    Sockets,
}

/// What a node keeps; the default is nothing.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Whether packet sockets are opened: keeps CAP_NET_RAW.
    pub packet_sockets: bool,
    /// Whether sockets get a priority above 6: keeps CAP_NET_ADMIN (socket(7), `SO_PRIORITY`).
    pub high_priority: bool,
    /// Whether io_uring is used. The kernel executes its operations without a look at seccomp
    /// filters; Landlock and capabilities apply.
    pub io_uring: bool,
    /// TCP ports to which the node connects. It binds none.
    pub connect: Vec<u16>,
    /// The paths that it uses after its start; [`path`](Self::path) and [`file`](Self::file) add some.
    pub paths: Vec<(PathBuf, Access)>,
    /// The files in these folders that it uses; [`file`](Self::file) adds some. Their owner and mode
    /// are checked without capabilities.
    pub files: Vec<(PathBuf, Access)>,
}

impl Needs {
    /// Adds exactly this file, or this folder with all below it. A path that does not exist when
    /// the restrictions begin stays forbidden.
    pub fn path(&mut self, path: impl Into<PathBuf>, access: Access) {
        let added = (path.into(), access);
        if !self.paths.contains(&added) {
            self.paths.push(added);
        }
    }

    /// Adds the folder of a file: files are replaced by rename, and the new file is only reachable
    /// by a rule for the folder. Symbolic links are followed. Of a device, a pipe or a removed
    /// file, adds only the file itself.
    pub fn file(&mut self, path: &Path, access: Access) {
        let folder = match path.canonicalize() {
            Ok(found) if found.is_file() => found.parent().map(Path::to_owned),
            Ok(_) => None,
            // A file to create.
            Err(_) if path.symlink_metadata().is_err() => folder_of(path).canonicalize().ok(),
            Err(_) => None,
        };
        self.path(folder.unwrap_or_else(|| path.to_owned()), access);
        self.files.push((path.to_owned(), access));
    }
}

/// The folder of a path without links: the present one for a name alone.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

/// Whether the path leads to a block device or a character device.
pub(crate) fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| {
        found.file_type().is_block_device() || found.file_type().is_char_device()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_needs_its_folder_and_a_device_only_itself() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        std::fs::create_dir(home.join("below")).unwrap();
        std::fs::write(home.join("below/file"), "").unwrap();
        std::os::unix::fs::symlink("below/file", home.join("link")).unwrap();
        for (path, needed) in [
            (home.join("below/file"), home.join("below")),
            (home.join("link"), home.join("below")),
            (home.join("new"), home.clone()),
            (home.join("no/folder"), home.join("no/folder")),
            ("/dev/null".into(), "/dev/null".into()),
        ] {
            let mut needs = Needs::default();
            needs.file(&path, Access::Write);
            needs.file(&path, Access::Write);
            assert_eq!(needs.paths, [(needed, Access::Write)], "{}", path.display());
        }
    }
}
