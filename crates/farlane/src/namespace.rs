//! `--namespace`: the backing of a namespace, in QEMU's option style.

use report::span::bytes;
use std::path::PathBuf;
use std::str::FromStr;
use storage::media::{Aio, Backing, FileOptions};

/// The keys of a namespace.
pub const KEYS: [&str; 9] =
    ["file", "ram", "size", "block", "sparse", "ro", "use-existing-data", "aio", "cache.direct"];
/// The keys whose value is on or off.
pub const FLAGS: [&str; 4] = ["sparse", "ro", "use-existing-data", "cache.direct"];

/// A value of `--namespace`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace(Backing);

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
                        "invalid key '{part}': expected file=PATH, ram=SIZE, size=SIZE, sparse, \
                         block=512|4096, ro, use-existing-data, aio=threads|io_uring or \
                         cache.direct=on|off"
                    ));
                }
            }
        }
        let aio = match (threads.unwrap_or(false), direct.unwrap_or(false)) {
            (true, true) => return Err("cache.direct=on requires aio=io_uring".into()),
            (true, false) => Aio::Threads,
            (false, true) => Aio::IoUringDirect,
            (false, false) => Aio::IoUring,
        };
        match (file, ram) {
            (Some(path), None) if sparse && (size.is_none() || read_only) => {
                let path = path.display();
                Err(format!("file={path},sparse: sparse requires size=SIZE and excludes ro"))
            }
            (Some(path), None) => {
                let options =
                    FileOptions { size, sparse, read_only, use_existing_data, block, aio };
                Ok(Self(Backing::File { path, options }))
            }
            (None, Some(_)) if use_existing_data || threads.or(direct).is_some() => {
                Err("use-existing-data, aio and cache.direct apply only to file=PATH".into())
            }
            (None, Some(_)) if sparse => Err("sparse applies only to file=PATH,size=SIZE".into()),
            (None, Some(size)) => Ok(Self(Backing::Ram { size, block, read_only })),
            _ => Err("expected either file=PATH or ram=SIZE".into()),
        }
    }
}

impl Namespace {
    /// The backing. With `existing`, a block device keeps its data.
    pub fn backing(&self, existing: bool) -> Backing {
        let mut backing = self.0.clone();
        if let Backing::File { options, .. } = &mut backing {
            options.use_existing_data |= existing;
        }
        backing
    }
}

/// Parses the size of a block in bytes. Sizes other than 512 and 4096 are errors.
pub fn parse_block(text: &str) -> Result<u32, String> {
    match bytes(text)? {
        512 => Ok(512),
        4096 => Ok(4096),
        block => Err(format!("invalid block size '{block}': expected 512 or 4096")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        let file_options = |text: &str| match text.parse() {
            Ok(Namespace(Backing::File { options, .. })) => options,
            other => panic!("{text}: {other:?}"),
        };
        let file = file_options("file=/a/b,size=1MiB,ro,block=4k");
        assert!(file.read_only && file.block == 4096 && !file.use_existing_data);
        let ram = Backing::Ram { size: 1 << 20, block: 512, read_only: false };
        assert_eq!("ram=1M".parse(), Ok(Namespace(ram)));
        assert!(file_options("file=/a,size=1T,sparse").sparse);
        assert!(file_options("file=/dev/sdx,use-existing-data").use_existing_data);
        let [disk, plain] = ["file=/dev/sdx,use-existing-data", "file=/dev/sdx"]
            .map(|text| text.parse::<Namespace>().unwrap());
        assert_eq!(disk.backing(false), plain.backing(true));
        let aio = |text: &str| file_options(&format!("file=x{text}")).aio;
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
}
