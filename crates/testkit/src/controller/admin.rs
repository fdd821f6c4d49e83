//! Admin commands, and the blocks of the controller's disk.

use super::command::{Command, u32_at, u64_at};
use super::{Controller, Purpose};

const SUCCESS: u16 = 0;
const INVALID_OPCODE: u16 = 1;
const INVALID_FIELD: u16 = 2;
const OUT_OF_RANGE: u16 = 0x80;
/// Number of I/O queue pairs of a controller with a disk.
const QUEUES: u32 = 7;

/// Blocks that keep written data. A controller without a disk returns random data and keeps
/// nothing.
#[derive(Debug)]
pub struct Disk {
    /// The blocks.
    pub bytes: Vec<u8>,
    /// Number, from 1, of the read in whose data one bit is flipped; `None` for no such read.
    pub damages: Option<u64>,
    reads: u64,
}

impl Disk {
    /// Creates a disk of `bytes` zero bytes.
    pub fn new(bytes: usize, damages: Option<u64>) -> Self {
        Self { bytes: vec![0; bytes], damages, reads: 0 }
    }

    /// Returns the byte range of a command's blocks; `None` if the range is not on the disk.
    fn range(&self, command: &Command, shift: u8) -> Option<std::ops::Range<usize>> {
        let start = (u64_at(&command.entry, 40) as usize).checked_shl(shift.into())?;
        let end = start.checked_add(command.data.len())?;
        (end <= self.bytes.len()).then_some(start..end)
    }

    /// Returns the status code of an I/O command.
    pub(super) fn status(&self, command: &Command, shift: u8) -> u16 {
        match command.entry[0] {
            0 => SUCCESS,
            1 | 2 if self.range(command, shift).is_some() => SUCCESS,
            1 | 2 => OUT_OF_RANGE,
            _ => INVALID_OPCODE,
        }
    }

    pub(super) fn write(&mut self, command: &Command, shift: u8) {
        if let Some(range) = self.range(command, shift) {
            self.bytes[range].copy_from_slice(&command.data);
        }
    }

    pub(super) fn read(&mut self, command: &Command, shift: u8) -> Vec<u8> {
        let Some(range) = self.range(command, shift) else { return Vec::new() };
        let mut bytes = self.bytes[range].to_vec();
        self.reads += 1;
        if self.damages == Some(self.reads) {
            bytes[7] ^= 0x10;
        }
        bytes
    }
}

impl Controller {
    /// Executes an admin command. Returns the status code and dword 0 of the completion entry.
    pub(super) fn admin(&mut self, entry: &[u8]) -> (u16, u32) {
        let (prp1, dw10, dw11) = (u64_at(entry, 24), u32_at(entry, 40), u32_at(entry, 44));
        let (id, last) = (dw10 as u16, (dw10 >> 16) as u16);
        match entry[0] {
            0x00 => {
                self.queues.remove(&id);
                for (purpose, ..) in self.reads.values_mut() {
                    if matches!(purpose, Purpose::Entries { queue, .. } if *queue == id) {
                        *purpose = Purpose::Nothing;
                    }
                }
                self.commands.retain(|_, command| command.queue != id);
            }
            0x01 => self.create_submission(id, prp1, last + 1, (dw11 >> 16) as u16),
            0x04 => drop(self.completions.remove(&id)),
            0x05 => {
                let vector = (dw11 & 2 != 0).then_some((dw11 >> 16) as u16);
                self.create_completions(id, prp1, last + 1, vector);
            }
            0x06 => return (self.identify(dw10 as u8, prp1), 0),
            // Set Features, Number of Queues.
            0x09 if id & 0xff == 7 && self.disk.is_some() => {
                return (SUCCESS, (QUEUES - 1) << 16 | (QUEUES - 1));
            }
            0x08 => {
                let found = self.commands.iter().find(|(_, c)| (c.queue, c.cid) == (id, last));
                let Some(number) = found.map(|(number, _)| *number) else { return (SUCCESS, 1) };
                // An aborted command has no completion entry here. The host uses the result of
                // Abort instead.
                self.commands.remove(&number);
            }
            0x7c => self.shadow = true,
            _ if self.disk.is_some() => return (INVALID_OPCODE, 0),
            _ => {}
        }
        (SUCCESS, 0)
    }

    fn identify(&mut self, cns: u8, to: u64) -> u16 {
        let mut data = vec![0; 4096];
        match cns {
            // Namespace: size, capacity and use in blocks.
            0 => {
                let blocks = |disk: &Disk| disk.bytes.len() as u64 >> self.manners.shift;
                let blocks = self.disk.as_ref().map_or(100, blocks);
                for at in [0, 8, 16] {
                    data[at..at + 8].copy_from_slice(&blocks.to_le_bytes());
                }
                data[128 + 2] = self.manners.shift;
            }
            // Controller: serial number, MDTS of 64 KiB, entry sizes, one namespace.
            1 => {
                data[4..24].copy_from_slice(b"ANOTHER             ");
                data[77] = 4;
                (data[512], data[513], data[516]) = (0x66, 0x44, 1);
            }
            2 => data[0] = 1,
            _ => return INVALID_FIELD,
        }
        self.write(to, data);
        SUCCESS
    }
}
