//! Random operations on a drive, checked against a model of each namespace.

use super::world::World;
use super::{attach, create, delete, io, state};
use crate::software::page;
use nvme::block::Error;
use nvme::state::State;
use stats::random::Random;
use std::collections::BTreeMap;
use wire::nvme::opcode::{admin, nvm};
use wire::nvme::{Command, StatusCode};

/// Bytes of the drive, and its most namespaces.
const CAPACITY: u64 = 64 << 10;
const NAMESPACES: u32 = 3;
/// The most outstanding I/O commands.
const OUTSTANDING: usize = 8;

/// A namespace: the fill value of each block.
struct Namespace {
    /// Unique in a drive.
    generation: u64,
    shift: u8,
    blocks: Vec<u8>,
}

impl Namespace {
    fn bytes(&self) -> u64 {
        (self.blocks.len() as u64) << self.shift
    }
}

struct Sent {
    nsid: u32,
    generation: u64,
    slba: usize,
    page: u64,
    write: Option<u8>,
    /// The block's value before the command.
    before: u8,
}

struct Life {
    world: World,
    random: Random,
    namespaces: BTreeMap<u32, Namespace>,
    sent: BTreeMap<u16, Sent>,
    generations: u64,
    deleted: usize,
    /// Number of occurrences of each tested event.
    reached: [u64; 4],
}

impl Life {
    fn new(seed: u64) -> Self {
        let first = Namespace { generation: 0, shift: 9, blocks: vec![0; 32] };
        Self {
            world: World::new(&state()),
            random: Random::new(seed),
            namespaces: BTreeMap::from([(1, first)]),
            sent: BTreeMap::new(),
            generations: 0,
            deleted: 0,
            reached: [0; 4],
        }
    }

    fn below(&mut self, below: usize) -> usize {
        self.random.below(below as u64) as usize
    }

    /// Stores a change; some fail.
    fn stored(&mut self) -> Result<(), Error> {
        let fails = self.below(4) == 0;
        self.reached[0] += u64::from(fails);
        if fails { Err(Error::NoSpace) } else { Ok(()) }
    }

    fn nsid(&mut self) -> Option<u32> {
        let known: Vec<u32> = self.namespaces.keys().copied().collect();
        (!known.is_empty()).then(|| known[self.below(known.len())])
    }

    fn step(&mut self) {
        match self.below(16) {
            0..7 => self.send(),
            7..12 => self.serve(),
            12 | 13 => self.create(),
            14 => self.delete(),
            _ => self.format(),
        }
        self.take_completions();
    }

    /// Reads or writes a block that no outstanding command uses.
    fn send(&mut self) {
        let Some(nsid) = self.nsid().filter(|_| self.sent.len() < OUTSTANDING) else { return };
        let slba = self.below(self.namespaces[&nsid].blocks.len());
        let write = (self.below(2) == 0).then(|| 1 + self.below(255) as u8);
        let one = &self.namespaces[&nsid];
        let (generation, before) = (one.generation, one.blocks[slba]);
        let same = |sent: &Sent| (sent.generation, sent.slba) == (generation, slba);
        if self.sent.values().any(same) {
            return;
        }
        let used: Vec<u64> = self.sent.values().map(|sent| sent.page).collect();
        let free = (1..).find(|page| !used.contains(page)).expect("one for each command");
        self.world.put(page(free), &[write.unwrap_or(0xee); 4096]);
        let opcode = if write.is_some() { nvm::WRITE } else { nvm::READ };
        let cid = self.world.submit(1, io(opcode, nsid, slba as u64, free));
        let sent = Sent { nsid, generation, slba, page: free, write, before };
        self.sent.insert(cid, sent);
    }

    /// Answers a request as the media; requests for deleted namespaces may fail.
    fn serve(&mut self) {
        if self.world.pending.is_empty() {
            return;
        }
        let index = self.below(self.world.pending.len());
        let contents = self.world.pending[index].0;
        let gone = self.world.drive().contents().all(|(_, id)| id != contents);
        self.reached[1] += u64::from(gone);
        let errors = [None, Some(Error::ReadOnly), Some(Error::Media)];
        let failure = errors[if gone { self.below(3) } else { 0 }];
        self.world.serve(index, failure);
    }

    fn take_completions(&mut self) {
        while let Some(done) = self.world.reap(1) {
            let sent = self.sent.remove(&done.cid).expect("it was under way");
            let now = self.namespaces.get_mut(&sent.nsid);
            let now = now.filter(|one| one.generation == sent.generation);
            if !done.status.is_success() {
                assert!(now.is_none(), "{:?} without a reason", done.status);
                continue;
            }
            match (sent.write, now) {
                (Some(value), Some(now)) => now.blocks[sent.slba] = value,
                (None, _) => assert_eq!(self.world.load(page(sent.page)), [sent.before; 512]),
                (Some(_), None) => {}
            }
        }
    }

    fn create(&mut self) {
        let (large, bytes) = (self.below(2) == 0, 4096 * (1 + self.below(6) as u64));
        let stored = self.stored();
        let done = create(&mut self.world, bytes, large, stored);
        let used: u64 = self.namespaces.values().map(Namespace::bytes).sum();
        let free = (1..=NAMESPACES).find(|nsid| !self.namespaces.contains_key(nsid));
        let expected = match free {
            None => Some(StatusCode::NAMESPACE_ID_UNAVAILABLE),
            Some(_) if used + bytes > CAPACITY => Some(StatusCode::INSUFFICIENT_CAPACITY),
            Some(_) => None,
        };
        if let Some(expected) = expected {
            self.reached[2] += 1;
            return assert_eq!(done.status.code, expected);
        }
        assert_eq!(done.status.is_success(), stored.is_ok());
        if stored.is_ok() {
            let nsid = free.expect("it was found");
            assert_eq!(done.result, nsid);
            attach(&mut self.world, nsid);
            self.generations += 1;
            let (generation, shift) = (self.generations, if large { 12 } else { 9 });
            let blocks = vec![0; (bytes >> shift) as usize];
            self.namespaces.insert(nsid, Namespace { generation, shift, blocks });
        }
    }

    fn delete(&mut self) {
        let (Some(nsid), stored) = (self.nsid(), self.stored()) else { return };
        let done = delete(&mut self.world, nsid, stored);
        assert_eq!(done.status.is_success(), stored.is_ok());
        if stored.is_ok() {
            self.namespaces.remove(&nsid);
            self.deleted += 1;
        }
    }

    fn format(&mut self) {
        let (Some(nsid), large, stored) = (self.nsid(), self.below(2) == 0, self.stored()) else {
            return;
        };
        let command =
            Command { opcode: admin::FORMAT, nsid, cdw10: large.into(), ..Command::default() };
        // Commands for deleted namespaces are outstanding only at the media.
        self.take_completions();
        let busy = !self.sent.is_empty();
        let done = self.world.admin(command, stored);
        if busy {
            return assert_eq!(done.status.code, StatusCode::COMMAND_SEQUENCE_ERROR);
        }
        assert_eq!(done.status.is_success(), stored.is_ok());
        if stored.is_ok() {
            self.reached[3] += 1;
            let one = self.namespaces.get_mut(&nsid).expect("it exists");
            let bytes = one.bytes();
            one.shift = if large { 12 } else { 9 };
            one.blocks = vec![0; (bytes >> one.shift) as usize];
        }
    }

    /// Nothing is outstanding any more: media, records and model must agree.
    fn end(&mut self) {
        while !self.world.pending.is_empty() {
            self.serve();
            self.take_completions();
        }
        assert!(self.sent.is_empty());
        let ids: BTreeMap<_, _> = self.world.drive().contents().collect();
        assert_eq!((self.world.media.len(), self.world.closed), (ids.len(), self.deleted));
        assert!(ids.keys().eq(self.namespaces.keys()));
        let records = State::decode(&self.world.records).expect("what the drive stored");
        for (nsid, one) in &self.namespaces {
            let media = &self.world.media[&ids[nsid]];
            let blocks = media.chunks(1 << one.shift);
            assert!(
                blocks
                    .map(|block| (block[0], block))
                    .all(|(value, block)| { block.iter().all(|byte| *byte == value) })
            );
            let values = media.iter().step_by(1 << one.shift);
            assert!(values.eq(&one.blocks), "namespace {nsid}");
            let record = &records.namespaces[nsid];
            assert_eq!((record.bytes(), record.block_shift), (one.bytes(), one.shift));
        }
        assert_eq!(records.namespaces.len(), self.namespaces.len());
    }
}

#[test]
fn drive_node_matches_model() {
    let mut reached = [0; 4];
    for seed in 0..200 {
        let mut life = Life::new(seed);
        for _ in 0..120 {
            life.step();
        }
        life.end();
        reached.iter_mut().zip(life.reached).for_each(|(all, one)| *all += one);
    }
    // Failed changes, answers for deleted namespaces, no space, formats.
    assert!(reached.iter().all(|count| *count > 100), "{reached:?}");
}
