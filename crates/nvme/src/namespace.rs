//! A namespace: a range of blocks with a name (NVMe 1.4, section 6.1).

use crate::config::{Config, NamespaceConfig, fingerprint};
use crate::failure::Failure;
use wire::nvme::{Command, IdentifyNamespace, LbaFormat, StatusCode};

#[derive(Debug)]
pub(crate) struct Namespace {
    pub nsid: u32,
    pub blocks: u64,
    pub block_shift: u8,
    pub read_only: bool,
    pub uuid: [u8; 16],
}

impl Namespace {
    /// All namespaces of a drive; their IDs count from 1.
    pub fn all(config: &Config) -> Vec<Self> {
        (1..).zip(&config.namespaces).map(|(nsid, ns)| Self::new(config, nsid, ns)).collect()
    }

    fn new(config: &Config, nsid: u32, namespace: &NamespaceConfig) -> Self {
        let name = format!("{}\0{}\0{nsid}", config.model, config.serial);
        Self {
            nsid,
            blocks: namespace.blocks,
            block_shift: namespace.block_shift,
            read_only: namespace.read_only,
            uuid: custom_uuid(fingerprint(name.as_bytes())),
        }
    }

    pub fn bytes(&self, blocks: u64) -> u64 {
        blocks << self.block_shift
    }

    /// The range of Read, Write and Write Zeroes as first byte and length.
    pub fn range(&self, command: &Command) -> Result<(u64, u64), Failure> {
        let (slba, blocks) = (command.slba(), u64::from(command.blocks()));
        self.check(slba, blocks).map_err(|code| Failure::at_cdw(code, 10, 0))?;
        Ok((self.bytes(slba), self.bytes(blocks)))
    }

    /// Whether the namespace has these blocks.
    pub fn check(&self, slba: u64, blocks: u64) -> Result<(), StatusCode> {
        match slba.checked_add(blocks) {
            Some(end) if end <= self.blocks => Ok(()),
            _ => Err(StatusCode::LBA_OUT_OF_RANGE),
        }
    }

    /// Whether it may be written.
    pub fn writable(&self) -> Result<(), Failure> {
        if self.read_only {
            return Err(Failure::permanent(StatusCode::NAMESPACE_WRITE_PROTECTED));
        }
        Ok(())
    }

    /// The Identify Namespace data structure (figure 245).
    pub fn identify(&self) -> IdentifyNamespace {
        IdentifyNamespace {
            size: self.blocks,
            capacity: self.blocks,
            utilization: self.blocks,
            media_capacity: u128::from(self.bytes(self.blocks)),
            attributes: if self.read_only { IdentifyNamespace::WRITE_PROTECTED } else { 0 },
            nguid: self.uuid,
            lba_format: LbaFormat { metadata: 0, data_shift: self.block_shift, performance: 0 },
            ..IdentifyNamespace::default()
        }
    }
}

/// A UUID of version 8, whose other bits are the maker's (RFC 9562, 5.8).
pub(crate) fn custom_uuid(bits: u128) -> [u8; 16] {
    let mut uuid = bits.to_be_bytes();
    uuid[6] = uuid[6] & 0x0f | 0x80;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespaces() -> Vec<Namespace> {
        let config =
            Config::new("S1", vec![NamespaceConfig::new(100), NamespaceConfig::new(u64::MAX >> 9)]);
        Namespace::all(&config)
    }

    #[test]
    fn ranges_end_at_the_last_block() {
        let namespace = &namespaces()[0];
        let command = Command { cdw10: 92, cdw12: 7, ..Command::default() };
        assert_eq!(namespace.range(&command), Ok((92 * 512, 8 * 512)));
        let beyond = Command { cdw10: 93, ..command };
        assert!(namespace.range(&beyond).is_err());
        assert!(namespace.check(u64::MAX, 2).is_err());
    }

    #[test]
    fn names_differ_and_last() {
        let (a, b) = (namespaces(), namespaces());
        assert_eq!(a[0].uuid, b[0].uuid);
        assert_ne!(a[0].uuid, a[1].uuid);
        assert_eq!(a[0].uuid[6] >> 4, 8);
    }
}
