//! `--namespace` of `farlane drive create`, in QEMU's option style.

use crate::namespace::parse_block;
use report::span::bytes;
use std::str::FromStr;

/// A value of `--namespace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewNamespace {
    /// Size in bytes.
    pub size: u64,
    /// Size of a block in bytes.
    pub block: u32,
    /// Whether space is allocated on writing instead of being reserved.
    pub sparse: bool,
    /// Whether the contents have checksums.
    pub checksums: bool,
}

impl FromStr for NewNamespace {
    type Err = String;

    /// Parses `size=SIZE[,block=512|4096][,sparse][,checksums=on|off]`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (mut size, mut block, mut sparse, mut checksums) = (None, 512, false, false);
        for part in text.split(',') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key {
                "size" => size = Some(bytes(value)?),
                "block" => block = parse_block(value)?,
                "sparse" if matches!(value, "" | "on") => sparse = true,
                "checksums" if matches!(value, "on" | "off") => checksums = value == "on",
                _ => {
                    return Err(format!(
                        "invalid key '{part}': expected size=SIZE, block=512|4096, sparse or \
                         checksums=on|off"
                    ));
                }
            }
        }
        let size = size.ok_or("expected size=SIZE")?;
        Self { size, block, sparse, checksums }.checked()
    }
}

impl NewNamespace {
    /// Checks that the size is a multiple of the block size.
    pub fn checked(self) -> Result<Self, String> {
        let Self { size, block, .. } = self;
        if size == 0 || !size.is_multiple_of(block.into()) {
            return Err(format!(
                "invalid size '{size}': expected a multiple of the block size {block}, above 0"
            ));
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        let small = NewNamespace { size: 1 << 20, block: 4096, sparse: true, checksums: false };
        assert_eq!("size=1 MiB,block=4KiB,sparse".parse(), Ok(small));
        let checked = NewNamespace { checksums: true, ..small };
        assert_eq!("size=1M,block=4K,sparse,checksums=on".parse(), Ok(checked));
        for wrong in ["", "1M", "size=1000", "size=1M,block=1000", "size=1M,checksums", "sparse"] {
            assert!(wrong.parse::<NewNamespace>().is_err(), "{wrong}");
        }
    }
}
