//! A device node that is killed: the host notices a pause, and every command has its effect once.

mod world;

use crate::software::page;
use nvme::state::State;
use nvme::{Config, NamespaceConfig};
use stats::random::Random;
use wire::nvme::opcode::{admin, nvm};
use wire::nvme::{Command, IdentifyNamespace, StatusCode, controller_list, feature};
use world::{Dies, World};

const BLOCKS: usize = 32;

/// A drive of 64 KiB for 3 namespaces, with namespace 1 of 16 KiB.
fn state() -> State {
    let mut state = Config::new("DRIVE", vec![NamespaceConfig::new(BLOCKS as u64)]).state();
    (state.drive.capacity, state.drive.max_namespaces) = (64 << 10, 3);
    state
}

fn io(opcode: u8, slba: usize, at: u64) -> Command {
    Command { opcode, nsid: 1, prp1: page(at), cdw10: slba as u32, ..Command::default() }
}

/// The workload, and what it knows of namespace 1.
struct Life {
    world: World,
    random: Random,
    blocks: Vec<u8>,
}

impl Life {
    fn new(seed: u64, dies: Dies) -> Self {
        let mut world = World::new(&state(), seed);
        (world.dies, world.steps) = (dies, 0);
        Self { world, random: Random::new(seed), blocks: vec![0; BLOCKS] }
    }

    fn fill(&mut self, at: u64, value: u8) {
        self.world.software.put(page(at), &[value; 512]);
    }

    /// Up to six commands at the same time, each for a block of its own.
    fn batch(&mut self) {
        let first = self.random.below(BLOCKS as u64) as usize;
        let count = 1 + self.random.below(6) as usize;
        let mut commands = Vec::new();
        let mut reads = Vec::new();
        for number in 0..count {
            let (block, at) = ((first + number) % BLOCKS, number as u64);
            let value = 1 + self.random.below(255) as u8;
            let opcode = [nvm::READ, nvm::WRITE, nvm::WRITE, nvm::WRITE_ZEROES, nvm::FLUSH]
                [self.random.below(5) as usize];
            match opcode {
                nvm::READ => reads.push((at, self.blocks[block])),
                nvm::WRITE => self.blocks[block] = value,
                nvm::WRITE_ZEROES => self.blocks[block] = 0,
                _ => {}
            }
            self.fill(at, if opcode == nvm::READ { 0xee } else { value });
            commands.push(io(opcode, block, at));
        }
        self.world.submit(1, &commands);
        for done in self.world.reap_all(1, count as u16) {
            assert!(done.status.is_success(), "{done:?}");
        }
        for (at, value) in reads {
            let read = self.world.software.ram.get(page(at), 512).expect("host memory");
            assert!(read.iter().all(|byte| *byte == value), "read {} for {value}", read[0]);
        }
    }

    /// A fused Compare and Write, of what is there or of something else.
    fn compare_and_write(&mut self) {
        let block = self.random.below(BLOCKS as u64) as usize;
        let equal = self.random.below(3) > 0;
        let (old, new) = (self.blocks[block], self.blocks[block].wrapping_add(1));
        self.fill(0, if equal { old } else { !old });
        self.fill(1, new);
        let compare = Command { fuse: 1, ..io(nvm::COMPARE, block, 0) };
        let write = Command { fuse: 2, ..io(nvm::WRITE, block, 1) };
        self.world.submit(1, &[compare, write]);
        let done = self.world.reap_all(1, 2);
        assert_eq!(done.iter().all(|one| one.status.is_success()), equal, "{done:?}");
        if equal {
            self.blocks[block] = new;
        } else {
            assert_eq!(done[0].status.code, StatusCode::COMPARE_FAILURE);
        }
    }

    /// Creates, attaches and deletes a namespace. An outstanding request reports the changes.
    fn namespaces(&mut self) {
        let created = self.world.state().created;
        let notices = feature::NAMESPACE_NOTICES;
        let fid = u32::from(feature::ASYNC_EVENT_CONFIG);
        self.admin(Command { cdw10: fid, cdw11: notices, ..command(admin::SET_FEATURES) });
        let new = IdentifyNamespace { size: 8, capacity: 8, ..Default::default() };
        self.world.software.put(page(0), &new.encode_with(&[]));
        let manage = Command { prp1: page(0), ..command(admin::NAMESPACE_MANAGEMENT) };
        assert_eq!(self.admin(manage), 2);
        self.world.software.put(page(0), &controller_list([1]));
        let nsid = 2;
        self.admin(Command { nsid, prp1: page(0), ..command(admin::NAMESPACE_ATTACHMENT) });
        self.admin(Command { nsid, cdw10: 1, ..command(admin::NAMESPACE_MANAGEMENT) });
        let state = self.world.state();
        assert_eq!((state.created, state.namespaces.len()), (created + 1, 1));
    }

    fn admin(&mut self, command: Command) -> u32 {
        self.world.submit(0, &[command]);
        let done = self.world.reap_all(0, 1)[0];
        assert!(done.status.is_success(), "{command:?}: {done:?}");
        done.result
    }

    /// Checks the media after the last command.
    fn end(self) -> World {
        for (block, value) in self.blocks.iter().enumerate() {
            let media = &self.world.media(1)[block * 512..][..512];
            assert!(media.iter().all(|byte| byte == value), "block {block}");
        }
        let health = self.world.state().health;
        assert_eq!((health.power_cycles, health.unsafe_shutdowns), (1, 0));
        self.world
    }
}

fn command(opcode: u8) -> Command {
    Command { opcode, ..Command::default() }
}

fn lived(seed: u64, dies: Dies) -> World {
    let mut life = Life::new(seed, dies);
    for _ in 0..3 {
        life.batch();
        life.compare_and_write();
    }
    life.namespaces();
    life.batch();
    life.end()
}

/// A kill before and after each store of the state, between frames, and between an effect on media
/// or records and its report.
#[test]
fn a_kill_at_any_step_leaves_every_effect_once() {
    for seed in 1..4 {
        let steps = lived(seed, Dies::Never).steps;
        assert!(steps > 50, "{steps}");
        for step in 1..=steps {
            assert_eq!(lived(seed, Dies::At(step)).kills, 1, "seed {seed}, step {step}");
        }
    }
}

#[test]
fn many_kills_leave_every_effect_once() {
    for seed in 100..200 {
        let one = lived(seed, Dies::OneIn(8));
        assert_eq!((one.steps, one.kills), {
            let same = lived(seed, Dies::OneIn(8));
            (same.steps, same.kills)
        });
        assert!(one.kills > 5, "seed {seed}: {}", one.kills);
    }
}
