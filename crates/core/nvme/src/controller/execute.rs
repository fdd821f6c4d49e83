//! Executes commands, from the submission entry to the completion.

use super::fused::SECOND;
use super::transfer::Transfer;
use super::{BlockRequest, Controller, block_id};
use crate::block::{self, Operation};
use crate::failure::Failure;
use crate::metadata::Beside;
use crate::plan::{Plan, Step, Steps, Then};
use crate::pointer::TWO_SGLS;
use crate::slots::Key;
use crate::subsystem::Shared;
use bytes::Bytes;
use wire::Instant;
use wire::nvme::opcode::nvm;
use wire::nvme::{BROADCAST_NSID, Command, StatusCode};
use wire::trace::{CommandId, NvmeEvent};

/// A command under way.
#[derive(Debug, Default)]
pub(super) struct Execution {
    pub sq: u16,
    /// Number of commands that were accepted before.
    pub order: u64,
    /// When its entry arrived.
    began: Instant,
    pub command: Command,
    pub transfer: Transfer,
    steps: Steps,
    /// Number of bytes of the buffer that the command occupies.
    pub buffer: usize,
    /// Number of DMA reads in flight.
    pub reads: usize,
    /// The action after the outstanding block request.
    block: Option<Then>,
    /// The state of a step with two media requests.
    pair: Option<Box<Pair>>,
    failure: Option<Failure>,
    /// Whether the command waits for other commands (`Plan::Wait`).
    pub waiting: bool,
    /// The other command of a fused operation.
    pub partner: Option<Key>,
    /// Whether the command is the write of a fused operation whose comparison was successful in an
    /// earlier process.
    pub compared: bool,
    result: u32,
}

/// A step with two media requests: for data and for metadata. `ended` has the results so far.
#[derive(Debug)]
struct Pair {
    beside: Box<Beside>,
    ended: [Option<Result<Bytes, Failure>>; 2],
}

impl Execution {
    /// Number `order` of the commands of queue `sq`.
    pub(super) fn new(began: Instant, sq: u16, order: u64, command: Command) -> Self {
        Self { sq, order, began, command, ..Self::default() }
    }

    /// Whether the outstanding block request reads data for the command.
    pub(super) fn reads_media(&self) -> bool {
        match self.command.opcode {
            nvm::READ | nvm::COMPARE | nvm::VERIFY => true,
            nvm::COPY => matches!(self.block, Some(Then::Copy { .. })),
            _ => false,
        }
    }

    /// The command for a saved state. The write of a fused operation stays one after a restore.
    pub(super) fn fused_again(&self) -> Command {
        let fuse = if self.compared { SECOND } else { self.command.fuse };
        Command { fuse, ..self.command }
    }

    /// Whether parts of the command have not yet begun.
    fn is_abortable(&self) -> bool {
        let ends = self.block.is_some() && self.steps.is_empty();
        !ends || !matches!(self.transfer, Transfer::None)
    }

    fn step_succeeded(&mut self, then: Then, data: Bytes) -> Result<(), Failure> {
        if self.failure.is_some() {
            return Ok(());
        }
        match then {
            Then::Proceed if self.steps.is_empty() => self.transfer.supply(data),
            Then::Proceed => {}
            Then::Compare(expected) if data == expected => {}
            Then::Compare(_) => return Err(Failure::permanent(StatusCode::COMPARE_FAILURE)),
            Then::Copy { to, next, metadata } => {
                let (data, beside) = match metadata {
                    None => (data, None),
                    Some(metadata) => {
                        let (data, bytes) = metadata.copied(data)?;
                        (data, Some(metadata.write(bytes)))
                    }
                };
                let write = Operation::Write { offset: to, data };
                let then = Then::Result(next);
                self.steps.push_front(Step { then, beside, ..Step::new(self.command.nsid, write) });
            }
            Then::Result(result) => self.result = result,
            Then::Unmark(_) => unreachable!("the records say so first"),
        }
        Ok(())
    }
}

impl Controller {
    /// Begins the command of a fetched entry. A completion queue entry is already reserved.
    pub(super) fn begin(&mut self, shared: &mut Shared, sq: u16, command: Command) {
        let (key, accepted) = self.accept(sq, command);
        match accepted
            .and_then(|()| self.plan(shared, key, sq, &command))
            .and_then(|plan| self.apply_plan(key, &command, plan))
        {
            Ok(()) => self.admit(shared, key),
            Err(failure) => self.fail(shared, key, failure),
        }
    }

    /// Registers the command of a fetched entry; returns whether it may be executed.
    pub(super) fn accept(&mut self, sq: u16, command: Command) -> (Key, Result<(), Failure>) {
        let Command { cid, opcode, nsid, .. } = command;
        self.reported.add(NvmeEvent::Fetched { id: CommandId { queue: sq, cid }, opcode, nsid });
        let queue = self.queues.sq_mut(sq).expect("it was just fetched from");
        let unique = queue.begin(command.cid);
        let accepted = if queue.deleting.is_some() {
            Err(Failure::permanent(StatusCode::ABORTED_SQ_DELETION))
        } else if !unique {
            Err(Failure::field(StatusCode::COMMAND_ID_CONFLICT, 2, 0))
        } else {
            Ok(())
        };
        let order = self.accepted;
        self.accepted += 1;
        let key = self.commands.insert(Execution::new(self.now, sq, order, command));
        (key, accepted)
    }

    fn plan(
        &mut self,
        shared: &mut Shared,
        key: Key,
        sq: u16,
        command: &Command,
    ) -> Result<Plan, Failure> {
        if command.fuse != 0 {
            return Err(self.lone(sq, command));
        }
        // Over PCIe, admin commands use PRPs (section 4.4).
        if command.psdt > TWO_SGLS || sq == 0 && command.psdt != 0 {
            return Err(Failure::field(StatusCode::INVALID_FIELD, 1, 6));
        }
        if sq == 0 {
            self.plan_admin_with_parts(shared, key, command)
        } else {
            self.plan_io(shared, key, command)
        }
    }

    pub(super) fn apply_plan(
        &mut self,
        key: Key,
        command: &Command,
        plan: Plan,
    ) -> Result<(), Failure> {
        let (plan, metadata) = match plan {
            Plan::WithMetadata(bytes, plan) => (*plan, bytes),
            plan => (plan, 0),
        };
        let page = self.page();
        let (max, buffer) = (self.settings.max_transfer(), self.settings.buffer);
        let Some(execution) = self.commands.get_mut(key) else {
            return Ok(()); // removed: an Asynchronous Event Request
        };
        match plan {
            Plan::Done(result) => execution.result = result,
            Plan::Wait => execution.waiting = true,
            Plan::Send(data) => {
                execution.transfer = Transfer::to_host(command, [data.len(), 0], page)?;
                execution.transfer.supply(data);
            }
            Plan::Steps(steps) => execution.steps = steps,
            Plan::Read(length, steps) => {
                assert!(length <= max, "checked by the handler");
                execution.transfer = Transfer::to_host(command, [length, metadata], page)?;
                execution.steps = steps;
                execution.buffer = (length + metadata).min(buffer);
            }
            Plan::Receive(length) => {
                assert!(length <= max, "checked by the handler");
                execution.transfer = Transfer::from_host(command, [length, metadata], page)?;
                execution.buffer = (length + metadata).min(buffer);
            }
            Plan::Inside(length, steps) => {
                assert!(length <= max, "as much as a step may read");
                execution.steps = steps;
                execution.buffer = length;
            }
            Plan::ReceiveAndRead(length, inside) => {
                assert!(length.max(inside) <= max, "checked by the handler");
                execution.transfer = Transfer::from_host(command, [length, metadata], page)?;
                // A command needs at most the whole buffer: a larger share would never be free.
                execution.buffer = (length + metadata + inside).min(buffer);
            }
            Plan::WithMetadata(..) => unreachable!("metadata are named once"),
        }
        Ok(())
    }

    /// Reserves a command's share of the buffer, or queues the command for it.
    pub(super) fn admit(&mut self, shared: &mut Shared, key: Key) {
        let Some(Execution { buffer, partner, .. }) = self.commands.get(key) else { return };
        let (buffer, partner) = (*buffer, *partner);
        if buffer > 0 && (!self.waiting.is_empty() || !self.has_room(buffer)) {
            self.waiting.push_back(key);
            return;
        }
        self.admitted(shared, key, buffer, partner);
    }

    /// Gives the command and its partner their share of the buffer, and starts them.
    fn admitted(&mut self, shared: &mut Shared, key: Key, buffer: usize, partner: Option<Key>) {
        self.buffered += buffer;
        self.proceed(shared, key);
        if let Some(partner) = partner {
            self.proceed(shared, partner);
        }
    }

    fn has_room(&self, buffer: usize) -> bool {
        self.buffered + buffer <= self.settings.buffer
    }

    /// Admits queued commands in order while there is room.
    pub(super) fn admit_waiting(&mut self, shared: &mut Shared) {
        while let Some(key) = self.waiting.front().copied() {
            let execution = self.commands.get(key).expect("waiting commands are under way");
            let (buffer, partner) = (execution.buffer, execution.partner);
            if !self.has_room(buffer) {
                return;
            }
            self.waiting.pop_front();
            self.admitted(shared, key, buffer, partner);
        }
    }

    /// Fails a command that waits for the buffer; `false` if the command does not wait.
    pub(crate) fn fail_waiting(&mut self, shared: &mut Shared, key: Key, failure: Failure) -> bool {
        let Some(at) = self.waiting.iter().position(|waiting| *waiting == key) else {
            return false;
        };
        self.waiting.remove(at);
        let execution = self.commands.get_mut(key).expect("waiting commands are under way");
        execution.buffer = 0;
        self.fail(shared, key, failure);
        true
    }

    /// A command of queue `sq` that waits for the buffer: the command `cid`, or any command with
    /// `None`.
    pub(crate) fn find_waiting(&self, sq: u16, cid: Option<u16>) -> Option<Key> {
        self.waiting.iter().copied().find(|key| {
            self.commands.get(*key).is_some_and(|execution| {
                execution.sq == sq && cid.is_none_or(|cid| execution.command.cid == cid)
            })
        })
    }

    /// The command `cid` of a queue, if parts of the command have not yet begun.
    pub(crate) fn find_abortable(&self, sq: u16, cid: u16) -> Option<Key> {
        let is_it = |one: &Execution| one.sq == sq && one.command.cid == cid && one.is_abortable();
        self.commands.iter().find(|(_, execution)| is_it(execution)).map(|(key, _)| key)
    }

    /// The I/O commands for a namespace, or with steps for it, except commands whose data only wait
    /// for the link.
    pub(super) fn io_commands_of(&self, nsid: u32) -> Vec<Key> {
        let of_it = |execution: &Execution| {
            let has_step = execution.steps.iter().any(|step| step.nsid == nsid);
            execution.sq != 0 && (execution.command.nsid == nsid || has_step)
        };
        let all = self.commands.iter().filter(|(_, execution)| of_it(execution));
        all.map(|(key, _)| key).filter(|key| !self.waiting_to_send.contains(key)).collect()
    }

    /// Whether a command flushes all namespaces.
    pub(super) fn flushes_all(&self, key: Key) -> bool {
        let flushes = |one: &Execution| one.sq != 0 && one.command.nsid == BROADCAST_NSID;
        self.commands.get(key).is_some_and(flushes)
    }

    /// Removes a deleted namespace from a flush of all namespaces.
    pub(super) fn skip_namespace(&mut self, key: Key, nsid: u32) {
        if let Some(execution) = self.commands.get_mut(key) {
            execution.steps.retain(|step| step.nsid != nsid);
        }
    }

    /// Removes an Asynchronous Event Request from the commands under way. Such a command may stay
    /// outstanding forever, so it reserves no completion entry.
    pub(crate) fn remove_event_request(&mut self, shared: &mut Shared, key: Key) {
        let execution = self.commands.remove(key).expect("it is being carried out");
        self.count_in_flight(shared, execution.sq, |in_flight| in_flight - 1);
        self.queues.cq_mut(0).expect("admin commands have a queue").release();
    }

    /// Whether the command is under way; false after a reset has dropped it.
    pub(crate) fn is_under_way(&self, key: Key) -> bool {
        self.commands.contains_key(key)
    }

    /// Resumes a command after [`Plan::Wait`].
    pub(crate) fn resume(&mut self, shared: &mut Shared, key: Key) {
        self.resume_with(shared, key, 0);
    }

    /// As [`resume`](Self::resume), with media steps before the completion.
    pub(crate) fn resume_to(&mut self, shared: &mut Shared, key: Key, steps: Steps) {
        if let Some(execution) = self.commands.get_mut(key) {
            execution.steps = steps;
            self.resume(shared, key);
        }
    }

    /// As [`resume`](Self::resume), with dword 0 of the completion.
    pub(crate) fn resume_with(&mut self, shared: &mut Shared, key: Key, result: u32) {
        if let Some(execution) = self.commands.get_mut(key) {
            execution.waiting = false;
            execution.result = result;
            self.proceed(shared, key);
        }
    }

    /// Executes a command as far as possible now.
    pub(crate) fn proceed(&mut self, shared: &mut Shared, key: Key) {
        loop {
            let Some(execution) = self.commands.get_mut(key) else { return };
            if execution.failure.is_some() {
                // No part of a finished command may be in flight.
                let idle = execution.reads == 0 && execution.block.is_none();
                return if idle {
                    self.finish(shared, key)
                };
            }
            if execution.waiting {
                return;
            }
            let transfer = &mut execution.transfer;
            if let Some((address, length)) = transfer.next_list().filter(|_| execution.reads == 0) {
                self.read_list(key, address, length);
            } else if transfer.can_fetch_data() {
                self.fetch_data(key);
            } else if transfer.is_receiving() {
                let Some(data) = transfer.take_received() else { return };
                self.data_received(shared, key, data);
            } else if execution.block.is_some() {
                return;
            } else if let Some(step) = execution.steps.pop_front() {
                // A fused operation already holds its blocks, so it needs no claim.
                if let Some(beside) = &step.beside
                    && execution.partner.is_none()
                    && !execution.compared
                    && !shared.claims.take((self.id, key), || beside.blocks())
                {
                    execution.steps.push_front(step);
                    return;
                }
                self.request_block(key, step);
            } else if transfer.can_send() {
                return self.send_or_queue(shared, key);
            } else {
                return if matches!(transfer, Transfer::None) {
                    self.finish(shared, key)
                };
            }
        }
    }

    /// Fails a command, as soon as no part of the command is in flight.
    pub(crate) fn fail(&mut self, shared: &mut Shared, key: Key, failure: Failure) {
        if let Some(execution) = self.commands.get_mut(key) {
            execution.failure.get_or_insert(failure);
            self.proceed(shared, key);
        }
    }

    /// Calls the handler of the command with the complete data from the host.
    fn data_received(&mut self, shared: &mut Shared, key: Key, data: Bytes) {
        let execution = self.commands.get_mut(key).expect("it is being carried out");
        execution.transfer = Transfer::None;
        let (sq, command, partner) = (execution.sq, execution.command, execution.partner);
        let plan = match sq {
            0 => {
                let plan = self.admin_received(shared, key, &command, data);
                plan.map(|plan| self.after_parts(key, &command, plan))
            }
            _ => self.plan_received(shared, key, &command, data),
        };
        match plan.and_then(|plan| self.apply_plan(key, &command, plan)) {
            Ok(()) => partner.into_iter().for_each(|one| self.half_received(shared, key, one)),
            Err(failure) => self.fail(shared, key, failure),
        }
    }

    fn request_block(&mut self, key: Key, step: Step) {
        let execution = self.commands.get_mut(key).expect("it is being carried out");
        let Step { nsid, operation, then, beside } = step;
        execution.block = Some(then);
        let command = CommandId { queue: execution.sq, cid: execution.command.cid };
        let metadata = beside.as_ref().map(|beside| beside.operation());
        execution.pair = beside.map(|beside| Box::new(Pair { beside, ended: [None, None] }));
        self.request_media(Some((key, command)), false, nsid, operation);
        if let Some(metadata) = metadata {
            self.request_media(Some((key, command)), true, nsid, metadata);
        }
    }

    /// Queues a media request for a command or a shutdown. With `metadata`, the request is for the
    /// metadata of the command's blocks.
    pub(super) fn request_media(
        &mut self,
        command: Option<(Key, CommandId)>,
        metadata: bool,
        nsid: u32,
        operation: Operation,
    ) {
        let (offset, length) = operation.range();
        let range = offset..offset + length;
        let (key, command) = command.unzip();
        // A trace has one media request per command at a time, so requests for metadata have no
        // command.
        let command = command.filter(|_| !metadata);
        let request = BlockRequest { command: key, metadata, nsid, range };
        let id = block_id(self.id, self.blocks.insert(request));
        self.block_requests.push_back(block::Request { id, command, nsid, operation });
    }

    /// Handles the end of a command's block request; `Ok` has the bytes of a read.
    pub(super) fn step_done(
        &mut self,
        shared: &mut Shared,
        key: Key,
        metadata: bool,
        result: Result<Bytes, Failure>,
    ) {
        // A reset may have dropped the command.
        let Some(execution) = self.commands.get_mut(key) else { return };
        let result = match execution.pair.take() {
            None => result,
            Some(mut pair) => {
                pair.ended[usize::from(metadata)] = Some(result);
                let [Some(data), Some(metadata)] = &pair.ended else {
                    execution.pair = Some(pair);
                    return;
                };
                shared.claims.release((self.id, key));
                self.joined(shared, &pair.beside, data, metadata)
            }
        };
        let Some(execution) = self.commands.get_mut(key) else { return };
        let then = execution.block.take().unwrap_or_default();
        if let (Then::Unmark(ranges), Ok(_), None) = (&then, &result, execution.failure) {
            execution.waiting = true;
            let nsid = execution.command.nsid;
            return shared.mark((self.id, key), nsid, ranges.clone(), false);
        }
        match result.and_then(|data| execution.step_succeeded(then, data)) {
            Ok(()) => self.proceed(shared, key),
            Err(failure) => self.fail(shared, key, failure),
        }
    }

    /// Handles the end of both requests of a step.
    fn joined(
        &self,
        shared: &mut Shared,
        beside: &Beside,
        data: &Result<Bytes, Failure>,
        metadata: &Result<Bytes, Failure>,
    ) -> Result<Bytes, Failure> {
        let (data, metadata) = (data.clone()?, metadata.as_ref().map_err(|failure| *failure)?);
        beside.found(data, metadata).inspect_err(|_| {
            // A mismatch of CRC or tag (figure 195).
            shared.health.add_media_error(self.now);
        })
    }

    pub(super) fn finish(&mut self, shared: &mut Shared, key: Key) {
        let execution = self.commands.remove(key).expect("it is being carried out");
        if !shared.claims.is_empty() {
            shared.claims.release((self.id, key));
        }
        shared.hosts.ended((self.id, key));
        assert!(execution.reads == 0 && execution.block.is_none(), "something is still in flight");
        let partner = execution.partner.filter(|partner| self.commands.contains_key(*partner));
        if partner.is_none() || execution.failure.is_some() {
            self.buffered -= execution.buffer;
        }
        if execution.sq == 0 {
            self.admin_ends(shared, key, &execution.command, execution.failure);
            let result = execution.failure.map_or(Ok(execution.result), Err);
            if self.answer(shared, execution.order, result) {
                return;
            }
        } else {
            self.times.record(execution.command.opcode, self.now - execution.began);
        }
        self.complete(
            shared,
            execution.sq,
            &execution.command,
            execution.result,
            execution.failure,
        );
        if let Some(partner) = partner {
            self.other_half(shared, partner, execution.failure, execution.buffer);
        }
    }
}
