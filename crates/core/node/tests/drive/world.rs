//! A host with a drive below its root port. A test decides when media and records answer.

use crate::software::{Software, apply, carry_out};
use node::drive::{ContentsId, DriveOutput};
use node::faults::{Fault, Faults};
use node::{DriveNode, HostNode};
use nvme::block::{Error, Request};
use nvme::state::{Records, State};
use nvme::{Commit, Settings, Subsystem};
use std::collections::BTreeMap;
use testkit::nvme::create_commands;
use wire::nvme::{Command, Completion};
use wire::{Duration, Instant};

/// Entries of the queues.
const ENTRIES: u16 = 16;
pub struct World {
    now: Instant,
    host: HostNode<DriveNode>,
    software: Software,
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
        let mut drive = DriveNode::new(subsystem.expect("a valid state"));
        drive.set_faults(faults);
        let sizes = state.namespaces.values().map(|one| vec![0; one.bytes() as usize]);
        let media = drive.contents().map(|(_, id)| id).zip(sizes).collect();
        let mut world = Self {
            now: Instant::ZERO,
            host: HostNode::new(Default::default(), drive),
            software: Software::new(ENTRIES),
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
        self.software.bar = self.enumerate();
        self.software.enable();
        self.settle();
        while self.commit.is_some() {
            self.store(Ok(()));
        }
        for command in create_commands(&self.software.pairs[1].clone()) {
            assert!(self.admin(command, Ok(())).status.is_success());
        }
    }

    fn enumerate(&mut self) -> u64 {
        let mut task = self.software.enumeration();
        loop {
            if let Some(bar) = task.poll(self.now) {
                return bar;
            }
            self.settle();
            self.now = self.software.buses.timer().unwrap_or(self.now).max(self.now);
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
            let moved = self.software.exchange(self.now, &mut self.host);
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
        let result = match failure {
            None => Ok(carry_out(bytes, request.operation)),
            Some(error) => Err(error),
        };
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
            apply(&mut self.records, changes);
        }
        self.settle();
    }

    pub fn put(&mut self, address: u64, bytes: &[u8]) {
        self.software.put(address, bytes);
    }

    pub fn load<const N: usize>(&mut self, address: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.software.ram.read(address, &mut bytes).expect("host memory");
        bytes
    }

    /// Sends a command to the admin queue (0) or the I/O queue (1). Returns its identifier.
    pub fn submit(&mut self, queue: usize, command: Command) -> u16 {
        let cid = self.software.submit(queue, &[command]);
        self.settle();
        cid
    }

    /// The next completion of a queue.
    pub fn reap(&mut self, queue: usize) -> Option<Completion> {
        let completion = self.software.reap(queue)?;
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
