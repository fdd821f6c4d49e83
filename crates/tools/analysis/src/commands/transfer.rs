//! The data transfer of a submission entry: length, direction and pointers to
//! host memory (NVM Express 1.4, sections 4.3 and 4.4).

use super::command::Transfer;
use follow::{Amount, io_data};
use wire::nvme::{Command, IDENTIFY, SglDescriptor, SglKind, opcode};

/// Assumed number of bytes if an entry does not give the length of its data.
const PRESUMED: u64 = 4096;

const MOST_SEGMENT: u64 = 1 << 16;

/// Whether the I/O opcode addresses logical blocks by SLBA and NLB.
pub const fn names_blocks(opcode: u8) -> bool {
    matches!(opcode, 0x01 | 0x02 | 0x04 | 0x05 | 0x08 | 0x0c)
}

/// Returns direction and length of the data of a command on queue `queue`.
pub fn transfer(queue: u16, entry: &Command, block_size: u32) -> Transfer {
    if queue == 0 { admin(entry) } else { io(entry, block_size) }
}

fn io(entry: &Command, block_size: u32) -> Transfer {
    let bytes = match io_data(entry) {
        None => 0,
        Some((_, Amount::Blocks(blocks))) => u64::from(blocks) * u64::from(block_size),
        Some((_, Amount::Bytes(bytes))) => bytes,
        Some((_, Amount::Unknown)) => PRESUMED,
    };
    by_opcode(entry.opcode, bytes)
}

fn admin(entry: &Command) -> Transfer {
    match entry.opcode {
        opcode::admin::IDENTIFY => Transfer::ToHost(IDENTIFY as u64),
        opcode::admin::GET_LOG_PAGE => {
            // NUMDL in 31:16 of dword 10, NUMDU in 15:0 of dword 11, 0's based.
            let dwords = u64::from(entry.cdw10 >> 16) | u64::from(entry.cdw11 & 0xffff) << 16;
            Transfer::ToHost((dwords + 1) * 4)
        }
        opcode::admin::FIRMWARE_DOWNLOAD => Transfer::ToDevice((u64::from(entry.cdw10) + 1) * 4),
        opcode::admin::SECURITY_SEND => Transfer::ToDevice(entry.cdw11.into()),
        opcode::admin::SECURITY_RECEIVE => Transfer::ToHost(entry.cdw11.into()),
        // SEL 0, create, has data.
        opcode::admin::NAMESPACE_MANAGEMENT if entry.cdw10 & 15 != 0 => Transfer::None,
        // PRP1 of these commands is the address of the queue.
        opcode::admin::CREATE_SQ | opcode::admin::CREATE_CQ => Transfer::None,
        opcode::admin::SET_FEATURES => feature(entry).map_or(Transfer::None, Transfer::ToDevice),
        opcode::admin::GET_FEATURES => feature(entry).map_or(Transfer::None, Transfer::ToHost),
        other => by_opcode(other, PRESUMED),
    }
}

/// Returns the bytes of a feature that has a data structure (figure 276).
fn feature(entry: &Command) -> Option<u64> {
    Some(match entry.cdw10 & 0xff {
        0x03 => 4096,
        0x0c => 256,
        0x0d if entry.opcode == opcode::admin::GET_FEATURES => 4096,
        0x0e => 8,
        0x16 => 512,
        0x81 => 16,
        _ => return None,
    })
}

/// Bits 1:0 of every opcode give the direction of the data (figure 138).
fn by_opcode(opcode: u8, bytes: u64) -> Transfer {
    match opcode & 3 {
        1 => Transfer::ToDevice(bytes),
        2 => Transfer::ToHost(bytes),
        _ => Transfer::None,
    }
}

/// The contents of a part of host memory that a command uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Data.
    Data,
    /// PRP entries.
    PrpList,
    /// SGL descriptors.
    SglSegment,
}

/// A part of host memory that a command uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub address: u64,
    pub length: u64,
    /// Offset in the transfer of the first byte, or of the first byte to which the first entry
    /// points.
    pub offset: u64,
    pub content: Content,
}

/// Returns the parts to which the entry itself points; `None` if its pointers are of a kind that is
/// not followed.
pub fn pieces(entry: &Command, bytes: u64, page: u64) -> Option<Vec<Piece>> {
    if bytes == 0 {
        return Some(Vec::new());
    }
    if entry.psdt != 0 {
        return descriptor(entry.sgl1(), 0, bytes).map(|piece| vec![piece]);
    }
    let first = (page - entry.prp1 % page).min(bytes);
    let mut pieces =
        vec![Piece { address: entry.prp1 & !3, length: first, offset: 0, content: Content::Data }];
    let left = bytes - first;
    if left > page {
        pieces.push(list(entry.prp2, first, bytes, page));
    } else if left > 0 {
        let address = entry.prp2 & !(page - 1);
        pieces.push(Piece { address, length: left, offset: first, content: Content::Data });
    }
    Some(pieces)
}

/// Returns the part to which an SGL descriptor points, for the transfer's bytes from `offset` on. A
/// bit bucket has no part. Returns `None` if descriptors of this kind are not followed.
pub fn descriptor(descriptor: SglDescriptor, offset: u64, bytes: u64) -> Option<Piece> {
    let SglDescriptor { address, length, subtype, kind } = descriptor;
    let length = u64::from(length);
    let (length, content) = match SglKind::from_number(kind)? {
        _ if subtype != 0 => return None,
        SglKind::DataBlock => (length.min(bytes.saturating_sub(offset)), Content::Data),
        SglKind::BitBucket => (0, Content::Data),
        SglKind::Segment | SglKind::LastSegment => (length.min(MOST_SEGMENT), Content::SglSegment),
    };
    Some(Piece { address, length, offset, content })
}

/// Returns the part of a PRP list from `pointer` to the end of the page at most, for the transfer's
/// bytes from `offset` on.
fn list(pointer: u64, offset: u64, bytes: u64, page: u64) -> Piece {
    let pointer = pointer & !7;
    let needed = bytes.saturating_sub(offset).div_ceil(page) * 8;
    let length = needed.min(page - pointer % page);
    Piece { address: pointer, length, offset, content: Content::PrpList }
}

/// Returns the memory to which the PRP entry `value` at `address` points, for the transfer's bytes
/// from `offset` on. The last entry of a page points to the next list if more entries follow.
pub fn list_entry(address: u64, value: u64, offset: u64, bytes: u64, page: u64) -> Option<Piece> {
    let left = bytes.checked_sub(offset).filter(|left| *left > 0)?;
    let ends_page = (address + 8).is_multiple_of(page);
    if ends_page && left > page {
        return Some(list(value, offset, bytes, page));
    }
    let (address, length) = (value & !(page - 1), left.min(page));
    Some(Piece { address, length, offset, content: Content::Data })
}
