//! The steps of a host around a start, a reset and a power loss of the drive, and the read of all
//! blocks.

use super::case::{Io, IoOp, Reset};
use super::commands::{self, Buffer};
use super::contents::{Place, UNIT, UNREADABLE};
use super::driver::{Driver, SUCCESS};
use super::statuses::Drive;
use nvme::state::SanitizePhase;
use std::ops::Range;
use testkit::nvme::{Pair, create_commands, entry_sizes};
use wire::nvme::{Command, Completion, StatusCode};

/// Entries of the I/O queues: few, so that the queues wrap.
const ENTRIES: u16 = 8;
/// Size of one read of `verify` in bytes: a multiple of every block size.
const CHUNK: u64 = 4096;

impl Driver {
    pub(super) fn settle(&mut self) {
        while self.world.step(None) {
            self.observe();
        }
        self.observe();
        assert!(self.outstanding.is_empty(), "never ended: {:?}", self.outstanding);
        assert!(self.admin.is_none() && self.aborts.is_empty(), "never ended: {:?}", self.admin);
        assert_ne!(self.drive.sanitize, Some(SanitizePhase::Running), "it goes on for ever");
    }

    /// Enables the controller and creates two I/O queue pairs.
    pub(super) fn start(&mut self) {
        self.world.calm = true;
        self.world.host.enable(32);
        while self.world.step(None) {}
        assert!(self.world.host.status().ready);
        for id in 1..=2 {
            let pair = Pair::new(id, ENTRIES);
            self.world.testbed().put(pair.cq(), &[0; 16 * ENTRIES as usize]);
            for command in create_commands(&pair) {
                assert_eq!(self.execute(0, command).status.code, SUCCESS);
            }
            self.world.host.pairs[usize::from(id)] = Some(pair);
        }
        self.world.calm = false;
    }

    /// Executes a command while no other command is outstanding.
    fn execute(&mut self, queue: u16, command: Command) -> Completion {
        let cid = self.world.host.put(queue, command);
        self.world.host.ring(queue);
        loop {
            if let Some(done) = self.world.host.reap(queue).into_iter().next() {
                assert_eq!(done.cid, cid);
                return done;
            }
            assert!(self.world.step(None), "never ended: {command:?}");
        }
    }

    pub(super) fn reset(&mut self, kind: Reset) {
        self.observe();
        match kind {
            Reset::Controller => self.world.host.configure(entry_sizes()),
            Reset::Function => self.world.testbed().function_level_reset(),
            Reset::Hot => self.world.testbed().hot_reset(),
        }
        if !matches!(kind, Reset::Controller) {
            self.world.testbed().enumerate(true);
            self.world.forget_memory();
        }
        self.abandon();
        self.world.calm = true;
        while self.world.step(None) {
            self.observe();
        }
        self.observe();
        let now = self.tick();
        self.contents.reset(now);
        self.erased.clear();
        self.find_drive();
        self.start();
    }

    pub(super) fn lose_power(&mut self, seed: u64) {
        self.observe();
        self.world.lose_power(seed);
        let settings = self.config.settings.clone();
        self.world.testbed().power_cycle(&settings);
        self.world.testbed().enumerate(true);
        self.abandon();
        let now = self.tick();
        self.contents.power_loss(now);
        self.find_drive();
        self.erased.clear();
        if self.drive.sanitize == Some(SanitizePhase::Running) {
            self.begin_erasure(now, super::case::Admin::Sanitize);
        }
        self.start();
        self.settle();
        self.verify();
    }

    /// Drops outstanding commands.
    fn abandon(&mut self) {
        let lost = std::mem::take(&mut self.outstanding);
        self.slots.extend(lost.into_values().map(|sent| sent.buffer.slot));
        (self.admin, self.next) = (None, None);
        self.aborts.clear();
        self.world.host.pairs = vec![None; 65];
        self.world.faulted.clear();
    }

    /// Sets the state of the model from the records, because the result of a lost admin command is
    /// unknown.
    fn find_drive(&mut self) {
        let drive = Drive::from_state(&self.world.testbed().subsystem.state());
        let before = std::mem::replace(&mut self.drive, drive);
        for nsid in before.namespaces.keys() {
            if !self.drive.namespaces.contains_key(nsid) {
                self.contents.remove(*nsid);
            }
        }
        for (nsid, one) in &self.drive.namespaces {
            if !before.namespaces.contains_key(nsid) {
                self.contents.create(*nsid, one.bytes() / UNIT);
            }
        }
        self.replaced.clear();
        self.repeated = self.drive.namespaces.keys().map(|nsid| (*nsid, self.clock)).collect();
    }

    /// Reads all readable blocks, and sets the contents of the model from the data.
    pub(super) fn verify(&mut self) {
        if self.drive.sanitize == Some(SanitizePhase::Failed) {
            return;
        }
        self.world.calm = true;
        let active: Vec<_> = self.drive.namespaces.iter().filter(|(_, one)| one.attached).collect();
        let active: Vec<_> = active.into_iter().map(|(nsid, one)| (*nsid, *one)).collect();
        // All blocks are read before the model is set, because a copy is compared with all possible
        // contents of its source.
        let mut seen = Vec::new();
        for (nsid, one) in active {
            for at in (0..one.bytes()).step_by(CHUNK as usize) {
                let length = CHUNK.min(one.bytes() - at);
                if !self.verify_range(nsid, one.shift, at..at + length, &mut seen) {
                    for at in (at..at + length).step_by(1 << one.shift) {
                        let block = at..at + (1 << one.shift);
                        self.verify_range(nsid, one.shift, block, &mut seen);
                    }
                }
            }
        }
        seen.into_iter().for_each(|(place, token)| self.contents.settle(place, token));
        self.world.calm = false;
    }

    /// Reads a range and records the values of the units; `false` if a unit cannot be read.
    fn verify_range(
        &mut self,
        nsid: u32,
        shift: u8,
        bytes: Range<u64>,
        seen: &mut Vec<(Place, u32)>,
    ) -> bool {
        let (at, length) = (bytes.start, bytes.end - bytes.start);
        let (slba, blocks) = (at >> shift, (length >> shift) as u32);
        let io = Io { queue: 1, nsid, slba, blocks, op: IoOp::Read, fua: false, sgl: false };
        let buffer = Buffer::new(0, false);
        let command = commands::io(&mut self.world.host, &io, shift, buffer);
        let code = self.execute(1, command).status.code;
        let unreadable = code == StatusCode::UNRECOVERED_READ_ERROR;
        if unreadable && blocks > 1 {
            return false;
        }
        assert!(unreadable || code == SUCCESS, "{io:?} ended with {code}");
        let found = buffer.tokens(&self.world.host, length / UNIT);
        for (unit, token) in (at / UNIT..).zip(found) {
            let token = if unreadable { Some(UNREADABLE) } else { token };
            let possible = self.contents.possible((nsid, unit), self.clock, self.clock);
            let token = token.filter(|token| possible.contains(token));
            let token = token.unwrap_or_else(|| {
                panic!("unit {unit} of namespace {nsid} has {token:?}, possible is {possible:?}")
            });
            seen.push(((nsid, unit), token));
        }
        !unreadable
    }
}
