//! The records `namespace/NSID`: the properties of a namespace, and the place of the metadata.

use super::check::{self, Check, Problem};
use super::{RecordError, hex, namespace_key};
use serde::{Deserialize, Serialize};

/// Metadata begin at a multiple of this number of bytes in the contents. So data and metadata share
/// no page, because accesses to data may bypass the page cache and accesses to metadata may not.
const METADATA_ALIGNMENT: u128 = 4096;

/// The format of blocks (NVMe 1.4, sections 5.23 and 8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Block size as a power of two, without metadata: 9 to 16.
    pub block_shift: u8,
    /// Size of metadata per block in bytes: 0 or 8.
    pub metadata: u8,
    /// Whether metadata are transferred at the end of each block's data (FLBAS bit 4); otherwise in
    /// a separate buffer.
    pub extended: bool,
    /// DPS: bits 2:0, the type of end-to-end protection, 0 for none; bit 3, the protection
    /// information is in the first eight bytes of the metadata.
    pub protection: u8,
}

impl Format {
    /// Number of bytes of contents for this number of blocks: data, followed by metadata.
    pub(crate) fn bytes(&self, blocks: u64) -> u128 {
        let (data, blocks) = (u128::from(blocks) << self.block_shift, u128::from(blocks));
        match self.metadata {
            0 => data,
            bytes => data.next_multiple_of(METADATA_ALIGNMENT) + blocks * u128::from(bytes),
        }
    }

    /// The maximum number of blocks that this number of bytes of contents has room for.
    pub(crate) fn blocks_in(&self, bytes: u64) -> u64 {
        let mut blocks = bytes / ((1 << self.block_shift) + u64::from(self.metadata));
        while self.bytes(blocks) > bytes.into() {
            blocks -= 1;
        }
        blocks
    }
}

/// The properties of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// Size in blocks, at least 1; at most 2^64 - 1 bytes.
    pub blocks: u64,
    /// Block size as a power of two: 9 to 16.
    pub block_shift: u8,
    /// NGUID.
    #[serde(with = "hex")]
    pub nguid: [u8; 16],
    /// EUI-64; zeroes if the namespace has none.
    #[serde(with = "hex")]
    pub eui64: [u8; 8],
    /// UUID.
    #[serde(with = "hex")]
    pub uuid: [u8; 16],
    /// The name of the namespace's contents, for the owner of the media: 1 to 100 letters, digits,
    /// `-`, `_` and `.`; the first character is not `.`.
    pub contents: String,
    /// Whether the namespace is write protected.
    pub write_protected: bool,
    /// Whether the namespace can be attached to only one controller at a time (NMIC).
    #[serde(default)]
    pub private: bool,
    /// Size of metadata per block in bytes: 0 or 8.
    #[serde(default, skip_serializing_if = "is_default")]
    pub metadata: u8,
    /// As [`Format::extended`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub extended: bool,
    /// As [`Format::protection`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub protection: u8,
    /// Bytes at the end of the contents that belong to no block.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rest: u64,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Namespace {
    /// The format of the blocks.
    pub fn format(&self) -> Format {
        let Self { block_shift, metadata, extended, protection, .. } = *self;
        Format { block_shift, metadata, extended, protection }
    }

    /// The size of the contents in bytes.
    pub fn bytes(&self) -> u64 {
        self.format().bytes(self.blocks) as u64 + self.rest
    }

    /// Byte offset of the metadata of a block in the contents.
    pub(crate) fn metadata_offset(&self, slba: u64) -> u64 {
        let all = self.blocks * u64::from(self.metadata);
        self.bytes() - self.rest - all + slba * u64::from(self.metadata)
    }

    /// A namespace with contents of the same size, and with blocks of another format.
    pub fn with_format(&self, format: Format) -> Self {
        let Format { block_shift, metadata, extended, protection } = format;
        let blocks = format.blocks_in(self.bytes());
        let rest = self.bytes() - format.bytes(blocks) as u64;
        Self { blocks, block_shift, metadata, extended, protection, rest, ..self.clone() }
    }

    /// Fails unless all fields are in their ranges.
    pub(crate) fn checked(&self, nsid: u32) -> Result<(), RecordError> {
        self.check().map_err(|problem| RecordError::new(&namespace_key(nsid), problem))
    }

    /// The fields that must be unique in a drive, with their names.
    pub(super) fn names(&self) -> impl Iterator<Item = (&'static str, Vec<u8>)> {
        let eui64 = (self.eui64 != [0; 8]).then(|| ("eui64", self.eui64.to_vec()));
        let others = [
            ("nguid", self.nguid.to_vec()),
            ("uuid", self.uuid.to_vec()),
            ("contents", self.contents.clone().into_bytes()),
        ];
        others.into_iter().chain(eui64)
    }
}

impl Check for Namespace {
    fn check(&self) -> Result<(), Problem> {
        check::range("block_shift", self.block_shift, 9, 16)?;
        check::range("blocks", self.blocks, 1, u64::MAX >> self.block_shift)?;
        if !matches!(self.metadata, 0 | 8) {
            return Err(format!("metadata: invalid value '{}': expected 0 or 8", self.metadata));
        }
        if self.extended && self.metadata == 0 {
            return Err("extended: 'true' needs metadata of 8 bytes".to_owned());
        }
        let most = if self.metadata == 0 { 0 } else { 3 };
        if self.protection != 0 && !(1..=most).contains(&(self.protection & !8)) {
            let metadata = self.metadata;
            let allowed = "expected 0, or with metadata also 1 to 3 and 9 to 11";
            return Err(format!(
                "protection: invalid value '{}' with metadata {metadata}: {allowed}",
                self.protection
            ));
        }
        let bytes = self.format().bytes(self.blocks);
        if bytes + u128::from(self.rest) > u64::MAX.into() {
            return Err(format!(
                "rest: '{}' makes the contents larger than 2^64 - 1 bytes",
                self.rest
            ));
        }
        let name = "letters, digits, '-', '_' and '.'";
        check::text("contents", &self.contents, 100, (is_name, name))?;
        if self.contents.starts_with('.') {
            return Err(format!("contents: invalid name {:?}: it begins with '.'", self.contents));
        }
        Ok(())
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}
