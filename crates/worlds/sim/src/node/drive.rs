//! A simulated drive with timed media. Records are stored without delay.

use super::Context;
use crate::drive::{DriveConfig, MAX_TRANSFER_SHIFT, Media, Pace, Store};
use crate::kernel::Component;
use crate::pcie::Link;
use crate::processor::{Crossing, Processor, after};
use bytes::Bytes;
use node::drive::{ContentsId, DriveOutput, FIRST};
use node::faults::{Fault, FaultKind};
use nvme::block::{Operation, Request};
use nvme::state::{History, Records};
use nvme::{Commit, Config, NamespaceConfig, Settings, Subsystem};
use pcie::endpoint::Unsent;
use pcie::{Function, Input, Output, Wait};
use stats::random::Random;
use std::collections::BTreeMap;
use wire::earliest;
use wire::tlp::Tlp;
use wire::{Duration, Instant};
use workload::{CommandKey, Written, pattern};

/// Block size: 2^9 = 512 bytes.
const BLOCK_SHIFT: u8 = 9;
/// The contents of a namespace, and their offset on the media.
#[derive(Debug)]
struct Contents {
    first: u64,
    store: Store,
}

#[derive(Debug)]
struct Pending {
    contents: ContentsId,
    request: Request,
    firmware: Duration,
    key: Option<CommandKey>,
}

/// A drive after power-on, with its stored records.
fn power_on(now: Instant, config: &Config, records: Option<&Records>) -> node::DriveNode {
    node::DriveNode::new(match records {
        Some(records) => Subsystem::open(now, config.settings.clone(), records)
            .expect("the drive wrote the records itself"),
        None => Subsystem::new(now, config),
    })
}

/// The component of a drive.
#[derive(Debug)]
pub(crate) struct DriveNode {
    /// Number of the drive at its host.
    pub number: u16,
    node: node::DriveNode,
    config: Config,
    /// Records that survive a power loss; `None` for a volatile drive.
    records: Option<Records>,
    media: Box<dyn Media>,
    pace: Pace,
    contents: BTreeMap<ContentsId, Contents>,
    /// Offset of the next contents on the media.
    end: u64,
    /// Whether the media lose their contents without power.
    pub volatile: bool,
    loses_completions: bool,
    /// Whether the drive can be killed.
    keeps: bool,
    /// Requests under way, by completion time at the media and by sequence of their start.
    pending: BTreeMap<(Instant, u64), Pending>,
    sequence: u64,
    /// TLPs to the drive and from the drive, with the processor that executes the firmware.
    crossings: [Crossing; 2],
}

impl DriveNode {
    pub(crate) fn new(
        config: &DriveConfig,
        number: u16,
        queues: u16,
        rng: Random,
        seed: u64,
    ) -> Self {
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
        let records = (!config.volatile).then(|| drive.state().encode());
        let mut node = power_on(Instant::ZERO, &drive, records.as_ref());
        node.set_faults(config.faults.iter().cloned().collect());
        let mut end = 0;
        let contents = node.contents().zip(config.sizes()).map(|((nsid, id), size)| {
            // Namespace 1 has the pattern of `seed`.
            let store = Store::new(seed.wrapping_add(u64::from(nsid) - 1));
            let contents = Contents { first: end, store };
            end += size;
            (id, contents)
        });
        Self {
            number,
            contents: contents.collect(),
            end,
            node,
            config: drive,
            records,
            media: (config.media)(&config.timing, rng),
            pace: Pace::new(config.timing.stream_rate),
            volatile: config.volatile,
            loses_completions: config
                .faults
                .iter()
                .any(|fault| fault.kind == FaultKind::LostCompletion),
            keeps: false,
            pending: BTreeMap::new(),
            sequence: 0,
            crossings: Default::default(),
        }
    }

    /// Makes the processor of a station handle TLPs and execute the firmware.
    pub(crate) fn set_processor(&mut self, processor: Option<Processor>) {
        self.crossings.iter_mut().for_each(|crossing| crossing.processor = processor.clone());
    }

    /// A number that identifies the contents. The number changes when the drive loses them.
    pub(crate) fn incarnation(&self) -> u64 {
        self.config.incarnation
    }

    /// The seed of a namespace's initial contents.
    ///
    /// # Panics
    /// If there is no such namespace.
    pub(crate) fn pattern(&self, nsid: u32) -> u64 {
        let (_, contents) = self.node.contents().find(|(id, _)| *id == nsid).expect("a namespace");
        self.contents[&contents].store.seed()
    }

    /// Compares the contents of a namespace with the writes of its host, and everything else with
    /// the initial contents if `all`. Returns the numbers of compared and of different ranges.
    pub(crate) fn compare(&mut self, nsid: u32, written: &[Written], all: bool) -> (u64, u64) {
        let (_, contents) = self.node.contents().find(|(id, _)| *id == nsid).expect("a namespace");
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

    /// Handles a reset of the link above.
    pub(crate) fn hot_reset(&mut self, now: Instant) {
        self.node.handle(now, Input::HotReset);
    }

    /// Cycles the power of the drive. Non-volatile media keep their contents; requests under way
    /// are lost.
    pub(crate) fn power_cycle(&mut self, now: Instant) {
        if self.volatile {
            for contents in self.contents.values_mut() {
                contents.store = Store::new(contents.store.seed());
            }
            self.config.incarnation = self.config.incarnation.wrapping_add(1);
        }
        self.restart(now);
    }

    fn restart(&mut self, now: Instant) {
        self.replace(power_on(now, &self.config, self.records.as_ref()));
    }

    /// Makes [`kill`](Self::kill) possible. Call this before any other method.
    ///
    /// # Panics
    /// If the drive is volatile.
    pub(crate) fn keep(&mut self) {
        assert!(self.records.is_some(), "a volatile drive keeps nothing");
        self.keeps = true;
        self.node.subsystem_mut().keep();
    }

    /// Ends the process of the drive, which has sent all but `unsent`, and receives `last` before.
    /// Returns the state for [`go_on`](Self::go_on).
    pub(crate) fn kill(&mut self, now: Instant, last: Vec<Tlp>, unsent: &Unsent) -> Bytes {
        last.into_iter().for_each(|tlp| self.node.handle(now, Input::Tlp(tlp)));
        let saved = self.node.subsystem_mut().save(FIRST, unsent);
        let records = self.records.as_ref().expect("the drive keeps its state");
        let subsystem = Subsystem::reopen(now, self.config.settings.clone(), records)
            .expect("the drive wrote the records itself");
        self.replace(node::DriveNode::new(subsystem));
        saved
    }

    /// Goes on from the state of a process that was killed, or starts without one.
    pub(crate) fn go_on(&mut self, now: Instant, saved: Option<Bytes>) {
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
        self.pending.clear();
        let kept = before.into_iter().zip(self.node.contents());
        let mut old = std::mem::take(&mut self.contents);
        self.contents = kept
            .map(|((_, before), (_, id))| (id, old.remove(&before).expect("they exist")))
            .collect();
    }

    /// Number of I/O queues of the drive.
    pub(crate) fn queues(&self) -> u16 {
        self.config.settings.io_queues
    }

    /// Moves the drive to another host as drive `number`. The drive is in the state after power-on
    /// and has `queues` I/O queues.
    pub(crate) fn taken_by(&mut self, now: Instant, number: u16, queues: u16) {
        self.number = number;
        self.config.settings.io_queues = queues;
        self.restart(now);
    }

    /// Whether a fault of the drive loses completions.
    pub(crate) fn loses_completions(&self) -> bool {
        self.loses_completions
    }

    /// The next fault that began to act, and when.
    pub(crate) fn poll_fault(&mut self) -> Option<(Instant, Fault)> {
        self.node.poll_fault()
    }

    /// Errors that the drive counted on PCIe.
    pub(crate) fn errors(&self) -> &pcie::Errors {
        self.node.errors(FIRST)
    }

    /// The drive's lifetime counters.
    pub(crate) fn counters(&self) -> History {
        self.node.subsystem().state().health
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
        while let Some(mut received) = link.down.take(now, self.node.ready(), &mut link.up) {
            context.delivered(&received.tlp);
            let journey = context.end_journey(now, &mut received.tlp);
            self.crossings[0].pass(now, &received.tlp);
            context.tracker.reaches_drive(self.number, &received.tlp, journey);
            self.node.handle(now, Input::Tlp(received.tlp));
            self.carry_out(now, context);
        }
        self.media_done(context);
        let wait = self.send(link, context);
        let next = earliest([link.up.next_arrival(), link.down.next_credits()]);
        context.kernel.arm_by_next(above, next);
        let media = self.next_media();
        // The time at which the wire is free matters only if a TLP waits for it.
        let wire = link.up.next_ready(now).filter(|_| wait.receiver);
        earliest([wait.until, media, link.down.next_arrival(), wire, self.pace.next(now)])
    }

    /// Sends TLPs, also ahead of time if no event can change them. Returns what the controller
    /// waits for.
    fn send(&mut self, link: &mut Link, context: &mut Context) -> Wait {
        let (mut at, max_payload) = (context.now, self.config.settings.max_payload);
        loop {
            let ready = self.pace.ready(at, link.up.ready(at, max_payload));
            match self.node.poll(at, ready) {
                Output::Tlp(mut tlp) => {
                    let journey = context.tracker.leaves_drive(at, self.number, &tlp);
                    tlp.trace_id = context.journeys.insert(journey);
                    self.crossings[1].pass(at, &tlp);
                    self.pace.sent(at, &tlp);
                    link.up.send(at, tlp);
                }
                Output::Wait(mut wait) => {
                    if self.carry_out(at, context) {
                        continue;
                    }
                    wait.until = earliest([wait.until, self.node.next_late()]);
                    if !wait.receiver || self.crossings[1].processor.is_some() {
                        return wait;
                    }
                    let known = link.known_below(context.kernel.next_time());
                    let until =
                        earliest([wait.until, self.next_media(), self.pace.next(at), known]);
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
        while let Some(output) = self.node.poll_drive() {
            match output {
                DriveOutput::Block(contents, request) => {
                    self.start(now, contents, request, context);
                }
                DriveOutput::Store(commit) => {
                    self.store(now, commit);
                    answered = true;
                }
                DriveOutput::Fail(contents, id, error) => {
                    self.node.complete_block(now, contents, id, Err(error));
                    answered = true;
                }
                DriveOutput::Close(contents) => drop(self.contents.remove(&contents)),
            }
        }
        answered
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
        let created = self.node.complete_store(now, Ok(()));
        if let (Some(id), Some(new)) = (created, commit.create) {
            let mut store = Store::new(self.config.incarnation);
            store.zero(0, new.bytes);
            self.contents.insert(id, Contents { first: self.end, store });
            self.end += new.bytes;
        }
    }

    fn start(
        &mut self,
        now: Instant,
        contents: ContentsId,
        request: Request,
        context: &mut Context,
    ) {
        let first = self.contents[&contents].first;
        let (access, offset) = match &request.operation {
            Operation::Read { offset, length } => {
                (self.media.read(now, first + *offset, *length), Some(*offset))
            }
            Operation::Write { offset, data } => (self.media.write(now, data.len()), Some(*offset)),
            _ => (self.media.other(now), None),
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
            let open = self.contents.get_mut(&contents).expect("they are not closed");
            let store = &mut open.store;
            let data = match request.operation {
                Operation::Read { offset, length } => store.read(offset, length),
                Operation::Write { offset, data } => {
                    store.write(offset, &data);
                    Bytes::new()
                }
                Operation::WriteZeroes { offset, length }
                | Operation::Discard { offset, length } => {
                    store.zero(offset, length);
                    Bytes::new()
                }
                Operation::Flush => Bytes::new(),
            };
            context.happened(0x1000 + u64::from(self.number), &data);
            self.node.complete_block(now, contents, request.id, Ok(data));
            self.carry_out(now, context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::Timing;
    use nvme::state::Namespace;

    /// Executes actions other than requests.
    fn settle(drive: &mut DriveNode) {
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
        let mut drive = DriveNode::new(&config, 0, 1, Random::new(1), 7);
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
