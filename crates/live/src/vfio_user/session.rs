//! The state machine of one endpoint's server: no socket, no clock.
//!
//! Commands are carried out one after the other, in order, each when the one
//! before has been answered; replies to our own DMA messages are taken at
//! once. Everything is bounded: a client that sends faster than the far side
//! answers is not read any further ([`Session::wants_input`]).

use super::access::{ACCESS_DEADLINE, Current};
use super::config::Config;
use super::connection::{Incoming, Outgoing};
use super::dma::{Dma, DmaError, DmaId};
use super::doorbell::Doorbells;
use super::info::EndpointInfo;
use super::irq::{Interrupts, Source};
use super::msix::Table;
use crate::guest::Memory;
use bytes::Bytes;
use pcie::Reset;
use rustix::io::Errno;
use std::collections::VecDeque;
use wire::Instant;
use wire::vfio_user::{DEFAULT_MAX_DATA_XFER_SIZE, Kind};

/// Names an action that wants [`Session::reply`].
pub type Token = u64;

/// What the host node has to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A client has agreed on a version and will now use the device.
    ClientReady,
    /// The client has gone, and with it its memory and interrupts. Reset the
    /// function to the state after power-on, keep its media, and reply with
    /// no data: nothing of the next client is carried out before that. MSI-X
    /// is off, and no DMA access of before ends with a `DmaDone`.
    ClientGone {
        /// For the reply.
        token: Token,
    },
    /// Read `size` bytes of configuration space, within a double word.
    ConfigRead {
        /// For the reply, with `size` bytes.
        token: Token,
        /// Byte offset.
        offset: u16,
        /// Bytes, 1 to 4.
        size: u8,
    },
    /// Write `size` bytes of configuration space, within a double word.
    ConfigWrite {
        /// For the reply, with no data.
        token: Token,
        /// Byte offset.
        offset: u16,
        /// Bytes, 1 to 4.
        size: u8,
        /// What, little endian.
        value: u32,
    },
    /// Read a BAR.
    BarRead {
        /// For the reply, with `length` bytes.
        token: Token,
        /// Which BAR, 0 to 5.
        bar: u8,
        /// Byte offset.
        offset: u64,
        /// Bytes, 1 to 4096, not across a 4 KiB boundary.
        length: usize,
    },
    /// Write a BAR: posted, nobody waits for it.
    BarWrite {
        /// Which BAR, 0 to 5.
        bar: u8,
        /// Byte offset.
        offset: u64,
        /// The bytes, 1 to 4096, not across a 4 KiB boundary.
        data: Bytes,
    },
    /// Reset the function: `FunctionLevel` if the client set the FLR bit,
    /// `Hot` for a VFIO_USER_DEVICE_RESET. Restore BARs and memory-space
    /// enable of the far function, then reply with no data. MSI-X is off
    /// afterwards; another `MsixEnable` follows if it is still wanted.
    Reset {
        /// For the reply.
        token: Token,
        /// Which.
        reset: Reset,
    },
    /// Enable MSI-X of the far function with all vectors unmasked, or disable
    /// it so that INTx is signalled.
    MsixEnable(bool),
    /// A DMA access that went by message has ended; no bytes for a write.
    DmaDone {
        /// As returned by `dma_read` and `dma_write`.
        id: DmaId,
        /// A read's bytes.
        result: Result<Bytes, DmaError>,
    },
}

/// What reaches a session.
#[derive(Debug)]
pub enum Input {
    /// A client has connected. There was none.
    Connected,
    /// A message from it.
    Message(Incoming),
    /// It has gone.
    Disconnected,
}

/// What a session has seen go wrong, or has done about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Commands refused.
    pub refused: u64,
    /// Region accesses that were answered with all ones at their deadline.
    pub timeouts: u64,
    /// Writes dropped while the function was absent.
    pub dropped_writes: u64,
    /// DMA accesses that failed.
    pub dma_faults: u64,
    /// Replies to nothing.
    pub stray_replies: u64,
    /// Interrupts for a client that has not enabled them.
    pub lost_interrupts: u64,
    /// Clients turned away because there was one.
    pub turned_away: u64,
}

/// Actions kept for an owner that does not poll.
const MAX_ACTIONS: usize = 64;
/// Commands kept while one is being carried out.
const MAX_QUEUE: usize = 64;
/// Bytes kept for a client that does not read.
pub(super) const MAX_OUTGOING: usize = 1 << 20;

/// How far a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Absent,
    Greeting,
    Ready,
}

/// See the module.
#[derive(Debug)]
pub struct Session {
    pub(super) info: EndpointInfo,
    pub(super) config: Config,
    pub(super) table: Table,
    pub(super) doorbells: Option<Doorbells>,
    pub(super) memory: Memory,
    pub(super) interrupts: Interrupts,
    pub(super) dma: Dma,
    pub(super) state: State,
    pub(super) client_xfer: usize,
    /// Commands that wait, with their arrival.
    queue: VecDeque<(Incoming, Instant)>,
    pub(super) current: Option<Current>,
    /// The owner has not yet cleaned up after the client before.
    cleaning: Option<Token>,
    actions: VecDeque<Action>,
    outgoing: VecDeque<Outgoing>,
    pub(super) outgoing_bytes: usize,
    /// Interrupts behind DMA writes: the number of the first write that they
    /// need not wait for.
    pub(super) held: VecDeque<(u64, Source)>,
    next_token: Token,
    pub(super) present: bool,
    pub(super) msix_enabled: bool,
    pub(super) counters: Counters,
}

impl Session {
    /// A session without a client.
    ///
    /// # Errors
    /// What [`Doorbells::new`] says.
    pub fn new(info: EndpointInfo) -> Result<Self, Errno> {
        let config = Config::new(&info);
        let msix = config.msix_capability();
        Ok(Self {
            doorbells: info.shared.map(Doorbells::new).transpose()?,
            table: Table::new(msix),
            interrupts: Interrupts::new(msix.map_or(0, |msix| msix.vectors)),
            info,
            config,
            memory: Memory::new(),
            dma: Dma::default(),
            state: State::Absent,
            client_xfer: DEFAULT_MAX_DATA_XFER_SIZE as usize,
            queue: VecDeque::new(),
            current: None,
            cleaning: None,
            actions: VecDeque::new(),
            outgoing: VecDeque::new(),
            outgoing_bytes: 0,
            held: VecDeque::new(),
            next_token: 1,
            present: true,
            msix_enabled: false,
            counters: Counters::default(),
        })
    }

    /// Takes an input.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Connected => self.state = State::Greeting,
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
        while let Some(ended) = self.dma.expire(now) {
            self.dma_ended(ended);
        }
        if self.current.as_ref().is_some_and(|current| current.deadline() <= now) {
            self.counters.timeouts += 1;
            self.abandon();
        }
        self.advance(now);
        self.actions.pop_front()
    }

    /// When [`poll`](Self::poll) is due without any input.
    pub fn deadline(&self) -> Option<Instant> {
        let access = self.current.as_ref().map(Current::deadline);
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
        self.queue.len() < MAX_QUEUE && self.outgoing_bytes < MAX_OUTGOING
    }

    /// Answers an action. A token that is no longer waited for (its client has
    /// gone, or its deadline has passed) is ignored.
    ///
    /// An error becomes the errno of the reply; a device that is not there
    /// should rather read all ones.
    pub fn reply(&mut self, now: Instant, token: Token, result: Result<&[u8], Errno>) {
        if self.cleaning == Some(token) {
            self.cleaning = None;
        } else {
            self.answer_access(token, result);
        }
        self.advance(now);
    }

    /// Whether the function answers. While it does not, every region reads all
    /// ones at once, writes are dropped and counted, and a reset succeeds.
    pub fn set_present(&mut self, now: Instant, present: bool) {
        self.present = present;
        if !present && self.current.is_some() {
            self.abandon();
        }
        self.advance(now);
    }

    /// Carries commands out until one has to wait.
    pub(super) fn advance(&mut self, now: Instant) {
        loop {
            if let Some(current) = self.current.take() {
                if !self.step(now, current) {
                    return;
                }
                continue;
            }
            let waits = self.cleaning.is_some() && self.state == State::Ready;
            if waits || self.actions.len() >= MAX_ACTIONS || self.outgoing_bytes >= MAX_OUTGOING {
                return;
            }
            let Some((message, arrived)) = self.queue.pop_front() else { return };
            self.command(now, arrived + ACCESS_DEADLINE, message);
        }
    }

    fn disconnect(&mut self) {
        self.queue.clear();
        self.current = None;
        self.outgoing.clear();
        self.outgoing_bytes = 0;
        self.memory.clear();
        self.dma.clear();
        self.held.clear();
        self.interrupts.disconnect();
        self.reset_function();
        let used = std::mem::replace(&mut self.state, State::Absent) == State::Ready;
        self.msix_enabled = false;
        if used {
            // What the client left behind is not carried out any more, but a
            // cleaning up before this one is.
            self.actions.retain(|action| matches!(action, Action::ClientGone { .. }));
            let token = self.token();
            self.cleaning = Some(token);
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
        let in_use = self.state == State::Ready && self.cleaning.is_none() && self.present;
        if !in_use || self.actions.len() >= MAX_ACTIONS {
            return;
        }
        if let Some(doorbells) = &self.doorbells {
            doorbells.poll(|ring| {
                let (bar, offset, data) = (ring.bar, ring.offset, ring.data);
                self.actions.push_back(Action::BarWrite { bar, offset, data });
            });
        }
    }

    /// Asks the VMM to unplug the device (QEMU: as if by `device_del`); false
    /// if it takes no such request.
    pub fn request_unplug(&self) -> bool {
        self.interrupts.request_unplug()
    }

    /// What has gone wrong so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Bus master enable, as the VMM last wrote it.
    pub fn bus_master(&self) -> bool {
        self.config.bus_master()
    }

    /// The memory the client has mapped.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}
