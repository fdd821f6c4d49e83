//! The records `namespace/NSID`.

use super::check::{self, Check, Problem};
use super::{RecordError, hex, namespace_key};
use serde::{Deserialize, Serialize};

/// One namespace.
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
    /// EUI-64; zeroes if it has none.
    #[serde(with = "hex")]
    pub eui64: [u8; 8],
    /// UUID.
    #[serde(with = "hex")]
    pub uuid: [u8; 16],
    /// The name of its contents, for whoever owns the media: 1 to 100 letters, digits, `-`, `_`
    /// and `.`, the first one no `.`.
    pub contents: String,
    /// It refuses writes.
    pub write_protected: bool,
    /// It can be attached to one controller at a time only (NMIC).
    #[serde(default)]
    pub private: bool,
}

impl Namespace {
    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks << self.block_shift
    }

    /// The same with blocks of 2^`block_shift` bytes; what is not a whole block at the end is lost.
    pub(crate) fn with_blocks(&self, block_shift: u8) -> Self {
        Self { blocks: self.bytes() >> block_shift, block_shift, ..self.clone() }
    }

    /// Whether its fields are in their ranges.
    pub(crate) fn checked(&self, nsid: u32) -> Result<(), RecordError> {
        self.check().map_err(|problem| RecordError::new(&namespace_key(nsid), problem))
    }

    /// What no other namespace of a drive may have too, with the field.
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
        let name = "letters, digits, '-', '_' and '.'";
        check::text("contents", &self.contents, 100, (is_name, name))?;
        if self.contents.starts_with('.') {
            return Err(format!("contents: {:?} begins with '.'", self.contents));
        }
        Ok(())
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}
