//! Replaces a file atomically.

use super::{Access, File, Folder};
use std::io;

/// Replaces the file `name` by a new file that `fill` writes and syncs. The new file has the name
/// `name` + `.new` until it is complete. A crash leaves either the old or the new file.
pub(crate) fn replace<T>(
    folder: &dyn Folder,
    name: &str,
    fill: impl FnOnce(Box<dyn File>) -> io::Result<T>,
) -> io::Result<T> {
    let new = format!("{name}.new");
    // An interrupted attempt may have left this file.
    remove_if_there(folder, &new)?;
    let filled = folder.open(&new, Access::CreateNew).and_then(fill).inspect_err(|_| {
        let _ = folder.remove(&new);
    })?;
    folder.rename(&new, name)?;
    folder.sync()?;
    Ok(filled)
}

/// Removes a file if it exists.
pub(crate) fn remove_if_there(folder: &dyn Folder, name: &str) -> io::Result<()> {
    match folder.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
