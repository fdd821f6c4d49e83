//! A host: the state machine of live host nodes, memory and software, above a PCIe link.

use super::Context;
use super::port::{Port, PushRooms};
use crate::kernel::{Component, pop_if};
use crate::measure::{Latency, Point, Pushed, Stage, Tracker};
use crate::pcie::{Deferral, Link, Received};
use crate::processor::{Crossing, Processor, after};
use crate::workload::{BringUp, Software, SoftwareConfig, Workload};
use bytes::{Bytes, BytesMut};
use node::host::{Buses, Input, Output};
use node::push::{self, HostMemory, Mode};
use nvme::initiator;
use pcie::enumerate;
use pcie::root::{self, HostOutput, ReadToken};
use pcie::software::{Request, RequestId, Task};
use pcie::{Bus, Ram, Ready, Wait};
use stats::random::Random;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::rc::Rc;
use wire::earliest;
use wire::tlp::{Class, Packet, Tlp};
use wire::{Bdf, Duration, Instant};

/// Root complex and memory of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootConfig {
    /// Max_Payload_Size supported, in bytes.
    pub max_payload: usize,
    /// Largest payload of a completion in bytes: a power of two, 64 to 4096.
    pub completion_size: usize,
    /// How long a request of the host waits for its completion.
    pub completion_timeout: Duration,
    /// Whether host and drives add an ECRC to every TLP.
    pub ecrc: bool,
    /// The kinds of bytes that are pushed in front of submission doorbells to functions behind a
    /// switch.
    pub push: Mode,
    /// Delay from an access of a CPU to the root port's transaction layer, and the same delay from
    /// an answer there to the CPU.
    pub mmio: Duration,
    /// Delay from a read request in the root port's transaction layer to the data there. Reading
    /// memory for a push takes this time for each range of addresses.
    pub memory_read: Duration,
    /// Bytes of memory for queues and buffers, 1 MiB to 3 GiB.
    pub memory: usize,
    /// Bus address of the memory. Headers of requests have 3 double words for addresses below
    /// 4 GiB, and 4 for others.
    pub memory_at: u64,
}

impl RootConfig {
    /// Defers writes to host memory, because the following interrupt wakes the host. Defers nothing
    /// if the memory overlaps the MSI window.
    pub(crate) fn deferral(&self) -> Deferral {
        let until = self.memory_at + self.memory as u64;
        match self.memory_at < root::MSI_WINDOW.end && until > root::MSI_WINDOW.start {
            true => Deferral::Nothing,
            false => Deferral::Writes { from: self.memory_at, until },
        }
    }

    /// A value of [`Self::memory_at`] for memory below 4 GiB.
    pub const LOW_MEMORY: u64 = 0x10_0000;
    /// A value of [`Self::memory_at`] for memory above 4 GiB, like most memory of a large host.
    pub const HIGH_MEMORY: u64 = 4 << 30;
}

/// Host memory for push.
struct Memory<'a> {
    ram: &'a RefCell<Ram>,
    /// Number of separate ranges read, and the end of the last range.
    reads: u64,
    end: u64,
}

impl HostMemory for Memory<'_> {
    fn peek(&mut self, _: Bdf, address: u64, length: usize, out: &mut BytesMut) -> bool {
        let mut ram = self.ram.borrow_mut();
        let Some(bytes) = ram.get(address, length) else { return false };
        out.extend_from_slice(bytes);
        // Adjacent ranges are one read, even for several messages.
        self.reads += u64::from(address != self.end);
        self.end = address + length as u64;
        true
    }
}

/// A request of the host that waits in front of the link, for example behind push messages.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    since: Instant,
    /// When the first bit would have been on the wire without the messages in front of the request.
    start: Instant,
}

/// The component of a host.
pub(crate) struct HostNode {
    number: u16,
    config: RootConfig,
    node: node::HostNode<Port>,
    buses: Buses,
    pub ram: Rc<RefCell<Ram>>,
    pub software: Software,
    /// Programs that run in addition to the workload.
    programs: Vec<Task<()>>,
    /// Requests on their way from the CPU.
    requests: VecDeque<(Instant, RequestId, Request)>,
    /// Answers on their way to the CPU.
    answers: VecDeque<(Instant, RequestId, Option<u64>)>,
    /// Reads of host memory under way.
    reads: VecDeque<(Instant, ReadToken, u64, usize)>,
    /// When host memory has delivered the bytes of all push messages so far.
    pushed_at: Instant,
    /// The request of the host that waits in front of the link.
    waiting: Option<Waiting>,
    /// For each tag of a configuration read, the start of the request at the root port.
    config_read_starts: BTreeMap<u16, Instant>,
    /// TLPs from below and to below, with the processor that does all work of the host.
    crossings: [Crossing; 2],
    /// Whether software has new work.
    interrupted: bool,
    /// Whether the component below must be notified of a reset.
    pub reset: bool,
    /// Latency of configuration reads at the root port, from the start of the request to the start
    /// of the completion.
    pub config_reads: Latency,
}

impl HostNode {
    /// A host, whose links may be interrupted for `outage`. `patterns` are the seeds of the drives'
    /// initial contents.
    pub(crate) fn new(
        number: u16,
        config: RootConfig,
        (software, workload, outage): (SoftwareConfig, Workload, Duration),
        rng: Random,
        patterns: Vec<u64>,
    ) -> Self {
        let bus = Bus::new();
        let ram = Rc::new(RefCell::new(Ram::new(config.memory_at, config.memory)));
        let driver = initiator::Settings::default();
        let bring_up = BringUp {
            bus: bus.clone(),
            ram: ram.clone(),
            enumeration: enumerate::Settings {
                max_payload: software.max_payload,
                max_read_request: software.max_read_request,
                ecrc: config.ecrc,
                outage,
                ..enumerate::Settings::default()
            },
            driver: initiator::Settings {
                io_queues: workload.queues(),
                entries: workload.entries(),
                timeout: driver.timeout + outage,
                registration: software.registration,
                ..driver
            },
        };
        let software = Software::new(bring_up, (software, workload), rng, patterns);
        let settings = root::Settings {
            max_payload: config.max_payload,
            completion_size: config.completion_size,
            completion_timeout: config.completion_timeout,
            ecrc: config.ecrc,
        };
        let push = push::Settings { mode: config.push, ..push::Settings::default() };
        let mut buses = Buses::default();
        buses.add(bus);
        Self {
            number,
            config,
            node: node::HostNode::new(settings, Port::new(0)).with_push(push),
            buses,
            ram,
            software,
            programs: Vec::new(),
            requests: VecDeque::new(),
            answers: VecDeque::new(),
            reads: VecDeque::new(),
            pushed_at: Instant::ZERO,
            waiting: None,
            config_read_starts: BTreeMap::new(),
            crossings: Default::default(),
            interrupted: false,
            reset: false,
            config_reads: Latency::default(),
        }
    }

    /// Makes a processor do all work of the host.
    pub(crate) fn set_processor(&mut self, processor: Option<Processor>) {
        self.crossings.iter_mut().for_each(|crossing| crossing.processor = processor.clone());
        self.software.processor = processor;
    }

    /// When work that begins at `now` ends.
    fn after(&self, now: Instant, span: Duration) -> Instant {
        after(self.software.processor.as_ref(), now, span)
    }

    /// Errors counted in the root complex.
    pub(crate) fn errors(&self) -> &pcie::Errors {
        self.node.root().errors()
    }

    /// Whether the host's workload is done, and its last doorbells have left a busy processor.
    pub(crate) fn is_done(&self) -> bool {
        let left = self.requests.is_empty() && self.node.below().down.is_empty();
        self.software.is_done() && (left || self.software.processor.is_none())
    }

    /// Whether the host pushes bytes.
    pub(crate) fn pushes(&self) -> bool {
        self.config.push != Mode::Off
    }

    /// Counters of push.
    pub(crate) fn pushed(&self) -> Pushed {
        self.node.push_counters().into()
    }

    /// Runs a program in addition to the workload, on its own bus.
    pub(crate) fn run_program<T: Future<Output = ()> + 'static>(
        &mut self,
        work: impl FnOnce(Bus) -> T,
    ) {
        let bus = self.buses.new_bus();
        self.programs.push(Task::new(&bus, work(bus.clone())));
    }

    /// Handles a change of a link with `drives` behind it. After a lost link, the functions on
    /// `buses` need Bus Master Enable again.
    pub(crate) fn link_changed(
        &mut self,
        now: Instant,
        (up, buses): (bool, RangeInclusive<u8>),
        drives: impl IntoIterator<Item = usize>,
        tracker: &mut Tracker,
    ) {
        if !up {
            self.node.clear_bus_masters(buses);
        }
        for drive in drives {
            self.software.link_changed(now, drive, up, tracker);
        }
    }

    /// Runs until no work is left now. Returns the next wake-up.
    pub(crate) fn run(
        &mut self,
        link: &mut Link,
        (below, rooms, interrupted): (Component, PushRooms, bool),
        context: &mut Context,
    ) -> Option<Instant> {
        let now = context.now;
        let port = self.node.below_mut();
        port.set_push_rooms(rooms, link.down.posted_on_the_way());
        port.interrupted = interrupted;
        self.receive_below(link, context);
        self.complete_reads(now);
        self.deliver_answers(now);
        let (software, wait) = loop {
            let software = self.software.run(now, context.tracker);
            self.programs.retain_mut(|program| program.poll(now).is_none());
            self.take_requests(now);
            self.interrupted = false;
            let wait = self.serve(link, context);
            if !self.interrupted {
                break (software, wait);
            }
        };
        let next = earliest([link.down.next_arrival(), link.up.next_credits()]);
        context.kernel.arm_by_next(below, next);
        context.observe_commands(self.number);
        let sent = self.node.below().down.is_empty();
        earliest([
            wait.until,
            software,
            link.up.next_arrival(),
            link.down.next_ready(now).filter(|_| wait.receiver || !sent),
            Some(self.pushed_at).filter(|at| *at > now && !sent),
            // Due requests wait for room in the root complex.
            self.requests.front().map(|(at, ..)| *at).filter(|at| *at > now),
            self.answers.front().map(|(at, ..)| *at),
            self.buses.timer(),
            self.reads.front().map(|(at, ..)| *at),
        ])
    }

    fn receive_below(&mut self, link: &mut Link, context: &mut Context) {
        let now = context.now;
        self.catch_up(link, context);
        link.up.arrive(now, &mut link.down);
        self.take_up(link, context);
    }

    /// Takes arrived TLPs while there is room. Returns whether there was any.
    fn take_up(&mut self, link: &mut Link, context: &mut Context) -> bool {
        let mut any = false;
        let now = context.now;
        while let Some(received) = link.up.take(now, self.node.below().room_up(), &mut link.down) {
            self.receive(now, received, context);
            any = true;
        }
        any
    }

    /// Handles the TLPs that the link has deferred since the last run, so that memory has their
    /// data before software reads it.
    pub(crate) fn catch_up(&mut self, link: &mut Link, context: &mut Context) {
        link.take_deferred_up(context.now);
        self.node.below_mut().link = Ready::NONE;
        while let Some((at, received)) = link.up.next_deferred() {
            self.receive(at, received, context);
            if at == context.now {
                continue;
            }
            while let Output::Host(HostOutput::HostWrite { address, data, .. }) = self.node.poll(at)
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
            && let Some(since) = self.config_read_starts.remove(&c.tag.get())
        {
            self.config_reads.record(received.started - since);
        }
        self.crossings[0].pass(at, &tlp);
        let journey = context.end_journey(at, &mut tlp);
        context.tracker.reaches_root(&tlp, journey);
        self.node.below_mut().up.push(tlp);
    }

    /// Writes to memory. Ignores a write that is not completely within the memory.
    fn write(&self, address: u64, data: &[u8]) {
        if let Some(place) = self.ram.borrow_mut().get_mut(address, data.len()) {
            place.copy_from_slice(data);
        }
    }

    fn complete_reads(&mut self, now: Instant) {
        while let Some((_, token, address, length)) = pop_if(&mut self.reads, |(at, ..)| *at <= now)
        {
            let data = self.ram.borrow_mut().get(address, length).map(Bytes::copy_from_slice);
            self.node.handle(now, Input::HostData(token, data));
        }
    }

    fn deliver_answers(&mut self, now: Instant) {
        while let Some((_, id, value)) = pop_if(&mut self.answers, |(at, ..)| *at <= now) {
            self.buses.answer(id, value);
        }
        self.buses.wake(now);
    }

    fn take_requests(&mut self, now: Instant) {
        while let Some((id, request)) = self.buses.next_request(now, |_| true) {
            self.requests.push_back((self.after(now, self.config.mmio), id, request));
        }
        while let Some((_, id, request)) =
            pop_if(&mut self.requests, |(at, _, request)| *at <= now && self.node.accepts(request))
        {
            self.node.handle(now, Input::Request(id, request));
        }
    }

    /// The node's next output. Push messages leave only when host memory has delivered their bytes.
    fn poll(&mut self, now: Instant, ready: Ready, link: &Link) -> Output {
        let mut memory = Memory { ram: &self.ram, reads: 0, end: 0 };
        self.node.below_mut().link = ready;
        let output = self.node.poll_with(now, &mut memory);
        // Without push the node reads admin entries only to follow the controller.
        if memory.reads > 0 && self.pushes() {
            let time = Duration::from_ps(self.config.memory_read.as_ps() * memory.reads);
            self.pushed_at = self.after(self.pushed_at.max(now), time);
        }
        if self.waiting.is_none() && !self.node.below().down.is_empty() {
            self.waiting = Some(Waiting { since: now, start: link.down.next_start(now) });
        }
        output
    }

    /// Executes the node's actions. Returns what the node waits for.
    fn serve(&mut self, link: &mut Link, context: &mut Context) -> Wait {
        let now = context.now;
        loop {
            let ready = link.down.ready(now, self.config.max_payload);
            let output = self.poll(now, ready, link);
            let ready =
                ready.with(Class::Posted, ready.has(Class::Posted) && now >= self.pushed_at);
            let sent = self.node.below_mut().down.pop(ready);
            let mut moved = sent.is_some();
            sent.into_iter().for_each(|tlp| self.send(link, tlp, context));
            self.waiting = self.waiting.filter(|_| !self.node.below().down.is_empty());
            match output {
                Output::Host(HostOutput::Answer(id, value)) => {
                    self.answers.push_back((self.after(now, self.config.mmio), id, value));
                }
                Output::Host(HostOutput::HostRead { token, address, length, .. }) => {
                    let at = self.after(now, self.config.memory_read);
                    self.reads.push_back((at, token, address, length));
                }
                Output::Host(HostOutput::HostWrite { address, data, .. }) => {
                    self.write(address, &data)
                }
                Output::Host(HostOutput::Interrupt { requester, data }) => {
                    self.software.interrupt(now, requester, data, context.tracker);
                    self.interrupted = true;
                }
                Output::Host(HostOutput::Intx { wire, level }) => {
                    self.software.wire(wire, level);
                    self.interrupted = true;
                }
                Output::Wait(wait) => {
                    if self.node.below_mut().pass_reset(now, link, context.journeys) {
                        (self.reset, self.waiting) = (true, None);
                    }
                    moved |= self.take_up(link, context);
                    if !moved {
                        return wait;
                    }
                }
            }
        }
    }

    fn send(&mut self, link: &mut Link, mut tlp: Tlp, context: &mut Context) {
        let now = context.now;
        let start = link.down.next_start(now);
        if let Packet::ConfigRead(read) = tlp.packet {
            self.config_read_starts.insert(read.tag.get(), start);
        }
        context.observe(start, Point::RootPort(self.number), false, &tlp);
        // Push messages have no journey: their time belongs to the request behind them.
        if !matches!(tlp.packet, Packet::Message(_)) {
            let waiting = self.waiting.unwrap_or(Waiting { since: now, start });
            let acknowledged =
                start + link.down.tlp_time(&tlp) + link.down.propagation + link.up.dllp_time();
            let times = [waiting.since, waiting.start, acknowledged];
            let mut journey = context.tracker.leaves_root(times, &tlp);
            journey.advance(self.pushed_at.min(now), Stage::HostMemory);
            journey.advance(now, Stage::Pcie);
            tlp.trace_id = context.journeys.insert(journey);
        }
        self.crossings[1].pass(now, &tlp);
        link.down.send(now, tlp);
    }
}
