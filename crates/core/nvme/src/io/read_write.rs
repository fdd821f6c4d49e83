//! Flush, Read, Write and Write Zeroes (NVMe 1.4, sections 6.8, 6.9, 6.15 and 6.17).

use crate::block::{Operation, deallocated};
use crate::controller::Controller;
use crate::failure::Failure;
use crate::metadata::{METADATA, Metadata};
use crate::namespace::Namespace;
use crate::plan::{Plan, Step, Steps, Then, steps};
use crate::subsystem::Shared;
use bytes::Bytes;
use std::ops::Range;
use wire::nvme::{BROADCAST_NSID, Command};

impl Controller {
    pub(super) fn flush(&mut self, shared: &Shared, command: &Command) -> Result<Plan, Failure> {
        if command.nsid != BROADCAST_NSID {
            shared.namespace(self.id, command.nsid)?;
            return Ok(Plan::Steps(steps(command.nsid, [Operation::Flush])));
        }
        // The broadcast NSID flushes every attached namespace, as VWC states (figure 247).
        let flush = |nsid| Step::new(nsid, Operation::Flush);
        Ok(Plan::Steps(shared.attached(self.id).map(|(nsid, _)| flush(nsid)).collect()))
    }

    pub(super) fn read(&mut self, shared: &Shared, command: &Command) -> Result<Plan, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        let (offset, data) = namespace.range(command)?;
        let metadata = namespace.metadata(command)?;
        let (length, separate) = self.transferred(data, metadata)?;
        namespace.readable(command.slba(), command.blocks().into())?;
        let read = Operation::Read { offset, length: data as usize };
        let beside = metadata.map(Metadata::read);
        let read = Step { beside, ..Step::new(command.nsid, read) };
        let steps = self.flush_before(command).into_iter().chain([read]);
        Ok(Plan::Read(length, steps.collect()).with_metadata(separate))
    }

    pub(super) fn write(&mut self, shared: &Shared, command: &Command) -> Result<Plan, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        let (_, data) = namespace.range(command)?;
        let metadata = namespace.metadata(command)?;
        let (length, separate) = self.transferred(data, metadata)?;
        shared.writable(namespace)?;
        Ok(Plan::Receive(length).with_metadata(separate))
    }

    pub(super) fn write_received(
        &self,
        shared: &Shared,
        command: &Command,
        data: Bytes,
    ) -> Result<Steps, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        let (offset, _) = namespace.range(command)?;
        let (data, beside) = match namespace.metadata(command)? {
            None => (data, None),
            Some(metadata) => {
                let (data, bytes) = metadata.received(data)?;
                (data, Some(metadata.write(bytes)))
            }
        };
        let write = Operation::Write { offset, data };
        let write = Step { beside, ..Step::new(command.nsid, write) };
        Ok(self.through_cache(namespace, command, [write]))
    }

    /// Write Zeroes. With DEAC the blocks are deallocated; deallocated blocks read as zeroes too
    /// (section 6.17).
    pub(super) fn write_zeroes(
        &mut self,
        shared: &Shared,
        command: &Command,
    ) -> Result<Plan, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        let (offset, length) = namespace.range(command)?;
        shared.writable(namespace)?;
        if let Some(metadata) = namespace.metadata(command)? {
            return self.write_zeroes_with_metadata(namespace, command, offset, metadata);
        }
        let zero = match command.deallocates() {
            true => deallocated(offset, length).to_vec(),
            false => vec![Operation::WriteZeroes { offset, length }],
        };
        let zero = zero.into_iter().map(|one| Step::new(command.nsid, one));
        Ok(Plan::Steps(self.through_cache(namespace, command, zero)))
    }

    /// Write Zeroes on a namespace with metadata. Splits the work into pieces, whose metadata have
    /// at most the length of the largest transfer. DEAC has no effect: deallocation is optional,
    /// and PRINFO determines the protection information (section 6.17).
    fn write_zeroes_with_metadata(
        &self,
        namespace: &Namespace,
        command: &Command,
        offset: u64,
        metadata: Metadata,
    ) -> Result<Plan, Failure> {
        let metadata = metadata.unchecked()?;
        let most = self.settings.max_transfer();
        let piece = |(at, metadata): (u64, Metadata)| {
            let zero = Operation::WriteZeroes { offset: offset + at, length: metadata.data() };
            Step { beside: Some(metadata.zero()), ..Step::new(command.nsid, zero) }
        };
        let pieces = metadata.pieces((most / METADATA) as u64).map(piece);
        let steps = self.through_cache(namespace, command, pieces);
        Ok(Plan::Inside(most.min(metadata.length()), steps))
    }

    /// The steps of a change of blocks. A flush follows if FUA is set or the cache is disabled,
    /// because the data may then not stay in the cache (section 5.21.1.6).
    fn through_cache(
        &self,
        namespace: &Namespace,
        command: &Command,
        changes: impl IntoIterator<Item = Step>,
    ) -> Steps {
        let written = command.slba()..command.slba() + u64::from(command.blocks());
        changes.into_iter().chain(self.flush_behind(namespace, command, written)).collect()
    }

    /// The flush after a change of blocks that may not stay in the cache.
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

    /// The flush before a read with forced unit access, which must read from the media, not from
    /// the cache.
    pub(super) fn flush_before(&self, command: &Command) -> Option<Step> {
        let flush = command.force_unit_access() && self.settings.volatile_write_cache;
        flush.then(|| Step::new(command.nsid, Operation::Flush))
    }

    /// The bytes that a command transfers at the data pointer and at MPTR, for `data` bytes of
    /// data. Fails if the transfer exceeds MDTS.
    pub(super) fn transferred(
        &self,
        data: u64,
        metadata: Option<Metadata>,
    ) -> Result<(usize, usize), Failure> {
        let length = self.within_limit(data + metadata.map_or(0, |one| one.extends()))?;
        Ok((length, metadata.map_or(0, |one| one.separate())))
    }

    /// Fails if the length exceeds MDTS (figure 247).
    pub(super) fn within_limit(&self, length: u64) -> Result<usize, Failure> {
        let most = self.settings.max_transfer();
        usize::try_from(length).ok().filter(|length| *length <= most).ok_or(Failure::cdw(12, 0))
    }
}

/// The flush after a change of blocks with uncorrectable marks; `None` if no block is marked. The
/// marks are removed after the data are on the media (section 6.16), so that a power loss cannot
/// restore the data from before the marking.
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
