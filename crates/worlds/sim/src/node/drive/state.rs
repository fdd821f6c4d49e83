//! A drive, which all its controllers share: namespaces, reservations, media and records. Records are
//! stored without delay.

use crate::drive::{Access, DriveConfig, MAX_TRANSFER_SHIFT, Media, Pace, Store};
use bytes::Bytes;
use node::drive::{ContentsId, DriveOutput, FIRST};
use node::faults::FaultKind;
use nvme::block::{Completion, Operation, Request};
use nvme::state::Records;
use nvme::{Commit, Config, NamespaceConfig, Settings, Subsystem};
use pcie::endpoint::Unsent;
use pcie::{Function, Input};
use stats::random::Random;
use std::collections::{BTreeMap, VecDeque};
use wire::Instant;
use wire::tlp::Tlp;
use workload::{Written, pattern};

/// Block size: 2^9 = 512 bytes.
const BLOCK_SHIFT: u8 = 9;

/// The contents of a namespace, and their offset on the media.
#[derive(Debug)]
struct Contents {
    first: u64,
    store: Store,
}

/// What a drive has from the world, besides its configuration.
#[derive(Debug)]
pub(crate) struct PowerOn {
    /// Number of I/O queues of each controller.
    pub queues: u16,
    /// The Host Identifier that is bound to each controller; empty for one controller without.
    pub hosts: Vec<[u8; 16]>,
    /// Random numbers of the media.
    pub rng: Random,
    /// Seed of the initial contents.
    pub seed: u64,
}

/// The state of a drive.
#[derive(Debug)]
pub(crate) struct DriveState {
    pub node: node::DriveNode,
    config: Config,
    hosts: Vec<[u8; 16]>,
    /// Records that survive a power loss; `None` for a volatile drive.
    records: Option<Records>,
    media: Box<dyn Media>,
    pub pace: Pace,
    contents: BTreeMap<ContentsId, Contents>,
    /// Offset of the next contents on the media.
    end: u64,
    loses_completions: bool,
    /// Whether the drive can be killed.
    keeps: bool,
    /// Requests of controllers that did not run when the drive began the requests.
    others: VecDeque<(ContentsId, Request)>,
    /// Whether something happened that may concern another controller.
    stirred: bool,
}

impl DriveState {
    pub(crate) fn new(config: &DriveConfig, PowerOn { queues, hosts, rng, seed }: PowerOn) -> Self {
        let namespace = |size: u64| NamespaceConfig {
            block_shift: BLOCK_SHIFT,
            ..NamespaceConfig::new(size >> BLOCK_SHIFT)
        };
        let namespaces = config.sizes().map(namespace).collect();
        let settings = Settings {
            io_queues: queues,
            max_transfer_shift: MAX_TRANSFER_SHIFT,
            max_payload: config.max_payload,
            read_request: config.read_request,
            reads_in_flight: config.reads_in_flight,
            ..Settings::default()
        };
        let identity = Config::new(config.serial.clone(), namespaces);
        let drive = Config { incarnation: seed, settings, ..identity };
        let mut state = drive.state();
        let controllers = hosts.len().max(1) as u16;
        state.attachments.values_mut().for_each(|ids| ids.extend(FIRST..=controllers));
        let records = (!config.volatile).then(|| state.encode());
        let mut node = power_on(Instant::ZERO, &drive, records.as_ref(), &hosts);
        node.set_faults(config.faults.iter().cloned().collect());
        let mut end = 0;
        let contents = node.contents().zip(config.sizes()).map(|((nsid, id), size)| {
            // Namespace 1 has the pattern of `seed`.
            let store = Store::new(seed.wrapping_add(u64::from(nsid) - 1));
            let contents = Contents { first: end, store };
            end += size;
            (id, contents)
        });
        let is_lost = |kind: &FaultKind| *kind == FaultKind::LostCompletion;
        Self {
            contents: contents.collect(),
            end,
            node,
            config: drive,
            hosts,
            records,
            media: (config.media)(&config.timing, rng),
            pace: Pace::new(config.timing.stream_rate),
            loses_completions: config.faults.iter().any(|fault| is_lost(&fault.kind)),
            keeps: false,
            others: VecDeque::new(),
            stirred: false,
        }
    }

    pub(super) fn is_volatile(&self) -> bool {
        self.records.is_none()
    }

    pub(super) fn has_several_controllers(&self) -> bool {
        self.hosts.len() > 1
    }

    pub(super) fn max_payload(&self) -> usize {
        self.config.settings.max_payload
    }

    pub(super) fn queues(&self) -> u16 {
        self.config.settings.io_queues
    }

    pub(super) fn incarnation(&self) -> u64 {
        self.config.incarnation
    }

    pub(super) fn loses_completions(&self) -> bool {
        self.loses_completions
    }

    pub(super) fn take_stirred(&mut self) -> bool {
        std::mem::take(&mut self.stirred)
    }

    pub(super) fn pattern(&self, nsid: u32) -> u64 {
        self.contents[&self.contents_of(nsid)].store.seed()
    }

    fn contents_of(&self, nsid: u32) -> ContentsId {
        self.node.contents().find(|(id, _)| *id == nsid).expect("a namespace").1
    }

    pub(super) fn compare(&mut self, nsid: u32, written: &[Written], all: bool) -> (u64, u64) {
        let contents = self.contents_of(nsid);
        let store = &mut self.contents.get_mut(&contents).expect("they are open").store;
        let seed = store.seed();
        let known = written.iter().filter_map(|w| Some((w.offset, w.length, w.version?)));
        let block = 1 << BLOCK_SHIFT;
        let is_written =
            |at: &u64| written.iter().any(|w| (w.offset..w.offset + w.length).contains(at));
        let blocks = store.written().flat_map(|range| range.step_by(block as usize));
        let others = blocks.filter(|at| all && !is_written(at)).map(|at| (at, block, 0));
        let ranges: Vec<_> = known.chain(others).collect();
        let differs = |(offset, length, version): &&(u64, u64, u32)| {
            !pattern::matches(seed, *offset, *version, &store.read(*offset, *length as usize))
        };
        (ranges.len() as u64, ranges.iter().filter(differs).count() as u64)
    }

    /// Passes an input to a controller.
    pub(super) fn handle(&mut self, now: Instant, controller: u16, input: Input) {
        self.stirred = true;
        self.node.port(controller).handle(now, input);
    }

    /// Passes the result of a request to the drive.
    pub(super) fn complete(
        &mut self,
        now: Instant,
        contents: ContentsId,
        id: u64,
        result: Completion,
    ) {
        self.stirred = true;
        self.node.complete_block(now, contents, id, result);
    }

    /// The next request that a controller starts, and whether the drive was given an answer before.
    pub(super) fn next_request(
        &mut self,
        now: Instant,
        controller: u16,
    ) -> (Option<(ContentsId, Request)>, bool) {
        let is_own =
            |request: &Request| [0, controller].contains(&Request::controller_of(request.id));
        if let Some(at) = self.others.iter().position(|(_, request)| is_own(request)) {
            return (self.others.remove(at), false);
        }
        let mut answered = false;
        while let Some(output) = self.node.poll_drive() {
            match output {
                DriveOutput::Block(contents, request) if is_own(&request) => {
                    return (Some((contents, request)), answered);
                }
                DriveOutput::Block(contents, request) => {
                    self.others.push_back((contents, request));
                    self.stirred = true;
                }
                DriveOutput::Store(commit) => {
                    self.store(now, commit);
                    answered = true;
                }
                DriveOutput::Fail(contents, id, error) => {
                    self.complete(now, contents, id, Err(error));
                    answered = true;
                }
                DriveOutput::Close(contents) => drop(self.contents.remove(&contents)),
            }
        }
        (None, answered)
    }

    /// Stores a change of records without delay.
    fn store(&mut self, now: Instant, commit: Commit) {
        let records = self.records.as_mut().expect("a volatile drive stores nothing");
        for (key, bytes) in commit.changes {
            match bytes {
                Some(bytes) => records.insert(key, bytes),
                None => records.remove(&key),
            };
        }
        self.stirred = true;
        let created = self.node.complete_store(now, Ok(()));
        if let (Some(id), Some(new)) = (created, commit.create) {
            let mut store = Store::new(self.config.incarnation);
            store.zero(0, new.bytes);
            self.contents.insert(id, Contents { first: self.end, store });
            self.end += new.bytes;
        }
    }

    /// How long an access that starts now takes.
    pub(super) fn access(
        &mut self,
        now: Instant,
        contents: ContentsId,
        operation: &Operation,
    ) -> Access {
        let first = self.contents[&contents].first;
        match operation {
            Operation::Read { offset, length } => self.media.read(now, first + offset, *length),
            Operation::Write { data, .. } => self.media.write(now, data.len()),
            _ => self.media.other(now),
        }
    }

    /// Executes an operation; returns the data of a read.
    pub(super) fn execute(&mut self, contents: ContentsId, operation: Operation) -> Bytes {
        let store = &mut self.contents.get_mut(&contents).expect("they are not closed").store;
        match operation {
            Operation::Read { offset, length } => return store.read(offset, length),
            Operation::Write { offset, data } => store.write(offset, &data),
            Operation::WriteZeroes { offset, length } | Operation::Discard { offset, length } => {
                store.zero(offset, length);
            }
            Operation::Flush => {}
        }
        Bytes::new()
    }

    pub(super) fn power_cycle(&mut self, now: Instant) {
        if self.is_volatile() {
            for contents in self.contents.values_mut() {
                contents.store = Store::new(contents.store.seed());
            }
            self.config.incarnation = self.config.incarnation.wrapping_add(1);
        }
        self.restart(now);
    }

    fn restart(&mut self, now: Instant) {
        self.replace(power_on(now, &self.config, self.records.as_ref(), &self.hosts));
    }

    pub(super) fn restart_with(&mut self, now: Instant, queues: u16) {
        self.config.settings.io_queues = queues;
        self.restart(now);
    }

    pub(super) fn keep(&mut self) {
        assert!(self.records.is_some(), "a volatile drive keeps nothing");
        self.keeps = true;
        self.node.subsystem_mut().keep();
    }

    pub(super) fn kill(&mut self, now: Instant, last: Vec<Tlp>, unsent: &Unsent) -> Bytes {
        last.into_iter().for_each(|tlp| self.node.handle(now, Input::Tlp(tlp)));
        let saved = self.node.subsystem_mut().save(FIRST, unsent);
        let records = self.records.as_ref().expect("the drive keeps its state");
        let subsystem = Subsystem::reopen(now, self.config.settings.clone(), records)
            .expect("the drive wrote the records itself");
        self.replace(node::DriveNode::new(subsystem));
        saved
    }

    pub(super) fn go_on(&mut self, now: Instant, saved: Option<Bytes>) {
        match saved {
            Some(saved) => {
                let restored = self.node.subsystem_mut().restore(now, FIRST, &saved);
                restored.expect("the drive saved the state itself");
            }
            None => self.restart(now),
        }
    }

    fn replace(&mut self, node: node::DriveNode) {
        let before: Vec<_> = self.node.contents().collect();
        let faults = self.node.take_faults();
        self.node = node;
        self.node.set_faults(faults);
        if self.keeps {
            self.node.subsystem_mut().keep();
        }
        self.others.clear();
        let kept = before.into_iter().zip(self.node.contents());
        let mut old = std::mem::take(&mut self.contents);
        self.contents = kept
            .map(|((_, before), (_, id))| (id, old.remove(&before).expect("they exist")))
            .collect();
    }
}

/// A drive after power-on, with its stored records and the hosts of its controllers.
fn power_on(
    now: Instant,
    config: &Config,
    records: Option<&Records>,
    hosts: &[[u8; 16]],
) -> node::DriveNode {
    let subsystem = match records {
        Some(records) => Subsystem::open(now, config.settings.clone(), records)
            .expect("the drive wrote the records itself"),
        None => Subsystem::new(now, config),
    };
    let mut subsystem = subsystem.with_controllers(now, hosts.len() as u16);
    for (controller, host) in (FIRST..).zip(hosts) {
        subsystem.port(controller).bind_host(Some(*host));
    }
    node::DriveNode::new(subsystem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::Timing;
    use nvme::state::Namespace;

    /// Executes actions other than requests.
    fn settle(drive: &mut DriveState) {
        while let Some(output) = drive.node.poll_drive() {
            match output {
                DriveOutput::Store(commit) => drive.store(Instant::ZERO, commit),
                DriveOutput::Close(contents) => drop(drive.contents.remove(&contents)),
                DriveOutput::Block(..) | DriveOutput::Fail(..) => panic!("nobody reads or writes"),
            }
        }
    }

    #[test]
    fn created_contents_read_as_zeroes_and_outlive_power_and_deleted_ones_are_closed() {
        let config = DriveConfig { size: 8192, ..DriveConfig::new("DRIVE", Timing::NULL) };
        let mut drive = DriveState::new(
            &config,
            PowerOn { queues: 1, hosts: Vec::new(), rng: Random::new(1), seed: 7 },
        );
        drive.node.subsystem_mut().delete_namespace(1).unwrap();
        settle(&mut drive);
        assert!(drive.contents.is_empty());
        let (blocks, nguid) = (16, [1; 16]);
        let (uuid, contents) = (nguid, "new".into());
        let new = Namespace {
            blocks,
            block_shift: BLOCK_SHIFT,
            nguid,
            uuid,
            contents,
            ..Namespace::default()
        };
        assert_eq!(drive.node.subsystem_mut().create_namespace(new), Ok(1));
        settle(&mut drive);
        let (_, id) = drive.node.contents().next().expect("a namespace");
        let open = drive.contents.get_mut(&id).expect("its contents");
        assert_eq!((open.first, &open.store.read(0, 8192)[..]), (8192, &[0; 8192][..]));
        open.store.write(512, &[9; 512]);
        drive.power_cycle(Instant::ZERO);
        let (_, id) = drive.node.contents().next().expect("the namespace");
        assert_eq!(drive.contents.len(), 1);
        let open = drive.contents.get_mut(&id).expect("its contents");
        assert_eq!(open.store.read(512, 512)[..], [9; 512]);
    }
}
