//! Storage of namespaces: media in RAM, in a file or on a block device, and drives in a folder.
//! Media execute the requests of [`nvme::block`].
//!
//! # Modules
//!
//! - [`media`]: media of namespaces: RAM, files, block devices
//! - `record`: the record that identifies a file's contents
//! - [`drive`]: a drive in a folder: its records and contents
//! - [`files`]: files and folders, and a model of a disk that crashes
//! - [`completions`]: results and messages that threads send to the loop of a node
//! - `ring`: io_uring, and the unsafe code of this crate

#![deny(unsafe_code)]

pub mod completions;
pub mod drive;
pub mod files;
pub mod media;
mod record;
#[allow(unsafe_code)]
mod ring;

use std::fmt;
use std::io;

/// Adds context in front of the error's text.
fn about(context: impl fmt::Display, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{context}: {error}"))
}
