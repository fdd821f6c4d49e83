//! The state machine of the server of one endpoint, without socket and clock.
//!
//! Commands are executed in order; each command begins after the reply to the previous command.
//! Only a posted BAR write does not wait for reads (PCI Express Base 4.0, section 2.4.1: posted
//! requests pass non-posted requests). Replies to DMA messages are handled at once. All queues are
//! bounded: if a client sends faster than the far side answers, no further messages of the client
//! are received ([`Session::accepts_input`]).

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

/// The maximum number of actions that wait for [`Session::poll`]. At this number no further command
/// begins.
const MAX_ACTIONS: usize = 64;
/// The maximum number of commands that wait for the end of the current command.
const MAX_QUEUE: usize = 64;
/// The maximum number of descriptors in queued commands, plus values that the workers have not yet
/// dropped. It is limited because the whole process has a limited number of descriptors.
const MAX_QUEUED_FDS: usize = 32;
/// The number of queued bytes for a client that does not read. At this number no further command
/// begins.
pub(super) const MAX_OUTGOING: usize = 1 << 20;

/// The maximum number of remapped ranges that are kept. With more ranges, all memory counts as
/// remapped.
const MAX_REMAPPED: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Absent,
    Negotiating,
    Ready,
}

/// State that ends when the client disconnects.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub state: State,
    /// Commands that wait, each with its time of arrival.
    queue: VecDeque<(Incoming, Instant)>,
    current: Option<Current>,
    /// DMA accesses that have ended. They are not in `actions`, because actions may have to wait
    /// until the owner accepts them.
    pub ended: VecDeque<Ended>,
    outgoing: VecDeque<Outgoing>,
    pub outgoing_bytes: usize,
    /// Interrupts that wait for the replies to DMA writes. Each has a sequence number: all writes
    /// with lower numbers must end first.
    pub held_interrupts: VecDeque<(u64, Interrupt)>,
    pub msix_enabled: bool,
    /// Why the client must be disconnected; `None` if it need not be.
    pub must_close: Option<Closed>,
}

/// The server's side of the protocol without the socket. Inputs are messages; outputs are actions
/// and messages.
#[derive(Debug)]
pub struct Session {
    /// The offered endpoint.
    pub info: EndpointInfo,
    pub(crate) config: Config,
    pub(super) table: Table,
    pub(super) doorbells: Option<Doorbells>,
    pub(super) memory: Memory,
    /// Ranges of DMA addresses that were mapped or unmapped since the last
    /// [`take_remapped`](Self::take_remapped).
    remapped: Vec<Range<u64>>,
    pub(super) interrupts: Interrupts,
    pub(super) dma: Dma,
    /// Memory for the bytes of DMA reads.
    pub(super) arena: Arena,
    pub(super) workers: Workers,
    /// The worker for the client's files.
    pub(super) worker: Worker,
    /// Unmaps memory. Because this never blocks, it has a worker of its own and does not wait
    /// behind files that hang.
    pub(super) unmapper: Worker,
    pub(super) client: Client,
    pub(super) client_xfer: usize,
    /// The token of the last [`Action::ClientGone`] if the owner has not answered it.
    cleanup: Option<Token>,
    actions: VecDeque<Action>,
    next_token: Token,
    pub(super) presence: Presence,
    /// Whether the client wrote configuration space, or a register that is not a doorbell, since
    /// the owner of the session last cleared this flag. A write that was dropped counts too.
    pub registers_written: bool,
    /// The time at which the last command of a client arrived.
    last_command: Instant,
    pub(super) counters: Counters,
}

impl Session {
    /// The two bytes of the Command register as the VMM wrote them since the last reset; `None` for
    /// a byte that was not written.
    pub fn written_command(&self) -> [Option<u8>; 2] {
        self.config.command
    }

    /// Creates a session without a client. Error: [`BindError::Workers`] or
    /// [`BindError::Doorbells`].
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

    /// The next action. If `accepts` is false, only [`Action::DmaDone`] is returned. After `None`
    /// there is no other action until an input, a reply or the [`deadline`](Self::deadline).
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

    /// The time at which [`poll`](Self::poll) must be called even without an input; `None` if there
    /// is no such time.
    pub fn deadline(&self) -> Option<Instant> {
        let access = self.client.current.as_ref().map(Current::deadline);
        access.into_iter().chain(self.dma.deadline()).min()
    }

    /// Takes the next message for the client; `None` if there is none.
    pub fn outgoing(&mut self) -> Option<Outgoing> {
        let message = self.client.outgoing.pop_front()?;
        self.client.outgoing_bytes -= message.bytes.len();
        Some(message)
    }

    /// Whether another message may be passed to [`handle`](Self::handle).
    pub fn accepts_input(&self) -> bool {
        let fds: usize = self.client.queue.iter().map(|(message, _)| message.fds.len()).sum();
        let fds = fds + self.worker.disposals() + self.unmapper.disposals();
        self.client.queue.len() < MAX_QUEUE
            && fds < MAX_QUEUED_FDS
            && self.client.outgoing_bytes < MAX_OUTGOING
    }

    /// Answers the action with this token: the bytes of a read, no bytes for other actions. An
    /// outdated token is ignored: the client of the action has disconnected, or the deadline of the
    /// action has passed.
    ///
    /// An error becomes the errno of the reply to the client. For a read of an absent device, pass
    /// all ones instead of an error.
    pub fn reply(&mut self, now: Instant, token: Token, result: Result<&[u8], Errno>) {
        if self.cleanup == Some(token) {
            self.cleanup = None;
        } else {
            self.answer_access(token, result);
        }
        self.advance(now);
    }

    /// Sets how much of the function can be accessed from now on. Unless it is
    /// [`Presence::Present`], BAR writes that [`poll`](Self::poll) has not returned are dropped.
    pub fn set_presence(&mut self, now: Instant, presence: Presence) {
        if presence == Presence::Present {
            // Doorbells that were rung while the page was not polled are dropped.
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

    /// Whether a client uses the function: the version is negotiated, and the cleanup after the
    /// previous client has ended.
    pub fn in_use(&self) -> bool {
        self.client.state == State::Ready && self.cleanup.is_none()
    }

    /// Whether all commands have been answered and no command has arrived for the time `pause`.
    /// Also true if no client is connected.
    pub fn is_quiet(&self, now: Instant, pause: Duration) -> bool {
        let Client { state, queue, current, outgoing, .. } = &self.client;
        let answered = queue.is_empty() && current.is_none() && outgoing.is_empty();
        *state == State::Absent || answered && self.last_command + pause <= now
    }

    /// Executes commands until a command has to wait.
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

    /// The queue index of the first command that is not a read, if it is a posted BAR write and
    /// `current` is a read; otherwise `None`.
    fn posted_behind(&self, current: &Current) -> Option<usize> {
        let read = |message: &Incoming| message.header.command == Command::RegionRead.number();
        let at = self.client.queue.iter().position(|(message, _)| !read(message))?;
        (current.is_read() && is_posted(&self.client.queue[at].0)).then_some(at)
    }

    fn disconnect(&mut self) {
        let used = std::mem::take(&mut self.client).state == State::Ready;
        // Unmapping the memory of a large guest takes a long time if no other process maps it.
        if self.memory.ranges() > 0 {
            self.remap(0..u64::MAX);
            self.unmapper.disposal().dispose(self.memory.clear());
        }
        self.worker = self.workers.for_client();
        self.dma.clear();
        self.interrupts.disconnect(Signals::new(&self.worker));
        // A new page is needed, because the old client could still write to the old page. If there
        // is no memory for a new page, doorbells arrive by message.
        let vectors = self.interrupts.count();
        self.doorbells = self.info.doorbells.then(|| Doorbells::new(vectors).ok()).flatten();
        self.reset_function();
        if used {
            // The remaining actions of the client are dropped, but an earlier `ClientGone` is kept.
            self.actions.retain(|action| matches!(action, Action::ClientGone { .. }));
            let token = self.token();
            self.cleanup = Some(token);
            self.actions.push_back(Action::ClientGone { token });
        }
    }

    /// Resets the shadow of configuration space, the MSI-X table, the interrupts and the doorbells.
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

    /// Enables or disables MSI-X of the function. MSI-X is enabled if the VMM enabled it in
    /// configuration space or assigned a descriptor to a vector, as in the VFIO interface of Linux.
    pub(super) fn update_msix(&mut self) {
        self.interrupts.mask_function(self.config.msix_masked());
        let enabled = self.config.msix_enabled() || self.interrupts.msix_assigned();
        if enabled != self.client.msix_enabled {
            self.client.msix_enabled = enabled;
            self.act(Action::MsixEnable(enabled));
        }
    }

    /// Takes the ranges of DMA addresses that were mapped or unmapped since the last call.
    pub fn take_remapped(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.remapped)
    }

    /// Records that the memory at these DMA addresses was replaced or removed.
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

    /// Converts stores to the shared page of doorbells into [`Action::BarWrite`]s, while a client
    /// uses the function.
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
