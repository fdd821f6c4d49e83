//! A host: the unchanged root complex, its memory and its software.

use super::{Context, earliest};
use crate::kernel::{Component, pop_if};
use crate::measure::{Latency, Point, Tracker};
use crate::pcie::{Intake, Link, Received};
use crate::workload::Software;
use bytes::Bytes;
use pcie::root::{self, ReadToken, RootComplex};
use pcie::software::{Request, RequestId};
use pcie::{Bus, Ram, Ready};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::rc::Rc;
use wire::tlp::{Packet, Tlp};
use wire::{Duration, Instant};

/// Root complex and memory of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootConfig {
    /// Largest payload supported in bytes.
    pub max_payload: usize,
    /// Completions carry at most this much (RCB or a multiple).
    pub completion_size: usize,
    /// How long a request of the host waits for its completion.
    pub completion_timeout: Duration,
    /// From a CPU's access to the root port's transaction layer, and from an
    /// answer there to the CPU.
    pub mmio: Duration,
    /// From a read request in the root port's transaction layer to its data
    /// there.
    pub memory_read: Duration,
    /// Bytes of memory for queues and buffers.
    pub memory: usize,
    /// Its bus address: below 4 GiB the headers of requests to it have 3
    /// double words, above 4.
    pub memory_at: u64,
}

impl RootConfig {
    /// Writes to its memory wake nobody: the interrupt behind them does.
    pub(crate) fn intake(&self) -> Intake {
        let until = self.memory_at + self.memory as u64;
        match self.memory_at < root::MSI_WINDOW.end && until > root::MSI_WINDOW.start {
            true => Intake::Woken,
            false => Intake::Writes { from: self.memory_at, until },
        }
    }

    /// Memory below 4 GiB.
    pub const LOW_MEMORY: u64 = 0x10_0000;
    /// Memory above 4 GiB, as most of it is in a large host.
    pub const HIGH_MEMORY: u64 = 4 << 30;
}

/// See the module.
pub(crate) struct HostNode {
    number: u16,
    config: RootConfig,
    root: RootComplex,
    bus: Bus,
    ram: Rc<RefCell<Ram>>,
    pub software: Software,
    /// On their way from the CPU.
    requests: VecDeque<(Instant, RequestId, Request)>,
    /// On their way to the CPU.
    answers: VecDeque<(Instant, RequestId, u64)>,
    sleeps: BTreeMap<(Instant, RequestId), ()>,
    /// Reads of host memory under way.
    reads: VecDeque<(Instant, ReadToken, u64, usize)>,
    /// Configuration reads at the root port: start of the request by tag.
    asked: BTreeMap<u16, Instant>,
    /// Software has something new to do.
    interrupted: bool,
    /// From start of request to start of completion at the root port.
    pub config_reads: Latency,
    /// Accesses outside the memory.
    pub faults: u64,
}

impl HostNode {
    /// Memory and bus of a host, for its software.
    pub fn parts(config: &RootConfig) -> (Bus, Rc<RefCell<Ram>>) {
        (Bus::new(), Rc::new(RefCell::new(Ram::new(config.memory_at, config.memory))))
    }

    pub fn new(
        number: u16,
        config: RootConfig,
        bus: Bus,
        ram: Rc<RefCell<Ram>>,
        software: Software,
    ) -> Self {
        let root = RootComplex::new(root::Settings {
            max_payload: config.max_payload,
            completion_size: config.completion_size,
            completion_timeout: config.completion_timeout,
            ecrc: false,
        });
        Self {
            number,
            config,
            root,
            bus,
            ram,
            software,
            requests: VecDeque::new(),
            answers: VecDeque::new(),
            sleeps: BTreeMap::new(),
            reads: VecDeque::new(),
            asked: BTreeMap::new(),
            interrupted: false,
            config_reads: Latency::default(),
            faults: 0,
        }
    }

    /// What went wrong in the root complex.
    pub fn errors(&self) -> &pcie::Errors {
        self.root.errors()
    }

    /// The link of downstream port `port` came up, or went down. Whatever is
    /// behind it masters the bus only when told to.
    pub fn link_changed(
        &mut self,
        now: Instant,
        (port, up, buses): (usize, bool, RangeInclusive<u8>),
        tracker: &mut Tracker,
    ) {
        if !up {
            self.root.forget_masters(buses);
        }
        self.software.link_changed(now, port, up, tracker);
    }

    /// Does what can be done now; yields when to be woken.
    pub fn run(
        &mut self,
        link: &mut Link,
        below: Component,
        context: &mut Context,
    ) -> Option<Instant> {
        let now = context.now;
        self.receive_below(link, context);
        self.memory_done(now);
        self.answers_come(now);
        let (software, timer) = loop {
            let software = self.software.run(now, context.tracker);
            self.take_requests(now);
            self.interrupted = false;
            let timer = self.downwards(link, context);
            if !self.interrupted {
                break (software, timer);
            }
        };
        for at in [link.down.next_arrival(), link.up.next_credits()].into_iter().flatten() {
            context.kernel.arm_by(below, at);
        }
        context.observe_commands(self.number);
        earliest([
            timer,
            software,
            link.up.next_arrival(),
            link.down.next_ready(now).filter(|_| self.root.waits_for_link()),
            // Those that are due wait for room in the root complex.
            self.requests.front().map(|(at, ..)| *at).filter(|at| *at > now),
            self.answers.front().map(|(at, ..)| *at),
            self.sleeps.first_key_value().map(|((at, _), ())| *at),
            self.reads.front().map(|(at, ..)| *at),
        ])
    }

    fn receive_below(&mut self, link: &mut Link, context: &mut Context) {
        let now = context.now;
        self.catch_up(link, context);
        link.arrive_up(now);
        while let Some(received) = link.take_up(now, self.root.ready()) {
            self.receive(now, received, context);
        }
    }

    /// Looks at what the root port took since it ran last: memory has it
    /// before software looks there.
    pub fn catch_up(&mut self, link: &mut Link, context: &mut Context) {
        link.settle_up(context.now);
        while let Some((at, received)) = link.up.next_taken() {
            self.receive(at, received, context);
            if at == context.now {
                continue;
            }
            while let root::Output::HostWrite { address, data, .. } =
                self.root.poll(at, &Ready::NONE)
            {
                self.write(address, &data);
            }
        }
    }

    fn receive(&mut self, at: Instant, received: Received, context: &mut Context) {
        let mut tlp = received.tlp;
        context.delivered(&tlp);
        context.observe(received.started, Point::RootPort(self.number), true, &tlp);
        if let Packet::Completion(c) = tlp.packet
            && self.software.began.is_some()
            && let Some(since) = self.asked.remove(&c.tag.get())
        {
            self.config_reads.record(received.started - since);
        }
        let journey = context.journey_ends(at, &mut tlp);
        context.tracker.reaches_root(&tlp, journey);
        self.root.handle(at, root::Input::Tlp(tlp));
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        match self.ram.borrow_mut().get_mut(address, data.len()) {
            Some(place) => place.copy_from_slice(data),
            None => self.faults += 1,
        }
    }

    fn memory_done(&mut self, now: Instant) {
        while let Some((_, token, address, length)) = pop_if(&mut self.reads, |(at, ..)| *at <= now)
        {
            let data = self.ram.borrow().get(address, length).map(Bytes::copy_from_slice);
            self.faults += u64::from(data.is_none());
            self.root.handle(now, root::Input::HostData(token, data));
        }
    }

    fn answers_come(&mut self, now: Instant) {
        while let Some((_, id, value)) = pop_if(&mut self.answers, |(at, ..)| *at <= now) {
            self.bus.answer(id, value);
        }
        while let Some(entry) = self.sleeps.first_entry()
            && entry.key().0 <= now
        {
            self.bus.answer(entry.key().1, 0);
            entry.remove();
        }
    }

    fn take_requests(&mut self, now: Instant) {
        while let Some((id, request)) = self.bus.next_request() {
            match request {
                Request::Sleep(span) => {
                    self.sleeps.insert((now + span, id), ());
                }
                _ => self.requests.push_back((now + self.config.mmio, id, request)),
            }
        }
        // One link for all that is below: none has a lane of its own.
        let goes = |root: &RootComplex, (at, _, request): &(Instant, RequestId, Request)| {
            *at <= now && root.takes(request, &Ready::ALL)
        };
        while let Some((_, id, request)) = pop_if(&mut self.requests, |it| goes(&self.root, it)) {
            self.root.handle(now, root::Input::Request(id, request));
        }
    }

    fn downwards(&mut self, link: &mut Link, context: &mut Context) -> Option<Instant> {
        let now = context.now;
        loop {
            let ready = link.down.ready(now, self.config.max_payload);
            match self.root.poll(now, &ready) {
                root::Output::Tlp(tlp) => self.send(link, tlp, context),
                root::Output::Answer(id, value) => {
                    let value = value.unwrap_or(u64::MAX);
                    self.answers.push_back((now + self.config.mmio, id, value));
                }
                root::Output::HostRead { token, address, length, .. } => {
                    let at = now + self.config.memory_read;
                    self.reads.push_back((at, token, address, length));
                }
                root::Output::HostWrite { address, data, .. } => self.write(address, &data),
                root::Output::Interrupt { requester, data } => {
                    self.software.interrupt(now, requester, data, context.tracker);
                    self.interrupted = true;
                }
                root::Output::Wire { .. } | root::Output::HotReset => {}
                root::Output::Timeout(at) => return at,
            }
        }
    }

    fn send(&mut self, link: &mut Link, mut tlp: Tlp, context: &mut Context) {
        let now = context.now;
        let ack = link.down.tlp_time(&tlp) + link.down.propagation() + link.up.dllp_time();
        let start = link.down.next_start(now);
        if let Packet::ConfigRead(read) = tlp.packet {
            self.asked.insert(read.tag.get(), start);
        }
        context.observe(start, Point::RootPort(self.number), false, &tlp);
        let journey = context.tracker.leaves_root(now, start, ack, &tlp);
        tlp.mark = context.journeys.insert(journey);
        link.down.send(now, tlp);
    }
}
