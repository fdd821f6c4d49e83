//! Commands that the controller model fetches, and settings of the model's behaviour.

use super::PAGE;

/// Returns the 16-bit field of a structure at offset `at`.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Returns the 32-bit field of a structure at offset `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Returns the 64-bit field of a structure at offset `at`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Behaviour of a controller.
#[derive(Clone, Copy, Debug)]
pub struct Manners {
    /// Maximum number of entries that one fetch reads.
    pub batch: u16,
    /// Whether the controller also reads entries without a doorbell, and data that it has read
    /// before.
    pub speculates: bool,
    /// Maximum number of bytes that one read of data requests.
    pub chunk: usize,
    /// Percentage of commands that fail before the controller has their data.
    pub fails: u64,
    /// Whether the reported SQ head pointer does not move.
    pub lags: bool,
    /// Whether completion entries of I/O queues are written in two pieces.
    pub pieces: bool,
    /// Doorbell stride (CAP.DSTRD): doorbells are 4 × 2^`dstrd` bytes apart.
    pub dstrd: u8,
    /// Binary logarithm of the block size in bytes.
    pub shift: u8,
}

/// Returns a controller with blocks of 512 bytes and without unusual behaviour.
impl Default for Manners {
    fn default() -> Self {
        Self {
            batch: 8,
            speculates: false,
            chunk: 512,
            fails: 0,
            lags: false,
            pieces: false,
            dstrd: 0,
            shift: 9,
        }
    }
}

/// A fetched command.
#[derive(Debug)]
pub struct Command {
    /// Submission queue; 0 is the admin queue.
    pub queue: u16,
    /// Command identifier.
    pub cid: u16,
    /// The submission queue entry.
    pub entry: Vec<u8>,
    /// Buffer of the command's data; filled with data from the host.
    pub data: Vec<u8>,
    /// Known data ranges, each with address and length; all ranges are known if `list` is `None`.
    pub(super) ranges: Vec<(u64, usize)>,
    /// A PRP list to read: address of the list, and number of pages that the list still describes.
    pub(super) list: Option<(u64, usize)>,
    /// Number of requested bytes. `came`: number of received bytes.
    pub(super) asked: usize,
    pub(super) came: usize,
    pub(super) waits: bool,
}

impl Command {
    pub(super) fn new(queue: u16, entry: &[u8], shift: u8) -> Self {
        let (prp1, prp2) = (u64_at(entry, 24), u64_at(entry, 32));
        let length = match (queue, entry[0]) {
            (0, _) => 0,
            (_, 1 | 2) => (usize::from(u16_at(entry, 48)) + 1) << shift,
            (_, 9) => (usize::from(entry[40]) + 1) * 16,
            _ => 0,
        };
        let first = length.min((PAGE - prp1 % PAGE) as usize);
        let mut command = Self {
            queue,
            cid: u16_at(entry, 2),
            entry: entry.to_vec(),
            data: vec![0; length],
            ranges: vec![(prp1, first)],
            list: None,
            asked: 0,
            came: 0,
            waits: false,
        };
        match (length - first).div_ceil(PAGE as usize) {
            0 => {}
            1 => command.ranges.push((prp2, length - first)),
            pages => command.list = Some((prp2, pages)),
        }
        command
    }

    /// Returns whether the command transfers data from the host to the drive.
    pub(super) fn reads_host(&self) -> bool {
        self.queue != 0 && matches!(self.entry[0], 1 | 9)
    }

    pub(super) fn add_list(&mut self, bytes: &[u8]) {
        let (_, mut pages) = self.list.take().unwrap();
        let entries = bytes.len() / 8;
        let chained = pages > entries;
        for (number, entry) in bytes.chunks(8).enumerate() {
            let entry = u64_at(entry, 0);
            if chained && number + 1 == entries {
                self.list = Some((entry, pages));
                return;
            }
            let known: usize = self.ranges.iter().map(|(_, length)| length).sum();
            self.ranges.push((entry, (self.data.len() - known).min(PAGE as usize)));
            pages -= 1;
        }
    }

    /// Returns whether the command is an Asynchronous Event Request.
    pub(super) fn is_event_request(&self) -> bool {
        self.queue == 0 && self.entry[0] == 0x0c
    }

    /// Returns whether all ranges are known and all data have arrived.
    pub(super) fn is_whole(&self) -> bool {
        self.list.is_none() && (!self.reads_host() || self.came == self.data.len())
    }
}
