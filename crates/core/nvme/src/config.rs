//! The configuration of a drive without records, and the settings of any drive.

use crate::identity::derived_uuid;
use crate::state::{Attachments, Drive, Namespace, State};
use std::collections::{BTreeMap, BTreeSet};

/// The default model number of drives.
pub const MODEL: &str = "farlane NVMe drive";
/// The maximum number of I/O queue pairs of a controller: the maximum number of vectors of MSI-X
/// (PCIe Base 4.0, section 7.7.2.2).
pub const MAX_QUEUES: u16 = 2048;
/// The maximum number of entries of a queue (NVMe 1.4, section 4.1.3).
pub const MAX_ENTRIES: u32 = 65536;
/// The maximum number of I/O commands of a controller. Each has up to two block requests, which 16
/// bits identify.
const MAX_COMMANDS: usize = 0x4000;

/// One namespace of a drive without records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceConfig {
    /// Size in blocks, at least 1.
    pub blocks: u64,
    /// Block size as a power of two: 9 for 512 bytes, up to 16.
    pub block_shift: u8,
    /// Whether the namespace rejects writes.
    pub read_only: bool,
}

impl NamespaceConfig {
    /// A writable namespace of `blocks` blocks of 512 bytes.
    pub fn new(blocks: u64) -> Self {
        Self { blocks, block_shift: 9, read_only: false }
    }
}

/// A drive without records: its properties follow from these values.
#[derive(Clone, Debug)]
pub struct Config {
    /// Serial number, up to 20 ASCII characters. Two drives of one host need different serial
    /// numbers, because the names of subsystem and namespaces derive from them.
    pub serial: String,
    /// Identifies the contents of all namespaces together. Keep the value while no data are lost,
    /// and change it when data may have been lost.
    pub incarnation: u64,
    /// Model number, up to 40 ASCII characters.
    pub model: String,
    /// The namespaces, 1 to 1024, with NSIDs from 1. All are attached to every controller.
    pub namespaces: Vec<NamespaceConfig>,
    /// Settings of the running drive.
    pub settings: Settings,
}

/// Settings of a running drive. The defaults suit most drives.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Firmware revision, up to 8 ASCII characters.
    pub firmware: String,
    /// I/O queue pairs of a controller, 1 to 2048. There is one MSI-X vector more than queue pairs,
    /// but at most 2048.
    pub io_queues: u16,
    /// Entries of the largest queue, 2 to 65536.
    pub queue_entries: u32,
    /// MDTS, 1 to 8: the largest transfer is 4 KiB times 2^MDTS.
    pub max_transfer_shift: u8,
    /// Whether the media have a volatile write cache.
    pub volatile_write_cache: bool,
    /// The maximum number of I/O commands that a controller executes at the same time, 1 to 16384.
    /// Each has up to two block requests outstanding.
    pub commands: usize,
    /// The maximum number of bytes of data that the commands of a controller hold at the same time;
    /// at least one largest transfer.
    pub buffer: usize,
    /// While more than this number of bytes of posted writes wait for the link, the controller
    /// sends no further read data.
    pub posted_backlog: usize,
    /// The maximum number of submission queue entries that one DMA read fetches, 1 to 64.
    pub fetch_batch: u16,
    /// The maximum number of fetches of one submission queue in flight, at least 1.
    pub fetches: usize,
    /// PCIe: the largest supported payload in bytes.
    pub max_payload: usize,
    /// PCIe: the largest read request in bytes, in addition to the limit by MRRS.
    pub read_request: usize,
    /// PCIe: the maximum number of read requests in flight.
    pub reads_in_flight: usize,
    /// Composite temperature in kelvin.
    pub temperature: u16,
    /// Whether the Keep Alive Timer can expire after a host has set it (NVMe 1.4, section 7.12).
    /// Off by default, so that a long stall of the link does not stop the drive.
    pub keep_alive_expiry: bool,
    /// Allows doorbells of I/O queues in host memory (Doorbell Buffer Config, NVMe 1.4, section
    /// 5.7), which the controller then reads over the link.
    pub doorbell_buffer: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            firmware: env!("CARGO_PKG_VERSION").into(),
            io_queues: 64,
            queue_entries: 4096,
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
            keep_alive_expiry: false,
            doorbell_buffer: false,
        }
    }
}

impl Settings {
    /// The largest transfer in bytes.
    pub fn max_transfer(&self) -> usize {
        4096 << self.max_transfer_shift
    }

    /// Number of MSI-X vectors: one for the admin queue and one for each I/O queue pair, at most
    /// 2048.
    pub(crate) fn vectors(&self) -> u16 {
        (self.io_queues + 1).min(MAX_QUEUES)
    }

    /// # Panics
    /// If a field is outside its documented range.
    pub(crate) fn check(&self) {
        assert!((1..=MAX_QUEUES).contains(&self.io_queues));
        assert!((2..=MAX_ENTRIES).contains(&self.queue_entries));
        assert!((1..=8).contains(&self.max_transfer_shift));
        assert!((1..=MAX_COMMANDS).contains(&self.commands));
        assert!(self.buffer >= self.max_transfer());
        assert!((1..=64).contains(&self.fetch_batch) && self.fetches >= 1);
    }
}

impl Config {
    /// A drive with these namespaces, incarnation 0, and default model and settings.
    pub fn new(serial: impl Into<String>, namespaces: Vec<NamespaceConfig>) -> Self {
        Self {
            serial: serial.into(),
            incarnation: 0,
            model: MODEL.into(),
            namespaces,
            settings: Settings::default(),
        }
    }

    /// The records that such a drive would keep. The names derive from model, serial number and
    /// NSID; every namespace is attached to controller 1.
    ///
    /// # Panics
    /// If a field is outside its documented range.
    pub fn state(&self) -> State {
        self.check();
        let name = format!("{}\0{}", self.model, self.serial);
        let namespace = |(nsid, namespace): (u32, &NamespaceConfig)| {
            let uuid = derived_uuid(&format!("{name}\0{nsid}"));
            let namespace = Namespace {
                blocks: namespace.blocks,
                block_shift: namespace.block_shift,
                nguid: uuid,
                eui64: [0; 8],
                uuid,
                contents: format!("namespace-{nsid}"),
                write_protected: namespace.read_only,
                ..Namespace::default()
            };
            (nsid, namespace)
        };
        let namespaces: BTreeMap<_, _> = (1..).zip(&self.namespaces).map(namespace).collect();
        let sizes = namespaces.values().map(Namespace::bytes);
        let drive = Drive {
            serial: self.serial.clone(),
            model: self.model.clone(),
            uuid: derived_uuid(&name),
            incarnation: self.incarnation,
            capacity: sizes.fold(0, u64::saturating_add),
            max_namespaces: namespaces.len() as u32,
        };
        let attached = |nsid: &u32| (*nsid, BTreeSet::from([1]));
        let attachments: Attachments = namespaces.keys().map(attached).collect();
        State { namespaces, attachments, ..State::new(drive) }
    }

    fn check(&self) {
        assert!((1..=1024).contains(&self.namespaces.len()), "1 to 1024 namespaces");
        for namespace in &self.namespaces {
            assert!((9..=16).contains(&namespace.block_shift), "blocks of 512 bytes to 64 KiB");
            let most = u64::MAX >> namespace.block_shift;
            assert!((1..=most).contains(&namespace.blocks), "a namespace has blocks");
        }
    }
}
