//! A host with a drive below its root port. A test decides when media and records answer.

use bytes::Bytes;
use node::drive::{ContentsId, DriveOutput};
use node::faults::{Fault, Faults};
use node::host::{Buses, Input, Output};
use node::{DriveNode, HostNode};
use nvme::block::{Error, Operation, Request};
use nvme::state::{Records, State};
use nvme::{Commit, Settings, Subsystem};
use pcie::root::HostOutput;
use pcie::software::Task;
use pcie::{Bus, Ram, enumerate};
use std::collections::BTreeMap;
use testkit::nvme::{Pair, QUEUES, admin_sizes, create_commands, entry_sizes};
use wire::nvme::register::{ACQ, AQA, ASQ, CC, Configuration, Doorbell};
use wire::nvme::{Command, Completion};
use wire::{Duration, Instant};

/// Entries of the queues.
const ENTRIES: u16 = 16;
/// Host memory: queues, and then pages for data.
const MEMORY: usize = 0x8_0000;

/// A page for data.
pub fn page(number: u64) -> u64 {
    QUEUES + 0x4_0000 + number * 4096
}

pub struct World {
    now: Instant,
    host: HostNode<DriveNode>,
    buses: Buses,
    bus: Bus,
    ram: Ram,
    bar: u64,
    pairs: [Pair; 2],
    commands: u16,
    /// The drive's stored records.
    pub records: Records,
    pub media: BTreeMap<ContentsId, Vec<u8>>,
    /// Requests that the media have not answered.
    pub pending: Vec<(ContentsId, Request)>,
    /// The change that is not stored yet.
    pub commit: Option<Commit>,
    /// Number of contents closed.
    pub closed: usize,
}

impl World {
    /// A drive in state `state`, with an I/O queue pair.
    pub fn new(state: &State) -> Self {
        Self::with_faults(state, Faults::default())
    }

    /// As [`new`](Self::new), with faults of the drive.
    pub fn with_faults(state: &State, faults: Faults) -> Self {
        let records = state.encode();
        let subsystem = Subsystem::open(Instant::ZERO, Settings::default(), &records);
        let drive = DriveNode::new(subsystem.expect("a valid state")).with_faults(faults);
        let sizes = state.namespaces.values().map(|one| vec![0; one.bytes() as usize]);
        let media = drive.contents().map(|(_, id)| id).zip(sizes).collect();
        let mut buses = Buses::default();
        let mut world = Self {
            now: Instant::ZERO,
            host: HostNode::new(Default::default(), drive),
            bus: buses.new_bus(),
            buses,
            ram: Ram::new(QUEUES, MEMORY),
            bar: 0,
            pairs: [0, 1].map(|id| Pair::new(id, ENTRIES)),
            commands: 0,
            records,
            media,
            pending: Vec::new(),
            commit: None,
            closed: 0,
        };
        world.start();
        world
    }

    fn start(&mut self) {
        self.bar = self.enumerate();
        let [admin, io] = self.pairs.clone();
        self.bus.write(self.bar + AQA, 4, admin_sizes(ENTRIES));
        self.bus.write(self.bar + ASQ, 8, admin.sq());
        self.bus.write(self.bar + ACQ, 8, admin.cq());
        let on = Configuration { enable: true, ..entry_sizes() };
        self.bus.write(self.bar + CC, 4, on.bits().into());
        self.settle();
        while self.commit.is_some() {
            self.store(Ok(()));
        }
        for command in create_commands(&io) {
            assert!(self.admin(command, Ok(())).status.is_success());
        }
    }

    fn enumerate(&mut self) -> u64 {
        let bus = self.bus.clone();
        let mut task = Task::new(&self.bus.clone(), async move {
            let hierarchy = enumerate::enumerate(bus.clone(), enumerate::Settings::default());
            let hierarchy = hierarchy.await.expect("enumerated");
            let node = hierarchy.endpoints()[0].clone();
            enumerate::enable_bus_master(&bus, node.bdf, true).await;
            node.bar(0).expect("BAR 0").address
        });
        loop {
            if let Some(bar) = task.poll(self.now) {
                return bar;
            }
            self.settle();
            self.now = self.buses.timer().unwrap_or(self.now).max(self.now);
        }
    }

    /// The present time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Moves the time on.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
        self.settle();
    }

    /// The faults that have begun since the last call.
    pub fn begun(&mut self) -> Vec<String> {
        let drive = self.host.below_mut();
        let begun = std::iter::from_fn(|| drive.poll_fault());
        begun.map(|(_, fault): (_, Fault)| fault.to_string()).collect()
    }

    /// Number of poisoned TLPs that the root complex counted.
    pub fn poisoned(&self) -> u64 {
        self.host.root().errors().poisoned
    }

    pub fn drive(&self) -> &DriveNode {
        self.host.below()
    }

    /// Lets everything happen that needs neither media nor records.
    pub fn settle(&mut self) {
        loop {
            self.now += Duration::from_ns(100);
            let mut moved = self.buses.wake(self.now);
            while let Some((id, request)) = self.buses.next_request(self.now, |_| true) {
                self.host.handle(self.now, Input::Request(id, request));
                moved = true;
            }
            while let Output::Host(output) = self.host.poll(self.now) {
                match output {
                    HostOutput::Answer(id, value) => self.buses.answer(id, value),
                    HostOutput::HostRead { token, address, length, .. } => {
                        let data = self.ram.get(address, length).map(Bytes::copy_from_slice);
                        self.host.handle(self.now, Input::HostData(token, data));
                    }
                    HostOutput::HostWrite { address, data, .. } => self.put(address, &data),
                    _ => {}
                }
                moved = true;
            }
            if !moved & !self.collect() {
                return;
            }
        }
    }

    /// Collects the drive's requests to media and records.
    fn collect(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.host.below_mut().poll_drive() {
            any = true;
            match output {
                DriveOutput::Block(contents, request) => {
                    assert!(self.media.contains_key(&contents), "a request for what is closed");
                    self.pending.push((contents, request));
                }
                DriveOutput::Fail(contents, id, error) => {
                    let now = self.now;
                    self.host.below_mut().complete_block(now, contents, id, Err(error));
                }
                DriveOutput::Store(commit) => {
                    assert!(self.commit.replace(commit).is_none(), "one change at a time");
                }
                DriveOutput::Close(contents) => {
                    let under_way = self.pending.iter().any(|(id, _)| *id == contents);
                    assert!(!under_way, "closed while requests are under way");
                    assert!(self.media.remove(&contents).is_some(), "closed twice");
                    self.closed += 1;
                }
            }
        }
        any
    }

    /// Carries out a request as the media, or fails it.
    pub fn serve(&mut self, index: usize, failure: Option<Error>) {
        let (contents, request) = self.pending.swap_remove(index);
        let bytes = self.media.get_mut(&contents).expect("not closed");
        let range = |offset: u64, length: u64| offset as usize..(offset + length) as usize;
        let data = match request.operation {
            _ if failure.is_some() => Bytes::new(),
            Operation::Read { offset, length } => {
                Bytes::copy_from_slice(&bytes[range(offset, length as u64)])
            }
            Operation::Write { offset, data } => {
                bytes[range(offset, data.len() as u64)].copy_from_slice(&data);
                Bytes::new()
            }
            Operation::WriteZeroes { offset, length } | Operation::Discard { offset, length } => {
                bytes[range(offset, length)].fill(0);
                Bytes::new()
            }
            Operation::Flush => Bytes::new(),
        };
        let result = failure.map_or(Ok(data), Err);
        self.host.below_mut().complete_block(self.now, contents, request.id, result);
        self.settle();
    }

    /// Answers the pending change: stored or failed.
    pub fn store(&mut self, result: Result<(), Error>) {
        let Commit { create, changes, .. } = self.commit.take().expect("a change");
        let created = self.host.below_mut().complete_store(self.now, result);
        assert_eq!(created.is_some(), create.is_some() && result.is_ok());
        if let (Some(id), Some(new)) = (created, create) {
            assert!(self.media.insert(id, vec![0; new.bytes as usize]).is_none(), "{id:?} twice");
        }
        if result.is_ok() {
            for (key, bytes) in changes {
                match bytes {
                    Some(bytes) => self.records.insert(key, bytes),
                    None => self.records.remove(&key),
                };
            }
        }
        self.settle();
    }

    pub fn put(&mut self, address: u64, bytes: &[u8]) {
        self.ram.write(address, bytes).expect("host memory");
    }

    pub fn load<const N: usize>(&mut self, address: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.ram.read(address, &mut bytes).expect("host memory");
        bytes
    }

    /// Sends a command to the admin queue (0) or the I/O queue (1). Returns its identifier.
    pub fn submit(&mut self, queue: usize, command: Command) -> u16 {
        self.commands += 1;
        let pair = &mut self.pairs[queue];
        pair.put(&mut self.ram, Command { cid: self.commands, ..command });
        let (tail, doorbell) = (pair.tail, Doorbell::SubmissionTail(pair.id));
        self.bus.write(self.bar + doorbell.offset(0), 4, tail.into());
        self.settle();
        self.commands
    }

    /// The next completion of a queue.
    pub fn reap(&mut self, queue: usize) -> Option<Completion> {
        let pair = &mut self.pairs[queue];
        let completion = pair.take(&mut self.ram)?;
        let (head, doorbell) = (pair.head, Doorbell::CompletionHead(pair.id));
        self.bus.write(self.bar + doorbell.offset(0), 4, head.into());
        self.settle();
        Some(completion)
    }

    /// Runs an admin command, whose changes are stored or fail. Requests of I/O commands stay
    /// outstanding.
    pub fn admin(&mut self, command: Command, stored: Result<(), Error>) -> Completion {
        self.submit(0, command);
        loop {
            if let Some(done) = self.reap(0) {
                return done;
            }
            let own = self
                .pending
                .iter()
                .rposition(|(_, request)| request.command.is_none_or(|command| command.queue == 0));
            match own {
                Some(index) => self.serve(index, None),
                None => self.store(stored),
            }
        }
    }
}
