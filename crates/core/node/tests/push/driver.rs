//! A driver that obeys the specification, and reuses memory and slots as soon as it may.

use super::world::{RAM, World};
use stats::random::Random;
use std::collections::BTreeMap;
use testkit::controller::{PAGE, Used};
use testkit::nvme::{Pair, admin_sizes, create_polled, delete, entry_sizes, identify};
use wire::nvme::opcode::admin;
use wire::nvme::register::{ACQ, AQA, ASQ, CC, Configuration, Doorbell};
use wire::nvme::{Command, Completion, cns};

/// Pages for data and lists behind the queues.
const FIRST_PAGE: u64 = RAM + 0x1_0000;
const PAGES: u64 = 12;
/// A page hidden from the host node.
const HIDDEN_PAGE: u64 = RAM + 0xd_0000;
/// Entries of every queue.
pub const ENTRIES: u16 = 8;

#[derive(Debug)]
struct Queue {
    pair: Pair,
    /// The SQ head pointer in the last completion entry.
    head: u16,
}

#[derive(Debug)]
struct Outstanding {
    command: Command,
    pages: Vec<u64>,
    /// The data that the controller must read; `None` where they may change.
    data: Option<Vec<u8>>,
}

pub struct Driver {
    queues: BTreeMap<u16, Queue>,
    outstanding: BTreeMap<(u16, u16), Outstanding>,
    free: Vec<u64>,
    /// Admin completions.
    done: Vec<Completion>,
    /// Whether the driver counts commands and ignores the SQ head pointer, as Linux does.
    counts: bool,
    /// Whether tails are written to memory, and only sometimes to a doorbell.
    shadow: bool,
}

impl Driver {
    pub fn new(counts: bool) -> Self {
        let free = (0..PAGES).map(|page| FIRST_PAGE + page * PAGE).chain([HIDDEN_PAGE]).collect();
        Self {
            queues: BTreeMap::new(),
            outstanding: BTreeMap::new(),
            free,
            done: Vec::new(),
            counts,
            shadow: false,
        }
    }

    fn pair(id: u16) -> Pair {
        let base = RAM + u64::from(id) * 2 * PAGE;
        Pair::at(id, ENTRIES, base, base + PAGE)
    }

    fn add_queue(&mut self, world: &mut World, pair: Pair) {
        world.memory.put(pair.cq(), &[0; PAGE as usize]);
        self.queues.insert(pair.id, Queue { pair, head: 0 });
    }

    /// Enables the controller, sets the format and creates queues 1 and 2.
    pub fn start(&mut self, world: &mut World, random: &mut Random) {
        let pair = Self::pair(0);
        world.write(AQA, 4, admin_sizes(ENTRIES));
        world.write(ASQ, 8, pair.sq());
        world.write(ACQ, 8, pair.cq());
        self.add_queue(world, pair);
        world.write(CC, 4, Configuration { enable: true, ..entry_sizes() }.bits().into());
        let page = self.free.pop().expect("all are free");
        let identified = self.admin(world, random, identify(cns::NAMESPACE, 1, page));
        assert!(identified.is_none_or(|done| done.status.is_success()), "{identified:?}");
        self.free.push(page);
        for id in [1, 2] {
            self.create(world, random, id);
        }
    }

    fn create(&mut self, world: &mut World, random: &mut Random, id: u16) {
        let pair = Self::pair(id);
        let [completion, submission] = create_polled(&pair);
        self.admin(world, random, completion);
        self.add_queue(world, pair);
        self.admin(world, random, submission);
    }

    fn scribble(world: &mut World, random: &mut Random, address: u64, length: usize) {
        let bytes = random.bytes(length);
        world.memory.put(address, &bytes);
    }

    /// Frees everything that the driver used, after a reset.
    pub fn restart(&mut self, world: &mut World, random: &mut Random) {
        self.check(world);
        for id in self.outstanding.keys().copied().collect::<Vec<_>>() {
            self.retire(world, random, id);
        }
        self.queues.clear();
        (self.shadow, world.refused) = (false, false);
        for page in self.free.clone() {
            Self::scribble(world, random, page, PAGE as usize);
        }
        self.start(world, random);
    }

    /// Slots that may be written; one stays empty.
    fn room(&self, id: u16) -> u16 {
        let queue = &self.queues[&id];
        let used = match self.counts {
            true => self.outstanding.range((id, 0)..=(id, u16::MAX)).count() as u16,
            false => (queue.pair.tail + ENTRIES - queue.head) % ENTRIES,
        };
        ENTRIES - 1 - used.min(ENTRIES - 1)
    }

    fn put(
        &mut self,
        world: &mut World,
        id: u16,
        command: Command,
        pages: Vec<u64>,
        data: Option<Vec<u8>>,
    ) {
        self.queues.get_mut(&id).unwrap().pair.put(&mut world.memory, command);
        self.outstanding.insert((id, command.cid), Outstanding { command, pages, data });
    }

    fn ring(&mut self, world: &mut World, random: &mut Random, id: u16) {
        let tail = self.queues[&id].pair.tail;
        if self.shadow && id != 0 {
            world.link().controller.ring(id, tail);
            if random.below(3) != 0 {
                return;
            }
        }
        let dstrd = world.link().controller.manners.dstrd;
        world.write(Doorbell::SubmissionTail(id).offset(dstrd), 4, tail.into());
    }

    fn free_cid(&self, id: u16) -> u16 {
        (0..).find(|cid| !self.outstanding.contains_key(&(id, *cid))).expect("some are free")
    }

    /// Carries out an admin command; `None` if it failed.
    pub fn admin(
        &mut self,
        world: &mut World,
        random: &mut Random,
        command: Command,
    ) -> Option<Completion> {
        let cid = self.free_cid(0);
        self.put(world, 0, Command { cid, ..command }, Vec::new(), None);
        self.ring(world, random, 0);
        for _ in 0..20_000 {
            self.progress(world, random);
            if let Some(at) = self.done.iter().position(|done| done.cid == cid) {
                return Some(self.done.swap_remove(at));
            }
            if world.fault.is_some() {
                return None;
            }
        }
        panic!("{command:?} does not end");
    }

    /// Carries out an admin command. Returns whether it succeeded.
    fn succeeds(&mut self, world: &mut World, random: &mut Random, command: Command) -> bool {
        let done = self.admin(world, random, command);
        done.is_some_and(|done| done.status.is_success() && done.result == 0)
    }

    /// Rings for up to `count` commands.
    pub fn submit(&mut self, world: &mut World, random: &mut Random, count: u64) {
        let ids: Vec<u16> = self.queues.keys().copied().filter(|id| *id != 0).collect();
        let Some(&id) = ids.get(random.below(ids.len().max(1) as u64) as usize) else { return };
        let mut any = false;
        for _ in 0..count {
            any |= self.room(id) > 0 && self.prepare(world, random, id);
        }
        if any {
            self.ring(world, random, id);
        }
    }

    fn prepare(&mut self, world: &mut World, random: &mut Random, id: u16) -> bool {
        let cid = self.free_cid(id);
        let block = 1usize << world.link().controller.manners.shift;
        let opcode = [1, 1, 1, 1, 2, 9, 0][random.below(7) as usize];
        let blocks = 1 + random.below((3 * PAGE as usize / block) as u64) as usize;
        let (length, [cdw10, cdw11, cdw12]) = match opcode {
            1 | 2 => (blocks * block, [0, 0, blocks as u32 - 1]),
            9 => (32, [1, 4, 0]),
            _ => (0, [0; 3]),
        };
        let offset = if length > 0 { random.below(64) * 4 * random.below(17).min(15) } else { 0 };
        let count = (offset as usize + length).div_ceil(PAGE as usize);
        let lists = if count > 2 { 2 } else { 0 };
        if self.free.len() < count + lists {
            return false;
        }
        let pages = self.free.split_off(self.free.len() - count - lists);
        for page in &pages {
            Self::scribble(world, random, *page, PAGE as usize);
        }
        let mut ranges = vec![];
        let mut left = length;
        for (number, page) in pages[..count].iter().enumerate() {
            let at = if number == 0 { offset } else { 0 };
            let here = left.min((PAGE - at) as usize);
            ranges.push((page + at, here));
            left -= here;
        }
        let prp = |number: usize| ranges.get(number).map_or(0, |range| range.0);
        let second = if lists == 0 { prp(1) } else { Self::lists(world, random, &pages, count) };
        let data = ranges.iter().flat_map(|(at, length)| world.memory.get(*at, *length).to_vec());
        let data = (opcode != 2).then(|| data.collect::<Vec<u8>>());
        let (prp1, prp2, nsid) = (prp(0), second, 1);
        let command =
            Command { opcode, cid, nsid, prp1, prp2, cdw10, cdw11, cdw12, ..Command::default() };
        // Sometimes the controller also writes the memory that it reads, in any order.
        if opcode == 1 && self.room(id) > 1 && random.below(6) == 0 {
            self.put(world, id, command, pages.clone(), None);
            let read = Command { opcode: 2, cid: self.free_cid(id), ..command };
            self.put(world, id, read, pages, None);
        } else {
            self.put(world, id, command, pages, data);
        }
        true
    }

    /// Writes the PRP list of pages `1..count` into the last two pages. Returns its address.
    fn lists(world: &mut World, random: &mut Random, pages: &[u64], count: usize) -> u64 {
        let (entries, [first, second]) = (&pages[1..count], [pages[count], pages[count + 1]]);
        // Some begin near the end of their page and continue in the other one.
        let room = if random.below(2) == 0 { 1 + random.below(3) as usize } else { entries.len() };
        let begin = first + PAGE - 8 * room as u64;
        let mut at = begin;
        for (number, entry) in entries.iter().enumerate() {
            if at + 8 == first + PAGE && number + 1 < entries.len() {
                world.memory.put(at, &second.to_le_bytes());
                at = second;
            }
            world.memory.put(at, &entry.to_le_bytes());
            at += 8;
        }
        begin
    }

    /// A command has completed: its memory may be reused, and is at once.
    fn retire(&mut self, world: &mut World, random: &mut Random, id: (u16, u16)) {
        let Some(over) = self.outstanding.remove(&id) else { return };
        for page in over.pages {
            if !self.outstanding.values().any(|other| other.pages.contains(&page)) {
                Self::scribble(world, random, page, PAGE as usize);
                self.free.push(page);
            }
        }
    }

    /// Takes completion entries.
    pub fn completions(&mut self, world: &mut World, random: &mut Random) {
        for id in self.queues.keys().copied().collect::<Vec<_>>() {
            let mut any = false;
            while let Some(queue) = self.queues.get_mut(&id) {
                let Some(done) = queue.pair.take(&mut world.memory) else { break };
                any = true;
                let (head, cid) = (done.sq_head, done.cid);
                let (base, before) = (queue.pair.sq(), std::mem::replace(&mut queue.head, head));
                // Slots that the controller has consumed may be written at any time from now on.
                for slot in (0..ENTRIES).filter(|_| !self.counts) {
                    let ahead = |to: u16| (to + ENTRIES - before) % ENTRIES;
                    if ahead(slot) < ahead(head) {
                        Self::scribble(world, random, base + u64::from(slot) * 64, 64);
                    }
                }
                if id == 0 {
                    self.done.push(done);
                }
                self.retire(world, random, (id, cid));
            }
            if any {
                let dstrd = world.link().controller.manners.dstrd;
                let offset = Doorbell::CompletionHead(id).offset(dstrd);
                world.write(offset, 4, self.queues[&id].pair.head.into());
            }
        }
    }

    /// Compares the bytes that the controller uses with the bytes that the driver wrote.
    fn check(&mut self, world: &mut World) {
        for used in world.used() {
            let fine = match &used {
                Used::Entry { queue, entry } => {
                    let cid = u16::from_le_bytes([entry[2], entry[3]]);
                    let given = self.outstanding.get(&(*queue, cid));
                    given.is_some_and(|o| o.command.encode()[..] == entry[..])
                }
                Used::Data { queue, cid, data } => {
                    let given = self.outstanding.get(&(*queue, *cid));
                    given.is_some_and(|o| o.data.as_ref().is_none_or(|given| given == data))
                }
            };
            if !fine {
                let why = format!("the controller uses what the driver did not give it: {used:?}");
                world.fault.get_or_insert(why);
            }
        }
    }

    /// One random step of the driver, the controller or the link.
    pub fn progress(&mut self, world: &mut World, random: &mut Random) {
        match random.below(12) {
            0..=2 => world.deliver_down(),
            3..=5 => world.far_side(),
            6..=7 => world.deliver_up(),
            8..=10 => world.link().controller.act(random),
            _ => self.completions(world, random),
        }
        self.check(world);
    }

    /// Aborts a command; if that succeeds, its memory is free.
    pub fn abort(&mut self, world: &mut World, random: &mut Random) {
        let Some(&(queue, cid)) = self.outstanding.keys().find(|(queue, _)| *queue != 0) else {
            return;
        };
        let (opcode, cdw10) = (admin::ABORT, u32::from(cid) << 16 | u32::from(queue));
        if self.succeeds(world, random, Command { opcode, cdw10, ..Command::default() }) {
            self.retire(world, random, (queue, cid));
        }
    }

    /// Deletes a queue with its commands in flight, and creates it again.
    pub fn delete(&mut self, world: &mut World, random: &mut Random) {
        let id = 1 + random.below(2) as u16;
        if self.admin(world, random, delete(admin::DELETE_SQ, id)).is_none() {
            return;
        }
        self.completions(world, random);
        self.queues.remove(&id);
        let gone: Vec<_> =
            self.outstanding.range((id, 0)..=(id, u16::MAX)).map(|(id, _)| *id).collect();
        gone.into_iter().for_each(|id| self.retire(world, random, id));
        for _ in 0..random.below(200) {
            if random.below(8) == 0 {
                self.submit(world, random, 2);
            }
            self.progress(world, random);
        }
        self.admin(world, random, delete(admin::DELETE_CQ, id));
        self.create(world, random, id);
    }

    /// Enables doorbell buffers: most tails no longer reach a doorbell.
    pub fn doorbell_buffers(&mut self, world: &mut World, random: &mut Random) {
        let opcode = admin::DOORBELL_BUFFER_CONFIG;
        if self.succeeds(world, random, Command { opcode, ..Command::default() }) {
            self.shadow = true;
            for (id, queue) in self.queues.iter().filter(|(id, _)| **id != 0) {
                world.link().controller.ring(*id, queue.pair.tail);
            }
        }
    }

    /// Maps other memory at the address of a page.
    pub fn remap(&mut self, world: &mut World, random: &mut Random) {
        let page = FIRST_PAGE + random.below(PAGES) * PAGE;
        for outstanding in self.outstanding.values_mut() {
            if outstanding.pages.contains(&page) {
                // The pages may contain a list.
                if outstanding.pages.len() > 2 {
                    return;
                }
                outstanding.data = None;
            }
        }
        world.host.remapped(page..page + PAGE);
        world.poll_host();
        world.settle_down();
        Self::scribble(world, random, page, PAGE as usize);
    }
}
