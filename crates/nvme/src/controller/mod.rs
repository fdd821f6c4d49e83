//! The controller: one PCIe function, one state machine (NVMe 1.4).
//!
//! Inputs are TLPs, finished blocks and time. Each submodule is a step of a command: `mmio` takes
//! the doorbell, `fetch` the submission entry, `execute` and `transfer` carry it out, `blocks`
//! handles completed block requests, `complete` posts the completion entry and the interrupt.
//! `lifecycle` and `shutdown` are CC and CSTS.

mod blocks;
mod complete;
mod events;
mod execute;
mod fetch;
mod invariants;
mod lifecycle;
mod mmio;
mod shutdown;
mod transfer;

use crate::config::{Config, MAX_ENTRIES, NamespaceConfig};
use crate::events::AsyncEvents;
use crate::features::Features;
use crate::interrupt::Interrupts;
use crate::log::{ErrorLog, Health};
use crate::namespace::Namespace;
use crate::queue::Queues;
use crate::registers::Registers;
use crate::slots::{Key, Slots};
use crate::{block, failure::Failure};
use bytes::Bytes;
use events::EventQueue;
use execute::Execution;
use lifecycle::Phase;
use pcie::config::label::Label;
use pcie::endpoint::{DmaError, Event};
use pcie::{Endpoint, Errors, Function, Input, Output, Ready};
use shutdown::Shutdown;
use std::collections::VecDeque;
use wire::Instant;
use wire::nvme::AsyncEvent;
use wire::nvme::register::{Capabilities, Configuration};
use wire::trace::NvmeEvent;

/// CAP.TO: how long resets and shutdowns may take, in 500 ms.
const TIMEOUT: u8 = 20;
/// CAP.MPSMAX: memory pages of up to 64 KiB.
const MAX_PAGE: u8 = 4;
/// The most admin commands under way, without Asynchronous Event Requests.
const ADMIN_COMMANDS: usize = 16;

/// What a DMA read is for.
#[derive(Clone, Copy, Debug)]
enum Read {
    /// Submission entries of a queue.
    Entries(u16),
    /// A PRP list of a command.
    List(Key),
    /// Data of a command, from this byte on.
    Data(Key, usize),
}

/// What a block request is for.
#[derive(Clone, Copy, Debug)]
enum BlockOwner {
    /// Of a command, on a namespace.
    Command(Key, u32),
    /// Of a shutdown, on a namespace.
    Shutdown(u32),
}

/// An NVMe controller.
///
/// A [`Function`]. After every call with input, also call
/// [`poll_block`](Self::poll_block) until it returns `None`, and pass results to
/// [`complete_block`](Self::complete_block). With
/// [`set_events`](Self::set_events), [`poll_event`](Self::poll_event) reports
/// the controller's events.
#[derive(Debug)]
pub struct Controller {
    pub(crate) config: Config,
    pub(crate) endpoint: Endpoint,
    /// The time of the call under way.
    pub(crate) now: Instant,
    pub(crate) registers: Registers,
    phase: Phase,
    shutdown: Shutdown,
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) queues: Queues,
    pub(crate) interrupts: Interrupts,
    /// Completions, masks or queue heads have changed since the last interrupt check.
    signal: bool,
    intx: bool,
    pub(crate) features: Features,
    pub(crate) events: AsyncEvents,
    pub(crate) error_log: ErrorLog,
    pub(crate) health: Health,
    commands: Slots<Execution>,
    /// Admin and I/O commands fetched or under way.
    in_flight: [usize; 2],
    /// Commands that wait for room in the buffer, in order.
    waiting: VecDeque<Key>,
    /// Bytes of the buffer in use.
    buffered: usize,
    /// Commands whose data wait for the posted backlog, in order.
    waiting_to_send: VecDeque<Key>,
    reads: Slots<Read>,
    blocks: Slots<BlockOwner>,
    block_requests: VecDeque<block::Request>,
    /// Accesses to registers that were no whole double words.
    partial_accesses: u64,
    /// No further commands are fetched: the node is ending.
    stopped: bool,
    /// Events to report to the owner.
    reported: EventQueue,
}

impl Controller {
    /// A drive that is powered on at `now`.
    ///
    /// # Panics
    /// If the configuration is out of the ranges its fields name.
    pub fn new(now: Instant, config: Config) -> Self {
        config.check();
        Self {
            endpoint: Endpoint::new(config.endpoint()),
            now,
            registers: Registers::new(capabilities(&config)),
            phase: Phase::Disabled,
            shutdown: Shutdown::default(),
            queues: Queues::default(),
            interrupts: Interrupts::new(config.io_queues + 1),
            signal: false,
            intx: false,
            features: Features::new(&config),
            namespaces: Namespace::all(&config),
            events: AsyncEvents::default(),
            error_log: ErrorLog::default(),
            health: Health::new(now, config.temperature),
            commands: Slots::default(),
            in_flight: [0; 2],
            waiting: VecDeque::new(),
            buffered: 0,
            waiting_to_send: VecDeque::new(),
            reads: Slots::default(),
            blocks: Slots::default(),
            block_requests: VecDeque::new(),
            partial_accesses: 0,
            stopped: false,
            reported: EventQueue::default(),
            config,
        }
    }

    /// Adds a label capability with serial number and capacity; call it before use.
    #[must_use]
    pub fn with_label(mut self) -> Self {
        let bytes = |one: &NamespaceConfig| one.blocks << one.block_shift;
        let capacity = self.config.namespaces.iter().map(bytes).sum();
        let label = Label { serial: self.config.serial.clone(), capacity };
        self.endpoint = self.endpoint.with_label(label);
        self
    }

    /// The next request for the media; they are bounded by
    /// [`Config::commands`].
    pub fn poll_block(&mut self) -> Option<block::Request> {
        let request = self.block_requests.pop_front()?;
        let (command, nsid, operation) = (request.command, request.nsid, &request.operation);
        let (offset, length) = operation.range();
        let operation = operation.kind();
        self.reported.add(NvmeEvent::MediaBegun { id: command, operation, nsid, offset, length });
        Some(request)
    }

    /// Completes a block request. The data of one from before a reset are dropped.
    ///
    /// # Panics
    /// If a read returns another number of bytes than requested.
    pub fn complete_block(&mut self, now: Instant, id: u64, result: block::Completion) {
        self.now = now;
        self.block_done(Key::from_u64(id), result);
        self.advance();
    }

    /// Stops fetching commands, for an orderly end of the node. Commands under way are finished.
    pub fn stop_fetching(&mut self) {
        self.stopped = true;
    }

    /// Whether every command that was fetched has been completed, and the
    /// link has taken what that wrote.
    pub fn is_drained(&self) -> bool {
        let written = !self.signal && self.posted_backlog() == 0;
        self.in_flight == [0; 2] && self.blocks.is_empty() && written
    }

    /// Whether CSTS.CFS is set.
    pub fn is_fatal(&self) -> bool {
        self.registers.status.fatal
    }

    /// PCIe error counters.
    pub fn errors(&self) -> &Errors {
        self.endpoint.errors()
    }

    /// Bytes of posted writes that wait for the link.
    pub fn posted_backlog(&self) -> usize {
        self.endpoint.posted_backlog()
    }

    /// Register accesses so far that were dropped because they were not whole double words.
    pub fn partial_accesses(&self) -> u64 {
        self.partial_accesses
    }

    /// Sets the composite temperature in kelvin from `now` on.
    pub fn set_temperature(&mut self, now: Instant, kelvin: u16) {
        self.now = now;
        self.with_warnings(|controller| controller.health.set_temperature(now, kelvin));
        self.advance();
    }

    /// Sets a namespace read-only or writable.
    ///
    /// # Panics
    /// If there is no such namespace.
    pub fn set_read_only(&mut self, now: Instant, nsid: u32, read_only: bool) {
        self.now = now;
        self.with_warnings(|controller| {
            let index = nsid.checked_sub(1).expect("namespaces count from 1") as usize;
            controller.namespaces[index].read_only = read_only;
        });
        self.advance();
    }

    /// The namespace `nsid`, if there is one.
    pub(crate) fn namespace(&self, nsid: u32) -> Result<&Namespace, Failure> {
        let index = (nsid as usize).wrapping_sub(1);
        self.namespaces.get(index).ok_or(Failure::namespace())
    }

    /// The critical warning byte.
    pub(crate) fn warning(&self) -> u8 {
        let read_only = self.namespaces.iter().all(|namespace| namespace.read_only);
        let features = &self.features;
        self.health.warning(features.over_temperature, features.under_temperature, read_only)
    }

    /// Makes a change, and reports new critical warnings.
    pub(crate) fn with_warnings(&mut self, change: impl FnOnce(&mut Self)) {
        let before = self.warning();
        change(self);
        let new = self.warning() & !before & self.features.async_events as u8;
        if new & wire::nvme::critical_warning::TEMPERATURE != 0 {
            self.events.raise(AsyncEvent::TEMPERATURE_THRESHOLD);
        }
        if new & wire::nvme::critical_warning::READ_ONLY != 0 {
            self.events.raise(AsyncEvent::RELIABILITY);
        }
    }

    /// Bytes of a memory page: CC.MPS.
    pub(crate) fn page(&self) -> usize {
        4096 << self.registers.configuration.page
    }

    /// Handles all endpoint events. Returns whether there were any.
    fn take_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.endpoint.poll_event() {
            any = true;
            match event {
                Event::Read { offset, length, token } => {
                    let mut data = vec![0; length];
                    self.registers.read(offset, self.interrupts.mask, &mut data);
                    self.endpoint.complete_read(token, &data);
                }
                Event::Write { offset, data } => self.write_registers(offset, &data),
                Event::ReadDone { id, result } => self.read_done(Key::from_u64(id), result),
                Event::Reset(reset) => self.function_reset(reset),
            }
        }
        any
    }

    fn read_done(&mut self, key: Key, result: Result<Bytes, DmaError>) {
        // A reset drops reads; late data match no read.
        match self.reads.remove(key) {
            None => {}
            Some(Read::Entries(sq)) => self.entries_arrived(sq, key, result),
            Some(Read::List(command)) => self.list_arrived(command, result),
            Some(Read::Data(command, offset)) => self.data_arrived(command, offset, result),
        }
    }

    /// Does whatever can be done now.
    fn advance(&mut self) {
        self.advance_lifecycle();
        self.admit_waiting();
        self.send_waiting();
        self.report_events();
        self.fetch();
        self.signal = true;
    }
}

impl Function for Controller {
    fn handle(&mut self, now: Instant, input: Input) {
        self.now = now;
        self.endpoint.handle(now, input);
        self.take_events();
        self.advance();
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        self.now = now;
        // Other work was done with its input.
        if !self.waiting_to_send.is_empty()
            || self.interrupts.deadline().is_some_and(|at| at <= now)
        {
            self.advance();
        }
        loop {
            // Once for all completions that were posted since the last call.
            if std::mem::take(&mut self.signal) {
                self.interrupt();
            }
            match self.endpoint.poll(now, ready) {
                Output::Wait(mut wait) => {
                    // Completion timeouts make events.
                    if !self.take_events() {
                        let mine = self.interrupts.deadline();
                        wait.until = wait.until.into_iter().chain(mine).min();
                        wait.receiver |= !self.waiting_to_send.is_empty();
                        return Output::Wait(wait);
                    }
                    self.advance();
                }
                tlp => return tlp,
            }
        }
    }

    fn ready(&self) -> Ready {
        self.endpoint.ready()
    }
}

fn capabilities(config: &Config) -> Capabilities {
    debug_assert!(u32::from(config.queue_entries) <= MAX_ENTRIES);
    Capabilities {
        max_queue_entries: config.queue_entries - 1,
        contiguous_queues: true,
        arbitration: 0,
        timeout: TIMEOUT,
        doorbell_stride: 0,
        subsystem_reset: false,
        command_sets: 1,
        min_page: 0,
        max_page: MAX_PAGE,
    }
}

/// Whether CC selects what CAP offers.
fn supported(configuration: Configuration) -> bool {
    configuration.command_set == 0
        && configuration.arbitration == 0
        && configuration.page <= MAX_PAGE
}
