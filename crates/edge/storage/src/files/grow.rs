//! Makes a file longer.

use super::File;
use crate::about;
use rustix::process::{Resource, getrlimit};
use std::io;

/// Extends a file of `length` bytes to `size` bytes, durably. Reserves the new part, so that a full
/// disk is an error now and not at a later write of the guest. With `sparse`, the new part is
/// allocated on write. Error: a sentence without the file's name; the file may then be longer than
/// before.
pub(crate) fn grow(file: &dyn File, length: u64, size: u64, sparse: bool) -> io::Result<()> {
    let more = size - length;
    check_limit(size)?;
    if sparse {
        file.set_len(size).map_err(|error| about(format!("cannot grow to {size} bytes"), error))?;
    } else {
        check_space(file, more)?;
        reserve(file, length, more).map_err(|error| {
            about(format!("cannot reserve {more} bytes; 'sparse' reserves none"), error)
        })?;
    }
    file.sync_data().map_err(|error| about("cannot make its length durable", error))
}

/// Fails if `size` bytes exceed the file size limit of this process (RLIMIT_FSIZE, getrlimit(2)).
/// At a write beyond the limit, the kernel would end the process with SIGXFSZ.
pub(crate) fn check_limit(size: u64) -> io::Result<()> {
    if getrlimit(Resource::Fsize).current.is_some_and(|most| size > most) {
        return Err(io::Error::other(format!("{size} bytes exceed the limit of `ulimit -f`")));
    }
    Ok(())
}

/// Fails if a reservation cannot succeed, because the attempt would fill the file system for a
/// moment. The reservation itself may still fail later.
fn check_space(file: &dyn File, more: u64) -> io::Result<()> {
    let Some(free) = file.free_space().filter(|free| more > *free) else { return Ok(()) };
    let why = format!(
        "cannot reserve {more} bytes: the file system has {free} free; 'sparse' reserves none"
    );
    Err(io::Error::new(io::ErrorKind::StorageFull, why))
}

/// Reserves the space. Only extends the file if the file system cannot reserve space, as many
/// network file systems.
fn reserve(file: &dyn File, length: u64, more: u64) -> io::Result<()> {
    match file.allocate(length, more) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => file.set_len(length + more),
        result => result,
    }
}
