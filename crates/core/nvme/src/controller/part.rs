//! A part of a controller: it serves the I/O queue pairs of a further connection.
//!
//! A part is a [`Controller`] whose lifecycle and admin commands come as [requests](PartRequest) of
//! the controller that it belongs to, not from its function. Its function has configuration space,
//! MSI-X table and CSTS of its own, and takes doorbells. CC and the admin queue registers have no
//! effect.

use super::execute::Execution;
use super::lifecycle::Phase;
use super::shutdown::Shutdown;
use super::{Controller, WEIGHTED};
use crate::failure::Failure;
use crate::features::Features;
use crate::queue::Queues;
use crate::state::History;
use crate::subsystem::Shared;
use std::collections::VecDeque;
use wire::nvme::register::{Configuration, ControllerStatus};
use wire::nvme::{AsyncEvent, Command, ErrorLogEntry};

/// A request of a controller to one of its parts. Requests are handled in order.
#[derive(Clone, Debug)]
pub struct PartRequest {
    pub(super) number: u64,
    pub(super) request: Request,
}

/// What a part does. It answers when the effect is complete.
#[derive(Clone, Debug)]
pub(super) enum Request {
    /// Become ready, without queues.
    Start(Box<PartView>),
    /// Use other features.
    Update(Box<PartView>),
    /// Drop queues and commands. Complete when no media request or read of host memory is left.
    Reset,
    /// Fetch nothing more. Complete when no command is left.
    Drain,
    /// Execute a command for a queue, with this value of CC.
    Admin(Command, Configuration),
    /// Report counters.
    Report,
}

/// What a part needs of the registers and features of its controller.
#[derive(Clone, Debug)]
pub(super) struct PartView {
    pub configuration: Configuration,
    pub features: Features,
    /// Vectors without coalescing.
    pub uncoalesced: Vec<u16>,
}

/// A message of a part to its controller.
#[derive(Clone, Debug, Default)]
pub struct PartMessage {
    /// Number of the request, and its result.
    pub(super) answer: Option<(u64, Result<u32, Failure>)>,
    pub(super) news: News,
}

/// What has happened in a part since its last message.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    /// Only counters of commands and media errors.
    pub activity: History,
    /// Oldest first.
    pub errors: Vec<ErrorLogEntry>,
    pub events: Vec<AsyncEvent>,
    /// Whether the part became fatal.
    pub fatal: bool,
}

/// The state of a part in addition to the state of a controller.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// Requests for another phase that are not complete.
    pending: Vec<(u64, Request)>,
    answers: VecDeque<(u64, Result<u32, Failure>)>,
    /// Whether the fatal state was reported.
    fatal: bool,
    /// Whether events wait for the next request, because the controller may not have handled the last
    /// ones. The host reads a log page, which is a request, before it gets further events of that page.
    silent: bool,
}

impl Controller {
    /// Handles a request.
    ///
    /// # Panics
    /// If this is no part.
    pub(crate) fn part_request(&mut self, shared: &mut Shared, request: PartRequest) {
        let PartRequest { number, request } = request;
        self.own_part().silent = false;
        match request {
            Request::Start(view) => {
                self.queues = Queues::new(view.configuration.arbitration == WEIGHTED);
                self.use_view(*view.clone());
                self.phase = Phase::Enabling;
                self.own_part().pending.push((number, Request::Start(view)));
            }
            Request::Update(view) => {
                self.use_view(*view);
                self.own_part().answers.push_back((number, Ok(0)));
            }
            Request::Reset => {
                self.disable(shared, Configuration::default());
                let part = self.own_part();
                part.fatal = false;
                part.answers.clear();
                part.pending = vec![(number, Request::Reset)];
            }
            Request::Drain => {
                self.shutdown = Shutdown::Draining;
                self.own_part().pending.push((number, Request::Drain));
            }
            Request::Admin(command, configuration) => {
                self.registers.configuration = configuration;
                self.execute_forwarded(shared, number, command);
            }
            Request::Report => self.own_part().answers.push_back((number, Ok(0))),
        }
        self.advance(shared);
    }

    /// The next message to the controller.
    pub(crate) fn poll_part_message(&mut self, shared: &mut Shared) -> Option<PartMessage> {
        let became_fatal = self.is_fatal();
        let (phase, drained) = (self.phase, self.in_flight == [0; 2] && self.blocks.is_empty());
        let part = self.part.as_mut()?;
        let complete = |(_, request): &mut (u64, Request)| match request {
            Request::Start(_) => phase == Phase::Ready,
            Request::Reset => phase == Phase::Disabled,
            _ => drained || became_fatal,
        };
        let complete = part.pending.extract_if(.., complete).map(|(number, _)| (number, Ok(0)));
        part.answers.extend(complete);
        let fatal = became_fatal && !std::mem::replace(&mut part.fatal, became_fatal);
        let answer = part.answers.pop_front();
        if answer.is_none() && !fatal && (part.silent || !self.events.any_pending()) {
            return None;
        }
        part.silent |= answer.is_none();
        let events = self.events.take_pending();
        let (activity, errors) = (shared.health.take_activity(), self.error_log.take());
        Some(PartMessage { answer, news: News { activity, errors, events, fatal } })
    }

    fn own_part(&mut self) -> &mut Part {
        self.part.as_mut().expect("only a part receives requests")
    }

    fn use_view(&mut self, view: PartView) {
        let PartView { configuration, features, uncoalesced } = view;
        self.registers.configuration = configuration;
        self.features = features;
        self.interrupts.set_coalescing(self.features.coalescing);
        for vector in 0..self.interrupts.vectors() {
            self.interrupts.set_coalescing_disabled(vector, uncoalesced.contains(&vector));
        }
    }

    /// Executes an admin command of the controller.
    fn execute_forwarded(&mut self, shared: &mut Shared, number: u64, command: Command) {
        let key = self.commands.insert(Execution::new(self.now, 0, number, command));
        self.count_in_flight(shared, 0, |in_flight| in_flight + 1);
        let plan = self.plan_admin(shared, key, &command);
        match plan.and_then(|plan| self.apply_plan(key, &command, plan)) {
            Ok(()) => self.admit(shared, key),
            Err(failure) => self.fail(shared, key, failure),
        }
    }

    /// Answers an admin command. Returns false if this is no part.
    pub(super) fn answer(
        &mut self,
        shared: &mut Shared,
        number: u64,
        result: Result<u32, Failure>,
    ) -> bool {
        let Some(part) = &mut self.part else { return false };
        part.answers.push_back((number, result));
        self.count_in_flight(shared, 0, |in_flight| in_flight - 1);
        true
    }

    /// A reset of the function of a part, which concerns only its connection: drops queues and
    /// commands. The part is ready again when no media request is left.
    pub(super) fn reset_part_function(&mut self, shared: &mut Shared) {
        let view = self.view();
        let forwarded = self.commands.values().filter(|command| command.sq == 0);
        // The queues to delete are gone.
        let answers: Vec<_> = forwarded.map(|command| (command.order, Ok(0))).collect();
        self.own_part().answers.extend(answers);
        self.drop_commands(shared);
        self.reads.clear();
        self.queues = Queues::new(view.configuration.arbitration == WEIGHTED);
        self.use_view(view);
        self.registers.status = ControllerStatus::default();
        self.intx = false;
        if self.phase == Phase::Ready {
            self.phase = Phase::Enabling;
        }
    }

    /// Makes a part ready.
    pub(super) fn start_part(&mut self) {
        self.registers.status = ControllerStatus { ready: true, ..ControllerStatus::default() };
        self.phase = Phase::Ready;
        self.shutdown = Shutdown::Idle;
    }
}
