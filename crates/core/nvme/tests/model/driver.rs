//! The host of a case, which sends commands and compares the results with the model.

use super::case::{Admin, Case, Io, IoOp, Step};
use super::commands::{self, Buffer, SLOTS};
use super::contents::{Contents, Place, UNIT, UNREADABLE, Value};
use super::statuses::{Drive, NAMESPACES, Statuses};
use super::world::World;
use nvme::{Config, NamespaceConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use testkit::nvme::Testbed;
use wire::Duration;
use wire::nvme::StatusCode;

/// The maximum number of outstanding commands of a queue. The queue also has room for a pair.
const OUTSTANDING: usize = 6;
pub const SUCCESS: StatusCode = StatusCode::SUCCESS;

/// The role of a command in a fused operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    Whole,
    /// The first command of a fused operation, with the identifier of the second.
    First(u16),
    Second(u16),
}

/// An outstanding I/O command.
#[derive(Clone, Debug)]
pub struct Sent {
    pub io: Io,
    pub half: Half,
    pub submitted: u64,
    /// The statuses allowed by the states of the drive since the command was sent.
    pub allowed: Statuses,
    /// The statuses by which the drive rejects the command in its state at the submission. A
    /// rejected command changes nothing.
    pub refused: Statuses,
    /// The units that the command reads or compares.
    pub units: Range<u64>,
    pub buffer: Buffer,
    /// The values that the command compares with.
    pub tokens: Vec<u32>,
    /// The identifier of the command's write, if any.
    pub write: Option<u64>,
}

pub type Key = (u16, u16);

pub struct Driver {
    pub(super) world: World,
    pub(super) config: Config,
    pub(super) drive: Drive,
    /// The state of the drive if the outstanding admin command succeeds.
    pub(super) next: Option<Drive>,
    pub(super) admin: Option<(u16, Admin, Statuses, u64)>,
    /// Writes of zeroes of Format NVM and Sanitize.
    pub(super) erased: Vec<u64>,
    pub(super) contents: Contents,
    pub(super) outstanding: BTreeMap<Key, Sent>,
    pub(super) ended: BTreeMap<Key, StatusCode>,
    pub(super) aborts: BTreeMap<u16, Key>,
    /// Places and tokens that fused operations have replaced; each may occur once.
    pub(super) replaced: BTreeSet<(Place, u32)>,
    /// The comparisons of fused operations, by second command.
    pub(super) pairs: BTreeMap<Key, (Place, u32)>,
    pub(super) slots: Vec<usize>,
    /// Time of the last end of a write whose tokens other units have too, by NSID.
    pub(super) repeated: BTreeMap<u32, u64>,
    /// Time of the last change of namespaces.
    pub(super) changed: u64,
    pub(super) clock: u64,
    pub(super) token: u32,
}

impl Driver {
    pub fn new(case: &Case) -> Self {
        let second = NamespaceConfig { block_shift: 12, ..NamespaceConfig::new(8) };
        let mut config = Config::new("MODEL", vec![NamespaceConfig::new(40), second]);
        let settings = &mut config.settings;
        (settings.commands, settings.buffer) = (case.limits.0, case.limits.1 << 10);
        (settings.io_queues, settings.max_transfer_shift) = (2, 3);
        let mut state = config.state();
        state.drive.max_namespaces = NAMESPACES;
        state.drive.capacity += 32 << 10;
        let testbed = match case.records {
            true => Testbed::from_records(&config, state.encode()),
            false => {
                config.namespaces.extend([NamespaceConfig::new(16), NamespaceConfig::new(16)]);
                Testbed::new(config.clone())
            }
        };
        let drive = Drive::from_state(&testbed.subsystem.state());
        let mut contents = Contents::default();
        for (nsid, one) in &drive.namespaces {
            contents.create(*nsid, one.bytes() / UNIT);
        }
        let mut driver = Self {
            world: World::new(testbed, case),
            config,
            drive,
            next: None,
            admin: None,
            erased: Vec::new(),
            contents,
            outstanding: BTreeMap::new(),
            ended: BTreeMap::new(),
            aborts: BTreeMap::new(),
            replaced: BTreeSet::new(),
            pairs: BTreeMap::new(),
            slots: (0..SLOTS).collect(),
            repeated: BTreeMap::new(),
            changed: 0,
            clock: 0,
            token: 0,
        };
        driver.world.testbed().enumerate(true);
        driver.start();
        driver
    }

    pub fn run(mut self, case: &Case) {
        for step in &case.steps {
            self.step(step, case.records);
        }
        self.settle();
        self.verify();
    }

    fn step(&mut self, step: &Step, records: bool) {
        match step {
            Step::Io(io) => self.send(io, records),
            Step::Admin(admin) if records => self.send_admin(*admin),
            Step::Abort(at) => self.abort(*at),
            Step::Wait(us) => {
                let end = self.world.testbed().now + Duration::from_us(*us);
                while self.world.step(Some(end)) {
                    self.observe();
                }
            }
            Step::Settle => self.settle(),
            Step::Reset(kind) => self.reset(*kind),
            Step::PowerLoss(seed) if records => self.lose_power(*seed),
            Step::Admin(_) | Step::PowerLoss(_) => {}
        }
        self.observe();
    }

    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn send(&mut self, io: &Io, records: bool) {
        let used = self.outstanding.keys().filter(|(queue, _)| *queue == io.queue).count();
        let unknown = match self.admin {
            Some((_, Admin::Format(nsid, _), ..)) => nsid == io.nsid,
            Some((_, Admin::Create { .. }, ..)) => !self.drive.namespaces.contains_key(&io.nsid),
            _ => false,
        };
        let absent = !records && io.op == IoOp::WriteUncorrectable;
        if used >= OUTSTANDING || unknown || absent || self.slots.len() < 2 {
            return;
        }
        if let Some((_, Admin::Format(..), allowed, _)) = &mut self.admin {
            allowed.insert(StatusCode::COMMAND_SEQUENCE_ERROR);
        }
        let now = self.tick();
        let shift = self.drive.namespaces.get(&io.nsid).map_or(9, |one| one.shift);
        let units = |block: u64| (block << shift) / UNIT;
        let range = units(io.slba)..units(io.slba + u64::from(io.blocks));
        let count = range.end - range.start;
        let buffer = self.buffer(io);
        let mut allowed = self.drive.io(io);
        let refused = if self.next.is_some() { Statuses::new() } else { allowed.clone() };
        allowed.extend(self.next.iter().flat_map(|next| next.io(io)));
        let mut sent = Sent {
            io: io.clone(),
            half: Half::Whole,
            submitted: now,
            allowed,
            refused,
            units: range.clone(),
            buffer,
            tokens: Vec::new(),
            write: None,
        };
        match io.op {
            IoOp::Read => buffer.fill(&mut self.world.host, &vec![0xeeee_eeee; count as usize]),
            IoOp::Write => sent.write = Some(self.write_tokens(now, io, &range, buffer)),
            IoOp::WriteZeroes { .. } | IoOp::Deallocate => {
                let zeroes = range.clone().map(|unit| (unit, Value::Token(0)));
                sent.write = Some(self.contents.begin(now, io.nsid, zeroes));
            }
            IoOp::WriteUncorrectable => {
                let marks = range.clone().map(|unit| (unit, Value::Token(UNREADABLE)));
                sent.write = Some(self.contents.begin(now, io.nsid, marks));
            }
            IoOp::Copy(to) => {
                let copies =
                    range.clone().zip(units(to)..).map(|(from, to)| (to, Value::CopyOf(from)));
                let copies: Vec<_> = copies.collect();
                sent.write = Some(self.contents.begin(now, io.nsid, copies));
            }
            IoOp::Compare { right } | IoOp::CompareAndWrite { right } => {
                sent.tokens = range.clone().map(|unit| self.guess((io.nsid, unit))).collect();
                if !right {
                    sent.tokens[0] ^= 0x8000_0000;
                }
                buffer.fill(&mut self.world.host, &sent.tokens);
            }
            IoOp::Flush | IoOp::FlushAll | IoOp::Verify => {}
        }
        if io.op.repeats() {
            self.replaced.retain(|((nsid, _), _)| *nsid != io.nsid);
        }
        let command = commands::io(&mut self.world.host, io, shift, buffer);
        let cid = self.world.host.put(io.queue, command);
        if let IoOp::CompareAndWrite { .. } = io.op {
            let buffer = self.buffer(io);
            let write = Some(self.write_tokens(now, io, &range, buffer));
            let length = count * UNIT;
            let command = commands::fused_write(&mut self.world.host, io, command, length, buffer);
            let second = self.world.host.put(io.queue, command);
            sent.half = Half::First(second);
            let (half, tokens) = (Half::Second(cid), Vec::new());
            let place = (io.nsid, range.start);
            self.pairs.insert((io.queue, second), (place, sent.tokens[0]));
            let write = Sent { half, buffer, write, tokens, ..sent.clone() };
            self.outstanding.insert((io.queue, second), write);
        }
        self.outstanding.insert((io.queue, cid), sent);
        self.world.host.ring(io.queue);
    }

    fn buffer(&mut self, io: &Io) -> Buffer {
        Buffer::new(self.slots.pop().expect("there are enough"), io.sgl)
    }

    /// Begins a write of new tokens, which no other write has; returns the identifier.
    fn write_tokens(&mut self, now: u64, io: &Io, range: &Range<u64>, buffer: Buffer) -> u64 {
        let count = range.end - range.start;
        let tokens: Vec<u32> = (self.token + 1..).take(count as usize).collect();
        self.token += count as u32;
        buffer.fill(&mut self.world.host, &tokens);
        let values = range.clone().zip(tokens.into_iter().map(Value::Token));
        self.contents.begin(now, io.nsid, values)
    }

    /// A possible value of a unit: alternately the oldest value, so that several commands compare
    /// with the same value, and the newest.
    fn guess(&self, place: Place) -> u32 {
        let possible = self.contents.possible(place, self.clock, self.clock);
        let mut readable = possible.into_iter().filter(|token| *token != UNREADABLE);
        let found =
            if self.clock.is_multiple_of(2) { readable.next() } else { readable.next_back() };
        found.unwrap_or(0)
    }

    fn send_admin(&mut self, admin: Admin) {
        let creates = matches!(admin, Admin::Create { .. });
        // A command to a namespace that does not exist yet may be executed after the creation.
        let waits = |one: &Self| {
            let absent = |sent: &Sent| !one.drive.namespaces.contains_key(&sent.io.nsid);
            one.admin.is_some() || creates && one.outstanding.values().any(absent)
        };
        while waits(self) {
            assert!(self.world.step(None), "a command never ends: {:?}", self.admin);
            self.observe();
        }
        let now = self.tick();
        let busy = !self.outstanding.is_empty();
        let allowed = self.drive.admin(admin, busy);
        self.next = Some(self.drive.after(admin)).filter(|_| allowed.contains(&SUCCESS));
        if self.next.is_some() {
            self.widen();
            self.begin_erasure(now, admin);
        }
        let command = commands::admin(&mut self.world.host, admin);
        let cid = self.world.host.put(0, command);
        self.world.host.ring(0);
        self.admin = Some((cid, admin, allowed, now));
    }

    pub(super) fn begin_erasure(&mut self, now: u64, admin: Admin) {
        let erases = |nsid: u32| match admin {
            Admin::Format(formatted, _) => formatted == nsid,
            Admin::Sanitize => true,
            _ => false,
        };
        for (nsid, one) in self.drive.namespaces.iter().filter(|(nsid, _)| erases(**nsid)) {
            let zeroes = (0..one.bytes() / UNIT).map(|unit| (unit, Value::Token(0)));
            self.erased.push(self.contents.begin(now, *nsid, zeroes));
        }
    }

    /// Allows for all outstanding commands the statuses of the present and the next state of the
    /// drive.
    pub(super) fn widen(&mut self) {
        for sent in self.outstanding.values_mut() {
            for drive in [&self.drive].into_iter().chain(&self.next) {
                sent.allowed.extend(drive.io(&sent.io));
            }
        }
    }

    fn abort(&mut self, at: usize) {
        let being = |key: &&Key| !self.aborts.values().any(|target| target == *key);
        let target = self.outstanding.keys().filter(being).nth(at).copied();
        let Some((queue, cid)) = target else { return };
        let sent = self.outstanding.get_mut(&(queue, cid)).expect("it was just found");
        sent.allowed.insert(StatusCode::ABORT_REQUESTED);
        if let Half::First(second) = sent.half
            && let Some(second) = self.outstanding.get_mut(&(queue, second))
        {
            second.allowed.insert(StatusCode::ABORTED_MISSING_FUSED);
        }
        let command = self.world.host.put(0, commands::abort(queue, cid));
        self.world.host.ring(0);
        self.aborts.insert(command, (queue, cid));
        // At most 2 Abort commands at a time.
        while self.aborts.len() > 2 && self.world.step(None) {
            self.observe();
        }
    }
}
