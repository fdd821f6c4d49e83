//! The controller: one PCIe function, one state machine (NVMe 1.4).
//!
//! Inputs are TLPs, completed block requests and time. Each submodule is a step of a command:
//! `mmio` handles the doorbell, and `fetch` the submission queue entry. `execute` and `transfer`
//! execute the command, and `blocks` handles completed block requests. `complete` posts the
//! completion queue entry and the interrupt. `lifecycle` and `shutdown` implement CC and CSTS.

mod access;
mod blocks;
mod complete;
mod doorbells;
mod events;
mod execute;
mod fetch;
mod fused;
mod invariants;
mod lifecycle;
mod mmio;
mod namespaces;
mod part;
mod parts;
mod reservations;
mod saved;
mod shutdown;
mod transfer;

use crate::admin::{Clock, Download};
use crate::block;
use crate::config::Settings;
use crate::events::AsyncEvents;
use crate::features::Features;
use crate::identity::endpoint;
use crate::interrupt::Interrupts;
use crate::log::{ErrorLog, ReservationLog};
use crate::queue::Queues;
use crate::registers::Registers;
use crate::slots::{Key, Slots};
use crate::subsystem::Shared;
use crate::times::CommandTimes;
pub(crate) use access::AccessLog;
pub use access::NamespaceAccess;
pub(crate) use access::{ACCESS_CAPABILITIES, ACCESS_GROUP, ACCESS_TRANSITION};
use bytes::Bytes;
use doorbells::DoorbellBuffers;
use events::EventQueue;
use execute::Execution;
use lifecycle::Phase;
pub(crate) use part::Part;
pub use part::{PartMessage, PartRequest};
pub(crate) use parts::Parts;
use pcie::config::label::Label;
use pcie::endpoint::{DmaError, Event};
use pcie::{Endpoint, Errors, Input, Output, Ready};
use saved::Posted;
pub(crate) use saved::SavedController;
use shutdown::Shutdown;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use wire::Instant;
use wire::nvme::AsyncEvent;
use wire::nvme::register::{Capabilities, Configuration, Doorbell};
use wire::trace::NvmeEvent;

/// CAP.TO: the longest time of a reset or shutdown, in units of 500 ms.
const TIMEOUT: u8 = 20;
/// CAP.MPSMAX: memory pages of up to 64 KiB.
const MAX_PAGE: u8 = 4;
/// CAP.AMS and CC.AMS: weighted round robin with urgent priority class (NVMe 1.4, figures 69 and
/// 73). Round robin, 0 in CC.AMS, needs no bit.
const WEIGHTED: u8 = 1;
/// The maximum number of admin commands under way; Asynchronous Event Requests do not count.
pub(crate) const ADMIN_COMMANDS: usize = 16;

pub(crate) use fused::overlap;

/// The purpose of a DMA read.
#[derive(Clone, Copy, Debug)]
enum Read {
    /// Submission entries of a queue.
    Entries(u16),
    /// A PRP list of a command.
    List(Key),
    /// Data of a command, from this byte offset on.
    Data(Key, usize),
    /// A doorbell in host memory.
    Doorbell(Doorbell),
}

/// An outstanding block request.
#[derive(Clone, Debug)]
struct BlockRequest {
    /// The command of the request; `None` for a shutdown.
    command: Option<Key>,
    /// Whether the request is for the metadata of the command's blocks.
    metadata: bool,
    nsid: u32,
    /// The byte range that the request reads or changes; empty for a flush.
    range: Range<u64>,
}

/// An NVMe controller of a [`Subsystem`](crate::Subsystem), for queries. A [`Port`](crate::Port)
/// handles inputs and outputs.
#[derive(Debug)]
pub struct Controller {
    /// CNTLID, from 1.
    pub(crate) id: u16,
    pub(crate) settings: Settings,
    pub(crate) endpoint: Endpoint,
    /// The time of the current call.
    pub(crate) now: Instant,
    pub(crate) registers: Registers,
    phase: Phase,
    shutdown: Shutdown,
    pub(crate) queues: Queues,
    /// Doorbells in host memory, after Doorbell Buffer Config.
    doorbells: Option<DoorbellBuffers>,
    pub(crate) interrupts: Interrupts,
    /// Whether completions, masks or queue heads have changed since the last interrupt check.
    signal: bool,
    intx: bool,
    pub(crate) features: Features,
    pub(crate) events: AsyncEvents,
    pub(crate) error_log: ErrorLog,
    /// Reservation notifications.
    pub(crate) reservation_log: ReservationLog,
    /// Asymmetric namespace access.
    pub(crate) access: AccessLog,
    /// The Changed Namespace List.
    pub(crate) changed_namespaces: BTreeSet<u32>,
    /// Log pages of the last telemetry snapshot; empty before the first snapshot.
    pub(crate) telemetry: Vec<Vec<u8>>,
    /// The Persistent Event log of the reporting context, if there is one.
    pub(crate) event_context: Option<Vec<u8>>,
    /// Timestamp.
    pub(crate) clock: Clock,
    /// Time of the last reset or power-on.
    pub(crate) reset_at: Instant,
    /// A firmware image being downloaded.
    pub(crate) download: Download,
    /// Time at which the Keep Alive Timer expires; `None` if it never expires.
    pub(crate) keep_alive_due: Option<Instant>,
    commands: Slots<Execution>,
    /// Number of commands that were accepted.
    accepted: u64,
    /// Times of I/O commands.
    times: CommandTimes,
    /// Whether a restored command begins.
    repeats: bool,
    /// Number of commands that were accepted before the last save.
    saved: u64,
    /// Writes of fused operations that begin after the next save, and those that may begin now.
    unsaved: Vec<Key>,
    recorded: Vec<Key>,
    /// Completions that may be lost with the process, if the controller is saved.
    posted: Option<VecDeque<Posted>>,
    /// Numbers of admin commands and of I/O commands that are being fetched or under way.
    in_flight: [usize; 2],
    /// Whether I/O commands are under way.
    busy: bool,
    /// Commands that wait for room in the buffer, in order.
    waiting: VecDeque<Key>,
    /// Number of bytes of the buffer that are in use.
    buffered: usize,
    /// Commands whose data wait for the posted backlog, in order.
    waiting_to_send: VecDeque<Key>,
    reads: Slots<Read>,
    blocks: Slots<BlockRequest>,
    block_requests: VecDeque<block::Request>,
    /// Number of register accesses other than whole double words.
    partial_accesses: u64,
    /// Whether the controller fetches no further commands, because the node shuts down.
    stopped: bool,
    /// The parts that serve further connections.
    pub(crate) parts: Parts,
    /// Set if this is a part of another controller.
    pub(crate) part: Option<Part>,
    /// Events to report to the owner.
    reported: EventQueue,
}

impl Controller {
    /// Controller `id` of a drive, powered on at `now`.
    pub(crate) fn new(now: Instant, id: u16, shared: &Shared, settings: Settings) -> Self {
        let mut controller = Self {
            id,
            endpoint: Endpoint::new(endpoint(&shared.drive, id, &settings)),
            now,
            registers: Registers::new(capabilities(&settings)),
            phase: Phase::Disabled,
            shutdown: Shutdown::default(),
            queues: Queues::default(),
            doorbells: None,
            interrupts: Interrupts::default(),
            signal: false,
            intx: false,
            features: Features::new(&settings),
            events: AsyncEvents::default(),
            error_log: ErrorLog::default(),
            reservation_log: ReservationLog::default(),
            access: AccessLog::default(),
            changed_namespaces: BTreeSet::new(),
            telemetry: Vec::new(),
            event_context: None,
            clock: Clock::new(now),
            reset_at: now,
            download: Download::default(),
            keep_alive_due: None,
            commands: Slots::default(),
            accepted: shared.first_number(id),
            times: CommandTimes::default(),
            saved: 0,
            repeats: false,
            unsaved: Vec::new(),
            recorded: Vec::new(),
            posted: None,
            in_flight: [0; 2],
            busy: false,
            waiting: VecDeque::new(),
            buffered: 0,
            waiting_to_send: VecDeque::new(),
            reads: Slots::default(),
            blocks: Slots::default(),
            block_requests: VecDeque::new(),
            partial_accesses: 0,
            stopped: false,
            parts: Parts::default(),
            part: None,
            reported: EventQueue::default(),
            settings,
        };
        controller.features = controller.saved_features(shared);
        controller.reset_interrupts();
        controller
    }

    /// Adds a label capability. Call this before any other method.
    pub(crate) fn with_label(mut self, label: Label) -> Self {
        self.endpoint = self.endpoint.with_label(label);
        self
    }

    /// The next request for the media.
    pub(crate) fn poll_block(&mut self) -> Option<block::Request> {
        self.take_block(0)
    }

    /// Takes the waiting media request at `index`.
    pub(crate) fn take_block(&mut self, index: usize) -> Option<block::Request> {
        let request = self.block_requests.remove(index)?;
        let (command, nsid, operation) = (request.command, request.nsid, &request.operation);
        let (offset, length) = operation.range();
        let operation = operation.kind();
        self.reported.add(NvmeEvent::MediaBegun { id: command, operation, nsid, offset, length });
        Some(request)
    }

    /// Completes a block request of this controller.
    pub(crate) fn complete_block(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        id: u64,
        result: block::Completion,
    ) {
        self.now = now;
        self.block_done(shared, block_key(id), result);
        self.advance(shared);
    }

    /// Fetches no more commands.
    pub(crate) fn stop_fetching(&mut self) {
        self.stopped = true;
    }

    /// Whether all fetched commands are finished, and the link has accepted all writes.
    pub(crate) fn is_drained(&self) -> bool {
        let written = !self.signal && self.posted_backlog() == 0;
        self.in_flight == [0; 2] && self.blocks.is_empty() && written
    }

    /// Whether no media request of the controller is outstanding.
    pub(crate) fn is_media_idle(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether CSTS.CFS is set.
    pub fn is_fatal(&self) -> bool {
        self.registers.status.fatal
    }

    /// Times of I/O commands since the start.
    pub fn times(&self) -> &CommandTimes {
        &self.times
    }

    /// PCIe error counters.
    pub fn errors(&self) -> &Errors {
        self.endpoint.errors()
    }

    /// Whether an entry of a completion queue for I/O is at this address of host memory.
    pub fn is_io_completion(&self, address: u64) -> bool {
        self.queues.cqs().any(|queue| queue.id != 0 && queue.contains(address))
    }

    /// Number of bytes of posted writes that wait for the link.
    pub fn posted_backlog(&self) -> usize {
        self.endpoint.posted_backlog()
    }

    /// Number of register accesses that were dropped because they were not whole double words.
    pub fn partial_accesses(&self) -> u64 {
        self.partial_accesses
    }

    /// The critical warning byte.
    pub(crate) fn warning(&self, shared: &Shared) -> u8 {
        let features = &self.features;
        let (over, under) = (features.over_temperature, features.under_temperature);
        shared.health.warning(over, under, shared.is_read_only())
    }

    /// Reports critical warnings that were not set in `before`.
    pub(crate) fn warn(&mut self, shared: &Shared, before: u8) {
        let new = self.warning(shared) & !before & self.features.async_events as u8;
        if new & wire::nvme::critical_warning::TEMPERATURE != 0 {
            self.events.raise(AsyncEvent::TEMPERATURE_THRESHOLD);
        }
        use wire::nvme::critical_warning::{READ_ONLY, RELIABILITY};
        if new & (READ_ONLY | RELIABILITY) != 0 {
            self.events.raise(AsyncEvent::RELIABILITY);
        }
    }

    /// Handles a change of the shared state. `before` is the critical warning byte before the
    /// change.
    pub(crate) fn shared_changed(&mut self, shared: &mut Shared, now: Instant, before: u8) {
        self.now = now;
        self.warn(shared, before);
        self.advance(shared);
    }

    /// Size of a memory page in bytes, from CC.MPS.
    pub(crate) fn page(&self) -> usize {
        4096 << self.registers.configuration.page
    }

    /// Handles all endpoint events. Returns whether there were any.
    fn take_events(&mut self, shared: &mut Shared) -> bool {
        let mut any = false;
        while let Some(event) = self.endpoint.poll_event() {
            any = true;
            match event {
                Event::Read { offset, length, token, .. } => {
                    let mut data = vec![0; length];
                    self.registers.read(offset, self.interrupts.mask, &mut data);
                    self.endpoint.complete_read(token, &data);
                }
                Event::Write { offset, data, .. } => self.write_registers(shared, offset, &data),
                Event::ReadDone { id, result } => self.read_done(shared, Key::from_u64(id), result),
                Event::Reset(reset) => self.function_reset(shared, reset),
                Event::Foreign(_) => {}
            }
        }
        any
    }

    fn read_done(&mut self, shared: &mut Shared, key: Key, result: Result<Bytes, DmaError>) {
        // A reset drops reads, so late data may match no read.
        match self.reads.remove(key) {
            None => {}
            Some(Read::Entries(sq)) => self.entries_arrived(shared, sq, key, result),
            Some(Read::List(command)) => self.list_arrived(shared, command, result),
            Some(Read::Data(command, offset)) => self.data_arrived(shared, command, offset, result),
            Some(Read::Doorbell(doorbell)) => self.shadow_arrived(shared, doorbell, key, result),
        }
    }

    /// Advances everything that can proceed now.
    fn advance(&mut self, shared: &mut Shared) {
        self.check_keep_alive(shared);
        self.advance_lifecycle(shared);
        self.admit_waiting(shared);
        self.send_waiting(shared);
        self.report_events();
        self.fetch(shared);
        self.signal = true;
    }
}

/// [`Port`](crate::Port) implements [`pcie::Function`] with these methods and passes the shared
/// state.
impl Controller {
    pub(crate) fn handle(&mut self, shared: &mut Shared, now: Instant, input: Input) {
        self.now = now;
        self.endpoint.handle(now, input);
        self.take_events(shared);
        self.advance(shared);
    }

    pub(crate) fn poll(&mut self, shared: &mut Shared, now: Instant, ready: Ready) -> Output {
        self.now = now;
        self.begin_recorded(shared);
        self.complete_aborting(shared);
        // All other work is done at once, when the input that causes it arrives.
        if !self.waiting_to_send.is_empty() || self.deadline().is_some_and(|at| at <= now) {
            self.advance(shared);
        }
        loop {
            // One check of interrupts for all completions that were posted since the last call.
            if std::mem::take(&mut self.signal) {
                self.interrupt();
            }
            match self.endpoint.poll(now, ready) {
                Output::Wait(mut wait) => {
                    // A completion timeout causes an event.
                    if !self.take_events(shared) {
                        wait.until = wait.until.into_iter().chain(self.deadline()).min();
                        wait.receiver |= !self.waiting_to_send.is_empty();
                        return Output::Wait(wait);
                    }
                    self.advance(shared);
                }
                tlp => return tlp,
            }
        }
    }

    /// The next time at which the controller has work without an input.
    fn deadline(&self) -> Option<Instant> {
        self.interrupts.deadline().into_iter().chain(self.keep_alive_due).min()
    }

    /// As [`pcie::Function::ready`].
    pub fn ready(&self) -> Ready {
        self.endpoint.ready()
    }
}

/// Bits 31:16 of a key are 0, because a table has fewer than 2^16 entries. In the ID of a block
/// request, these bits are the CNTLID.
const CONTROLLER: u32 = 16;

fn block_id(controller: u16, key: Key) -> u64 {
    key.as_u64() | u64::from(controller) << CONTROLLER
}

fn block_key(id: u64) -> Key {
    Key::from_u64(id & !(0xffff << CONTROLLER))
}

/// The CNTLID of the controller that a block request belongs to; 0 for a sanitize operation.
pub(crate) fn controller_of(id: u64) -> u16 {
    (id >> CONTROLLER) as u16
}

fn capabilities(settings: &Settings) -> Capabilities {
    Capabilities {
        max_queue_entries: (settings.queue_entries - 1) as u16,
        contiguous_queues: true,
        arbitration: WEIGHTED,
        timeout: TIMEOUT,
        doorbell_stride: 0,
        subsystem_reset: false,
        command_sets: 1,
        min_page: 0,
        max_page: MAX_PAGE,
    }
}

/// Whether the controller supports the values of CC.
fn supported(configuration: Configuration) -> bool {
    configuration.command_set == 0
        && configuration.arbitration <= WEIGHTED
        && configuration.page <= MAX_PAGE
}
