//! Replaces a file as a whole.

use super::{Access, File, Folder};
use std::io;

/// Replaces the file `name` by one that `fill` writes and syncs: a crash leaves the old one or the
/// other. Meanwhile the new one is `name` with `.new` behind it.
pub(crate) fn replace<T>(
    folder: &dyn Folder,
    name: &str,
    fill: impl FnOnce(Box<dyn File>) -> io::Result<T>,
) -> io::Result<T> {
    let new = format!("{name}.new");
    // An interrupted attempt may have left one.
    remove_if_there(folder, &new)?;
    let filled = folder.open(&new, Access::CreateNew).and_then(fill).inspect_err(|_| {
        let _ = folder.remove(&new);
    })?;
    folder.rename(&new, name)?;
    folder.sync()?;
    Ok(filled)
}

/// Removes a file, unless there is none.
pub(crate) fn remove_if_there(folder: &dyn Folder, name: &str) -> io::Result<()> {
    match folder.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
