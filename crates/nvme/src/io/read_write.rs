//! Flush, Read, Write and Write Zeroes (NVMe 1.4, sections 6.8, 6.9, 6.15 and 6.17).

use crate::block::{Operation, deallocated};
use crate::controller::Controller;
use crate::failure::Failure;
use crate::namespace::Namespace;
use crate::plan::{Plan, Step, Then, steps};
use crate::subsystem::Shared;
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use wire::nvme::{BROADCAST_NSID, Command};

impl Controller {
    pub(super) fn flush(&mut self, shared: &Shared, command: &Command) -> Result<Plan, Failure> {
        if command.nsid != BROADCAST_NSID {
            shared.namespace(self.id, command.nsid)?;
            return Ok(Plan::Steps(steps(command.nsid, [Operation::Flush])));
        }
        // VWC says that the broadcast flushes every namespace (figure 247).
        let flush = |nsid| Step::new(nsid, Operation::Flush);
        Ok(Plan::Steps(shared.attached(self.id).map(|(nsid, _)| flush(nsid)).collect()))
    }

    pub(super) fn read(&mut self, shared: &Shared, command: &Command) -> Result<Plan, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        let (offset, length) = namespace.range(command)?;
        let length = self.within_limit(length)?;
        namespace.readable(command.slba(), command.blocks().into())?;
        let read = Operation::Read { offset, length };
        let steps = self.flush_before(command).into_iter().chain([Step::new(command.nsid, read)]);
        Ok(Plan::Read(length, steps.collect()))
    }

    pub(super) fn write(&mut self, shared: &Shared, command: &Command) -> Result<Plan, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        let (_, length) = namespace.range(command)?;
        let length = self.within_limit(length)?;
        namespace.writable()?;
        Ok(Plan::Receive(length))
    }

    pub(super) fn write_received(
        &self,
        shared: &Shared,
        command: &Command,
        data: Bytes,
    ) -> Result<VecDeque<Step>, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        let (offset, _) = namespace.range(command)?;
        Ok(self.through_cache(namespace, command, [Operation::Write { offset, data }]))
    }

    /// With DEAC the blocks are deallocated, which then read as zeroes too (section 6.17).
    pub(super) fn write_zeroes(
        &mut self,
        shared: &Shared,
        command: &Command,
    ) -> Result<Plan, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        let (offset, length) = namespace.range(command)?;
        namespace.writable()?;
        let zero = match command.deallocates() {
            true => deallocated(offset, length).to_vec(),
            false => vec![Operation::WriteZeroes { offset, length }],
        };
        Ok(Plan::Steps(self.through_cache(namespace, command, zero)))
    }

    /// A change of blocks, and a flush behind it where it may not stay in the
    /// cache: FUA is set, or the cache is disabled (section 5.21.1.6).
    fn through_cache(
        &self,
        namespace: &Namespace,
        command: &Command,
        change: impl IntoIterator<Item = Operation>,
    ) -> VecDeque<Step> {
        let changes = change.into_iter().map(|one| Step::new(command.nsid, one));
        let written = command.slba()..command.slba() + u64::from(command.blocks());
        changes.chain(self.flush_behind(namespace, command, written)).collect()
    }

    /// The flush behind a change of blocks, where that may not stay in the cache.
    pub(super) fn flush_behind(
        &self,
        namespace: &Namespace,
        command: &Command,
        changed: Range<u64>,
    ) -> Option<Step> {
        let through = command.force_unit_access() || !self.features.write_cache;
        let flush = self.settings.volatile_write_cache && through;
        unmark(namespace, command, std::slice::from_ref(&changed))
            .or_else(|| flush.then(|| Step::new(command.nsid, Operation::Flush)))
    }

    /// The flush before a read with forced unit access, which reads what is on the media, not
    /// what is in the cache.
    pub(super) fn flush_before(&self, command: &Command) -> Option<Step> {
        let flush = command.force_unit_access() && self.settings.volatile_write_cache;
        flush.then(|| Step::new(command.nsid, Operation::Flush))
    }

    /// MDTS (figure 247).
    pub(super) fn within_limit(&self, length: u64) -> Result<usize, Failure> {
        let most = self.settings.max_transfer();
        usize::try_from(length).ok().filter(|length| *length <= most).ok_or(Failure::cdw(12, 0))
    }
}

/// The flush behind a change of blocks of which some are marked uncorrectable: only when the data
/// are on the media the marks go (section 6.16), so that no loss of power leaves the blocks as they
/// were before they were marked.
pub(super) fn unmark(
    namespace: &Namespace,
    command: &Command,
    changed: &[Range<u64>],
) -> Option<Step> {
    if namespace.marks.is_empty() {
        return None;
    }
    let marked = changed.iter().filter(|range| namespace.marks.first_in(range).is_some());
    let marked: Vec<_> = marked.cloned().collect();
    let flush = Step::new(command.nsid, Operation::Flush);
    (!marked.is_empty()).then(|| Step { then: Then::Unmark(marked), ..flush })
}
