//! The state machine of one endpoint's server: no socket, no clock.
//!
//! Commands are carried out one after the other, in order, each when the one
//! before has been answered; but a posted BAR write does not wait for reads
//! (PCI Express Base 4.0, section 2.4.1: posted requests pass non-posted
//! ones). Replies to our own DMA messages are taken at once. Everything is
//! bounded: a client that sends faster than the far side answers is not read
//! any further ([`Session::wants_input`]).

use super::access::{ACCESS_DEADLINE, Current, is_posted};
use super::action::{Action, Counters, Input, Presence, Token};
use super::config::Config;
use super::connection::{Closed, Incoming, Outgoing};
use super::dma::{Dma, DmaError, DmaId, Ended};
use super::doorbell::Doorbells;
use super::info::EndpointInfo;
use super::irq::{Interrupt, Interrupts};
use super::listener::BindError;
use super::msix::Table;
use crate::guest::{Disposal, Memory, Worker, Workers};
use crate::mapping::Signaller;
use bytes::Bytes;
use rustix::io::Errno;
use std::collections::VecDeque;
use wire::Instant;
use wire::vfio_user::{Command, DEFAULT_MAX_DATA_XFER_SIZE, Kind, region_index};

/// Actions kept for an owner that does not poll.
const MAX_ACTIONS: usize = 64;
/// Commands kept while one is being carried out.
const MAX_QUEUE: usize = 64;
/// Descriptors that come with those, and what the worker has not yet let go of:
/// they are the process's, not the client's.
const MAX_QUEUED_FDS: usize = 32;
/// Bytes kept for a client that does not read.
pub(super) const MAX_OUTGOING: usize = 1 << 20;

/// How far a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Absent,
    Negotiating,
    Ready,
}

#[derive(Debug)]
pub struct Session {
    pub info: EndpointInfo,
    pub config: Config,
    pub(super) table: Table,
    pub(super) doorbells: Option<Doorbells>,
    pub(super) memory: Memory,
    pub(super) interrupts: Interrupts,
    pub(super) dma: Dma,
    pub(super) workers: Workers,
    /// The client's.
    pub(super) worker: Worker,
    /// Unmaps memory: it waits for nobody, and is not behind files that hang.
    pub(super) unmapper: Worker,
    /// Why the client may not stay.
    pub(super) must_close: Option<Closed>,
    pub(super) state: State,
    pub(super) client_xfer: usize,
    /// Commands that wait, with their arrival.
    queue: VecDeque<(Incoming, Instant)>,
    pub(super) current: Option<Current>,
    /// The owner has not yet cleaned up after the client before.
    cleanup: Option<Token>,
    actions: VecDeque<Action>,
    /// DMA that has ended; not behind the actions, for those may have to wait.
    pub(super) ended: VecDeque<Ended>,
    outgoing: VecDeque<Outgoing>,
    pub(super) outgoing_bytes: usize,
    /// Interrupts behind DMA writes: the number of the first write that they
    /// need not wait for.
    pub(super) held_interrupts: VecDeque<(u64, Interrupt)>,
    next_token: Token,
    pub(super) presence: Presence,
    pub(super) msix_enabled: bool,
    pub(super) counters: Counters,
}

impl Session {
    /// A session without a client.
    ///
    /// # Errors
    /// What the kernel does not give.
    pub fn new(info: EndpointInfo) -> Result<Self, BindError> {
        let config = Config::new(&info);
        let msix = config.msix;
        let signaller = Signaller::of_process().map_err(BindError::Signaller)?;
        let workers = Workers::new().map_err(BindError::Workers)?;
        Ok(Self {
            doorbells: info
                .doorbells
                .then(Doorbells::new)
                .transpose()
                .map_err(BindError::Doorbells)?,
            table: Table::new(msix),
            interrupts: Interrupts::new(msix.map_or(0, |msix| msix.vectors), signaller),
            worker: workers.for_client(),
            unmapper: workers.for_endpoint(),
            workers,
            must_close: None,
            info,
            config,
            memory: Memory::new(),
            dma: Dma::default(),
            state: State::Absent,
            client_xfer: DEFAULT_MAX_DATA_XFER_SIZE as usize,
            queue: VecDeque::new(),
            current: None,
            cleanup: None,
            actions: VecDeque::new(),
            ended: VecDeque::new(),
            outgoing: VecDeque::new(),
            outgoing_bytes: 0,
            held_interrupts: VecDeque::new(),
            next_token: 1,
            presence: Presence::Present,
            msix_enabled: false,
            counters: Counters::default(),
        })
    }

    /// Takes an input.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Connected => self.state = State::Negotiating,
            Input::Disconnected => self.disconnect(),
            Input::Message(message) if message.header.kind == Kind::Reply => {
                self.take_reply(&message);
            }
            Input::Message(message) => {
                self.queue.push_back((message, now));
                self.advance(now);
            }
        }
    }

    /// The next thing for the owner; `None` until another input, reply or
    /// [`deadline`](Self::deadline).
    pub fn poll(&mut self, now: Instant) -> Option<Action> {
        if let Some((id, result)) = self.poll_dma(now) {
            return Some(Action::DmaDone { id, result });
        }
        if self.current.as_ref().and_then(Current::deadline).is_some_and(|at| at <= now) {
            self.counters.timeouts += 1;
            self.abandon();
        }
        self.advance(now);
        self.actions.pop_front()
    }

    /// The next DMA access that has ended later. [`poll`](Self::poll)
    /// yields them too; this is for an owner that takes no actions now, so that
    /// the client's commands wait, but needs its DMA.
    pub fn poll_dma(&mut self, now: Instant) -> Option<(DmaId, Result<Bytes, DmaError>)> {
        while self.dma.has_jobs()
            && let Some(ended) = self.worker.next_ended()
        {
            let ended = self.dma.job_ended(ended);
            self.dma_ended(ended);
        }
        while let Some(ended) = self.dma.expire(now, &self.worker) {
            self.dma_ended(ended);
        }
        self.ended.pop_front()
    }

    /// When [`poll`](Self::poll) is due without any input.
    pub fn deadline(&self) -> Option<Instant> {
        let access = self.current.as_ref().and_then(Current::deadline);
        access.into_iter().chain(self.dma.deadline()).min()
    }

    /// The next message for the client.
    pub fn outgoing(&mut self) -> Option<Outgoing> {
        let message = self.outgoing.pop_front()?;
        self.outgoing_bytes -= message.bytes.len();
        Some(message)
    }

    /// Whether another message may be handed in.
    pub fn wants_input(&self) -> bool {
        let fds: usize = self.queue.iter().map(|(message, _)| message.fds.len()).sum();
        let fds = fds + self.worker.disposals() + self.unmapper.disposals();
        self.queue.len() < MAX_QUEUE && fds < MAX_QUEUED_FDS && self.outgoing_bytes < MAX_OUTGOING
    }

    /// Whether another client can be had: one that hands over descriptors
    /// needs a worker for them.
    pub fn wants_client(&self) -> bool {
        self.workers.has_room()
    }

    /// Where descriptors of the client go when nobody needs them.
    pub fn disposal(&self) -> Disposal {
        self.worker.disposal()
    }

    /// Why the client has to go, told once.
    pub fn take_must_close(&mut self) -> Option<Closed> {
        self.must_close.take()
    }

    /// Answers an action. A token that is no longer waited for (its client has
    /// gone, or its deadline has passed) is ignored.
    ///
    /// An error becomes the errno of the reply; a device that is not there
    /// should rather read all ones.
    pub fn reply(&mut self, now: Instant, token: Token, result: Result<&[u8], Errno>) {
        if self.cleanup == Some(token) {
            self.cleanup = None;
        } else {
            self.answer_access(token, result);
        }
        self.advance(now);
    }

    /// How much of the function answers from now on. What the client wrote to
    /// BARs before and nobody has carried out is lost with it.
    pub fn set_presence(&mut self, now: Instant, presence: Presence) {
        if presence == Presence::Present {
            // What was rung while nobody looked.
            if let Some(doorbells) = self.doorbells.as_ref().filter(|_| !self.is_present()) {
                doorbells.clear();
            }
        } else {
            let before = self.actions.len();
            self.actions.retain(|action| !matches!(action, Action::BarWrite { .. }));
            self.counters.dropped_writes += (before - self.actions.len()) as u64;
        }
        self.presence = presence;
        if presence == Presence::Absent {
            self.abandon();
        }
        self.advance(now);
    }

    pub(super) fn is_present(&self) -> bool {
        self.presence == Presence::Present
    }

    /// Whether accesses of a region reach the function.
    pub(super) fn answers(&self, region: u32) -> bool {
        match self.presence {
            Presence::Present => true,
            Presence::ConfigOnly => region == region_index::CONFIG,
            Presence::Absent => false,
        }
    }

    /// A client has agreed on a version and uses the function, which was reset
    /// for it.
    pub fn in_use(&self) -> bool {
        self.state == State::Ready && self.cleanup.is_none()
    }

    /// Carries commands out until one has to wait.
    pub(super) fn advance(&mut self, now: Instant) {
        loop {
            if let Some(current) = self.current.take()
                && self.step(now, current)
            {
                continue;
            }
            let waits = self.cleanup.is_some() && self.state == State::Ready;
            if waits || self.actions.len() >= MAX_ACTIONS || self.outgoing_bytes >= MAX_OUTGOING {
                return;
            }
            let next = match &self.current {
                None => Some(0),
                Some(current) => self.posted_behind(current),
            };
            let next = next.and_then(|at| self.queue.remove(at));
            let Some((message, arrived)) = next else { return };
            self.command(now, arrived + ACCESS_DEADLINE, message);
        }
    }

    /// Where the posted BAR write waits that has only reads before it, if
    /// `current` is one.
    fn posted_behind(&self, current: &Current) -> Option<usize> {
        let read = |message: &Incoming| message.header.command == Command::RegionRead.number();
        let at = self.queue.iter().position(|(message, _)| !read(message))?;
        (current.is_read() && is_posted(&self.queue[at].0)).then_some(at)
    }

    fn disconnect(&mut self) {
        self.queue.clear();
        self.current = None;
        self.outgoing.clear();
        self.outgoing_bytes = 0;
        // To unmap a large guest takes long when we are the last to hold it.
        if self.memory.ranges() > 0 {
            self.unmapper.disposal().dispose(self.memory.clear());
        }
        self.worker = self.workers.for_client();
        self.must_close = None;
        self.dma.clear();
        self.ended.clear();
        self.held_interrupts.clear();
        self.interrupts.disconnect();
        // A page that the client before still has would be rung by it; without
        // memory for one, doorbells are trapped.
        self.doorbells = self.info.doorbells.then(|| Doorbells::new().ok()).flatten();
        self.reset_function();
        let used = std::mem::replace(&mut self.state, State::Absent) == State::Ready;
        self.msix_enabled = false;
        if used {
            // What the client left behind is not carried out any more, but a
            // cleanup up before this one is.
            self.actions.retain(|action| matches!(action, Action::ClientGone { .. }));
            let token = self.token();
            self.cleanup = Some(token);
            self.actions.push_back(Action::ClientGone { token });
        }
    }

    /// Our own registers after a reset of the function.
    pub(super) fn reset_function(&mut self) {
        self.config.reset();
        self.table.reset();
        self.interrupts.reset();
        if let Some(doorbells) = &self.doorbells {
            doorbells.clear();
        }
    }

    /// After a reset that the client asked for.
    pub(super) fn function_was_reset(&mut self) {
        self.reset_function();
        self.msix_enabled = false;
        self.update_msix();
    }

    /// MSI-X is wanted if the VMM enabled it in configuration space, or handed
    /// descriptors over, as VFIO's own interface has it.
    pub(super) fn update_msix(&mut self) {
        self.interrupts.mask_function(self.config.msix_masked());
        let enabled = self.config.msix_enabled() || self.interrupts.msix_assigned();
        if enabled != self.msix_enabled {
            self.msix_enabled = enabled;
            self.act(Action::MsixEnable(enabled));
        }
    }

    pub(super) fn token(&mut self) -> Token {
        self.next_token += 1;
        self.next_token
    }

    pub(super) fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    pub(super) fn send(&mut self, message: Outgoing) {
        self.outgoing_bytes += message.bytes.len();
        self.outgoing.push_back(message);
    }

    /// Turns what was rung in the shared page into writes.
    pub fn poll_doorbells(&mut self) {
        let in_use = self.state == State::Ready && self.cleanup.is_none() && self.is_present();
        if !in_use || self.actions.len() >= MAX_ACTIONS {
            return;
        }
        if let Some(doorbells) = &self.doorbells {
            doorbells.poll(|action| self.actions.push_back(action));
        }
    }
}
