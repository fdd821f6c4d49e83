//! Enabling, disabling and resetting (NVMe 1.4, sections 3.1.5, 3.1.6, 7.3 and 7.6.1).

use super::shutdown::Shutdown;
use super::{Controller, WEIGHTED, block_key, capabilities, supported};
use crate::block;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::queue::{CompletionQueue, Queues, SubmissionQueue};
use crate::registers::Registers;
use crate::subsystem::{Change, Shared};
use pcie::Reset;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::Instant;
use wire::nvme::StatusCode;
use wire::nvme::register::{Configuration, ControllerStatus, ShutdownNotice};
use wire::trace::ControllerState;

/// The phase of the controller between CC.EN and CSTS.RDY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// EN and RDY are clear.
    Disabled,
    /// EN is set. RDY follows when the media requests from before a reset have ended, so that no
    /// old write overtakes a new write, and when the records mark the drive as in use.
    Enabling,
    /// EN and RDY are set.
    Ready,
    /// EN is clear; RDY clears when nothing is in flight.
    Resetting,
}

impl Controller {
    /// Handles a write to CC.
    pub(super) fn configure(&mut self, shared: &mut Shared, value: u32) {
        if self.part.is_some() {
            return;
        }
        let new = Configuration::from_bits(value);
        let old = self.registers.configuration;
        match (old.enable, new.enable) {
            (false, true) => self.enable(new),
            (true, false) => self.disable(shared, new),
            (false, false) => self.registers.configuration = new,
            // Queue parameters may not change while enabled.
            (true, true) => {
                self.registers.configuration = Configuration {
                    shutdown: new.shutdown,
                    sq_entry_size: new.sq_entry_size,
                    cq_entry_size: new.cq_entry_size,
                    ..old
                };
            }
        }
        let requested = matches!(new.shutdown, ShutdownNotice::Normal | ShutdownNotice::Abrupt);
        if requested && old.shutdown == ShutdownNotice::None {
            self.begin_shutdown();
        }
    }

    fn enable(&mut self, configuration: Configuration) {
        self.report_state(ControllerState::Enabled);
        self.registers.configuration = configuration;
        match self.phase {
            // The host did not wait until RDY was clear: the controller is enabled after the reset.
            Phase::Resetting => {}
            _ => self.phase = Phase::Enabling,
        }
    }

    /// A controller reset: clears queues, commands and most state, except the admin queue registers
    /// (section 7.3.2).
    pub(super) fn disable(&mut self, shared: &mut Shared, configuration: Configuration) {
        self.report_state(ControllerState::ControllerReset);
        self.drop_commands(shared);
        self.registers.configuration = configuration;
        self.phase = Phase::Resetting;
    }

    /// A function level, hot or conventional reset: clears everything. The endpoint has already
    /// dropped its reads and writes.
    pub(super) fn function_reset(&mut self, shared: &mut Shared, reset: Reset) {
        self.report_state(match reset {
            Reset::FunctionLevel => ControllerState::FunctionReset,
            Reset::Hot => ControllerState::HotReset,
        });
        if self.part.is_some() {
            return self.reset_part_function(shared);
        }
        self.drop_commands(shared);
        self.reads.clear();
        self.phase = Phase::Disabled;
        self.registers = Registers::new(capabilities(&self.settings));
        self.reset_interrupts();
        self.intx = false;
    }

    /// Enters the fatal state: the controller fetches no commands until a reset (section 9.5).
    pub(crate) fn fatal(&mut self) {
        if !self.registers.status.fatal {
            self.report_state(ControllerState::Fatal);
            self.parts.drain();
        }
        self.registers.status.fatal = true;
    }

    pub(super) fn drop_commands(&mut self, shared: &mut Shared) {
        self.parts.reset();
        self.commands.clear();
        self.posted.iter_mut().for_each(VecDeque::clear);
        self.unsaved.clear();
        self.recorded.clear();
        shared.forget_commands(self.id);
        shared.end_format(self.id, None);
        shared.claims.release_all(self.id);
        shared.hosts.reset(self.id);
        self.in_flight = [0; 2];
        self.waiting.clear();
        self.waiting_to_send.clear();
        self.buffered = 0;
        self.queues = Queues::default();
        self.doorbells = None;
        self.events = Default::default();
        self.reservation_log = Default::default();
        self.access.reset();
        self.changed_namespaces.clear();
        for request in self.block_requests.drain(..) {
            self.blocks.remove(block_key(request.id));
        }
        // A reset ends a shutdown.
        self.shutdown = Shutdown::Idle;
        self.set_busy(shared, false);
        self.features = self.saved_features(shared);
        self.keep_alive_due = None;
        self.download = Default::default();
        self.event_context = None;
        self.reset_at = self.now;
        shared.reset_test(self.now, self.id);
        let activated = shared.reset_firmware();
        shared.log_reset(self.now, self.id, activated);
    }

    /// Enters the next phase when the condition of this phase holds.
    pub(super) fn advance_lifecycle(&mut self, shared: &mut Shared) {
        if self.phase == Phase::Resetting && self.reads.is_empty() && self.is_quiet() {
            self.finish_reset();
        }
        let fatal = self.registers.status.fatal;
        if self.phase == Phase::Enabling && self.is_quiet() && !fatal && shared.starts(self.id) {
            self.start();
        }
        self.advance_shutdown(shared);
    }

    /// Whether no media request is left, and no part is being reset or started.
    fn is_quiet(&self) -> bool {
        self.blocks.is_empty() && self.parts.is_quiet()
    }

    pub(super) fn reset_interrupts(&mut self) {
        self.interrupts = Interrupts::new(self.settings.vectors());
        self.interrupts.set_coalescing(self.features.coalescing);
    }

    fn finish_reset(&mut self) {
        self.registers.status =
            ControllerStatus { shutdown: self.shutdown.status(), ..ControllerStatus::default() };
        self.reset_interrupts();
        self.phase =
            if self.registers.configuration.enable { Phase::Enabling } else { Phase::Disabled };
    }

    /// Sets RDY, or sets CFS if the values of CC or of the admin queue registers are not supported.
    fn start(&mut self) {
        if self.part.is_some() {
            return self.start_part();
        }
        let page = self.page() as u64;
        let registers = &self.registers;
        let sizes = registers.admin_queues;
        let aligned = [registers.admin_sq, registers.admin_cq].iter().all(|base| base % page == 0);
        if !supported(registers.configuration)
            || sizes.sq_size == 0
            || sizes.cq_size == 0
            || !aligned
        {
            return self.fatal();
        }
        if !self.parts.start(self.view()) {
            return;
        }
        self.queues = Queues::new(registers.configuration.arbitration == WEIGHTED);
        self.queues.add_cq(CompletionQueue::new(
            0,
            Some(0),
            registers.admin_cq,
            u32::from(sizes.cq_size) + 1,
        ));
        self.queues.add_sq(SubmissionQueue::new(
            0,
            0,
            registers.admin_sq,
            u32::from(sizes.sq_size) + 1,
        ));
        self.registers.status = ControllerStatus { ready: true, ..ControllerStatus::default() };
        self.phase = Phase::Ready;
        self.shutdown = Shutdown::Idle;
        self.report_state(ControllerState::Ready);
    }

    /// Handles the result of storing a change of records.
    pub(crate) fn stored(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        change: &Change,
        result: Result<(), block::Error>,
    ) {
        self.now = now;
        let stored = result.is_ok();
        match change {
            Change::Features { controller, command, values } if *controller == self.id => {
                self.features_stored(shared, *command, values, stored);
            }
            Change::Firmware { by, change } => {
                self.firmware_stored(shared, *by, change.activation, stored);
            }
            Change::Health(Some(_)) => self.shutdown_stored(),
            Change::Sanitize { command, sanitize } => {
                self.sanitize_stored(shared, *command, *sanitize, stored);
            }
            Change::Marks { by: (id, key), .. } if *id == self.id => match stored {
                true => self.resume(shared, *key),
                false => self.fail(shared, *key, Failure::transient(StatusCode::INTERNAL_ERROR)),
            },
            Change::Namespaces { command: Some((id, key)), change } if *id == self.id => {
                self.namespaces_stored(shared, *key, change, result);
            }
            _ => {}
        }
        self.advance(shared);
    }

    /// Whether commands may be fetched.
    pub(super) fn accepts_commands(&self) -> bool {
        self.phase == Phase::Ready
            && !self.registers.status.fatal
            && self.shutdown == Shutdown::Idle
            && !self.stopped
    }
}
