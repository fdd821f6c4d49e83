//! Carrying a command out, from its entry to its completion.

use super::transfer::Transfer;
use super::{BlockOwner, Controller};
use crate::block::{self, Operation};
use crate::failure::Failure;
use crate::slots::Key;
use bytes::Bytes;
use std::collections::VecDeque;
use wire::nvme::{Command, StatusCode};
use wire::trace::CommandId;

/// One thing to ask of the media for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub nsid: u32,
    pub operation: Operation,
}

/// The steps of a command on one namespace.
pub(crate) fn steps(nsid: u32, operations: impl IntoIterator<Item = Operation>) -> VecDeque<Step> {
    operations.into_iter().map(|operation| Step { nsid, operation }).collect()
}

/// What a command's own code asks for.
#[derive(Debug)]
pub(crate) enum Plan {
    /// The command is done; dword 0 of the completion.
    Done(u32),
    /// The command completes when something else happens.
    Held,
    /// These bytes go to the host, then the command is done.
    Send(Bytes),
    /// The media do these steps one after another.
    Steps(VecDeque<Step>),
    /// The same; the last step reads this many bytes, which go to the host.
    Read(usize, VecDeque<Step>),
    /// This many bytes come from the host; then the command's own code is
    /// asked again.
    Receive(usize),
}

/// A command under way.
#[derive(Debug)]
pub(super) struct Execution {
    pub sq: u16,
    pub command: Command,
    pub transfer: Transfer,
    steps: VecDeque<Step>,
    /// Bytes of the buffer that it needs.
    pub buffer: usize,
    /// DMA reads in flight.
    pub reads: usize,
    /// A block request is outstanding.
    block: bool,
    failure: Option<Failure>,
    /// Waits for the end of other commands.
    held: bool,
    result: u32,
}

/// What is to be done next for a command.
#[derive(Debug)]
enum Next {
    Wait,
    ReadList { address: u64, length: usize },
    Gather,
    Received(Bytes),
    Block(Step),
    Send,
    Finish,
}

impl Execution {
    fn new(sq: u16, command: Command) -> Self {
        Self {
            sq,
            command,
            transfer: Transfer::None,
            steps: VecDeque::new(),
            buffer: 0,
            reads: 0,
            block: false,
            failure: None,
            held: false,
            result: 0,
        }
    }

    fn next(&mut self) -> Next {
        let idle = self.reads == 0 && !self.block;
        if self.failure.is_some() {
            // Nothing of a finished command may be in flight.
            return if idle { Next::Finish } else { Next::Wait };
        }
        if self.held {
            return Next::Wait;
        }
        if let Some((address, length)) = self.transfer.wants_list().filter(|_| self.reads == 0) {
            return Next::ReadList { address, length };
        }
        if self.transfer.can_gather() {
            return Next::Gather;
        }
        if self.transfer.is_gathering() {
            return match self.transfer.take_gathered() {
                Some(data) => Next::Received(data),
                None => Next::Wait,
            };
        }
        if self.block {
            return Next::Wait;
        }
        if let Some(step) = self.steps.pop_front() {
            return Next::Block(step);
        }
        match &self.transfer {
            Transfer::None => Next::Finish,
            _ if self.transfer.can_send() => Next::Send,
            _ => Next::Wait,
        }
    }
}

impl Controller {
    /// Takes a fetched entry; room for its completion is promised.
    pub(super) fn begin(&mut self, sq: u16, command: Command) {
        self.tell_fetched(sq, &command);
        let queue = self.queues.sq_mut(sq).expect("it was just fetched from");
        let unique = queue.begin(command.cid);
        let deleting = queue.deleting.is_some();
        let key = self.commands.insert(Execution::new(sq, command));
        if deleting {
            return self.fail(key, Failure::permanent(StatusCode::ABORTED_SQ_DELETION));
        }
        if !unique {
            return self.fail(key, Failure::field(StatusCode::COMMAND_ID_CONFLICT, 2, 0));
        }
        match self.plan(key, sq, &command).and_then(|plan| self.adopt(key, &command, plan)) {
            Ok(()) => self.admit(key),
            Err(failure) => self.fail(key, failure),
        }
    }

    fn plan(&mut self, key: Key, sq: u16, command: &Command) -> Result<Plan, Failure> {
        if command.fuse != 0 {
            return Err(Failure::field(StatusCode::INVALID_FIELD, 1, 0));
        }
        if command.psdt != 0 {
            return Err(Failure::field(StatusCode::INVALID_FIELD, 1, 6));
        }
        if sq == 0 { self.plan_admin(key, command) } else { self.plan_io(command) }
    }

    /// Makes the plan the command's.
    fn adopt(&mut self, key: Key, command: &Command, plan: Plan) -> Result<(), Failure> {
        let page = self.page();
        let most = self.config.max_transfer();
        let Some(execution) = self.commands.get_mut(key) else {
            return Ok(()); // handed over: an asynchronous event request
        };
        match plan {
            Plan::Done(result) => execution.result = result,
            Plan::Held => execution.held = true,
            Plan::Send(data) => {
                execution.transfer = Transfer::to_host(command, data.len(), page)?;
                execution.transfer.supply(data);
            }
            Plan::Steps(steps) => execution.steps = steps,
            Plan::Read(length, steps) => {
                assert!(length <= most, "checked by the command's own code");
                execution.transfer = Transfer::to_host(command, length, page)?;
                execution.steps = steps;
                execution.buffer = length;
            }
            Plan::Receive(length) => {
                assert!(length <= most, "checked by the command's own code");
                execution.transfer = Transfer::from_host(command, length, page)?;
                execution.buffer = length;
            }
        }
        Ok(())
    }

    /// Takes a command's share of the buffer, or lets it wait for it.
    fn admit(&mut self, key: Key) {
        let Some(execution) = self.commands.get(key) else { return };
        let buffer = execution.buffer;
        if buffer > 0 && (!self.waiting.is_empty() || !self.has_room(buffer)) {
            self.waiting.push_back(key);
            return;
        }
        self.buffered += buffer;
        self.proceed(key);
    }

    fn has_room(&self, buffer: usize) -> bool {
        self.buffered + buffer <= self.config.buffer
    }

    /// Admits commands that waited, in order, while there is room.
    pub(super) fn admit_waiting(&mut self) {
        while let Some(key) = self.waiting.front().copied() {
            let execution = self.commands.get(key).expect("waiting commands are under way");
            let buffer = execution.buffer;
            if !self.has_room(buffer) {
                return;
            }
            self.waiting.pop_front();
            self.buffered += buffer;
            self.proceed(key);
        }
    }

    /// Ends a command that waits for the buffer; `false` if it does not.
    pub(crate) fn give_up_waiting(&mut self, key: Key, failure: Failure) -> bool {
        let Some(at) = self.waiting.iter().position(|waiting| *waiting == key) else {
            return false;
        };
        self.waiting.remove(at);
        let execution = self.commands.get_mut(key).expect("waiting commands are under way");
        execution.buffer = 0;
        self.fail(key, failure);
        true
    }

    /// The command `cid` of a queue that waits for the buffer, or any.
    pub(crate) fn find_waiting(&self, sq: u16, cid: Option<u16>) -> Option<Key> {
        self.waiting.iter().copied().find(|key| {
            self.commands.get(*key).is_some_and(|execution| {
                execution.sq == sq && cid.is_none_or(|cid| execution.command.cid == cid)
            })
        })
    }

    /// Hands over an Asynchronous Event Request: it may stay outstanding
    /// forever, so it counts as no command under way and holds no promise of
    /// room for its completion.
    pub(crate) fn set_aside(&mut self, key: Key) {
        let execution = self.commands.remove(key).expect("it is being carried out");
        self.count_in_flight(execution.sq, |in_flight| in_flight - 1);
        self.queues.cq_mut(0).expect("admin commands have a queue").release();
    }

    /// Lets the command that was held be done.
    pub(super) fn end_hold(&mut self, key: Key) {
        if let Some(execution) = self.commands.get_mut(key) {
            execution.held = false;
            self.proceed(key);
        }
    }

    /// Does for a command what can be done now.
    pub(super) fn proceed(&mut self, key: Key) {
        loop {
            let Some(execution) = self.commands.get_mut(key) else { return };
            match execution.next() {
                Next::Wait => return,
                Next::ReadList { address, length } => self.read_list(key, address, length),
                Next::Gather => self.gather(key),
                Next::Received(data) => self.received(key, data),
                Next::Block(step) => self.request_block(key, step),
                Next::Send => return self.send_or_hold(key),
                Next::Finish => return self.finish(key),
            }
        }
    }

    /// The command fails as soon as nothing of it is in flight any more.
    pub(super) fn fail(&mut self, key: Key, failure: Failure) {
        if let Some(execution) = self.commands.get_mut(key) {
            execution.failure.get_or_insert(failure);
            self.proceed(key);
        }
    }

    /// All data have come from the host: the command's own code says what is
    /// to become of them.
    fn received(&mut self, key: Key, data: Bytes) {
        let execution = self.commands.get_mut(key).expect("it is being carried out");
        execution.transfer = Transfer::None;
        let command = execution.command;
        match self.plan_received(&command, data) {
            Ok(steps) => {
                let execution = self.commands.get_mut(key).expect("it is being carried out");
                execution.steps = steps;
            }
            Err(failure) => self.fail(key, failure),
        }
    }

    fn request_block(&mut self, key: Key, step: Step) {
        let execution = self.commands.get_mut(key).expect("it is being carried out");
        execution.block = true;
        let command = CommandId { queue: execution.sq, cid: execution.command.cid };
        let Step { nsid, operation } = step;
        let id = self.blocks.insert(BlockOwner::Command(key, nsid)).as_u64();
        self.block_requests.push_back(block::Request {
            id,
            command: Some(command),
            nsid,
            operation,
        });
    }

    /// A block request of a command has ended; `Ok` brings the bytes of a read.
    pub(super) fn step_done(&mut self, key: Key, result: Result<Bytes, Failure>) {
        // A reset may have forgotten the command.
        let Some(execution) = self.commands.get_mut(key) else { return };
        execution.block = false;
        match result {
            Ok(data) => {
                if execution.steps.is_empty() && execution.failure.is_none() {
                    execution.transfer.supply(data);
                }
                self.proceed(key);
            }
            Err(failure) => self.fail(key, failure),
        }
    }

    /// Ends the command with a completion.
    pub(super) fn finish(&mut self, key: Key) {
        let execution = self.commands.remove(key).expect("it is being carried out");
        assert!(execution.reads == 0 && !execution.block, "something is still in flight");
        self.buffered -= execution.buffer;
        self.complete(execution.sq, &execution.command, execution.result, execution.failure);
    }
}
