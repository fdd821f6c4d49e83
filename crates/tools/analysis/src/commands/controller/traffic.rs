//! The drive's DMA reads and writes.

use super::Controller;
use crate::commands::claims::{Match, Use};
use crate::commands::command::Transfer;
use crate::commands::pending::{Fetch, Purpose, Read};
use crate::commands::queues::Fetched;
use crate::commands::shared::Shared;
use crate::commands::step::{Step, StepKind};
use crate::commands::transfer;
use follow::Queue;
use wire::nvme::{self, COMPLETION_ENTRY, SUBMISSION_ENTRY, SglDescriptor, SglKind};
use wire::tlp::MemoryRequest;

impl Controller {
    /// Handles a read of host memory by the drive. Returns the purpose of the read.
    pub fn device_read(&mut self, request: &MemoryRequest, shared: &mut Shared) -> Purpose {
        let (address, bytes) = (request.first_byte(), request.byte_count());
        if let Some(Queue::Submission(queue)) = self.queues.at(address) {
            return self.fetch(queue, request, shared);
        }
        let Some(found) = self.claims.find(address, bytes as u64, false) else {
            shared.counters.orphans += 1;
            return Purpose::Unknown;
        };
        let kind = match found.purpose {
            Use::Data { .. } => StepKind::DataRead,
            Use::List { .. } | Use::Segment => StepKind::ListFetch,
        };
        shared.counters.repeated_transfers += u64::from(found.again);
        let step = shared.step(kind, address, bytes, Some(request.tag));
        self.add_step(found.uid, step, shared);
        if let Some(open) = self.open.get_mut(&found.uid).filter(|_| step.from_push) {
            let answered = &mut open.command.push.answered;
            let length = found.left.min(bytes as u64);
            match found.purpose {
                Use::Data { .. } => answered.data += length,
                Use::List { .. } | Use::Segment => answered.lists += length,
            }
        }
        Purpose::Claimed(found)
    }

    fn fetch(&mut self, id: u16, request: &MemoryRequest, shared: &mut Shared) -> Purpose {
        let (address, bytes) = (request.first_byte(), request.byte_count());
        let within = self.queues.at(address + bytes.saturating_sub(1) as u64);
        let Some(queue) = self.queues.submission.get_mut(&id) else { return Purpose::Unknown };
        let entries: Vec<Option<Fetched>> = (0..bytes / SUBMISSION_ENTRY)
            .map(|i| queue.fetch(address + (i * SUBMISSION_ENTRY) as u64, &mut shared.counters))
            .collect();
        if entries.iter().all(Option::is_none) || within != Some(Queue::Submission(id)) {
            shared.counters.orphans += 1;
            return Purpose::Unknown;
        }
        let step = shared.step(StepKind::SqeFetch, address, bytes, Some(request.tag));
        let generation = self.generation;
        Purpose::Fetch(Fetch { queue: id, generation, step, entries, answers: Vec::new() })
    }

    /// Handles a completion of a read by the drive: `bytes` from `read.done` on. The kind of `step`
    /// is set here.
    pub fn completed(&mut self, read: &mut Read, bytes: &[u8], step: Step, shared: &mut Shared) {
        let from = read.done;
        match &mut read.purpose {
            Purpose::Unknown => {}
            Purpose::Claimed(_) => self.claimed(read, bytes, step, shared),
            Purpose::Fetch(fetch) => {
                read.buffer.extend_from_slice(bytes);
                let step = Step { kind: StepKind::SqeData, ..step };
                fetch.answers.push((from..from + bytes.len(), step));
                if self.is_current(fetch) {
                    shared.protocol = bytes.len();
                    self.entries(read, from, shared);
                }
            }
        }
    }

    /// Opens the commands whose entries are complete with the bytes from offset `from` on.
    fn entries(&mut self, read: &Read, from: usize, shared: &mut Shared) {
        let (Purpose::Fetch(fetch), buffer) = (&read.purpose, &read.buffer) else { return };
        let fresh = from / SUBMISSION_ENTRY..buffer.len() / SUBMISSION_ENTRY;
        for index in fresh {
            let at = index * SUBMISSION_ENTRY;
            let entry = buffer.get(at..).and_then(<[u8]>::first_chunk::<SUBMISSION_ENTRY>);
            let (Some(entry), Some(Some(fetched))) = (entry, fetch.entries.get(index)) else {
                continue;
            };
            let carriers = fetch
                .answers
                .iter()
                .filter(|(range, _)| range.start < at + SUBMISSION_ENTRY && range.end > at);
            let carriers = carriers.map(|(_, step)| *step);
            let doorbell = match *fetched {
                Fetched::Rung(doorbell) => doorbell,
                Fetched::Pushed(uid) => {
                    let steps = std::iter::once(fetch.step).chain(carriers);
                    steps.for_each(|step| self.add_step(uid, step, shared));
                    if let Some(open) = self.open.get_mut(&uid) {
                        open.command.push.fetched.entry = SUBMISSION_ENTRY as u64;
                    }
                    continue;
                }
            };
            // An all-zero entry would be a Flush without a namespace, which is invalid too.
            let known = read.knows(&(at..at + SUBMISSION_ENTRY));
            if !known || entry.iter().all(|byte| *byte == 0) {
                shared.counters.blank_entries += 1;
                self.done(fetch.queue);
                continue;
            }
            let steps: Vec<Step> = [doorbell, fetch.step].into_iter().chain(carriers).collect();
            let entry = nvme::Command::decode(entry);
            match self.open(fetch.queue, entry, &steps, shared) {
                None => self.done(fetch.queue),
                Some(uid) => {
                    let open = self.open.get_mut(&uid).filter(|_| fetch.step.from_push);
                    open.into_iter().for_each(|open| {
                        open.command.push.answered.entry = SUBMISSION_ENTRY as u64;
                    });
                }
            }
        }
    }

    fn claimed(&mut self, read: &mut Read, bytes: &[u8], step: Step, shared: &mut Shared) {
        let Purpose::Claimed(found) = read.purpose else { return };
        let at = found.offset + read.done as u64;
        // Bytes after the end of the claim may be anything.
        let protocol = found.left.saturating_sub(read.done as u64).min(bytes.len() as u64) as usize;
        match found.purpose {
            Use::Data { offset, .. } => {
                let step = Step { kind: StepKind::DataCompletion, ..step };
                self.add_step(found.uid, step, shared);
                let whole = read.knows(&(read.done..read.done + bytes.len()));
                if self.moved(found, offset + at, (bytes, whole), shared) {
                    shared.protocol = protocol;
                }
            }
            Use::List { .. } | Use::Segment => {
                shared.protocol = protocol;
                let step = Step { kind: StepKind::ListData, ..step };
                self.add_step(found.uid, step, shared);
                if let Some(open) = self.open.get_mut(&found.uid).filter(|_| found.pushed) {
                    open.command.push.fetched.lists +=
                        if found.again { 0 } else { protocol as u64 };
                }
                self.follow(read, found, bytes, shared);
            }
        }
    }

    /// Follows the next pointers of a list, except pointers that were followed before.
    pub(super) fn follow(
        &mut self,
        read: &mut Read,
        found: Match,
        bytes: &[u8],
        shared: &mut Shared,
    ) {
        let before = read.buffer.len();
        read.buffer.extend_from_slice(bytes);
        match found.purpose {
            _ if found.again || found.pushed => {}
            Use::Data { .. } => {}
            Use::List { offset } => self.list(read, found, offset, before / 8, shared),
            Use::Segment => self.segment(read, found, before / SglDescriptor::LENGTH, shared),
        }
    }

    /// Follows the PRP entries of `read`, starting with entry `fresh`.
    fn list(&mut self, read: &Read, found: Match, offset: u64, fresh: usize, shared: &mut Shared) {
        let page = self.page();
        let bytes = self.open.get(&found.uid).map_or(0, |open| open.command.transfer.bytes());
        // A drive may read more of the page than the list needs.
        let most = (found.left / 8) as usize;
        for (i, entry) in read.buffer.chunks_exact(8).enumerate().take(most).skip(fresh) {
            if !read.knows(&(i * 8..i * 8 + 8)) {
                shared.counters.unfollowed_pointers += 1;
                continue;
            }
            let value = u64::from_le_bytes(entry.try_into().expect("8 bytes"));
            let index = found.offset / 8 + i as u64;
            let address = read.request.first_byte() + i as u64 * 8;
            let offset = offset + index * page;
            let piece = transfer::list_entry(address, value, offset, bytes, page);
            piece.into_iter().for_each(|piece| self.claim(found.uid, piece, shared));
        }
    }

    /// Follows the SGL descriptors of `read`, starting with descriptor `fresh`. Drives read
    /// descriptors in order.
    fn segment(&mut self, read: &Read, found: Match, fresh: usize, shared: &mut Shared) {
        let descriptors = read.buffer.as_chunks::<{ SglDescriptor::LENGTH }>().0;
        let most = (found.left / SglDescriptor::LENGTH as u64) as usize;
        for (i, one) in descriptors.iter().enumerate().take(most).skip(fresh) {
            let at = i * SglDescriptor::LENGTH;
            if !read.knows(&(at..at + SglDescriptor::LENGTH)) {
                shared.counters.unfollowed_pointers += 1;
                return;
            }
            let one = SglDescriptor::decode(one);
            let Some(open) = self.open.get_mut(&found.uid) else { return };
            let transfer = open.command.transfer;
            let piece = transfer::descriptor(one, open.described, transfer.bytes());
            match SglKind::from_number(one.kind) {
                Some(SglKind::DataBlock) => open.described += u64::from(one.length),
                // A bit bucket discards data of a read (section 4.4.1).
                Some(SglKind::BitBucket) if matches!(transfer, Transfer::ToHost(_)) => {
                    open.described += u64::from(one.length);
                }
                _ => {}
            }
            match piece {
                Some(piece) => self.claim(found.uid, piece, shared),
                None => shared.counters.unfollowed_pointers += 1,
            }
        }
    }

    /// Handles a write of `bytes` to host memory by the drive.
    pub fn device_write(&mut self, address: u64, bytes: &[u8], shared: &mut Shared) {
        if let Some(Queue::Completion(queue)) = self.queues.at(address) {
            return self.completions(queue, address, bytes, shared);
        }
        if let Some(found) = self.claims.find(address, bytes.len() as u64, true) {
            let step = shared.step(StepKind::DataWrite, address, bytes.len(), None);
            self.add_step(found.uid, step, shared);
            shared.counters.repeated_transfers += u64::from(found.again);
            if let Use::Data { offset, .. } = found.purpose {
                let whole = shared.payload.known == bytes.len();
                if self.moved(found, offset + found.offset, (bytes, whole), shared) {
                    shared.protocol = found.left.min(bytes.len() as u64) as usize;
                }
            }
        } else if let Some(vector) = self.vector(address, shared.known(0, bytes)) {
            shared.protocol = bytes.len();
            self.interrupt(vector, address, shared);
        } else {
            shared.counters.orphans += 1;
        }
    }

    fn completions(&mut self, queue: u16, address: u64, bytes: &[u8], shared: &mut Shared) {
        let whole = address.is_multiple_of(COMPLETION_ENTRY as u64) && bytes.len() >= 16;
        shared.counters.orphans += u64::from(!whole);
        if !whole {
            return;
        }
        if self.queues.at(address + bytes.len() as u64 - 1) == Some(Queue::Completion(queue)) {
            shared.protocol = bytes.len();
        }
        let known = shared.known(0, bytes);
        for (i, entry) in known.chunks_exact(COMPLETION_ENTRY).enumerate() {
            let entry = nvme::Completion::decode(entry.try_into().expect("16 bytes"));
            let at = address + (i * COMPLETION_ENTRY) as u64;
            self.complete(queue, entry, at, shared);
        }
    }

    fn vector(&self, address: u64, bytes: &[u8]) -> Option<u16> {
        let data = u32::from_le_bytes(bytes.try_into().ok()?);
        let signals = |entry: &[u32; 4]| {
            u64::from(entry[1]) << 32 | u64::from(entry[0]) == address && entry[2] == data
        };
        self.vectors.iter().find(|(_, entry)| signals(entry)).map(|(vector, _)| *vector)
    }

    fn interrupt(&mut self, vector: u16, address: u64, shared: &mut Shared) {
        let step = shared.step(StepKind::MsiX, address, 4, None);
        let mut signals = Vec::new();
        for queue in self.queues.completion.values_mut() {
            if queue.vector == Some(vector) {
                signals.extend(queue.signal());
            }
        }
        shared.counters.idle_interrupts += u64::from(signals.is_empty());
        signals.into_iter().for_each(|uid| self.add_step(uid, step, shared));
    }
}
