//! The backing of a namespace.

use super::{FileMedia, FileOptions, Media, RamMedia, SharedRam};
use nvme::NamespaceConfig;
use std::io;
use std::path::PathBuf;

/// The backing of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A file or block device.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Options for opening the file.
        options: FileOptions,
    },
    /// Memory of this process.
    Ram {
        /// Size in bytes.
        size: u64,
        /// Block size in bytes: 512 or 4096.
        block: u32,
        /// Whether writes of hosts are rejected.
        read_only: bool,
    },
}

impl Backing {
    /// Opens the backing.
    ///
    /// # Errors
    /// One line with the file or the invalid number.
    pub fn open(&self) -> io::Result<(NamespaceConfig, Box<dyn Media>)> {
        let (name, media, block, read_only): (_, Box<dyn Media>, _, _) = match self {
            Self::Ram { size, block, read_only } => {
                (format!("ram={size}"), Box::new(RamMedia::new(*size)), *block, *read_only)
            }
            Self::File { path, options } => {
                let media = Box::new(FileMedia::open(path, *options)?);
                (path.display().to_string(), media, options.block, options.read_only)
            }
        };
        Ok((config(&name, &*media, block, read_only)?, media))
    }

    /// Checks without a lock or a change that the file can be opened, or be created.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn check(&self) -> io::Result<()> {
        match self {
            Self::Ram { .. } => Ok(()),
            Self::File { path, options } => FileMedia::check(path, *options),
        }
    }

    /// Opens the backing for several threads, each with a clone.
    ///
    /// # Errors
    /// As [`open`](Self::open), or if the backing is not in memory.
    pub fn open_shared(&self) -> io::Result<(NamespaceConfig, SharedRam)> {
        match self {
            Self::Ram { size, block, read_only } => {
                let media = SharedRam::new(*size);
                Ok((config(&format!("ram={size}"), &media, *block, *read_only)?, media))
            }
            Self::File { path, .. } => Err(io::Error::other(format!(
                "{}: several threads serve only namespaces in RAM: expected ram=SIZE",
                path.display()
            ))),
        }
    }

    /// The maximum number of bytes of memory that the backing uses.
    pub fn memory(&self) -> u64 {
        match self {
            Self::Ram { size, .. } => *size,
            Self::File { .. } => 0,
        }
    }

    /// A text that identifies the backing over restarts of the node: the absolute path of the file;
    /// `None` for RAM.
    pub fn identity(&self) -> Option<String> {
        match self {
            Self::File { path, .. } => {
                let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
                Some(path.display().to_string())
            }
            Self::Ram { .. } => None,
        }
    }
}

/// The configuration of a namespace over `media` with blocks of `block` bytes.
fn config(
    name: &str,
    media: &dyn Media,
    block: u32,
    read_only: bool,
) -> io::Result<NamespaceConfig> {
    let (size, bytes) = (media.size(), u64::from(block));
    if size == 0 || !size.is_multiple_of(bytes) {
        return Err(io::Error::other(format!(
            "{name}: {size} bytes are not a whole number of blocks of {block} bytes, at least one"
        )));
    }
    let mut config = NamespaceConfig::new(size / bytes);
    config.block_shift = block.ilog2() as u8;
    config.read_only = read_only || media.read_only();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_whole_blocks() {
        let backing = Backing::Ram { size: 1000, block: 512, read_only: false };
        let error = backing.open().map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("ram=1000: 1000 bytes are not a whole number"), "{error}");
    }
}
