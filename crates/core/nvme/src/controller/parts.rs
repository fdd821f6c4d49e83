//! The parts of a controller, seen by the controller.
//!
//! A link may have several connections. The controller serves the first one: registers, admin
//! commands and the first share of the I/O queue pairs. A [part](super::part) serves the share of each
//! further connection, in a thread of its own, and shares no memory with the controller. The
//! controller sends requests. It completes a command, or shows a new state in CSTS, only after all
//! concerned parts have answered.

use super::Controller;
use super::part::{News, PartMessage, PartRequest, PartView, Request};
use crate::failure::Failure;
use crate::plan::Plan;
use crate::slots::Key;
use crate::subsystem::Shared;
use std::collections::{BTreeMap, VecDeque};
use wire::nvme::Command;
use wire::nvme::opcode::admin;

/// What waits for the answers to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiter {
    /// The next phase of the controller.
    Phase,
    /// A shutdown.
    Shutdown,
    /// An admin command that a part executes.
    Forwarded(Key),
    /// An admin command that the controller executes after the answers.
    Barrier(Key),
    /// An admin command that ends with this result after the answers.
    Result(Key, u32),
}

/// Whether the parts are started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Stopped,
    Starting,
    Started,
}

/// The parts of a controller.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// Number of parts; part `n` serves connection `n`, from 1.
    count: u16,
    /// I/O queue pairs of each connection.
    queue_pairs: u16,
    /// Whether the present link has several connections. Otherwise the controller serves all queue
    /// pairs.
    active: bool,
    state: State,
    /// Number of requests so far.
    requests: u64,
    outbox: VecDeque<(u16, PartRequest)>,
    /// By number of the request: what waits, and the number of missing answers.
    waiting: BTreeMap<u64, (Waiter, u16)>,
    /// Number of queues that parts have.
    queues: usize,
}

impl Parts {
    pub(crate) fn new(count: u16, queue_pairs: u16) -> Self {
        Self { count, queue_pairs, ..Self::default() }
    }

    /// Whether the drive has parts, also if the present link does not use them.
    pub(crate) fn any(&self) -> bool {
        self.count > 0
    }

    /// Sets whether the present link has several connections.
    pub(crate) fn set_active(&mut self, active: bool) {
        self.active = active && self.any();
    }

    /// Whether any part has queues.
    pub(crate) fn any_queues(&self) -> bool {
        self.queues > 0
    }

    /// The next request, and the part that receives it.
    pub(crate) fn poll(&mut self) -> Option<(u16, PartRequest)> {
        self.outbox.pop_front()
    }

    /// The part that serves an I/O queue; `None` for the queues of the controller.
    fn owner(&self, queue: u16) -> Option<u16> {
        let connection = queue.checked_sub(1)? / self.queue_pairs.max(1);
        Some(connection.min(self.count)).filter(|part| self.active && *part > 0)
    }

    fn send(&mut self, parts: impl IntoIterator<Item = u16>, request: &Request, waiter: Waiter) {
        self.requests += 1;
        let number = self.requests;
        let before = self.outbox.len();
        let message = |part| (part, PartRequest { number, request: request.clone() });
        self.outbox.extend(parts.into_iter().map(message));
        let missing = (self.outbox.len() - before) as u16;
        self.waiting.insert(number, (waiter, missing));
    }

    fn send_all(&mut self, request: &Request, waiter: Waiter) {
        self.send(1..=self.count, request, waiter);
    }

    fn waits(&self, waiter: Waiter) -> bool {
        self.waiting.values().any(|(waiting, _)| *waiting == waiter)
    }

    /// Resets the parts. [`is_quiet`](Self::is_quiet) returns true after their answers.
    pub(super) fn reset(&mut self) {
        // The parts are being reset: nothing has begun since.
        let resetting = self.state == State::Stopped && !self.is_quiet();
        (self.state, self.queues) = (State::Stopped, 0);
        if self.active && !resetting {
            self.waiting.clear();
            self.send_all(&Request::Reset, Waiter::Phase);
        }
    }

    /// Whether no part is being reset or started.
    pub(super) fn is_quiet(&self) -> bool {
        !self.waits(Waiter::Phase)
    }

    /// Starts the parts, unless they are started. Returns whether they are.
    pub(super) fn start(&mut self, view: PartView) -> bool {
        if self.active && self.state == State::Stopped {
            self.state = State::Starting;
            self.send_all(&Request::Start(Box::new(view)), Waiter::Phase);
        }
        if self.is_quiet() {
            self.state = State::Started;
        }
        self.state == State::Started
    }

    /// Lets the parts finish their commands and take no further ones.
    pub(super) fn drain(&mut self) {
        if self.active && self.state == State::Started {
            self.send_all(&Request::Drain, Waiter::Shutdown);
        }
    }

    /// Whether no part has commands after [`drain`](Self::drain).
    pub(super) fn is_drained(&self) -> bool {
        !self.waits(Waiter::Shutdown)
    }

    /// Takes an answer. Returns what waited for it, if it is the last missing one.
    fn answered(&mut self, number: u64) -> Option<Waiter> {
        let (waiter, missing) = self.waiting.get_mut(&number)?;
        *missing -= 1;
        let (waiter, missing) = (*waiter, *missing);
        if missing == 0 {
            self.waiting.remove(&number);
        }
        (missing == 0).then_some(waiter)
    }
}

impl Controller {
    /// What the parts need of registers and features.
    pub(super) fn view(&self) -> PartView {
        PartView {
            configuration: self.registers.configuration,
            features: self.features.clone(),
            uncoalesced: self.interrupts.all_disabled(),
        }
    }

    /// As [`plan_admin`](Self::plan_admin), with the parts that the command concerns.
    pub(super) fn plan_admin_with_parts(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
    ) -> Result<Plan, Failure> {
        if self.parts.active && self.parts.state == State::Started {
            let queue = command.cdw10 as u16;
            match command.opcode {
                admin::CREATE_SQ
                | admin::CREATE_CQ
                | admin::DELETE_SQ
                | admin::DELETE_CQ
                | admin::ABORT => {
                    if let Some(part) = self.parts.owner(queue) {
                        let request = Request::Admin(*command, self.registers.configuration);
                        self.parts.send([part], &request, Waiter::Forwarded(key));
                        return Ok(Plan::Wait);
                    }
                }
                admin::GET_LOG_PAGE => {
                    self.parts.send_all(&Request::Report, Waiter::Barrier(key));
                    return Ok(Plan::Wait);
                }
                _ => {}
            }
        }
        let plan = self.plan_admin(shared, key, command)?;
        Ok(self.after_parts(key, command, plan))
    }

    /// The plan of an admin command that the controller has executed: if the command has changed
    /// features, it waits for the parts.
    pub(super) fn after_parts(&mut self, key: Key, command: &Command, plan: Plan) -> Plan {
        let started = self.parts.active && self.parts.state == State::Started;
        match plan {
            Plan::Done(result) if started && command.opcode == admin::SET_FEATURES => {
                let update = Request::Update(Box::new(self.view()));
                self.parts.send_all(&update, Waiter::Result(key, result));
                Plan::Wait
            }
            plan => plan,
        }
    }

    /// Handles a message of a part.
    pub(crate) fn part_message(&mut self, shared: &mut Shared, message: PartMessage) {
        self.take_news(shared, message.news);
        let Some((number, result)) = message.answer else { return self.advance(shared) };
        match self.parts.answered(number) {
            Some(Waiter::Forwarded(key)) => self.forwarded(shared, key, result),
            Some(Waiter::Barrier(key)) => self.plan_again(shared, key),
            Some(Waiter::Result(key, result)) => self.resume_with(shared, key, result),
            Some(Waiter::Phase | Waiter::Shutdown) | None => {}
        }
        self.advance(shared);
    }

    /// Ends a command that a part has executed.
    fn forwarded(&mut self, shared: &mut Shared, key: Key, result: Result<u32, Failure>) {
        let Some(execution) = self.commands.get(key) else { return };
        match (execution.command.opcode, result) {
            (admin::CREATE_SQ | admin::CREATE_CQ, Ok(_)) => self.parts.queues += 1,
            (admin::DELETE_SQ | admin::DELETE_CQ, Ok(_)) => self.parts.queues -= 1,
            _ => {}
        }
        match result {
            Ok(result) => self.resume_with(shared, key, result),
            Err(failure) => self.fail(shared, key, failure),
        }
    }

    /// Executes a command that has waited for the parts.
    fn plan_again(&mut self, shared: &mut Shared, key: Key) {
        let Some(execution) = self.commands.get_mut(key) else { return };
        execution.waiting = false;
        let command = execution.command;
        let plan = self.plan_admin(shared, key, &command);
        match plan.and_then(|plan| self.apply_plan(key, &command, plan)) {
            Ok(()) => self.admit(shared, key),
            Err(failure) => self.fail(shared, key, failure),
        }
    }

    fn take_news(&mut self, shared: &mut Shared, news: News) {
        let News { activity, errors, events, fatal } = news;
        shared.health.add_activity(self.now, &activity);
        for entry in errors {
            let count = shared.health.add_error(self.now);
            self.error_log.add(count, entry);
        }
        events.into_iter().for_each(|event| self.events.raise(event));
        if fatal {
            self.fatal();
        }
    }
}
