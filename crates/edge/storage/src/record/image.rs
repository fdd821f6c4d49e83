//! The record of an image: a file next to the image.

use super::RecordStore;
use crate::files::{self, Access, Folder, SystemFolder, remove_if_there};
use rustix::fs::{Gid, Mode, Uid, access, fchmod, fchown};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The longest record in bytes.
const MAX_BYTES: u64 = 4096;

/// The record `disk.img.farlane` of the image `disk.img`.
#[derive(Debug)]
pub(crate) struct ImageRecord {
    folder: Box<dyn Folder>,
    /// The path of the record for messages.
    path: PathBuf,
    /// The name of the record in the folder.
    name: String,
    /// Mode, owner and group of the image. The record gets the same values.
    owner: (u32, u32, u32),
}

impl ImageRecord {
    /// The record of the image at `path`, after symbolic links. `None` if the image has no place in
    /// a folder, or if its name is not UTF-8.
    pub(crate) fn for_image(path: &Path, image: &Metadata) -> Option<Self> {
        let path = std::fs::canonicalize(path).ok()?;
        // A path in /proc may lead to a removed file, or to a file that never had a name.
        if !files::leads_to(&path, image) {
            return None;
        }
        let name = format!("{}.farlane", path.file_name()?.to_str()?);
        let folder = Box::new(SystemFolder::search(path.parent()?).ok()?);
        let owner = (image.mode(), image.uid(), image.gid());
        Some(Self { folder, path: path.with_file_name(&name), name, owner })
    }

    /// The record `name` in any folder.
    #[cfg(test)]
    pub fn in_folder(folder: Box<dyn Folder>, name: &str) -> Self {
        Self { folder, path: name.into(), name: name.into(), owner: (0, 0, 0) }
    }

    /// Whether files can be created in the folder of the record.
    pub(crate) fn is_writable(&self) -> bool {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
    }

    /// Whether a file with the record's name exists.
    pub(crate) fn exists(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok()
    }
}

impl RecordStore for ImageRecord {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let file = match self.folder.open(&self.name, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut bytes = vec![0; file.len()?.min(MAX_BYTES) as usize];
        file.read_at(&mut bytes, 0)?;
        Ok(Some(bytes))
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        files::replace(&*self.folder, &self.name, |file| {
            if let Some(file) = file.descriptor() {
                let (mode, user, group) = self.owner;
                // If the process may not change the owner, the record keeps the owner of the
                // process.
                let _ = fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
                fchmod(file, Mode::from_raw_mode(mode & 0o666))?;
            }
            file.write_at(bytes, 0)?;
            file.sync_data()
        })
    }

    fn remove(&mut self) -> io::Result<()> {
        remove_if_there(&*self.folder, &self.name)?;
        self.folder.sync()
    }
}
