//! What a controller remembers over the end of its process.
//!
//! Commands under way are carried out again from their entries. So the state needs no data, no
//! requests to the media and no reads of host memory. Completions that may not have left the process
//! are posted again, or their commands are carried out again if they send data to the host.

use super::fused::SECOND;
use super::lifecycle::Phase;
use super::shutdown::Shutdown;
use super::{AccessLog, Controller, WEIGHTED};
use crate::admin::Clock;
use crate::events::{AsyncEvents, SavedEvents};
use crate::features::Features;
use crate::log::ReservationLog;
use crate::queue::{CompletionQueue, Priority, Queues, SubmissionQueue};
use crate::slots::Key;
use crate::state::HostId;
use crate::subsystem::Shared;
use bytes::Bytes;
use pcie::endpoint::{ForeignState, SavedEndpoint, Unsent};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use wire::Instant;
use wire::nvme::register::{AdminQueueAttributes, Configuration, ControllerStatus};
use wire::nvme::{AsyncEvent, COMPLETION_ENTRY, Command, Completion, SUBMISSION_ENTRY};

/// The bit of an opcode that states that data go from the controller to the host (NVMe 1.4, figure
/// 105).
const TO_HOST: u8 = 1 << 1;

/// What a completion answers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Command(Command),
    /// An Asynchronous Event Request, with this event.
    Event(AsyncEvent),
    /// Something that is not done again: the entry is posted again.
    Entry,
}

/// A posted completion.
#[derive(Debug)]
pub(super) struct Posted {
    /// [`pcie::Endpoint::written`] behind the entry.
    pub end: u64,
    pub cq: u16,
    pub entry: Completion,
    pub answer: Answer,
}

impl Posted {
    /// The command, if it is to be carried out again: its data may be lost too.
    fn repeats(&self) -> Option<Command> {
        match self.answer {
            Answer::Command(command) => {
                let sends = command.opcode & TO_HOST != 0 && self.entry.status.is_success();
                sends.then_some(command)
            }
            _ => None,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedSubmission {
    id: u16,
    cq: u16,
    priority: Priority,
    place: (u64, u32),
    head: u32,
    tail: u32,
    /// The first command of a fused operation whose second command was not taken.
    first: Option<Bytes>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedCompletion {
    id: u16,
    vector: Option<u16>,
    place: (u64, u32),
    head: u32,
    tail: (u32, bool),
}

/// The state of a controller that goes on in another process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedController {
    endpoint: SavedEndpoint,
    /// CC, CSTS and AQA, and INTMS.
    registers: [u32; 4],
    /// ASQ and ACQ.
    admin_queues: [u64; 2],
    phase: Phase,
    /// Whether a shutdown is complete; `None` without a shutdown.
    shutdown: Option<bool>,
    completion: Vec<SavedCompletion>,
    submission: Vec<SavedSubmission>,
    /// Shadow doorbells and EventIdx in host memory.
    doorbells: Option<(u64, u64)>,
    features: Features,
    /// Vectors without coalescing.
    not_coalesced: Vec<u16>,
    intx: bool,
    events: SavedEvents,
    changed_namespaces: BTreeSet<u32>,
    /// The Host Identifier that the host has set, and its reservation notifications.
    host: Option<HostId>,
    reservation_log: ReservationLog,
    clock: (u64, u8),
    /// Completion queue and entry of completions to post again.
    answers: Vec<(u16, Bytes)>,
    /// Commands to carry out again, in order.
    commands: Vec<SavedCommand>,
    accepted: u64,
    added: Added,
}

/// What version 1 of the file `session` did not have. It knew controller 1 only.
#[derive(Debug, Serialize, Deserialize)]
struct Added {
    /// CNTLID.
    id: u16,
    access: AccessLog,
}

impl SavedController {
    /// The state with these bytes, of this version or of the one before.
    ///
    /// # Errors
    /// If the bytes are not a state.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, ForeignState> {
        let decoded = match postcard::from_bytes(bytes) {
            Err(postcard::Error::DeserializeUnexpectedEnd) => {
                let added = Added { id: 1, access: AccessLog::default() };
                let whole = postcard::to_extend(&added, bytes.to_vec());
                postcard::from_bytes(&whole.map_err(|_| ForeignState)?)
            }
            decoded => decoded,
        };
        decoded.map_err(|_| ForeignState)
    }
}

/// A command to carry out again.
#[derive(Debug, Serialize, Deserialize)]
struct SavedCommand {
    sq: u16,
    /// Number of commands that were accepted before.
    number: u64,
    entry: Bytes,
}

impl Controller {
    /// Begins to keep what [`save`](Self::save) needs. Call this before any other method.
    pub(crate) fn keep(&mut self) {
        self.posted = Some(VecDeque::new());
    }

    /// The state now. `unsent` is behind the function.
    pub(crate) fn save(&mut self, shared: &Shared, unsent: &Unsent) -> SavedController {
        let written = self.endpoint.written();
        let sent = written - (self.endpoint.posted_backlog() + unsent.written) as u64;
        let posted = self.posted.get_or_insert_default();
        let count = posted.partition_point(|posted| posted.end <= sent);
        posted.drain(..count);
        let lost: Vec<&Posted> = self.posted.iter().flatten().collect();
        let event = |posted: &&Posted| match posted.answer {
            Answer::Event(event) => Some((posted.entry.cid, event)),
            _ => None,
        };
        let events: Vec<_> = lost.iter().filter_map(event).collect();
        let registers = &self.registers;
        SavedController {
            endpoint: self.endpoint.save(unsent),
            registers: [
                registers.configuration.bits(),
                registers.status.bits(),
                registers.admin_queues.bits(),
                self.interrupts.mask,
            ],
            admin_queues: [registers.admin_sq, registers.admin_cq],
            phase: self.phase,
            shutdown: match self.shutdown {
                Shutdown::Idle => None,
                Shutdown::Complete => Some(true),
                _ => Some(false),
            },
            completion: self.queues.cqs().map(|queue| saved_completion(queue, &lost)).collect(),
            submission: self.queues.sqs().map(saved_submission).collect(),
            doorbells: self.doorbells.as_ref().map(|buffers| buffers.places()),
            features: self.features.clone(),
            not_coalesced: self.interrupts.all_disabled(),
            intx: self.intx,
            events: self.events.save(&events),
            changed_namespaces: self.changed_namespaces.clone(),
            host: shared.hosts.set_by_host(self.id).cloned(),
            reservation_log: self.reservation_log.clone(),
            clock: self.clock.save(self.now),
            answers: self.answers(&lost),
            commands: self.commands_again(&lost),
            accepted: self.accepted,
            added: Added { id: self.id, access: self.access.clone() },
        }
    }

    /// Lets what waits for a save have its effect, because the state is stored.
    pub(crate) fn stored_state(&mut self) {
        self.saved = self.accepted;
        self.recorded.append(&mut self.unsaved);
    }

    /// Whether the controller is saved.
    pub(crate) fn is_kept(&self) -> bool {
        self.posted.is_some()
    }

    /// Whether the last save has this command.
    pub(crate) fn is_saved(&self, number: u64) -> bool {
        number < self.saved
    }

    /// Whether something waits for a save.
    pub(crate) fn waits_for_save(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// Whether the command that begins is restored.
    pub(crate) fn repeats(&self) -> bool {
        self.repeats
    }

    /// The number of a command under way.
    pub(crate) fn number_of(&self, key: Key) -> Option<u64> {
        Some(self.commands.get(key)?.order)
    }

    /// Begins the writes of fused operations whose comparison is recorded.
    pub(super) fn begin_recorded(&mut self, shared: &mut Shared) {
        for key in std::mem::take(&mut self.recorded) {
            self.resume(shared, key);
        }
    }

    fn answers(&self, lost: &[&Posted]) -> Vec<(u16, Bytes)> {
        let stays = |posted: &&&Posted| {
            let event = matches!(posted.answer, Answer::Event(_));
            posted.repeats().is_none() && !event && self.queues.cq(posted.cq).is_some()
        };
        let answer = |posted: &&Posted| {
            (posted.cq, Bytes::copy_from_slice(&posted.entry.encode()[..COMPLETION_ENTRY]))
        };
        lost.iter().filter(stays).map(answer).collect()
    }

    fn commands_again(&self, lost: &[&Posted]) -> Vec<SavedCommand> {
        let mut under_way: Vec<_> = self.commands.values().collect();
        under_way.sort_unstable_by_key(|execution| execution.order);
        // The number of a command whose completion is lost does not matter: it changes no records.
        let again = |posted: &&Posted| Some((posted.entry.sq_id, self.accepted, posted.repeats()?));
        let lost = lost.iter().filter_map(again);
        let under_way = under_way.into_iter().map(|one| (one.sq, one.order, one.fused_again()));
        let all = lost.chain(under_way).filter(|(sq, ..)| self.queues.sq(*sq).is_some());
        all.map(|(sq, number, command)| SavedCommand { sq, number, entry: entry(command) })
            .collect()
    }

    /// Goes on from a saved state, instead of the state after power-on.
    pub(crate) fn restore(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        saved: SavedController,
    ) -> Result<(), ForeignState> {
        if saved.added.id != self.id {
            return Err(ForeignState);
        }
        self.now = now;
        self.endpoint.restore(now, &saved.endpoint)?;
        let [configuration, status, admin_queues, mask] = saved.registers;
        let registers = &mut self.registers;
        registers.configuration = Configuration::from_bits(configuration);
        registers.status = ControllerStatus::from_bits(status);
        registers.admin_queues = AdminQueueAttributes::from_bits(admin_queues);
        [registers.admin_sq, registers.admin_cq] = saved.admin_queues;
        self.phase = saved.phase;
        self.shutdown = match saved.shutdown {
            None => Shutdown::Idle,
            Some(true) => Shutdown::Complete,
            Some(false) => Shutdown::Draining,
        };
        self.features = saved.features;
        self.reset_interrupts();
        self.interrupts.mask = mask;
        for vector in saved.not_coalesced {
            self.interrupts.set_coalescing_disabled(vector, true);
        }
        self.intx = saved.intx;
        self.events = AsyncEvents::restore(saved.events);
        self.access = saved.added.access;
        self.changed_namespaces = saved.changed_namespaces;
        shared.hosts.set(self.id, saved.host);
        self.reservation_log = saved.reservation_log;
        self.clock = Clock::restore(now, saved.clock);
        // The persistent event log keeps a time that the host of another controller has set.
        if self.clock.is_set_by_host() || !shared.events.clock.is_set_by_host() {
            shared.events.clock = self.clock;
        }
        self.restart_keep_alive();
        if matches!(self.phase, Phase::Ready) {
            shared.goes_on(self.id);
        }
        self.restore_queues(&saved.completion, &saved.submission)?;
        for (cq, entry) in saved.answers {
            let entry = entry[..].try_into().map_err(|_| ForeignState)?;
            self.queues.cq_mut(cq).ok_or(ForeignState)?.reserve(1);
            self.post_entry(cq, Completion::decode(entry), Answer::Entry);
        }
        for again in saved.commands {
            self.accepted = again.number;
            let command = command(&again.entry)?;
            self.repeats = true;
            let taken = self.take_again(shared, again.sq, command);
            self.repeats = false;
            taken.ok_or(ForeignState)?;
        }
        self.accepted = saved.accepted;
        if let Some((shadow, event_index)) = saved.doorbells {
            self.set_doorbell_buffers(shadow, event_index);
        }
        self.advance(shared);
        Ok(())
    }

    fn restore_queues(
        &mut self,
        completion: &[SavedCompletion],
        submission: &[SavedSubmission],
    ) -> Result<(), ForeignState> {
        self.queues = Queues::new(self.registers.configuration.arbitration == WEIGHTED);
        for saved in completion {
            let ((base, size), (tail, phase)) = (saved.place, saved.tail);
            let queue = CompletionQueue::new(saved.id, saved.vector, base, size);
            let queue = queue.at(saved.head, tail, phase);
            // The interrupt may be lost with the process. Hosts tolerate a further one.
            if queue.occupied() > 0
                && let Some(vector) = saved.vector
            {
                self.interrupts.posted(self.now, vector);
            }
            self.queues.add_cq(queue);
        }
        for saved in submission {
            let (base, size) = saved.place;
            let queue = SubmissionQueue::new(saved.id, saved.cq, base, size);
            let mut queue = queue.with_priority(saved.priority).at(saved.head, saved.tail);
            if let Some(first) = &saved.first {
                queue.park_again(command(first)?);
            }
            self.queues.cq(saved.cq).ok_or(ForeignState)?;
            self.queues.add_sq(queue);
        }
        self.queues.wake();
        Ok(())
    }

    /// Carries out a command again. The comparison of a write was successful if it is not repeated.
    fn take_again(&mut self, shared: &mut Shared, sq: u16, mut command: Command) -> Option<()> {
        let queue = self.queues.sq_mut(sq)?;
        let compared = command.fuse == SECOND && queue.first.is_none();
        if compared {
            command.fuse = 0;
        }
        queue.take_again();
        let cq = queue.cq;
        self.queues.cq_mut(cq)?.reserve(1);
        self.count_in_flight(shared, sq, |in_flight| in_flight + 1);
        let number = self.accepted;
        match shared.done(self.id, number) {
            None => {
                self.take_entry(shared, sq, command);
                if compared {
                    self.hold_again(shared, number);
                }
            }
            Some(result) => {
                let (key, _) = self.accept(sq, command);
                self.resume_with(shared, key, result);
            }
        }
        Some(())
    }
}

fn saved_completion(queue: &CompletionQueue, lost: &[&Posted]) -> SavedCompletion {
    let count = lost.iter().filter(|posted| posted.cq == queue.id).count() as u32;
    SavedCompletion {
        id: queue.id,
        vector: queue.vector,
        place: queue.place(),
        head: queue.head(),
        tail: queue.tail_before(count),
    }
}

fn saved_submission(queue: &SubmissionQueue) -> SavedSubmission {
    SavedSubmission {
        id: queue.id,
        cq: queue.cq,
        priority: queue.priority,
        place: queue.place(),
        head: queue.head,
        tail: queue.tail(),
        first: queue.first.map(entry),
    }
}

fn entry(command: Command) -> Bytes {
    Bytes::copy_from_slice(&command.encode())
}

fn command(entry: &Bytes) -> Result<Command, ForeignState> {
    let entry: &[u8; SUBMISSION_ENTRY] = entry[..].try_into().map_err(|_| ForeignState)?;
    Ok(Command::decode(entry))
}
