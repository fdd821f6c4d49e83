//! Storage of namespaces: media in RAM, in a file or on a block device, and drives that live in a
//! folder. Their requests are those of [`nvme::block`].
//!
//! [`ring`] has the `unsafe` code of this crate.

#![deny(unsafe_code)]

mod completions;
pub mod drive;
pub mod files;
pub mod media;
mod record;
#[allow(unsafe_code)]
mod ring;

use std::fmt;
use std::io;

/// Adds what failed to the error's text.
fn about(context: impl fmt::Display, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{context}: {error}"))
}
