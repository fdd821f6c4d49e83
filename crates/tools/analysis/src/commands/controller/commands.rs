//! The life of a command: the submission entry opens the command, the pointers are followed, and
//! completion entry and head doorbell close the command.

use super::{Controller, OpenCommand};
use crate::commands::claims::{Match, PAGE, Use};
use crate::commands::command::{Command, Transfer};
use crate::commands::queues::{CompletionQueue, SubmissionQueue, Uid};
use crate::commands::rings::Ring;
use crate::commands::shared::Shared;
use crate::commands::step::{Step, StepKind};
use crate::commands::transfer::{self, Content, Piece};
use follow::Effect;
use std::collections::BTreeMap;
use wire::nvme::Command as Entry;
use wire::nvme::{COMPLETION_ENTRY, Completion, IDENTIFY, IdentifyNamespace, opcode};

/// Maximum number of submission queues, and of completion queues, of one controller.
const MOST_QUEUES: usize = 256;
/// Maximum number of namespaces whose block size is stored.
const MOST_NAMESPACES: usize = 1024;
/// Bytes per block until Identify Namespace data are seen.
const PRESUMED_BLOCK: u32 = 512;

impl Controller {
    /// Opens a command when its submission entry arrives. `steps` are doorbell, fetch and data of
    /// the entry, or its push. Returns `None` if there are too many commands.
    pub(super) fn open(
        &mut self,
        queue: u16,
        entry: Entry,
        steps: &[Step],
        shared: &mut Shared,
    ) -> Option<Uid> {
        let uid = shared.open_command()?;
        let known = self.block_sizes.get(&entry.nsid).copied();
        let block_size = (queue != 0 && transfer::names_blocks(entry.opcode))
            .then(|| known.unwrap_or(PRESUMED_BLOCK));
        let transfer = transfer::transfer(queue, &entry, block_size.unwrap_or(PRESUMED_BLOCK));
        let collect = shared.settings.collect_data
            || names_namespace(queue, &entry)
            || names_ranges(queue, &entry);
        let start = steps[0].at;
        let data = (collect && transfer != Transfer::None).then(Vec::new);
        let device = self.device;
        let command = Command {
            device,
            queue,
            entry,
            transfer,
            block_size,
            sole: self.sole.contains(&entry.nsid),
            start,
            data,
            ..Command::default()
        };
        let mut open = OpenCommand {
            command,
            claims: Vec::new(),
            next_claim: 0,
            described: 0,
            pushed_list: None,
        };
        steps.iter().for_each(|step| shared.add_step(&mut open.command, *step));
        if let Some(before) = self.ids.insert((queue, entry.cid), uid) {
            shared.counters.reused_ids += 1;
            self.close(before, None, shared);
        }
        self.open.insert(uid, open);
        match transfer::pieces(&entry, transfer.bytes(), self.page()) {
            Some(pieces) => {
                pieces.into_iter().for_each(|piece| self.claim(uid, piece, shared));
            }
            None => shared.counters.unfollowed_pointers += 1,
        }
        Some(uid)
    }

    /// Claims memory. Pieces are split at the boundaries that TLPs do not cross.
    pub(super) fn claim(&mut self, uid: Uid, piece: Piece, shared: &mut Shared) {
        let page = self.page();
        let Some(open) = self.open.get_mut(&uid) else { return };
        let to_host = matches!(open.command.transfer, Transfer::ToHost(_));
        let (mut at, mut left, mut offset) = (piece.address, piece.length, piece.offset);
        while left > 0 {
            let length = left.min(PAGE - at % PAGE);
            let purpose = match piece.content {
                Content::Data => Use::Data { offset, to_host },
                Content::PrpList => Use::List { offset },
                Content::SglSegment => Use::Segment,
            };
            let Some(key) = self.claims.add((uid, open.next_claim), at, length, purpose) else {
                shared.counters.dropped += 1;
                return;
            };
            open.next_claim += 1;
            open.claims.push(key);
            let Some(next) = at.checked_add(length) else { return };
            at = next;
            left -= length;
            offset += match piece.content {
                Content::Data | Content::SglSegment => length,
                Content::PrpList => length / 8 * page,
            };
        }
    }

    pub(super) fn add_step(&mut self, uid: Uid, step: Step, shared: &mut Shared) {
        if let Some(open) = self.open.get_mut(&uid) {
            shared.add_step(&mut open.command, step);
        }
    }

    /// Records that data of an open command were transferred at `offset` of its transfer, and
    /// whether all these data were recorded. Returns whether the data are no user data.
    pub(super) fn moved(
        &mut self,
        found: Match,
        offset: u64,
        (bytes, whole): (&[u8], bool),
        shared: &mut Shared,
    ) -> bool {
        let Some(open) = self.open.get_mut(&found.uid) else { return false };
        let command = &mut open.command;
        let length = bytes.len() as u32;
        shared.print(command, offset, length);
        if found.pushed {
            command.push.fetched.data += if found.again { 0 } else { u64::from(length) };
        } else if !found.again {
            command.moved += u64::from(length);
            if whole {
                shared.keep(command, offset, bytes);
            } else {
                command.unrecorded += u64::from(length);
                shared.forget_data(command);
            }
        }
        is_no_user_data(command.queue, &command.entry)
    }

    /// Records that the drive completed a command by the entry of completion queue `cq` at address
    /// `at`.
    pub(super) fn complete(&mut self, cq: u16, entry: Completion, at: u64, shared: &mut Shared) {
        self.ring_entry(cq, &entry, at, shared);
        let Some(uid) = self.ids.remove(&(entry.sq_id, entry.cid)) else {
            shared.counters.unknown_completions += 1;
            return;
        };
        let Some(open) = self.open.get_mut(&uid) else { return };
        open.command.status = Some(entry.status);
        open.command.result = entry.result;
        let step = shared.step(StepKind::CqeWrite, at, COMPLETION_ENTRY, None);
        shared.add_step(&mut open.command, step);
        open.claims.drain(..).for_each(|key| self.claims.remove(key));
        if let Some(queue) = self.queues.completion.get_mut(&cq) {
            queue.post(at, uid, &mut shared.counters);
        }
        if entry.sq_id == 0 && entry.status.is_success() {
            self.apply(uid, shared);
        }
    }

    /// Applies the changes that a successful admin command makes.
    fn apply(&mut self, uid: Uid, shared: &mut Shared) {
        let Some(open) = self.open.get_mut(&uid) else { return };
        match Effect::from_command(&open.command.entry) {
            // Without the completion queue, the ends of the submission queue's commands are not
            // seen.
            Effect::CreateSubmission { id, ring: Some(ring), completion }
                if self.queues.completion.contains_key(&completion) =>
            {
                if has_room(&self.queues.submission, id, shared) {
                    self.queues.add_submission(id, ring, SubmissionQueue::new(ring));
                }
                self.emit_submission_ring(id, shared);
            }
            Effect::CreateCompletion { id, ring: Some(ring), vector } => {
                if has_room(&self.queues.completion, id, shared) {
                    self.queues.add_completion(id, ring, CompletionQueue::new(ring, vector));
                }
                self.emit_completion_ring(id, shared);
            }
            Effect::DeleteSubmission(id) => {
                self.delete_submission(id, shared);
                self.emit_ring(id, Ring::Gone, shared);
            }
            Effect::DeleteCompletion(id) => {
                let queue = self.queues.remove_completion(id);
                for uid in queue.into_iter().flat_map(CompletionQueue::into_waiting) {
                    self.close(uid, None, shared);
                }
                self.emit_ring(id, Ring::Gone, shared);
            }
            // The blocks of formatted namespaces may have another size.
            Effect::Formats => {
                self.block_sizes.clear();
                self.sole.clear();
            }
            Effect::Identify(nsid) => self.record_block_size(uid, nsid, shared),
            _ => {}
        }
    }

    /// Reads the block size from Identify Namespace data.
    fn record_block_size(&mut self, uid: Uid, nsid: u32, shared: &mut Shared) {
        let Some(open) = self.open.get_mut(&uid) else { return };
        let data = open.command.data.as_deref().and_then(<[u8]>::first_chunk::<IDENTIFY>);
        self.sole.remove(&nsid);
        if let Some(IdentifyNamespace { lba_format, sharing, .. }) =
            data.map(IdentifyNamespace::decode)
            && let shift @ 9..=16 = lba_format.data_shift
            && self.block_sizes.len() < MOST_NAMESPACES
        {
            self.block_sizes.insert(nsid, 1 << shift);
            if lba_format.metadata == 0 && sharing & IdentifyNamespace::SHARED == 0 {
                self.sole.insert(nsid);
            }
        }
        if !shared.settings.collect_data {
            shared.forget_data(&mut open.command);
        }
    }

    fn delete_submission(&mut self, id: u16, shared: &mut Shared) {
        self.queues.remove_submission(id);
        let ids = (id, 0)..=(id, u16::MAX);
        let lost: Vec<Uid> = self.ids.range(ids).map(|(_, uid)| *uid).collect();
        lost.into_iter().for_each(|uid| self.close(uid, None, shared));
    }

    /// Ends a command. `doorbell` is the head doorbell by which the host took the completion entry;
    /// `None` if the host did not take the entry.
    pub(super) fn close(&mut self, uid: Uid, doorbell: Option<Step>, shared: &mut Shared) {
        let Some(mut open) = self.open.remove(&uid) else { return };
        let id = (open.command.queue, open.command.entry.cid);
        self.done(id.0);
        if self.ids.get(&id) == Some(&uid) {
            self.ids.remove(&id);
        }
        open.claims.drain(..).for_each(|key| self.claims.remove(key));
        if let Some(step) = doorbell {
            shared.add_step(&mut open.command, step);
            open.command.end = Some(step.at);
        }
        open.command.closed = shared.seen;
        shared.counters.lost_commands += u64::from(open.command.status.is_none());
        shared.close_command(open.command);
    }

    /// Ends all commands after a reset of the controller or at the end of the capture.
    pub fn close_all(&mut self, shared: &mut Shared) {
        let all: Vec<Uid> = self.open.keys().copied().collect();
        all.into_iter().for_each(|uid| self.close(uid, None, shared));
    }
}

/// Returns whether there is room for another queue. A queue that replaces a queue with the same
/// `id` always has room.
fn has_room<Q>(queues: &BTreeMap<u16, Q>, id: u16, shared: &mut Shared) -> bool {
    let room = queues.contains_key(&id) || queues.len() < MOST_QUEUES;
    shared.counters.dropped += u64::from(!room);
    room
}

/// Returns whether the entry is an Identify command for a namespace: its data contain the block
/// size.
fn names_namespace(queue: u16, entry: &Entry) -> bool {
    queue == 0 && matches!(Effect::from_command(entry), Effect::Identify(_))
}

/// Returns whether the data of the command describe the drive or the place of user data, and never
/// contain user data: ranges of blocks, Identify, logs of health and events. Telemetry logs may
/// contain anything (section 5.14.1).
fn is_no_user_data(queue: u16, entry: &Entry) -> bool {
    match (queue, entry.opcode) {
        (0, opcode::admin::IDENTIFY) => true,
        (0, opcode::admin::GET_LOG_PAGE) => (0x01..=0x06).contains(&(entry.cdw10 as u8)),
        (0, _) => false,
        (_, opcode::nvm::DATASET_MANAGEMENT | opcode::nvm::COPY) => true,
        _ => false,
    }
}

/// Returns whether the entry is Dataset Management: its data are ranges.
fn names_ranges(queue: u16, entry: &Entry) -> bool {
    queue != 0 && entry.opcode == opcode::nvm::DATASET_MANAGEMENT
}
