//! The state machine of one endpoint's server: no socket, no clock.
//!
//! Commands are executed in order, each after the answer to the one before; only a posted BAR write
//! does not wait for reads (PCI Express Base 4.0, section 2.4.1: posted requests pass non-posted
//! ones). Replies to DMA messages are handled at once. Everything is bounded: a client that sends
//! faster than the far side answers is not read any further ([`Session::accepts_input`]).

pub(crate) mod access;
mod commands;

use crate::action::{Counters, Input};
use crate::config::Config;
use crate::connection::{Closed, Incoming, Outgoing};
use crate::dma::{Dma, Ended, MAX_DMA};
use crate::doorbell::Doorbells;
use crate::guest::{Memory, Worker, Workers};
use crate::irq::{Interrupt, Interrupts};
use crate::msix::Table;
use crate::signals::Signals;
use crate::{Action, BindError, EndpointInfo, Presence, Token};
use access::{ACCESS_DEADLINE, Current, is_posted};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ops::Range;
use wire::vfio_user::{Command, DEFAULT_MAX_DATA_XFER_SIZE, Kind, region_index};
use wire::{Arena, Duration, Instant};

/// The most actions queued for an owner that does not poll.
const MAX_ACTIONS: usize = 64;
/// The most commands queued during the execution of one.
const MAX_QUEUE: usize = 64;
/// The most descriptors in queued commands, plus values that the worker has not yet dropped:
/// descriptors are a resource of the whole process.
const MAX_QUEUED_FDS: usize = 32;
/// The most bytes queued for a client that does not read.
pub(super) const MAX_OUTGOING: usize = 1 << 20;

/// The most remapped ranges that are kept; beyond, all memory counts as remapped.
const MAX_REMAPPED: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Absent,
    Negotiating,
    Ready,
}

/// State that ends with a client.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub state: State,
    /// Queued commands, each with its arrival.
    queue: VecDeque<(Incoming, Instant)>,
    current: Option<Current>,
    /// Completed DMA; not in `actions`, which may have to wait.
    pub ended: VecDeque<Ended>,
    outgoing: VecDeque<Outgoing>,
    pub outgoing_bytes: usize,
    /// Interrupts that wait for DMA writes, each with the number of the first write that it may
    /// precede.
    pub held_interrupts: VecDeque<(u64, Interrupt)>,
    pub msix_enabled: bool,
    /// Why the client must be disconnected.
    pub must_close: Option<Closed>,
}

/// The server's side of the protocol without the socket: messages in, actions and messages out.
#[derive(Debug)]
pub struct Session {
    /// The offered endpoint.
    pub info: EndpointInfo,
    pub(crate) config: Config,
    pub(super) table: Table,
    pub(super) doorbells: Option<Doorbells>,
    pub(super) memory: Memory,
    /// Addresses that were mapped or unmapped.
    remapped: Vec<Range<u64>>,
    pub(super) interrupts: Interrupts,
    pub(super) dma: Dma,
    /// Memory for the bytes of reads.
    pub(super) arena: Arena,
    pub(super) workers: Workers,
    /// The worker for the client's files.
    pub(super) worker: Worker,
    /// Unmaps memory: it does not block, and does not queue behind files that hang.
    pub(super) unmapper: Worker,
    pub(super) client: Client,
    pub(super) client_xfer: usize,
    /// The owner's pending cleanup after the last client.
    cleanup: Option<Token>,
    actions: VecDeque<Action>,
    next_token: Token,
    pub(super) presence: Presence,
    /// Whether the client wrote configuration space, or a register that is not a doorbell, since
    /// the owner cleared this flag, even if the write was dropped.
    pub registers_written: bool,
    /// When the last command of a client arrived.
    last_command: Instant,
    pub(super) counters: Counters,
}

impl Session {
    /// The Command register bytes that the VMM wrote since the last reset.
    pub fn written_command(&self) -> [Option<u8>; 2] {
        self.config.command
    }

    /// A session without a client. Error: resources that the kernel refuses.
    pub fn new(info: EndpointInfo) -> Result<Self, BindError> {
        let config = Config::new(&info);
        let msix = config.msix;
        let workers = Workers::new().map_err(BindError::Workers)?;
        let worker = workers.for_client();
        let vectors = msix.map_or(0, |msix| msix.vectors);
        let doorbells = info.doorbells.then(|| Doorbells::new(vectors)).transpose();
        Ok(Self {
            doorbells: doorbells.map_err(BindError::Doorbells)?,
            table: Table::new(msix),
            interrupts: Interrupts::new(vectors, Signals::new(&worker)),
            worker,
            unmapper: workers.for_endpoint(),
            workers,
            info,
            config,
            memory: Memory::default(),
            remapped: Vec::new(),
            dma: Dma::default(),
            arena: Arena::new(MAX_DMA),
            client: Client::default(),
            client_xfer: DEFAULT_MAX_DATA_XFER_SIZE as usize,
            cleanup: None,
            actions: VecDeque::new(),
            next_token: 1,
            presence: Presence::Present,
            registers_written: false,
            last_command: Instant::ZERO,
            counters: Counters::default(),
        })
    }

    /// Handles an input.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Connected => self.client.state = State::Negotiating,
            Input::Disconnected => self.disconnect(),
            Input::Message(message) if message.header.kind == Kind::Reply => {
                self.take_reply(&message);
            }
            Input::Message(message) => {
                self.last_command = now;
                self.client.queue.push_back((message, now));
                self.advance(now);
            }
        }
    }

    /// The next action, if the owner accepts one now; ends of DMA are returned in any case. `None`
    /// until another input, reply or [`deadline`](Self::deadline).
    pub fn poll(&mut self, now: Instant, accepts: bool) -> Option<Action> {
        while let Some(ended) = self.dma.expire(now) {
            self.dma_ended(ended);
        }
        if let Some((id, result)) = self.client.ended.pop_front() {
            return Some(Action::DmaDone { id, result });
        }
        if self.client.current.as_ref().is_some_and(|current| current.deadline() <= now) {
            self.counters.timeouts += 1;
            self.abandon();
        }
        self.advance(now);
        if accepts { self.actions.pop_front() } else { None }
    }

    /// When to call [`poll`](Self::poll) without any input.
    pub fn deadline(&self) -> Option<Instant> {
        let access = self.client.current.as_ref().map(Current::deadline);
        access.into_iter().chain(self.dma.deadline()).min()
    }

    /// The next message for the client.
    pub fn outgoing(&mut self) -> Option<Outgoing> {
        let message = self.client.outgoing.pop_front()?;
        self.client.outgoing_bytes -= message.bytes.len();
        Some(message)
    }

    /// Whether another message may be passed to `handle`.
    pub fn accepts_input(&self) -> bool {
        let fds: usize = self.client.queue.iter().map(|(message, _)| message.fds.len()).sum();
        let fds = fds + self.worker.disposals() + self.unmapper.disposals();
        self.client.queue.len() < MAX_QUEUE
            && fds < MAX_QUEUED_FDS
            && self.client.outgoing_bytes < MAX_OUTGOING
    }

    /// Answers an action. An outdated token is ignored, because its client is gone or its deadline
    /// has passed.
    ///
    /// An error becomes the errno of the reply; a read of an absent device should rather return
    /// all ones.
    pub fn reply(&mut self, now: Instant, token: Token, result: Result<&[u8], Errno>) {
        if self.cleanup == Some(token) {
            self.cleanup = None;
        } else {
            self.answer_access(token, result);
        }
        self.advance(now);
    }

    /// Sets how much of the function is visible from now on. BAR writes not yet carried out are
    /// dropped if it is absent.
    pub fn set_presence(&mut self, now: Instant, presence: Presence) {
        if presence == Presence::Present {
            // Doorbells rung while they were not polled.
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

    /// Whether accesses to a region reach the function.
    pub(super) fn answers(&self, region: u32) -> bool {
        match self.presence {
            Presence::Present => true,
            Presence::ConfigOnly => region == region_index::CONFIG,
            Presence::Absent => false,
        }
    }

    /// Whether a client has negotiated a version and uses the function, which was reset for it.
    pub fn in_use(&self) -> bool {
        self.client.state == State::Ready && self.cleanup.is_none()
    }

    /// Whether every command has its reply, and none has arrived for `pause`.
    pub fn is_quiet(&self, now: Instant, pause: Duration) -> bool {
        let Client { state, queue, current, outgoing, .. } = &self.client;
        let answered = queue.is_empty() && current.is_none() && outgoing.is_empty();
        *state == State::Absent || answered && self.last_command + pause <= now
    }

    /// Executes commands until one has to wait.
    pub(super) fn advance(&mut self, now: Instant) {
        loop {
            if let Some(current) = self.client.current.take()
                && self.step(now, current)
            {
                continue;
            }
            let waits = self.cleanup.is_some() && self.client.state == State::Ready;
            if waits
                || self.actions.len() >= MAX_ACTIONS
                || self.client.outgoing_bytes >= MAX_OUTGOING
            {
                return;
            }
            let next = match &self.client.current {
                None => Some(0),
                Some(current) => self.posted_behind(current),
            };
            let next = next.and_then(|at| self.client.queue.remove(at));
            let Some((message, arrived)) = next else { return };
            self.command(now, arrived + ACCESS_DEADLINE, message);
        }
    }

    /// The queue index of a posted BAR write that has only reads before it, if `current` is a read.
    fn posted_behind(&self, current: &Current) -> Option<usize> {
        let read = |message: &Incoming| message.header.command == Command::RegionRead.number();
        let at = self.client.queue.iter().position(|(message, _)| !read(message))?;
        (current.is_read() && is_posted(&self.client.queue[at].0)).then_some(at)
    }

    fn disconnect(&mut self) {
        let used = std::mem::take(&mut self.client).state == State::Ready;
        // Unmapping a large guest takes long if no other process maps it.
        if self.memory.ranges() > 0 {
            self.remap(0..u64::MAX);
            self.unmapper.disposal().dispose(self.memory.clear());
        }
        self.worker = self.workers.for_client();
        self.dma.clear();
        self.interrupts.disconnect(Signals::new(&self.worker));
        // The old client could still write to its page. Without memory for a new page, doorbells
        // arrive by message.
        let vectors = self.interrupts.count();
        self.doorbells = self.info.doorbells.then(|| Doorbells::new(vectors).ok()).flatten();
        self.reset_function();
        if used {
            // The client's remaining actions are dropped, but an earlier cleanup is executed.
            self.actions.retain(|action| matches!(action, Action::ClientGone { .. }));
            let token = self.token();
            self.cleanup = Some(token);
            self.actions.push_back(Action::ClientGone { token });
        }
    }

    /// Resets the shadowed registers.
    pub(super) fn reset_function(&mut self) {
        self.config.reset();
        self.table.reset();
        self.interrupts.reset();
        if let Some(doorbells) = &self.doorbells {
            doorbells.clear();
        }
    }

    /// Completes a reset that the client requested.
    pub(super) fn function_was_reset(&mut self) {
        self.reset_function();
        self.client.msix_enabled = false;
        self.update_msix();
    }

    /// MSI-X is enabled if the VMM enabled it in configuration space, or assigned descriptors,
    /// as in VFIO's own interface.
    pub(super) fn update_msix(&mut self) {
        self.interrupts.mask_function(self.config.msix_masked());
        let enabled = self.config.msix_enabled() || self.interrupts.msix_assigned();
        if enabled != self.client.msix_enabled {
            self.client.msix_enabled = enabled;
            self.act(Action::MsixEnable(enabled));
        }
    }

    /// The addresses that were mapped or unmapped since the last call.
    pub fn take_remapped(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.remapped)
    }

    /// Notes that the memory at these addresses was replaced or removed.
    pub(super) fn remap(&mut self, range: Range<u64>) {
        let many = self.remapped.len() >= MAX_REMAPPED;
        if many {
            self.remapped.clear();
        }
        self.remapped.push(if many { 0..u64::MAX } else { range });
    }

    pub(super) fn token(&mut self) -> Token {
        self.next_token += 1;
        self.next_token
    }

    pub(super) fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    pub(super) fn send(&mut self, message: Outgoing) {
        self.client.outgoing_bytes += message.bytes.len();
        self.client.outgoing.push_back(message);
    }

    /// Turns stores to the shared page into writes.
    pub fn poll_doorbells(&mut self) {
        let in_use =
            self.client.state == State::Ready && self.cleanup.is_none() && self.is_present();
        if !in_use || self.actions.len() >= MAX_ACTIONS {
            return;
        }
        if let Some(doorbells) = &self.doorbells {
            doorbells.poll(|action| self.actions.push_back(action));
        }
    }
}
