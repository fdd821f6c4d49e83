//! The controllers of simulated drives.

mod state;

pub(crate) use state::{DriveState, PowerOn};

use super::Context;
use crate::kernel::Component;
use crate::pcie::Link;
use crate::processor::{Crossing, Processor, after};
use bytes::Bytes;
use node::drive::{ContentsId, FIRST};
use node::faults::Fault;
use nvme::block::{Operation, Request};
use nvme::state::History;
use pcie::endpoint::Unsent;
use pcie::{Function, Input, Output, Wait};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use wire::earliest;
use wire::tlp::Tlp;
use wire::{Duration, Instant};
use workload::{CommandKey, Written};

#[derive(Debug)]
struct Pending {
    contents: ContentsId,
    request: Request,
    firmware: Duration,
    key: Option<CommandKey>,
}

/// The component of a controller of a drive.
#[derive(Debug)]
pub(crate) struct DriveNode {
    /// Number of the drive at its host.
    pub number: u16,
    /// CNTLID.
    controller: u16,
    drive: Rc<RefCell<DriveState>>,
    /// Whether the media lose their contents without power.
    pub volatile: bool,
    /// Requests under way, by completion time at the media and by sequence of their start.
    pending: BTreeMap<(Instant, u64), Pending>,
    sequence: u64,
    /// TLPs to the drive and from the drive, with the processor that executes the firmware.
    crossings: [Crossing; 2],
}

impl DriveNode {
    /// The controller with a CNTLID of a drive, which has `number` at its host.
    pub(crate) fn new(drive: Rc<RefCell<DriveState>>, controller: u16, number: u16) -> Self {
        let volatile = drive.borrow().is_volatile();
        Self {
            number,
            controller,
            drive,
            volatile,
            pending: BTreeMap::new(),
            sequence: 0,
            crossings: Default::default(),
        }
    }

    /// The next controller of the same drive, which has `number` at another host.
    pub(crate) fn next_controller(&self, number: u16) -> Self {
        Self::new(self.drive.clone(), self.controller + 1, number)
    }

    /// Makes the processor of a station handle TLPs and execute the firmware.
    pub(crate) fn set_processor(&mut self, processor: Option<Processor>) {
        self.crossings.iter_mut().for_each(|crossing| crossing.processor = processor.clone());
    }

    /// A number that identifies the contents. The number changes when the drive loses them.
    pub(crate) fn incarnation(&self) -> u64 {
        self.drive.borrow().incarnation()
    }

    /// The seed of a namespace's initial contents.
    ///
    /// # Panics
    /// If there is no such namespace.
    pub(crate) fn pattern(&self, nsid: u32) -> u64 {
        self.drive.borrow().pattern(nsid)
    }

    /// Compares the contents of a namespace with the writes of its host. If `all` and the drive has
    /// one host, compares everything else with the initial contents. Returns the numbers of compared
    /// and of different ranges.
    pub(crate) fn compare(&mut self, nsid: u32, written: &[Written], all: bool) -> (u64, u64) {
        let drive = &mut self.drive.borrow_mut();
        let all = all && !drive.has_several_controllers();
        drive.compare(nsid, written, all)
    }

    /// Handles a reset of the link above.
    pub(crate) fn hot_reset(&mut self, now: Instant) {
        self.drive.borrow_mut().handle(now, self.controller, Input::HotReset);
    }

    /// Cycles the power of the drive, once for all controllers. Non-volatile media keep their
    /// contents; requests under way are lost.
    pub(crate) fn power_cycle(&mut self, now: Instant) {
        self.pending.clear();
        if self.controller == FIRST {
            self.drive.borrow_mut().power_cycle(now);
        }
    }

    /// Makes [`kill`](Self::kill) possible. Call this before any other method.
    ///
    /// # Panics
    /// If the drive is volatile.
    pub(crate) fn keep(&mut self) {
        self.drive.borrow_mut().keep();
    }

    /// Ends the process of the drive, whose only controller has sent all but `unsent`, and receives
    /// `last` before. Returns the state for [`go_on`](Self::go_on).
    pub(crate) fn kill(&mut self, now: Instant, last: Vec<Tlp>, unsent: &Unsent) -> Bytes {
        self.pending.clear();
        self.drive.borrow_mut().kill(now, last, unsent)
    }

    /// Goes on from the state of a process that was killed, or starts without one.
    pub(crate) fn go_on(&mut self, now: Instant, saved: Option<Bytes>) {
        self.pending.clear();
        self.drive.borrow_mut().go_on(now, saved);
    }

    /// Number of I/O queues of the drive.
    pub(crate) fn queues(&self) -> u16 {
        self.drive.borrow().queues()
    }

    /// Moves the drive to another host as drive `number`. The drive is in the state after power-on
    /// and has `queues` I/O queues.
    pub(crate) fn taken_by(&mut self, now: Instant, number: u16, queues: u16) {
        self.number = number;
        self.pending.clear();
        self.drive.borrow_mut().restart_with(now, queues);
    }

    /// Whether a fault of the drive loses completions.
    pub(crate) fn loses_completions(&self) -> bool {
        self.drive.borrow().loses_completions()
    }

    /// The next fault that began to act, and when.
    pub(crate) fn poll_fault(&mut self) -> Option<(Instant, Fault)> {
        self.drive.borrow_mut().node.poll_fault()
    }

    /// Errors that the controller counted on PCIe.
    pub(crate) fn errors(&self) -> pcie::Errors {
        *self.drive.borrow().node.errors(self.controller)
    }

    /// The drive's lifetime counters.
    pub(crate) fn counters(&self) -> History {
        self.drive.borrow().node.subsystem().state().health
    }

    /// Whether something happened since the last call that may concern another controller.
    pub(crate) fn take_stirred(&mut self) -> bool {
        self.drive.borrow_mut().take_stirred()
    }

    /// Runs until no work is left now. Returns the next wake-up.
    pub(crate) fn run(
        &mut self,
        link: &mut Link,
        above: Component,
        context: &mut Context,
    ) -> Option<Instant> {
        let now = context.now;
        link.take_deferred_up(now);
        link.down.arrive(now, &mut link.up);
        loop {
            let ready = self.drive.borrow_mut().node.port(self.controller).ready();
            let Some(mut received) = link.down.take(now, ready, &mut link.up) else { break };
            context.delivered(&received.tlp);
            let journey = context.end_journey(now, &mut received.tlp);
            self.crossings[0].pass(now, &received.tlp);
            context.tracker.reaches_drive(self.number, &received.tlp, journey);
            self.drive.borrow_mut().handle(now, self.controller, Input::Tlp(received.tlp));
            self.carry_out(now, context);
        }
        self.media_done(context);
        let wait = self.send(link, context);
        let next = earliest([link.up.next_arrival(), link.down.next_credits()]);
        context.kernel.arm_by_next(above, next);
        let media = self.next_media();
        // The time at which the wire is free matters only if a TLP waits for it.
        let wire = link.up.next_ready(now).filter(|_| wait.receiver);
        let pace = self.drive.borrow().pace.next(now);
        earliest([wait.until, media, link.down.next_arrival(), wire, pace])
    }

    /// Sends TLPs, also ahead of time if no event can change them: the drive has no other controller.
    /// Returns what the controller waits for.
    fn send(&mut self, link: &mut Link, context: &mut Context) -> Wait {
        let (mut at, drive) = (context.now, self.drive.clone());
        let max_payload = drive.borrow().max_payload();
        let in_time = self.crossings[1].processor.is_some();
        let in_time = in_time || drive.borrow().has_several_controllers();
        loop {
            let ready = drive.borrow().pace.ready(at, link.up.ready(at, max_payload));
            let output = drive.borrow_mut().node.port(self.controller).poll(at, ready);
            match output {
                Output::Tlp(mut tlp) => {
                    let journey = context.tracker.leaves_drive(at, self.number, &tlp);
                    tlp.trace_id = context.journeys.insert(journey);
                    self.crossings[1].pass(at, &tlp);
                    drive.borrow_mut().pace.sent(at, &tlp);
                    link.up.send(at, tlp);
                }
                Output::Wait(mut wait) => {
                    if self.carry_out(at, context) {
                        continue;
                    }
                    wait.until = earliest([wait.until, drive.borrow().node.next_late()]);
                    if !wait.receiver || in_time {
                        return wait;
                    }
                    let known = link.known_below(context.kernel.next_time());
                    let pace = drive.borrow().pace.next(at);
                    let until = earliest([wait.until, self.next_media(), pace, known]);
                    match link.up.takes_ahead(at, until, max_payload) {
                        Some(next) => at = next,
                        None => return wait,
                    }
                }
            }
        }
    }

    /// When the next request completes.
    fn next_media(&self) -> Option<Instant> {
        self.pending.first_key_value().map(|((at, _), _)| *at)
    }

    /// Executes the drive's actions. Returns whether any was answered at once.
    fn carry_out(&mut self, now: Instant, context: &mut Context) -> bool {
        let mut answered = false;
        loop {
            let (next, settled) = self.drive.borrow_mut().next_request(now, self.controller);
            answered |= settled;
            let Some((contents, request)) = next else { return answered };
            self.start(now, contents, request, context);
        }
    }

    fn start(
        &mut self,
        now: Instant,
        contents: ContentsId,
        request: Request,
        context: &mut Context,
    ) {
        let access = self.drive.borrow_mut().access(now, contents, &request.operation);
        let offset = match &request.operation {
            Operation::Read { offset, .. } | Operation::Write { offset, .. } => Some(*offset),
            _ => None,
        };
        let key = offset.and_then(|at| context.tracker.media_started(now, self.number, at));
        let begun = after(self.crossings[0].processor.as_ref(), now, access.firmware);
        let (done, firmware) = (begun + access.media, begun - now);
        self.sequence += 1;
        let pending = Pending { contents, request, firmware, key };
        self.pending.insert((done, self.sequence), pending);
    }

    fn media_done(&mut self, context: &mut Context) {
        let now = context.now;
        while let Some(entry) = self.pending.first_entry()
            && entry.key().0 <= now
        {
            let Pending { contents, request, firmware, key } = entry.remove();
            if let Some(key) = key {
                context.tracker.media_done(now, key, firmware);
            }
            let data = self.drive.borrow_mut().execute(contents, request.operation);
            context.happened(0x1000 + u64::from(self.number), &data);
            self.drive.borrow_mut().complete(now, contents, request.id, Ok(data));
            self.carry_out(now, context);
        }
    }
}
