//! The data that I/O commands transfer.

use wire::nvme::{Command, CopyRange, DsmRange, opcode::nvm};

/// How much data a command transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Number of logical blocks.
    Blocks(u32),
    /// Number of bytes.
    Bytes(u64),
    /// The length is not in the entry, or its format is not decoded here.
    Unknown,
}

/// The direction (`true`: to the host) and the amount of an I/O command's data; `None` for a
/// command without data. Bits 1:0 of the opcode give the direction (NVM Express 1.4, figure 105).
pub fn io_data(command: &Command) -> Option<(bool, Amount)> {
    // NR, 0's based, in bits 7:0 of a dword (section 6.7; NVM Command Set 1.0, section 3.2.2).
    let ranges =
        |dword: u32, length: usize| Amount::Bytes((u64::from(dword & 0xff) + 1) * length as u64);
    let amount = match command.opcode {
        nvm::READ | nvm::WRITE | nvm::COMPARE => Amount::Blocks(command.blocks()),
        nvm::DATASET_MANAGEMENT => ranges(command.cdw10, DsmRange::LENGTH),
        // The format, 0h, is in bits 11:8 of dword 12.
        nvm::COPY if command.cdw12 >> 8 & 0xf == 0 => ranges(command.cdw12, CopyRange::LENGTH),
        _ => Amount::Unknown,
    };
    let direction = command.opcode & 3;
    (direction != 0).then_some((direction == 2, amount))
}
