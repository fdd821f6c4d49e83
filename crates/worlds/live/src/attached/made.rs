//! A drive that exists only while its node runs: namespaces over media.

use super::NvmeDrive;
use node::drive::FIRST;
use nvme::{Config, NamespaceConfig, Settings, Subsystem};
use std::collections::BTreeMap;
use std::io;
use storage::media::{Backing, Media, check_memory};
use wire::Instant;

/// Default number of I/O queue pairs of a drive.
pub const QUEUES: u16 = 64;

/// Settings of a drive with payloads of up to `max_payload` bytes and `queues` I/O queue pairs, 1
/// to 2048.
pub fn drive_settings(max_payload: usize, queues: u16) -> Settings {
    Settings {
        max_payload,
        io_queues: queues,
        queue_entries: nvme::MAX_ENTRIES,
        ..Settings::default()
    }
}

impl NvmeDrive {
    /// A drive over `namespaces`, starting at NSID 1. `controllers` is the number of controllers, 1 or
    /// more. The default serial number is constant as long as the files of the drive, or `place`, are
    /// the same.
    ///
    /// # Errors
    /// One line that names the namespace, or gives the available memory.
    pub fn over(
        namespaces: &[Backing],
        serial: Option<&str>,
        place: &str,
        settings: Settings,
        controllers: u16,
    ) -> io::Result<Self> {
        check_memory(namespaces.iter().map(Backing::memory).fold(0, u64::saturating_add))?;
        let opened = namespaces.iter().map(Backing::open).collect::<io::Result<Vec<_>>>()?;
        let (subsystem, media) = make(opened, serial, &place_of(namespaces, place), settings);
        Ok(Self::new(subsystem.with_controllers(Instant::ZERO, controllers).with_label(), media))
    }

    /// A drive with one namespace of `size` bytes of RAM, in blocks of 512.
    ///
    /// # Errors
    /// One line with the available memory.
    pub fn of_ram(serial: &str, size: u64, settings: Settings) -> io::Result<Self> {
        let ram = Backing::Ram { size, block: 512, read_only: false };
        Self::over(&[ram], Some(serial), "", settings, FIRST)
    }
}

/// The name of the place from which the default serial number derives.
pub(super) fn place_of(namespaces: &[Backing], place: &str) -> String {
    namespaces.iter().find_map(Backing::identity).unwrap_or_else(|| place.to_owned())
}

/// A drive with one controller over opened namespaces, without a label, and its media by NSID.
pub(super) fn make(
    opened: Vec<(NamespaceConfig, Box<dyn Media>)>,
    serial: Option<&str>,
    place: &str,
    settings: Settings,
) -> (Subsystem, BTreeMap<u32, Box<dyn Media>>) {
    let (configs, media): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
    let own = || format!("FL{:016X}", fnv1a(place.as_bytes()));
    let mut config = Config::new(serial.map_or_else(own, str::to_owned), configs);
    config.settings = settings;
    config.incarnation = incarnation_of(&config.namespaces, &media);
    (Subsystem::new(Instant::ZERO, &config), (1..).zip(media).collect())
}

/// The incarnation of a drive: FNV-1a over its namespaces in order, each with its NSID, the
/// incarnation of its media, the block shift and whether it is read-only (1 or 0), little endian.
/// New contents of one namespace make the drive's contents new, and so do other block sizes or
/// another order, which a host would not detect itself. Sizes do not count, because a drive may
/// grow.
fn incarnation_of(namespaces: &[NamespaceConfig], media: &[Box<dyn Media>]) -> u64 {
    let numbered = (1u32..).zip(namespaces.iter().zip(media));
    let bytes = numbered.flat_map(|(nsid, (namespace, media))| {
        let incarnation = media.incarnation().to_le_bytes();
        let format = [namespace.block_shift, u8::from(namespace.read_only)];
        nsid.to_le_bytes().into_iter().chain(incarnation).chain(format)
    });
    fnv1a(&bytes.collect::<Vec<u8>>())
}

/// 64-bit FNV-1a.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::media::RamMedia;

    #[test]
    fn the_contents_of_a_drive_are_new_if_those_of_one_namespace_are() {
        let ram = || -> Box<dyn Media> { Box::new(RamMedia::new(4096)) };
        let mut media = [ram(), ram()];
        let mut namespaces = [NamespaceConfig::new(8), NamespaceConfig::new(8)];
        let before = incarnation_of(&namespaces, &media);
        assert_eq!(incarnation_of(&namespaces, &media), before, "the same as long as it runs");
        namespaces[0].blocks = 16;
        assert_eq!(incarnation_of(&namespaces, &media), before, "a drive may grow");
        namespaces[0].block_shift = 12;
        assert_ne!(incarnation_of(&namespaces, &media), before, "other blocks");
        namespaces[0].block_shift = 9;
        namespaces[1].read_only = true;
        assert_ne!(incarnation_of(&namespaces, &media), before, "read-only");
        namespaces[1].read_only = false;
        media.swap(0, 1);
        assert_ne!(incarnation_of(&namespaces, &media), before, "each namespace has its own");
        media.swap(0, 1);
        media[1] = ram();
        assert_ne!(incarnation_of(&namespaces, &media), before, "RAM starts empty");
    }
}
