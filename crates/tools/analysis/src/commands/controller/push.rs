//! Pushes of the host in front of a doorbell (`docs/push.md`).
//!
//! A pushed entry opens its command, so that later pushes of lists and data have a command. The
//! doorbell after the messages covers the entry.

use super::Controller;
use crate::commands::claims::{Match, Use};
use crate::commands::pending::{Purpose, Read};
use crate::commands::queues::Uid;
use crate::commands::shared::Shared;
use crate::commands::step::{Step, StepKind};
use follow::Queue;
use std::collections::BTreeSet;
use std::ops::Range;
use wire::Tag;
use wire::nvme::{self, SUBMISSION_ENTRY};
use wire::push::{BYTES_HEADER, Push, Record};
use wire::tlp::MemoryRequest;

/// A list of pointers that several pushes bring in pieces.
#[derive(Debug)]
pub(super) struct PushedList {
    found: Match,
    read: Read,
}

struct Message {
    /// The step that each command of the list has.
    step: Step,
    /// The commands that have this step.
    commands: BTreeSet<Uid>,
}

/// The bytes of a record, and their place in the message.
struct Piece<'a> {
    address: u64,
    bytes: &'a [u8],
    at: usize,
}

impl Piece<'_> {
    fn place(&self) -> Range<usize> {
        self.at..self.at + self.bytes.len()
    }
}

impl Controller {
    /// Handles a push of the host to this controller.
    pub fn pushed(&mut self, push: &Push, shared: &mut Shared) {
        let bytes = |record| match record {
            Record::Bytes { address, bytes, .. } => Some((address, bytes.len())),
            _ => None,
        };
        let first = push.records.clone().find_map(bytes).map_or(0, |(address, _)| address);
        let total = push.records.clone().filter_map(bytes).map(|(_, length)| length).sum();
        shared.counters.pushed_bytes += total as u64;
        let step = shared.step(StepKind::Push, first, total, None);
        let mut message = Message { step, commands: BTreeSet::new() };
        let mut at = 0;
        for record in push.records.clone() {
            let length = record.length();
            match record {
                Record::Bytes { queue, command, address, bytes } => {
                    shared.is_protocol(at..at + BYTES_HEADER);
                    let piece = Piece { address, bytes: &bytes, at: at + BYTES_HEADER };
                    self.pushed_bytes((queue, command), piece, &mut message, shared);
                }
                _ => shared.is_protocol(at..at + length),
            }
            at += length;
        }
    }

    fn pushed_bytes(
        &mut self,
        id: (u16, u16),
        piece: Piece<'_>,
        message: &mut Message,
        shared: &mut Shared,
    ) {
        let place = Some(Queue::Submission(id.0));
        let last = piece.address.saturating_add(piece.bytes.len() as u64 - 1);
        if self.queues.at(piece.address) == place && self.queues.at(last) == place {
            shared.is_protocol(piece.place());
            self.pushed_entries(id.0, &piece, message, shared);
        } else if let Some(uid) = self.ids.get(&id).copied() {
            self.pushed_for(uid, piece, message, shared);
        } else {
            shared.counters.orphans += 1;
        }
    }

    /// Handles pushed entries of queue `queue`. Each entry opens its command.
    fn pushed_entries(
        &mut self,
        queue: u16,
        piece: &Piece<'_>,
        message: &mut Message,
        shared: &mut Shared,
    ) {
        let (entries, rest) = piece.bytes.as_chunks::<SUBMISSION_ENTRY>();
        let memory = self.queues.submission.get(&queue).map(|queue| queue.memory);
        if !rest.is_empty() || !memory.is_some_and(|memory| memory.begins(piece.address)) {
            shared.counters.orphans += 1;
            return;
        }
        for (i, entry) in entries.iter().enumerate() {
            let from = i * SUBMISSION_ENTRY;
            let place = piece.at + from..piece.at + from + SUBMISSION_ENTRY;
            if !shared.payload.knows(&place) || entry.iter().all(|byte| *byte == 0) {
                shared.counters.blank_entries += 1;
                continue;
            }
            let entry = nvme::Command::decode(entry);
            let Some(uid) = self.open(queue, entry, &[message.step], shared) else { continue };
            message.commands.insert(uid);
            if let Some(open) = self.open.get_mut(&uid) {
                open.command.push.pushed.entry = SUBMISSION_ENTRY as u64;
            }
            let queue = self.queues.submission.get_mut(&queue);
            let before = queue.and_then(|queue| queue.push(piece.address + from as u64, uid));
            before.into_iter().for_each(|uid| self.close(uid, None, shared));
        }
    }

    fn pushed_for(
        &mut self,
        uid: Uid,
        mut piece: Piece<'_>,
        message: &mut Message,
        shared: &mut Shared,
    ) {
        if message.commands.insert(uid) {
            self.add_step(uid, message.step, shared);
        }
        let (place, mut data) = (piece.place(), None);
        while !piece.bytes.is_empty() {
            let found = self.claims.push(uid, piece.address, piece.bytes.len() as u64);
            let Some(found) = found else {
                shared.counters.orphans += 1;
                return;
            };
            let length = found.left.min(piece.bytes.len() as u64) as usize;
            if let Use::Data { offset, .. } = found.purpose {
                data = Some(data.unwrap_or(offset + found.offset));
            }
            let (bytes, rest) = piece.bytes.split_at(length);
            self.pushed_claim(found, &Piece { bytes, ..piece }, shared);
            let Some(address) = piece.address.checked_add(length as u64) else { return };
            piece = Piece { address, bytes: rest, at: piece.at + length };
        }
        // Adjacent claims, such as pages, are parts of one transfer.
        if let (Some(offset), Some(open)) = (data, self.open.get_mut(&uid)) {
            shared.print_part(&mut open.command, offset, &place);
        }
    }

    fn pushed_claim(&mut self, found: Match, piece: &Piece<'_>, shared: &mut Shared) {
        let known = shared.payload.knows(&piece.place());
        let Some(open) = self.open.get_mut(&found.uid) else { return };
        let pushed = &mut open.command.push.pushed;
        let length = if found.again { 0 } else { piece.bytes.len() as u64 };
        match found.purpose {
            Use::Data { offset, .. } => {
                pushed.data += length;
                if self.moved(found, offset + found.offset, (piece.bytes, known), shared) {
                    shared.is_protocol(piece.place());
                }
            }
            Use::List { .. } | Use::Segment => {
                pushed.lists += length;
                shared.is_protocol(piece.place());
                if !found.again {
                    self.pushed_list(found, piece, known, shared);
                }
            }
        }
    }

    /// Handles the next piece of a list, or the first piece of another list.
    fn pushed_list(&mut self, found: Match, piece: &Piece<'_>, known: bool, shared: &mut Shared) {
        let Some(open) = self.open.get_mut(&found.uid) else { return };
        let next = |list: &PushedList| {
            let length = list.read.buffer.len() as u64;
            list.read.request.first_byte() + length == piece.address && list.found.left > length
        };
        let list = open.pushed_list.take().filter(|list| next(list));
        let mut list = match list {
            Some(list) => list,
            None => {
                let (address, length) = (piece.address, piece.bytes.len());
                let request =
                    MemoryRequest::for_bytes(self.device, Tag::default(), address, length);
                let Some(request) = request else { return };
                let read = Read {
                    request,
                    purpose: Purpose::Claimed(found),
                    buffer: Vec::new(),
                    unknown: Vec::new(),
                    done: 0,
                };
                Box::new(PushedList { found, read })
            }
        };
        if !known {
            let length = list.read.buffer.len();
            list.read.unknown.push(length..length + piece.bytes.len());
        }
        let found = list.found;
        self.follow(&mut list.read, found, piece.bytes, shared);
        let more = (list.read.buffer.len() as u64) < found.left;
        if let Some(open) = self.open.get_mut(&found.uid).filter(|_| more) {
            open.pushed_list = Some(list);
        }
    }
}
