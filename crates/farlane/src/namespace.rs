//! `--namespace`: the backing of a namespace, in QEMU's option style.

use nvme::NamespaceConfig;
use report::span::bytes;
use std::path::PathBuf;
use std::str::FromStr;
use storage::media::{Aio, FileMedia, FileOptions, Media, RamMedia};

/// One namespace as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    backing: Backing,
    block: u32,
    read_only: bool,
    use_existing_data: bool,
    aio: Aio,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Backing {
    File { path: PathBuf, size: Option<u64>, sparse: bool },
    Ram { size: u64 },
}

impl FromStr for Namespace {
    type Err = String;

    /// `file=PATH[,size=N[,sparse]][,block=512|4096][,ro][,use-existing-data]
    /// [,aio=threads|io_uring][,cache.direct=on|off]` or `ram=N[,block=…]`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (mut file, mut ram, mut size, mut block) = (None, None, None, 512);
        let (mut read_only, mut sparse, mut use_existing_data) = (false, false, false);
        let (mut threads, mut direct) = (None, None);
        for part in text.split(',') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key {
                "file" if !value.is_empty() => file = Some(PathBuf::from(value)),
                "ram" => ram = Some(bytes(value)?),
                "size" => size = Some(bytes(value)?),
                "block" => block = parse_block(value)?,
                "sparse" if matches!(value, "" | "on") => sparse = true,
                "ro" | "readonly" if matches!(value, "" | "on") => read_only = true,
                "use-existing-data" if matches!(value, "" | "on") => use_existing_data = true,
                "aio" if matches!(value, "threads" | "io_uring") => {
                    threads = Some(value == "threads");
                }
                "cache.direct" if matches!(value, "on" | "off") => direct = Some(value == "on"),
                _ => {
                    return Err(format!(
                        "'{part}' is not file=PATH, ram=SIZE, size=SIZE, sparse, block=512|4096, \
                         ro, use-existing-data, aio=threads|io_uring or cache.direct=on|off"
                    ));
                }
            }
        }
        let aio = match (threads.unwrap_or(false), direct.unwrap_or(false)) {
            (true, true) => return Err("cache.direct=on needs aio=io_uring".into()),
            (true, false) => Aio::Threads,
            (false, true) => Aio::IoUringDirect,
            (false, false) => Aio::IoUring,
        };
        let backing = match (file, ram) {
            (Some(path), None) if sparse && (size.is_none() || read_only) => {
                let path = path.display();
                return Err(format!("file={path},sparse: size=SIZE is missing, or ro is too much"));
            }
            (Some(path), None) => Backing::File { path, size, sparse },
            (None, Some(_)) if use_existing_data || threads.or(direct).is_some() => {
                return Err("use-existing-data, aio and cache.direct are for file=PATH".into());
            }
            (None, Some(_)) if sparse => return Err("sparse is for file=PATH,size=SIZE".into()),
            (None, Some(size)) => Backing::Ram { size },
            _ => return Err("a namespace is either file=PATH or ram=SIZE".into()),
        };
        Ok(Self { backing, block, read_only, use_existing_data, aio })
    }
}

impl Namespace {
    /// A namespace of `size` bytes of memory.
    pub fn ram(size: u64) -> Self {
        Self {
            backing: Backing::Ram { size },
            block: 512,
            read_only: false,
            use_existing_data: false,
            aio: Aio::default(),
        }
    }

    /// The same; a block device is served with the data that it has.
    #[must_use]
    pub fn with_existing_data(mut self, allowed: bool) -> Self {
        self.use_existing_data |= allowed;
        self
    }

    /// Opens its backing. The error is one line that names the file or the number.
    pub fn open(&self) -> Result<(NamespaceConfig, Box<dyn Media>), String> {
        let (name, media): (String, Box<dyn Media>) = match &self.backing {
            Backing::Ram { size } => (format!("ram={size}"), Box::new(RamMedia::new(*size))),
            Backing::File { path, size, sparse } => {
                let options = FileOptions {
                    size: *size,
                    sparse: *sparse,
                    read_only: self.read_only,
                    use_existing_data: self.use_existing_data,
                    block: self.block,
                    aio: self.aio,
                };
                let media = FileMedia::open(path, options);
                (path.display().to_string(), Box::new(media.map_err(|error| error.to_string())?))
            }
        };
        let (size, block) = (media.size(), u64::from(self.block));
        if size == 0 || !size.is_multiple_of(block) {
            return Err(format!(
                "{name}: {size} bytes are not a whole number of blocks of {block} bytes, \
                 at least one"
            ));
        }
        let mut config = NamespaceConfig::new(size / block);
        config.block_shift = self.block.ilog2() as u8;
        config.read_only = self.read_only || media.read_only();
        Ok((config, media))
    }

    /// Bytes of memory that it may take.
    pub fn memory(&self) -> u64 {
        match self.backing {
            Backing::Ram { size } => size,
            Backing::File { .. } => 0,
        }
    }

    /// An identity that distinguishes drives and survives restarts.
    pub fn identity(&self) -> Option<String> {
        match &self.backing {
            Backing::File { path, .. } => {
                let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
                Some(path.display().to_string())
            }
            Backing::Ram { .. } => None,
        }
    }
}

/// Bytes of a block: 512 or 4096. The error is one line.
pub fn parse_block(text: &str) -> Result<u32, String> {
    match bytes(text)? {
        512 => Ok(512),
        4096 => Ok(4096),
        block => Err(format!("block={block}: a block has 512 or 4096 bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        let file: Namespace = "file=/a/b,size=1MiB,ro,block=4k".parse().unwrap();
        assert!(file.read_only && file.block == 4096);
        assert_eq!("ram=1M".parse(), Ok(Namespace::ram(1 << 20)));
        let sparse: Namespace = "file=/a,size=1T,sparse".parse().unwrap();
        assert!(matches!(sparse.backing, Backing::File { sparse: true, .. }));
        let disk: Namespace = "file=/dev/sdx,use-existing-data".parse().unwrap();
        assert!(disk.use_existing_data && !file.use_existing_data);
        assert_eq!(disk, "file=/dev/sdx".parse::<Namespace>().unwrap().with_existing_data(true));
        let aio = |text: &str| format!("file=x{text}").parse::<Namespace>().unwrap().aio;
        assert_eq!((aio(""), aio(",cache.direct=off")), (Aio::IoUring, Aio::IoUring));
        assert_eq!(
            (aio(",aio=threads"), aio(",cache.direct=on")),
            (Aio::Threads, Aio::IoUringDirect)
        );
        for wrong in [
            "file=x,aio=native",
            "file=x,aio=threads,cache.direct=on",
            "file=x,cache.direct=maybe",
            "ram=1M,aio=threads",
            "",
            "size=1M",
            "ram=1M,use-existing-data",
            "file=x,use-existing-data=off",
            "ram=1M,file=x",
            "ram=1M,block=1000",
            "ram=1M,colour=red",
            "ram=1M,sparse",
            "file=x,sparse",
            "file=x,size=1M,sparse,ro",
            "file=x,size=1M,sparse=maybe",
        ] {
            assert!(wrong.parse::<Namespace>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_namespace_is_whole_blocks() {
        let error = "ram=1000".parse::<Namespace>().unwrap().open().map(|_| ()).unwrap_err();
        assert!(error.contains("1000 bytes are not a whole number"), "{error}");
    }
}
