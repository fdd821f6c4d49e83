//! The commands of a case as entries of submission queues, with their data in host memory.

use super::case::{Admin, Io, IoOp};
use super::contents::UNIT;
use testkit::nvme::{DATA, Host};
use wire::nvme::opcode::{admin, nvm};
use wire::nvme::{
    BROADCAST_NSID, Command, CopyRange, DsmRange, IdentifyNamespace, SglDescriptor, SglKind,
    controller_list, feature,
};

/// Number of buffers for the data of commands.
pub const SLOTS: usize = 40;
/// Size of a slot in bytes: the longest transfer from any offset in the first page.
const SLOT: u64 = 0x9000;
/// Address of PRP lists and SGL segments, one page per slot.
const LISTS: u64 = DATA + 0x30_0000;
/// Address of the data of admin commands.
const ADMIN: u64 = DATA + 0x3f_0000;

/// A buffer of units for one command.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    pub slot: usize,
    sgl: bool,
}

impl Buffer {
    pub fn new(slot: usize, sgl: bool) -> Self {
        Self { slot, sgl }
    }

    /// The address of the buffer: at an offset in a page that differs by slot.
    fn address(self) -> u64 {
        DATA + self.slot as u64 * SLOT + (self.slot as u64 % 8) * 0x104
    }

    pub fn fill(self, host: &mut Host, tokens: &[u32]) {
        let unit = |token: &u32| token.to_le_bytes().repeat(UNIT as usize / 4);
        let bytes: Vec<u8> = tokens.iter().flat_map(unit).collect();
        host.testbed.put(self.address(), &bytes);
    }

    /// The token of each unit in the buffer; `None` for a unit whose words differ.
    pub fn tokens(self, host: &Host, units: u64) -> Vec<Option<u32>> {
        let bytes = host.testbed.load(self.address(), (units * UNIT) as usize).expect("memory");
        let token = |unit: &[u8]| {
            let words = unit.as_chunks::<4>().0;
            words.iter().all(|word| *word == words[0]).then(|| u32::from_le_bytes(words[0]))
        };
        bytes.chunks(UNIT as usize).map(token).collect()
    }

    /// The command with a data pointer to `length` bytes.
    fn point(self, host: &mut Host, command: Command, length: u64) -> Command {
        let (address, list) = (self.address(), LISTS + self.slot as u64 * 4096);
        if self.sgl {
            // Pieces of 1000 bytes.
            let piece = |at: u64| {
                let length = (length - at).min(1000) as u32;
                let kind = SglKind::DataBlock as u8;
                SglDescriptor { address: address + at, length, subtype: 0, kind }.encode()
            };
            let pieces: Vec<u8> = (0..length).step_by(1000).flat_map(piece).collect();
            host.testbed.put(list, &pieces);
            let (kind, length) = (SglKind::LastSegment as u8, pieces.len() as u32);
            return command.with_sgl1(SglDescriptor { address: list, length, subtype: 0, kind });
        }
        let page = |number: u64| (address & !4095) + number * 4096;
        let pages = ((address % 4096) + length).div_ceil(4096);
        host.testbed.put_list(list, (1..pages).map(page));
        let prp2 = if pages == 2 { page(1) } else { list };
        Command { prp1: address, prp2, ..command }
    }
}

/// An I/O command on blocks of 2^`shift` bytes.
pub fn io(host: &mut Host, io: &Io, shift: u8, buffer: Buffer) -> Command {
    let fua = if io.fua { 1 << 30 } else { 0 };
    let command = Command {
        nsid: io.nsid,
        cdw10: io.slba as u32,
        cdw12: (io.blocks - 1) | fua,
        ..Command::default()
    };
    let length = u64::from(io.blocks) << shift;
    let with = |opcode| Command { opcode, ..command };
    match io.op {
        IoOp::Read => buffer.point(host, with(nvm::READ), length),
        IoOp::Write => buffer.point(host, with(nvm::WRITE), length),
        IoOp::Compare { .. } => buffer.point(host, with(nvm::COMPARE), length),
        IoOp::CompareAndWrite { .. } => {
            buffer.point(host, Command { fuse: 1, ..with(nvm::COMPARE) }, length)
        }
        IoOp::Flush => Command { opcode: nvm::FLUSH, nsid: io.nsid, ..Command::default() },
        IoOp::FlushAll => {
            Command { opcode: nvm::FLUSH, nsid: BROADCAST_NSID, ..Command::default() }
        }
        IoOp::WriteZeroes { deallocate } => {
            let deallocate = u32::from(deallocate) << 25;
            Command { cdw12: command.cdw12 | deallocate, ..with(nvm::WRITE_ZEROES) }
        }
        IoOp::WriteUncorrectable => with(nvm::WRITE_UNCORRECTABLE),
        IoOp::Verify => with(nvm::VERIFY),
        IoOp::Deallocate => {
            let range = DsmRange { attributes: 0, blocks: io.blocks, slba: io.slba };
            host.testbed.put(buffer.address(), &range.encode());
            let command = Command { cdw10: 0, cdw11: 4, cdw12: 0, ..with(nvm::DATASET_MANAGEMENT) };
            buffer.point(host, command, DsmRange::LENGTH as u64)
        }
        IoOp::Copy(to) => {
            let range =
                CopyRange { slba: io.slba, last: (io.blocks - 1) as u16, ..CopyRange::default() };
            host.testbed.put(buffer.address(), &range.encode());
            let command = Command { cdw10: to as u32, cdw12: fua, ..with(nvm::COPY) };
            buffer.point(host, command, CopyRange::LENGTH as u64)
        }
    }
}

/// The second command of a fused operation.
pub fn fused_write(
    host: &mut Host,
    io: &Io,
    compare: Command,
    length: u64,
    buffer: Buffer,
) -> Command {
    let command = Command { opcode: nvm::WRITE, fuse: 2, psdt: 0, nsid: io.nsid, ..compare };
    buffer.point(host, command, length)
}

pub fn abort(queue: u16, cid: u16) -> Command {
    let cdw10 = u32::from(queue) | u32::from(cid) << 16;
    Command { opcode: admin::ABORT, cdw10, ..Command::default() }
}

pub fn admin(host: &mut Host, command: Admin) -> Command {
    let with =
        |opcode, nsid, cdw10| Command { opcode, nsid, cdw10, prp1: ADMIN, ..Command::default() };
    match command {
        Admin::Create { kib, shift } => {
            let (size, formatted) = ((kib << 10) >> shift, u8::from(shift == 12));
            let new = IdentifyNamespace { size, capacity: size, formatted, ..Default::default() };
            host.testbed.put(ADMIN, &new.encode());
            with(admin::NAMESPACE_MANAGEMENT, 0, 0)
        }
        Admin::Delete(nsid) => with(admin::NAMESPACE_MANAGEMENT, nsid, 1),
        Admin::Attach(nsid) | Admin::Detach(nsid) => {
            host.testbed.put(ADMIN, &controller_list([1]));
            let detach = u32::from(command == Admin::Detach(nsid));
            with(admin::NAMESPACE_ATTACHMENT, nsid, detach)
        }
        Admin::Format(nsid, shift) => with(admin::FORMAT, nsid, u32::from(shift == 12)),
        Admin::Protect(nsid, protect) => Command {
            cdw11: protect.into(),
            ..with(admin::SET_FEATURES, nsid, feature::WRITE_PROTECTION.into())
        },
        // A block erase whose failure can be left (AUSE).
        Admin::Sanitize => with(admin::SANITIZE, 0, 2 | 1 << 3),
        Admin::LeaveFailure => with(admin::SANITIZE, 0, 1),
    }
}
