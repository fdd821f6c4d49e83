//! Checks a drive against its own traffic: reads must return the data written.
//!
//! Commands that overlap in time may take effect in any order, block by block (NVM Express 1.4,
//! section 6.4). A block that was read is wrong only if no order explains its contents. A write
//! takes effect between the arrival of its entry at the drive and its completion entry. A write
//! that failed or was lost may or may not have taken effect. Deallocated blocks must read as
//! zeroes, as Identify Namespace (DLFEAT) of farlane's drives specifies.
//!
//! All transferred data are kept until [`Replay::check`], so memory grows with the capture.

mod history;
mod issued;
#[cfg(test)]
mod tests;

pub use issued::{Difference, Issued, compare};

use super::{Command, StepKind};
use bytes::Bytes;
use history::{History, Span, Write};
use serde::Serialize;
use std::collections::BTreeMap;
use wire::nvme::{DsmRange, opcode};

/// The contents of blocks before the first write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Initial {
    /// Zeroes.
    #[default]
    Zero,
    /// Unknown: later reads must return the same data as the first read.
    Unknown,
}

/// A block that was read with contents that no order of the writes explains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Drive, queue and command of the read, and the number of its first packet; or a text for the
    /// final contents.
    pub command: String,
    /// Namespace.
    pub nsid: u32,
    /// Logical block.
    pub block: u64,
    /// Offset in the namespace of the first byte that differs from the likeliest contents.
    pub offset: u64,
    /// Writes that might have been the last before the read.
    pub candidates: usize,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Number of I/O commands by name.
    pub commands: BTreeMap<String, u64>,
    /// Number of admin commands.
    pub admin: u64,
    /// Number of I/O commands without a completion.
    pub lost: u64,
    /// Number of I/O commands that failed.
    pub failed: u64,
    /// Bytes of successful reads.
    pub bytes_read: u64,
    /// Bytes of successful writes.
    pub bytes_written: u64,
    /// Number of successful commands whose data were not all seen.
    pub incomplete: u64,
    /// Number of blocks read. A block that is read twice counts twice.
    pub blocks_checked: u64,
    /// Number of blocks read that were never written, so that any contents are right.
    pub blocks_unknown: u64,
    /// Number of blocks read whose contents no order of the writes explains.
    pub blocks_wrong: u64,
    /// The first wrong block.
    pub first_mismatch: Option<Mismatch>,
}

/// A read, or the final contents.
#[derive(Clone, Debug)]
struct Read {
    name: String,
    nsid: u32,
    span: Span,
    slba: u64,
    block_size: u32,
    data: Bytes,
}

/// Collects writes and reads, and checks the reads against the writes.
#[derive(Debug, Default)]
pub struct Replay {
    initial: Initial,
    histories: BTreeMap<u32, History>,
    reads: Vec<Read>,
    report: Report,
    /// Number that is added to packet numbers, so that numbers of later connections are larger.
    base: u64,
    /// The highest packet number so far.
    last: u64,
}

impl Replay {
    /// Creates a check of a drive whose blocks have the contents `initial`.
    pub fn new(initial: Initial) -> Self {
        Self { initial, ..Self::default() }
    }

    /// Begins a later connection to the same drive. Its packet numbers begin at 0 again.
    pub fn next_connection(&mut self) {
        self.base = self.last + 1;
    }

    /// Adds a command, in any order. It must have been analysed with
    /// [`collect_data`](super::AnalyserSettings::collect_data).
    pub fn add(&mut self, command: Command) {
        self.last = self.last.max(self.base + command.closed);
        if command.is_admin() {
            self.report.admin += 1;
            return;
        }
        *self.report.commands.entry(command.name().into_owned()).or_default() += 1;
        let success = command.status.is_some_and(|status| status.is_success());
        self.report.lost += u64::from(command.status.is_none());
        self.report.failed += u64::from(command.status.is_some() && !success);
        let whole = command.is_whole() && (command.transfer.bytes() == 0 || command.data.is_some());
        if success && !whole {
            self.report.incomplete += 1;
            return;
        }
        match command.entry.opcode {
            opcode::nvm::READ if success => self.read(command),
            // A failed write may have stored the data that it transferred, but no other data.
            opcode::nvm::WRITE | opcode::nvm::WRITE_ZEROES => self.write(command, success),
            opcode::nvm::DATASET_MANAGEMENT if whole => self.deallocate(&command, success),
            _ => {}
        }
    }

    /// Adds the final contents of a namespace: the bytes from block `slba` on.
    pub fn add_final(&mut self, nsid: u32, slba: u64, block_size: u32, data: Bytes) {
        let name = "the final contents".to_owned();
        let span = Span { start: u64::MAX, end: u64::MAX };
        self.reads.push(Read { name, nsid, span, slba, block_size, data });
    }

    fn span(&self, command: &Command, last: StepKind) -> Span {
        let number = |kind| command.steps.iter().rev().find(|s| s.kind == kind).map(|s| s.number);
        let start = command.entry_arrival().map_or(0, |step| step.number);
        let end = number(last).or(number(StepKind::CqeWrite)).unwrap_or(command.closed);
        Span { start: self.base + start, end: self.base + end }
    }

    fn read(&mut self, command: Command) {
        let span = self.span(&command, StepKind::DataWrite);
        let name = format!(
            "{} queue {} command {} (packet {})",
            command.device,
            command.queue,
            command.entry.cid,
            command.steps.first().map_or(0, |step| step.number)
        );
        let (nsid, slba) = (command.entry.nsid, command.entry.slba());
        let data = Bytes::from(command.data.unwrap_or_default());
        self.report.bytes_read += data.len() as u64;
        let Some(block_size) = command.block_size else { return };
        self.reads.push(Read { name, nsid, span, slba, block_size, data });
    }

    fn write(&mut self, command: Command, certain: bool) {
        let span = self.span(&command, StepKind::CqeWrite);
        let (slba, blocks) = (command.entry.slba(), u64::from(command.entry.blocks()));
        let data = command.data.map(Bytes::from);
        self.report.bytes_written +=
            data.as_ref().filter(|_| certain).map_or(0, |data| data.len() as u64);
        let write = Write { span, certain, slba, blocks, data };
        self.histories.entry(command.entry.nsid).or_default().add(write);
    }

    /// Adds the ranges of Dataset Management with attribute Deallocate (AD, bit 2 of dword 11;
    /// section 6.7.1) as writes of zeroes.
    fn deallocate(&mut self, command: &Command, certain: bool) {
        if command.entry.cdw11 & 4 == 0 {
            return;
        }
        let span = self.span(command, StepKind::CqeWrite);
        let history = self.histories.entry(command.entry.nsid).or_default();
        let ranges = command.data.as_deref().unwrap_or_default();
        for range in ranges.chunks_exact(DsmRange::LENGTH) {
            let range = DsmRange::decode(range.try_into().expect("16 bytes"));
            let (slba, blocks) = (range.slba, u64::from(range.blocks));
            history.add(Write { span, certain, slba, blocks, data: None });
        }
    }

    /// Checks every read.
    pub fn check(mut self) -> Report {
        self.histories.values_mut().for_each(History::sort);
        let mut reads = std::mem::take(&mut self.reads);
        // The first read of a block that was never written defines its contents.
        reads.sort_by_key(|read| read.span.end);
        reads.iter().for_each(|read| self.check_read(read));
        self.report
    }

    fn check_read(&mut self, read: &Read) {
        let history = self.histories.entry(read.nsid).or_default();
        let size = read.block_size.max(1) as usize;
        for (block, bytes) in (read.slba..).zip(read.data.chunks_exact(size)) {
            self.report.blocks_checked += 1;
            let verdict = history.explain(block, read.span, bytes, self.initial);
            self.report.blocks_unknown += u64::from(verdict.unknown);
            if verdict.explained {
                continue;
            }
            self.report.blocks_wrong += 1;
            self.report.first_mismatch.get_or_insert_with(|| Mismatch {
                command: read.name.clone(),
                nsid: read.nsid,
                block,
                offset: block.saturating_mul(size as u64) + verdict.differs as u64,
                candidates: verdict.candidates,
            });
        }
    }
}
