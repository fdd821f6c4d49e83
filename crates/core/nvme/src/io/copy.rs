//! Copy (NVM Command Set 1.0, section 3.2.2), with source ranges in format 0h.
//!
//! The ranges are copied one after the other. Each range is read completely before it is written,
//! because the destination may overlap the source.

use crate::block::Operation;
use crate::config::Settings;
use crate::controller::Controller;
use crate::failure::Failure;
use crate::metadata::{Beside, Metadata};
use crate::namespace::Namespace;
use crate::plan::{Plan, Step, Steps, Then};
use crate::subsystem::Shared;
use wire::nvme::{Command, CopyRange, StatusCode};

/// The maximum number of source ranges of a Copy: MSRC + 1.
const RANGES: u32 = 128;
/// MCL divided by MSSRL.
const LENGTH_IN_RANGES: u32 = 16;

/// The limits of Copy in Identify Namespace (NVM Command Set 1.0, figure 97).
pub(crate) struct CopyLimits {
    /// MSSRL: the maximum number of blocks of a range, which is read in one piece.
    pub range: u16,
    /// MCL: the maximum number of blocks of all ranges together.
    pub length: u32,
    /// MSRC: the maximum number of ranges, 0's based.
    pub ranges: u8,
}

impl CopyLimits {
    pub(crate) fn new(settings: &Settings, namespace: &Namespace) -> Self {
        let range = settings.max_transfer() >> namespace.record.block_shift;
        let range = u16::try_from(range).unwrap_or(u16::MAX);
        let length = u32::from(range) * LENGTH_IN_RANGES;
        Self { range, length, ranges: (RANGES - 1) as u8 }
    }
}

/// The metadata of a source range, and of the destination blocks from `to` on.
fn metadata(
    namespace: &Namespace,
    command: &Command,
    range: &CopyRange,
    to: u64,
) -> Result<(Box<Beside>, Box<Metadata>), Failure> {
    let blocks = u64::from(range.last) + 1;
    let control = command.protection_of_sources();
    let source = namespace.metadata_of(command.nsid, range.slba, blocks, control, range.tags())?;
    let all = namespace.metadata(command)?.expect("the namespace has metadata");
    Ok((source.read_apart(), Box::new(all.part(to - command.slba(), blocks))))
}

impl Controller {
    pub(super) fn copy(&self, shared: &Shared, command: &Command) -> Result<Plan, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        if command.cdw12 >> 8 & 15 != 0 {
            return Err(Failure::cdw(12, 8));
        }
        // NR is 0's based, 8 bits.
        let ranges = (command.cdw12 & 0xff) + 1;
        if ranges > RANGES {
            return Err(Failure::at_cdw(StatusCode::COMMAND_SIZE_LIMIT_EXCEEDED, 12, 0));
        }
        // PRACT must be the same for source and destination: stripped protection information is
        // inserted again.
        let acts = [command.protection_of_sources(), command.protection()].map(|one| one.action);
        if namespace.record.protection != 0 && acts[0] != acts[1] {
            return Err(Failure::cdw(12, 29));
        }
        namespace.formatted()?;
        shared.writable(namespace)?;
        let length = ranges as usize * CopyRange::LENGTH;
        Ok(Plan::ReceiveAndRead(length, self.settings.max_transfer()))
    }

    /// Plans the copies from the received ranges. If a range is invalid, nothing is copied. If a
    /// range cannot be copied, dword 0 of the completion has the number of this range.
    pub(super) fn copy_received(
        &self,
        shared: &Shared,
        command: &Command,
        data: &[u8],
    ) -> Result<Steps, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        namespace.formatted()?;
        let limits = CopyLimits::new(&self.settings, namespace);
        let ranges = data.as_chunks::<{ CopyRange::LENGTH }>().0;
        let mut to = command.slba();
        let mut left = limits.length;
        let mut steps = Steps::default();
        for (range, number) in ranges.iter().map(CopyRange::decode).zip(1..) {
            let blocks = u32::from(range.last) + 1;
            let exceeded = Failure::permanent(StatusCode::COMMAND_SIZE_LIMIT_EXCEEDED);
            if blocks > limits.range.into() {
                return Err(exceeded);
            }
            left = left.checked_sub(blocks).ok_or(exceeded)?;
            for slba in [range.slba, to] {
                namespace.check(slba, blocks.into()).map_err(Failure::permanent)?;
            }
            namespace.readable(range.slba, blocks.into())?;
            let [offset, length, target] =
                [range.slba, blocks.into(), to].map(|blocks| namespace.bytes(blocks));
            let read = Operation::Read { offset, length: length as usize };
            let next = if number as usize == ranges.len() { 0 } else { number };
            let (beside, metadata) = match namespace.record.metadata {
                0 => (None, None),
                _ => Some(metadata(namespace, command, &range, to)?).unzip(),
            };
            let then = Then::Copy { to: target, next, metadata };
            steps.push_back(Step { then, beside, ..Step::new(command.nsid, read) });
            to += u64::from(blocks);
        }
        steps.extend(self.flush_behind(namespace, command, command.slba()..to));
        Ok(steps)
    }
}
