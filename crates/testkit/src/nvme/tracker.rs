//! A host that checks that each of its commands completes exactly once.

use super::commands::{is_probe, lacks_prp2};
use super::{Host, Pair, create_commands, delete};
use std::collections::{BTreeMap, VecDeque};
use wire::nvme::opcode::admin;
use wire::nvme::{Command, Completion, StatusCode};

/// State of an I/O queue pair, as the host knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Creating,
    Ready,
    Deleting,
}

pub(super) struct Tracker {
    pub host: Host,
    /// Commands without a completion, by queue and identifier.
    outstanding: BTreeMap<(u16, u16), Command>,
    states: [State; 4],
    /// Admin commands that wait for room in the queue.
    todo: VecDeque<Command>,
}

impl Tracker {
    /// Creates a tracker for a host whose controller is ready.
    pub fn new(host: Host) -> Self {
        Self {
            host,
            outstanding: BTreeMap::new(),
            states: [State::Absent; 4],
            todo: VecDeque::new(),
        }
    }

    /// Forgets all commands and queues after a reset.
    pub fn forget(&mut self) {
        self.outstanding.clear();
        self.states = [State::Absent; 4];
        self.todo.clear();
    }

    /// Sends a command. Returns `false` if the queue does not exist or has no room.
    pub fn send(&mut self, queue: u16, command: Command) -> bool {
        let Some(Some(pair)) = self.host.pairs.get(usize::from(queue)) else { return false };
        let used = self.outstanding.range((queue, 0)..=(queue, u16::MAX)).count();
        if used >= usize::from(pair.entries) - 1 {
            return false;
        }
        let cid = self.host.put(queue, command);
        let command = Command { cid, ..command };
        assert!(self.outstanding.insert((queue, cid), command).is_none());
        self.host.ring(queue);
        true
    }

    /// Begins to create a queue pair, or to delete an existing pair.
    pub fn toggle(&mut self, id: u16, entries: u16) {
        let state = &mut self.states[usize::from(id)];
        match *state {
            State::Absent => {
                *state = State::Creating;
                let pair = Pair::new(id, entries);
                let zeroes = vec![0; usize::from(entries) * 16];
                self.host.testbed.put(pair.cq(), &zeroes);
                self.host.clear_shadow(id);
                self.todo.push_back(create_commands(&pair)[0]);
            }
            State::Ready => {
                *state = State::Deleting;
                self.todo.push_back(delete(admin::DELETE_SQ, id));
            }
            State::Creating | State::Deleting => {}
        }
        self.work();
    }

    fn work(&mut self) {
        while let Some(command) = self.todo.pop_front() {
            if !self.send(0, command) {
                return self.todo.push_front(command);
            }
        }
    }

    /// Takes the completions of a queue. Returns their number.
    pub fn reap(&mut self, queue: u16) -> usize {
        let done = self.host.reap(queue);
        for completion in &done {
            self.take(completion);
        }
        self.work();
        done.len()
    }

    /// Checks a completion entry, and removes its command.
    ///
    /// # Panics
    /// If the completion entry belongs to no command.
    fn take(&mut self, done: &Completion) {
        let key = (done.sq_id, done.cid);
        let command = self.outstanding.remove(&key);
        let command = command.unwrap_or_else(|| panic!("a completion of nothing: {done:?}"));
        let unlogged = [
            StatusCode::ABORT_REQUESTED,
            StatusCode::ABORTED_SQ_DELETION,
            StatusCode::RESERVATION_CONFLICT,
        ];
        let success = done.status.is_success();
        // Reservation Report with another length of Host Identifiers.
        let other_length =
            done.sq_id != 0 && done.status.code == StatusCode::HOST_IDENTIFIER_INCONSISTENT;
        let silent = success
            || other_length
            || unlogged.contains(&done.status.code)
            || is_probe(done.sq_id, &command);
        assert_ne!(done.status.more, silent, "{:?} of {command:?}", done.status);
        assert!(!success || !lacks_prp2(done.sq_id, &command), "data to address 0: {command:?}");
        if done.sq_id == 0 {
            self.admin_done(&command, done.status.is_success());
        }
    }

    fn admin_done(&mut self, command: &Command, success: bool) {
        let id = command.cdw10 as u16;
        let index = usize::from(id);
        match (command.opcode, success) {
            (admin::CREATE_CQ, true) => {
                let pair = Pair::new(id, (command.cdw10 >> 16) as u16 + 1);
                let [_, sq] = create_commands(&pair);
                // QPRIO: each queue has another priority, which arbitration may use.
                let cdw11 = sq.cdw11 | u32::from(id & 3) << 1;
                self.todo.push_back(Command { cdw11, ..sq });
            }
            // The controller allocated too few queues for this one.
            (admin::CREATE_CQ, false) => self.states[index] = State::Absent,
            (admin::CREATE_SQ, true) => {
                self.host.pairs[index] = Some(Pair::new(id, (command.cdw10 >> 16) as u16 + 1));
                self.states[index] = State::Ready;
            }
            // Delete the completion queue, because the pair is incomplete.
            (admin::CREATE_SQ, false) => self.todo.push_back(delete(admin::DELETE_CQ, id)),
            (admin::DELETE_SQ, _) => {
                assert!(success, "a queue could not be deleted");
                // Fetched commands have completion entries. Other commands of the queue will have
                // none.
                for done in self.host.reap(id) {
                    self.take(&done);
                }
                self.host.pairs[index] = None;
                self.outstanding.retain(|(queue, _), _| *queue != id);
                self.todo.push_back(delete(admin::DELETE_CQ, id));
            }
            (admin::DELETE_CQ, _) => {
                assert!(success, "a queue could not be deleted");
                self.states[index] = State::Absent;
            }
            _ => {}
        }
    }

    /// Processes everything until no completion entries come.
    ///
    /// # Panics
    /// If a command has no completion. Exceptions are Asynchronous Event Requests, and the first
    /// command of a fused operation at the end of a queue without the second command.
    pub fn finish(&mut self) {
        loop {
            self.host.testbed.settle_lost();
            if self.host.testbed.controller().is_fatal() {
                return;
            }
            if (0..4).map(|queue| self.reap(queue)).sum::<usize>() == 0 {
                break;
            }
        }
        for ((queue, _), command) in &self.outstanding {
            let event = *queue == 0 && command.opcode == admin::ASYNC_EVENT_REQUEST;
            let of_queue = self.outstanding.range((*queue, 0)..=(*queue, u16::MAX));
            let first = *queue != 0 && command.fuse == 1 && of_queue.count() == 1;
            assert!(event || first, "no completion on queue {queue}: {command:?}");
        }
    }
}
