//! A host and a drive on two nodes. The device node is killed at any step, and another process goes
//! on from its stored state, its records and its media.

use crate::software::{Software, apply, carry_out};
use bytes::Bytes;
use node::device::{Output as DeviceOutput, SavedNode};
use node::drive::DriveOutput;
use node::switch::Output as LinkOutput;
use node::{DeviceNode, DriveNode, HostNode, PathId, Rights, SwitchNode, path};
use nvme::block::Request;
use nvme::state::{Records, State};
use nvme::{Commit, Subsystem};
use stats::random::Random;
use std::collections::BTreeMap;
use switch::tunnel::Settings;
use switch::upstream;
use testkit::nvme::create_commands;
use wire::frame::Role;
use wire::nvme::{Command, Completion};
use wire::{Duration, Instant};

/// Entries of the queues.
const ENTRIES: u16 = 8;
const SURVIVE: Duration = Duration::from_ms(10_000);

/// What outlives a process.
struct Kept {
    records: Records,
    /// Contents of namespaces, by NSID.
    media: BTreeMap<u32, Vec<u8>>,
    state: Option<Vec<u8>>,
    payloads: BTreeMap<u64, Bytes>,
}

pub struct World {
    now: Instant,
    host: HostNode<SwitchNode>,
    pub software: Software,
    device: DeviceNode<DriveNode>,
    kept: Kept,
    /// Requests that the media have not answered.
    pending: Vec<(node::drive::ContentsId, Request)>,
    /// The change that is not stored yet.
    commit: Option<Commit>,
    /// Frames that leave when the state is stored.
    outgoing: Vec<Bytes>,
    /// Number of connections so far, which is the path of the last one.
    connections: u64,
    random: Random,
    /// When the process is killed.
    pub dies: Dies,
    /// Number of steps so far at which the process could be killed.
    pub steps: u64,
    /// Number of kills so far.
    pub kills: u64,
}

/// When the process is killed.
#[derive(Clone, Copy)]
pub enum Dies {
    Never,
    At(u64),
    OneIn(u64),
}

fn settings(role: Role) -> Settings {
    Settings { push: 1 << 20, survive: SURVIVE, ..Settings::new(role, 7) }
}

impl World {
    /// A drive in state `state` and its host, with an I/O queue pair.
    pub fn new(state: &State, seed: u64) -> Self {
        let media =
            state.namespaces.iter().map(|(nsid, one)| (*nsid, vec![0; one.bytes() as usize]));
        let (payloads, records) = (BTreeMap::new(), state.encode());
        let kept = Kept { records, media: media.collect(), state: None, payloads };
        let tunnel = settings(Role::Host);
        let top = upstream::Settings { ports: 1, max_payload: 512, p2p: false, tunnel };
        let mut world = Self {
            now: Instant::ZERO,
            host: HostNode::new(Default::default(), SwitchNode::new(top, None)),
            software: Software::new(ENTRIES),
            device: started(Instant::ZERO, &kept),
            kept,
            pending: Vec::new(),
            commit: None,
            outgoing: Vec::new(),
            connections: 0,
            random: Random::new(seed),
            dies: Dies::Never,
            steps: 0,
            kills: 0,
        };
        world.start();
        world
    }

    fn start(&mut self) {
        self.software.bar = self.enumerate();
        self.software.enable();
        self.settle();
        for command in create_commands(&self.software.pairs[1].clone()) {
            self.submit(0, &[command]);
            assert!(self.reap_all(0, 1)[0].status.is_success());
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

    /// The records of the drive.
    pub fn state(&self) -> State {
        State::decode(&self.kept.records).expect("valid records")
    }

    /// The contents of a namespace.
    pub fn media(&self, nsid: u32) -> &[u8] {
        &self.kept.media[&nsid]
    }

    /// Lets everything happen.
    pub fn settle(&mut self) {
        while self.host() | self.links() | self.drive() | self.storage() {
            self.now += Duration::from_ns(100);
        }
    }

    fn host(&mut self) -> bool {
        self.software.exchange(self.now, &mut self.host)
    }

    fn links(&mut self) -> bool {
        let mut moved = false;
        self.host.below_mut().handle_link(self.now, 0, path::Input::Room(1 << 16));
        loop {
            match self.host.below_mut().poll_links(self.now) {
                LinkOutput::Timeout(_) => return moved,
                LinkOutput::Connect { .. } => {
                    self.connections += 1;
                    let accepted = path::Input::Accepted {
                        signals_close: true,
                        rights: Rights::ALL,
                        peer: None,
                    };
                    self.device.handle(self.now, PathId(self.connections), accepted);
                    let links = self.host.below_mut();
                    links.handle_link(self.now, 0, path::Input::Connected);
                    links.handle_link(self.now, 0, path::Input::Room(1 << 16));
                }
                LinkOutput::Transmit { bytes, .. } => {
                    let path = PathId(self.connections);
                    self.device.handle(self.now, path, path::Input::Received(bytes));
                }
                _ => {}
            }
            moved = true;
        }
    }

    /// Moves what the device node does, as its runner: the state is stored before frames leave.
    fn drive(&mut self) -> bool {
        let path = PathId(self.connections);
        // With little room, packets wait between function and frames while the state is stored.
        let room = [64, 700, 1 << 16][self.random.below(3) as usize];
        self.device.handle(self.now, path, path::Input::Room(room));
        let mut moved = false;
        loop {
            match self.device.poll(self.now) {
                DeviceOutput::Transmit { bytes, .. } => self.outgoing.push(bytes),
                DeviceOutput::Timeout(_) => match self.must_save() {
                    true if self.release() => return true,
                    true => {}
                    false => return moved | self.collect(),
                },
                _ => {}
            }
            moved = true;
        }
    }

    fn must_save(&self) -> bool {
        !self.outgoing.is_empty() || self.device.function().subsystem().waits_for_save(1)
    }

    /// Stores the state and sends what waits for that. Returns whether the process was killed.
    fn release(&mut self) -> bool {
        // Media and records may be faster than the state.
        let kills = self.kills;
        if self.random.below(2) == 0 {
            self.collect();
            self.storage();
        }
        if self.kills > kills || self.dies() {
            return true;
        }
        let payloads = &mut self.kept.payloads;
        let mut place = |number: u64, payload: &Bytes| {
            payloads.insert(number, payload.clone());
            (number, payload.len() as u32)
        };
        let save = |drive: &mut DriveNode, unsent: &_| drive.subsystem_mut().save(1, unsent);
        let encoded = |saved: SavedNode| {
            let mut bytes = vec![0; 1 << 16];
            let length = saved.encode(&mut bytes).expect("a small state");
            bytes[..length].to_vec()
        };
        self.kept.state = self.device.save(save, &mut place).map(encoded);
        self.device.function_mut();
        for bytes in std::mem::take(&mut self.outgoing) {
            if self.dies() {
                return true;
            }
            self.host.below_mut().handle_link(self.now, 0, path::Input::Received(bytes));
        }
        false
    }

    /// Collects the drive's requests to media and records.
    fn collect(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.device.function_mut().poll_drive() {
            any = true;
            match output {
                DriveOutput::Block(contents, request) => self.pending.push((contents, request)),
                DriveOutput::Store(commit) => self.commit = Some(commit),
                DriveOutput::Fail(..) => unreachable!("there are no faults"),
                DriveOutput::Close(_) => {}
            }
        }
        any
    }

    /// Carries out one request of the drive.
    fn storage(&mut self) -> bool {
        if let Some(Commit { create, changes, remove, .. }) = self.commit.take() {
            apply(&mut self.kept.records, changes);
            if let Some(new) = create {
                self.kept.media.insert(new.nsid, vec![0; new.bytes as usize]);
            }
            for old in remove {
                self.kept.media.remove(&old.nsid);
            }
            if !self.dies() {
                self.device.function_mut().complete_store(self.now, Ok(()));
            }
            return true;
        }
        if self.pending.is_empty() {
            return false;
        }
        let index = self.random.below(self.pending.len() as u64) as usize;
        let (contents, Request { id, operation, .. }) = self.pending.swap_remove(index);
        let bytes = self.kept.media.get_mut(&contents.nsid()).expect("a namespace");
        let data = carry_out(bytes, operation);
        if !self.dies() {
            self.device.function_mut().complete_block(self.now, contents, id, Ok(data));
        }
        true
    }

    /// Kills the process, if it is to die at this step; returns whether it did.
    fn dies(&mut self) -> bool {
        self.steps += 1;
        let dies = match self.dies {
            Dies::Never => false,
            Dies::At(step) => step == self.steps,
            Dies::OneIn(steps) => self.random.below(steps) == 0,
        };
        if dies {
            self.kills += 1;
            self.kill();
        }
        dies
    }

    fn kill(&mut self) {
        self.pending.clear();
        self.commit = None;
        self.outgoing.clear();
        self.device = started(self.now, &self.kept);
        self.host.below_mut().handle_link(self.now, 0, path::Input::Closed);
        self.now += Duration::from_ms(200);
    }

    /// Sends commands to the admin queue (0) or the I/O queue (1).
    pub fn submit(&mut self, queue: usize, commands: &[Command]) {
        self.software.submit(queue, commands);
    }

    /// Waits for this number of completions, in the order of the commands. Each command is answered
    /// once.
    pub fn reap_all(&mut self, queue: usize, count: u16) -> Vec<Completion> {
        let first = self.software.commands - count + 1;
        let mut done = BTreeMap::new();
        for _ in 0..1_000 {
            self.settle();
            while let Some(completion) = self.reap(queue) {
                assert!((first..first + count).contains(&completion.cid), "{completion:?}");
                assert!(done.insert(completion.cid, completion).is_none(), "answered twice");
            }
            if done.len() == usize::from(count) {
                return done.into_values().collect();
            }
            self.now += Duration::from_ms(10);
        }
        panic!("{} of {count} commands were answered", done.len());
    }

    /// The next completion of a queue.
    pub fn reap(&mut self, queue: usize) -> Option<Completion> {
        let completion = self.software.reap(queue)?;
        self.settle();
        Some(completion)
    }
}

/// A process that finds what is kept.
fn started(now: Instant, kept: &Kept) -> DeviceNode<DriveNode> {
    let settings = settings(Role::Device);
    let nvme = nvme::Settings::default();
    let Some(state) = &kept.state else {
        let mut subsystem = Subsystem::open(now, nvme, &kept.records).expect("valid records");
        subsystem.keep();
        return DeviceNode::new(settings, DriveNode::new(subsystem));
    };
    let saved = SavedNode::decode(state).expect("a stored state");
    let mut subsystem = Subsystem::reopen(now, nvme, &kept.records).expect("valid records");
    subsystem.keep();
    subsystem.restore(now, 1, &saved.link.function).expect("a stored state");
    let mut node = DeviceNode::new(settings, DriveNode::new(subsystem));
    let payloads = &mut |(number, _)| kept.payloads.get(&number).cloned();
    node.restore(now, saved, payloads).expect("a stored state");
    node
}
