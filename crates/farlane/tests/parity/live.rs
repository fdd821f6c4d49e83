//! The live runner with a scripted network: the test sets the clock, decides when a connection is
//! readable, what reads return, and how many bytes writes accept.

use super::network::Script;
use super::script::{self, Setup};
use super::{Run, Write};
use analysis::trace::PortFollower;
use bytes::{Bytes, BytesMut};
use live::attached::Switch;
use live::host::{Memory, RamMemory, ReadOutcome};
use live::links::{LinkEvent, Links};
use live::net::{CarrierListener, RawSettings};
use live::trace::Settings;
use live::{Attached, Clock, DeviceNode, HostIo, NvmeDrive, Poller, Tracer, Waiting};
use node::push::{self, Mode};
use nvme::block::{Completion, Operation, Request};
use nvme::{Config, NamespaceConfig, Settings as DriveSettings, Subsystem};
use pcie::root::ReadToken;
use pcie::software::Task;
use pcie::{Bus, Ram};
use rustix::event::{EventfdFlags, eventfd};
use sim::transport::{End, Pipe};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use storage::media::{Media, RamMedia};
use wire::frame::Role;
use wire::trace::{NodeRole, PayloadKey};
use wire::{Bdf, Duration, Instant};

/// Memory that answers at the times of the script.
struct SlowMemory {
    memory: RamMemory,
    takes: Duration,
    reads: VecDeque<(Instant, ReadToken, u64, usize)>,
}

impl Memory for SlowMemory {
    fn read(
        &mut self,
        now: Instant,
        _: Bdf,
        (address, length): (u64, usize),
        token: &ReadToken,
    ) -> ReadOutcome {
        self.reads.push_back((now + self.takes, token.clone(), address, length));
        ReadOutcome::Pending
    }

    fn peek(&mut self, requester: Bdf, range: (u64, usize), out: &mut BytesMut) -> bool {
        self.memory.peek(requester, range, out)
    }

    fn write(&mut self, now: Instant, requester: Bdf, address: u64, data: &[u8]) {
        self.memory.write(now, requester, address, data);
    }

    fn interrupt(&mut self, requester: Bdf, data: u32) {
        self.memory.interrupt(requester, data);
    }

    fn wire(&mut self, wire: u8, level: bool) {
        self.memory.wire(wire, level);
    }
}

type Pending = Arc<Mutex<BTreeMap<(Instant, u64), Request>>>;

/// Media that answer at the times of the script.
struct SlowMedia {
    clock: Clock,
    media: RamMedia,
    asked: u64,
    /// Time at which the last read ends.
    free: Instant,
    pending: Pending,
    /// A descriptor that is always readable, so that the node polls the media in every turn.
    signal: OwnedFd,
}

impl Media for SlowMedia {
    fn start(&mut self, request: Request) -> Option<Completion> {
        let now = self.clock.now();
        let due = match request.operation {
            Operation::Read { length, .. } => {
                let pages = (length / 4096) as u64;
                let span = Duration::from_ps(script::SENSE.as_ps() * pages);
                self.free = self.free.max(now + script::MEDIA[0]) + span;
                self.free
            }
            _ => now + script::MEDIA[1],
        };
        self.asked += 1;
        self.pending.lock().unwrap().insert((due, self.asked), request);
        None
    }

    fn poll_completion(&mut self) -> Option<(u64, Completion)> {
        let mut pending = self.pending.lock().unwrap();
        let first = pending.first_entry().filter(|first| first.key().0 <= self.clock.now())?;
        let request = first.remove();
        let id = request.id;
        Some((id, self.media.start(request).expect("RAM answers at once")))
    }

    fn signal(&self) -> Option<BorrowedFd<'_>> {
        Some(self.signal.as_fd())
    }

    fn size(&self) -> u64 {
        self.media.size()
    }

    fn read_only(&self) -> bool {
        false
    }

    fn incarnation(&self) -> u64 {
        1
    }

    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a drive with the settings of the simulator's drive.
pub fn subsystem(push: Mode) -> Subsystem {
    let namespace = NamespaceConfig { block_shift: 9, ..NamespaceConfig::new(script::SIZE >> 9) };
    let settings = DriveSettings {
        io_queues: 1,
        max_transfer_shift: 5,
        max_payload: script::MAX_PAYLOAD,
        read_request: script::MAX_PAYLOAD,
        reads_in_flight: script::reads_in_flight(push),
        ..DriveSettings::default()
    };
    let config = Config { settings, ..Config::new(script::SERIAL, vec![namespace]) };
    Subsystem::new(Instant::ZERO, &config)
}

fn path(folder: &Path, role: NodeRole) -> PathBuf {
    folder.join(if role == NodeRole::Host { "live" } else { "live.device0" })
}

/// Creates the trace of a node.
pub fn tracer(folder: &Path, role: NodeRole, clock: Clock) -> io::Result<Tracer> {
    // The key is the same as in simulations.
    let key = PayloadKey::PUBLIC;
    let settings = Settings { path: path(folder, role), ring: None, snap: None, key };
    let follower = Box::new(PortFollower::recording());
    let instance = 1 + u64::from(role != NodeRole::Host);
    let on_error = Box::new(|error: &std::io::Error| panic!("{error}"));
    Tracer::create(&settings, role, instance, clock, Some(follower), on_error)
}

/// Creates the host node with its trace.
pub fn machine(
    folder: &Path,
    clock: Clock,
    root: pcie::root::Settings,
    push: Mode,
    links: Links,
) -> io::Result<HostIo<Switch>> {
    let (tunnel, max_payload) = (script::tunnel(Role::Host, push), script::MAX_PAYLOAD);
    let settings = switch::upstream::Settings { ports: 1, max_payload, p2p: false, tunnel };
    let switch = Switch::new(settings, links).traced(tracer(folder, NodeRole::Host, clock)?);
    let push = push::Settings { mode: push, ..push::Settings::default() };
    Ok(HostIo::new(clock, Poller::new(Waiting::Block)?, root, switch)?.with_push(push))
}

/// Returns the result of a run. The device node must have closed its trace.
pub fn run_of(folder: &Path, host: &HostIo<Switch>, sent: Vec<Write>, ram: &mut Ram) -> Run {
    host.attached().tracer().finish().expect("the trace is written");
    let counters = host.attached().upstream().tunnel(0).counters();
    let traces = [NodeRole::Host, NodeRole::Device].map(|role| path(folder, role));
    let tlps = [counters.tlps_sent, counters.tlps_received];
    Run::new([&traces[0], &traces[1]], sent, ram, tlps)
}

const ENDS: [End; 2] = [End::Host, End::Device];

struct Nodes {
    clock: Clock,
    /// Time of the nodes' clock at time 0 of the script.
    uptime: Instant,
    host: HostIo<Switch>,
    memory: SlowMemory,
    device: DeviceNode<NvmeDrive>,
    pending: Pending,
    pipe: Pipe,
    scripts: [Script; 2],
    /// Whether each end has received the event that it can connect.
    offered: [bool; 2],
    sent: Vec<Write>,
}

impl Nodes {
    fn new(folder: &Path, setup: Setup, uptime: Instant) -> io::Result<Self> {
        let push = setup.push;
        let clock = Clock::scripted();
        clock.set(uptime);
        let scripts = [Script::new()?, Script::new()?];
        let links = Links::new(&[scripts[0].address()]);
        let host = machine(folder, clock, script::ROOT, push, links)?;
        let ram = Rc::new(RefCell::new(Ram::new(script::RAM.0, script::RAM.1)));
        let memory = SlowMemory {
            memory: RamMemory::new(ram),
            takes: script::memory(push),
            reads: VecDeque::new(),
        };
        let pending = Pending::default();
        let media = SlowMedia {
            clock,
            media: RamMedia::new(script::SIZE),
            asked: 0,
            free: uptime,
            pending: pending.clone(),
            signal: eventfd(1, EventfdFlags::NONBLOCK)?,
        };
        let media: Box<dyn Media> = Box::new(media);
        let drive = NvmeDrive::new(subsystem(push), BTreeMap::from([(1, media)])).traced(tracer(
            folder,
            NodeRole::Device,
            clock,
        )?);
        let drive = drive.with_faults(setup.faults());
        let listener = CarrierListener::bind(&scripts[1].address(), RawSettings::default())?;
        let settings = script::tunnel(Role::Device, push);
        let device =
            DeviceNode::new(clock, Poller::new(Waiting::Block)?, listener, settings, drive)?;
        let (pipe, offered) = (Pipe::new(script::LINK), [false; 2]);
        let sent = Vec::new();
        Ok(Self { clock, uptime, host, memory, device, pending, pipe, scripts, offered, sent })
    }

    /// Converts a time of the script to the time of the nodes' clock.
    fn clock_time(&self, script: Instant) -> Instant {
        self.uptime + (script - Instant::ZERO)
    }

    fn script_time(&self, clock: Instant) -> Instant {
        Instant::ZERO + (clock - self.uptime)
    }

    /// Updates the connections of both ends to the state of the link at `now` in the script.
    fn network(&mut self, now: Instant) {
        for (index, end) in ENDS.into_iter().enumerate() {
            let script = &self.scripts[index];
            if self.pipe.is_closed(now, end) {
                script.lose();
                self.pipe.reopen(now, end);
                self.offered[index] = false;
            } else if !self.offered[index] && self.pipe.is_connected(now, end) {
                script.offer();
                self.offered[index] = true;
            }
            while let Some(bytes) = self.pipe.take(now, end) {
                script.give(bytes);
            }
            script.set_room(self.pipe.room(now, end));
        }
    }

    /// Sends the bytes that the nodes have written. Returns whether there were any.
    fn collect(&mut self, now: Instant) -> bool {
        let mut any = false;
        for (index, end) in ENDS.into_iter().enumerate() {
            for bytes in self.scripts[index].take_sent() {
                any = true;
                self.sent.push((now, ["host", "device"][index], bytes.to_vec()));
                self.pipe.send(now, end, bytes);
            }
        }
        any
    }

    /// Runs everything that happens at `now`. Returns the time of the next event.
    fn step(&mut self, now: Instant, task: &mut Option<Task<()>>) -> io::Result<Instant> {
        let clock = self.clock_time(now);
        self.clock.set(clock);
        self.network(now);
        for _ in 0..10_000 {
            while self.memory.reads.front().is_some_and(|(due, ..)| *due <= clock) {
                let (_, token, at, length) = self.memory.reads.pop_front().expect("just seen");
                let mut ram = self.memory.memory.ram.borrow_mut();
                let data = ram.get(at, length).map(Bytes::copy_from_slice);
                drop(ram);
                self.host.complete_read(token, data);
            }
            if task.as_mut().is_some_and(|task| task.poll(clock).is_some()) {
                *task = None;
            }
            let (host, first) = self.host.pump(&mut self.memory)?;
            let (device, second) = self.device.turn(&mut |_| {})?;
            while let Some(event) = self.host.attached_mut().links_mut().event() {
                if let LinkEvent::Down { buses, .. } = event {
                    self.host.clear_bus_masters(buses);
                }
            }
            if self.collect(now) | host | device {
                continue;
            }
            let pending = self.pending.lock().unwrap();
            let media = pending.first_key_value().map(|((due, _), _)| *due);
            let memory = self.memory.reads.front().map(|(due, ..)| *due);
            let ends = ENDS.map(|end| self.pipe.next(now, end));
            let timers = [first, second, media, memory].map(|at| at.map(|at| self.script_time(at)));
            let next = timers.into_iter().chain(ends).flatten().min();
            let next = next.expect("there is a next tick");
            // Nodes write records only in turns without other work.
            if next > now {
                return Ok(next);
            }
        }
        panic!("at {now} the nodes find no end");
    }
}

/// Runs `software` with trace files in `folder`. The clocks of the nodes show `uptime`
/// at the start.
pub fn run<T: Future<Output = ()> + 'static>(
    folder: &Path,
    setup: Setup,
    uptime: Instant,
    software: impl FnOnce(Bus, Rc<RefCell<Ram>>) -> T,
) -> io::Result<Run> {
    let mut nodes = Nodes::new(folder, setup, uptime)?;
    let ram = nodes.memory.memory.ram.clone();
    let bus = nodes.host.new_bus();
    let mut task = Some(Task::new(&bus, software(bus.clone(), ram.clone())));
    let mut now = Instant::ZERO;
    while now <= script::END {
        now = nodes.step(now, &mut task)?;
    }
    assert!(task.is_none(), "the software has come to its end");
    nodes.device.attached_mut().tracer().finish()?;
    Ok(run_of(folder, &nodes.host, nodes.sent, &mut ram.borrow_mut()))
}
