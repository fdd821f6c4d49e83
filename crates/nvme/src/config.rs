//! What kind of drive a [`Controller`](crate::Controller) is.

use pcie::EndpointConfig;

/// PCI vendor ID. In no list of assigned vendors, nor in the quirk table of Linux's nvme driver
/// (`nvme_id_table`), so that the driver binds by class code and works around nothing. 1b36:0010,
/// QEMU's own drive, would lose its namespace identifiers (NVME_QUIRK_BOGUS_NID).
pub(crate) const VENDOR: u16 = pcie::config::contents::VENDOR;
/// PCI device ID.
pub(crate) const DEVICE: u16 = 0x0001;
/// Class code: mass storage, non-volatile memory, NVM Express I/O controller.
const CLASS: [u8; 3] = [0x01, 0x08, 0x02];
/// Registers, doorbells, and the MSI-X structures in the upper half.
const BAR0: u64 = 64 << 10;

/// The most I/O queue pairs a controller offers.
pub(crate) const MAX_QUEUES: u16 = 64;
/// The most entries of a queue (NVMe 1.4, section 4.1.3 allows 65536).
pub(crate) const MAX_ENTRIES: u32 = 4096;

/// One namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceConfig {
    /// Size in blocks, at least 1.
    pub blocks: u64,
    /// Block size as a power of two: 9 for 512 bytes, up to 16.
    pub block_shift: u8,
    /// Refuses writes.
    pub read_only: bool,
}

impl NamespaceConfig {
    /// A writable namespace of `blocks` blocks of 512 bytes.
    pub fn new(blocks: u64) -> Self {
        Self { blocks, block_shift: 9, read_only: false }
    }
}

/// A drive. [`Config::new`] gives one that suits most; change what does not.
#[derive(Clone, Debug)]
pub struct Config {
    /// Serial number, up to 20 ASCII characters. Two drives of one host need
    /// different ones: subsystem and namespace names derive from it.
    pub serial: String,
    /// Identifies what all namespaces hold together: the same as long as no
    /// data were lost, another one when they may have been.
    pub incarnation: u64,
    /// Model number, up to 40 ASCII characters.
    pub model: String,
    /// Firmware revision, up to 8 ASCII characters.
    pub firmware: String,
    /// Namespace 1 and those after it, 1 to 1024.
    pub namespaces: Vec<NamespaceConfig>,
    /// I/O queue pairs, 1 to 64; there is one MSI-X vector more.
    pub io_queues: u16,
    /// Entries of the largest queue, 2 to 4096.
    pub queue_entries: u16,
    /// MDTS: the largest transfer is 2^this pages of 4 KiB; 1 to 8.
    pub max_transfer_shift: u8,
    /// The media have a volatile write cache.
    pub volatile_write_cache: bool,
    /// I/O commands worked on at the same time, and so the most block
    /// requests outstanding; at least 1.
    pub commands: usize,
    /// Bytes of data that commands hold at the same time; at least one largest transfer.
    pub buffer: usize,
    /// Bytes of posted writes waiting for the link above which no more read data is handed to it.
    pub posted_backlog: usize,
    /// Submission queue entries that one DMA read fetches, 1 to 64.
    pub fetch_batch: u16,
    /// Fetches of one submission queue in flight, at least 1.
    pub fetches: usize,
    /// PCIe: the largest payload supported in bytes.
    pub max_payload: usize,
    /// PCIe: the largest read request in bytes, below MRRS.
    pub read_request: usize,
    /// PCIe: read requests in flight.
    pub reads_in_flight: usize,
    /// Composite temperature in kelvin.
    pub temperature: u16,
}

impl Config {
    /// A drive with these namespaces.
    pub fn new(serial: impl Into<String>, namespaces: Vec<NamespaceConfig>) -> Self {
        Self {
            serial: serial.into(),
            incarnation: 0,
            model: "farlane NVMe drive".into(),
            firmware: env!("CARGO_PKG_VERSION").into(),
            namespaces,
            io_queues: MAX_QUEUES,
            queue_entries: MAX_ENTRIES as u16,
            max_transfer_shift: 5,
            volatile_write_cache: true,
            commands: 256,
            buffer: 8 << 20,
            posted_backlog: 256 << 10,
            fetch_batch: 16,
            fetches: 4,
            max_payload: 512,
            read_request: 4096,
            reads_in_flight: 32,
            temperature: 313,
        }
    }

    /// The largest transfer in bytes.
    pub fn max_transfer(&self) -> usize {
        4096 << self.max_transfer_shift
    }

    /// # Panics
    /// If a field is out of the range its documentation names.
    pub(crate) fn check(&self) {
        assert!((1..=1024).contains(&self.namespaces.len()), "1 to 1024 namespaces");
        for namespace in &self.namespaces {
            assert!((9..=16).contains(&namespace.block_shift), "blocks of 512 bytes to 64 KiB");
            let most = u64::MAX >> namespace.block_shift;
            assert!((1..=most).contains(&namespace.blocks), "a namespace has blocks");
        }
        assert!((1..=MAX_QUEUES).contains(&self.io_queues));
        assert!((2..=MAX_ENTRIES as u16).contains(&self.queue_entries));
        assert!((1..=8).contains(&self.max_transfer_shift));
        assert!(self.commands >= 1 && self.buffer >= self.max_transfer());
        assert!((1..=64).contains(&self.fetch_batch) && self.fetches >= 1);
    }

    /// The PCIe device serial number: another one for a drive with other
    /// namespaces, so that a host can tell that a drive came back as another.
    /// The upper half is that of the serial number alone.
    fn device_serial(&self) -> u64 {
        let mut name = self.serial.clone().into_bytes();
        let upper = fingerprint(&name) as u32;
        for namespace in &self.namespaces {
            name.push(0);
            name.extend(namespace.blocks.to_le_bytes());
            name.extend([namespace.block_shift, u8::from(namespace.read_only)]);
            // Where a UUID was once: drives keep their serial numbers.
            name.extend([0; 16]);
        }
        u64::from(upper) << 32 | u64::from(fingerprint(&name) as u32)
    }

    pub(crate) fn endpoint(&self) -> EndpointConfig {
        EndpointConfig {
            vendor: VENDOR,
            device: DEVICE,
            subsystem: (VENDOR, DEVICE),
            class: CLASS,
            revision: 1,
            serial: self.device_serial(),
            incarnation: Some(self.incarnation),
            bar0_size: BAR0,
            vectors: self.io_queues + 1,
            max_payload: self.max_payload,
            read_request: self.read_request,
            reads_in_flight: self.reads_in_flight,
        }
    }
}

/// Whether two PCIe functions with these IDs (vendor, device) and PCIe device serial numbers have
/// one serial number. Of drives of this crate it is that of [`Config::serial`], whatever their
/// namespaces; two different ones look alike once in 2^32 pairs.
pub fn same_serial(ids: [(u16, u16); 2], device_serials: [u64; 2]) -> bool {
    let [one, other] = device_serials;
    let own = ids == [(VENDOR, DEVICE); 2];
    one == other || (own && one >> 32 == other >> 32)
}

/// 128-bit FNV-1a: spreads names, hides nothing.
pub(crate) fn fingerprint(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_is_fnv_1a() {
        // The published test value for "a".
        assert_eq!(fingerprint(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    #[test]
    fn another_size_is_another_device() {
        let serial = |name: &str, blocks| {
            Config::new(name, vec![NamespaceConfig::new(blocks)]).endpoint().serial
        };
        assert_eq!(serial("A", 100), serial("A", 100));
        assert_ne!(serial("A", 100), serial("A", 200));
        assert_ne!(serial("A", 100), serial("B", 100));
        // The serial number shows through all the same.
        let same = |ids, one, other| same_serial(ids, [one, other]);
        let ours = [(VENDOR, DEVICE); 2];
        assert!(same(ours, serial("A", 100), serial("A", 200)));
        assert!(!same(ours, serial("A", 100), serial("B", 100)));
        // Of other makers' devices all of it counts.
        let theirs = [(0x8086, 1), (0x8086, 1)];
        assert!(!same(theirs, serial("A", 100), serial("A", 200)));
        assert!(same(theirs, 7, 7));
    }
}
